"""Learning-rate schedules: a factor on the learning rate, from how far the run is."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from typing import Annotated, NamedTuple

from annotated_types import Ge, Interval

from unrolled.base.registry import Registry


class Progress(NamedTuple):
    """``step`` updates are done (from 0), which is ``share`` (0 to 1) of the run: of its steps, epochs or minutes,
    whichever is furthest."""

    step: int
    share: float


Warmup = Annotated[float, Ge(0)]


class Schedule(ABC):
    """``warmup``: how long the rate rises from near zero: below 1 a share of the run, from 1 on steps; 0 not at all."""

    def __init__(self, warmup: float) -> None:
        self.warmup = warmup

    @abstractmethod
    def factor(self, progress: Progress) -> float:
        """What the learning rate is multiplied with for the next update; between 0 and 1."""

    def observe(self, better: bool) -> None:  # noqa: B027  (most schedules have nothing to learn from a validation)
        """Hears of every validation whether it was the best so far."""

    def state(self) -> dict[str, int]:
        """What the schedule remembers, for a checkpoint."""
        return {}

    def restore(self, state: dict[str, int]) -> None:  # noqa: B027
        """Take up ``state()`` of a checkpoint."""

    def warmed(self, progress: Progress) -> float:
        """How far the warm-up is: 0 at the first update, 1 at its end, then on in proportion."""
        if self.warmup == 0:
            return math.inf
        done = progress.share if self.warmup < 1 else progress.step + 1
        return done / self.warmup


SCHEDULES: Registry[Schedule] = Registry("schedule")

FLOOR = 0.04
"""The factor at the first update of a warm-up that is measured as a share (whose first share is 0)."""


@SCHEDULES.register("constant")
class Constant(Schedule):
    """A straight rise, then 1."""

    def __init__(self, *, warmup: Warmup = 0.0) -> None:
        super().__init__(warmup)

    def factor(self, progress: Progress) -> float:
        return min(1.0, max(FLOOR, self.warmed(progress)))


@SCHEDULES.register("inverse_root")
class InverseRoot(Schedule):
    """A straight rise, then 1/√(steps/warmup) (Vaswani et al. 2017, arXiv:1706.03762, §5.3, with its top at 1)."""

    def __init__(self, *, warmup: Annotated[float, Interval(gt=0)] = 0.05) -> None:
        super().__init__(warmup)

    def factor(self, progress: Progress) -> float:
        warmed = max(FLOOR, self.warmed(progress))
        return min(warmed, warmed**-0.5)


@SCHEDULES.register("one_cycle")
class OneCycle(Schedule):
    """A rise and a fall to near zero, both half a cosine (Smith and Topin 2017, arXiv:1708.07120; the rate only)."""

    def __init__(self, *, warmup: Warmup = 0.1, end: Annotated[float, Interval(ge=0, le=1)] = 0.001) -> None:
        super().__init__(warmup)
        self.end = end

    def factor(self, progress: Progress) -> float:
        warmed = self.warmed(progress)
        if warmed < 1:
            return FLOOR + (1 - FLOOR) * (1 - math.cos(math.pi * warmed)) / 2
        top = self.warmup
        if self.warmup >= 1:  # the share at which the rise ended, at the pace so far
            top = self.warmup * progress.share / (progress.step + 1)
        fallen = min(1.0, max(0.0, progress.share - top) / max(1 - top, 1e-9))
        return self.end + (1 - self.end) * (1 + math.cos(math.pi * fallen)) / 2


@SCHEDULES.register("linear")
class Linear(Schedule):
    """A straight rise, then a straight fall to ``end`` (word2vec: Mikolov et al. 2013, arXiv:1301.3781, §4.2)."""

    def __init__(self, *, warmup: Warmup = 0.0, end: Annotated[float, Interval(ge=0, le=1)] = 0.004) -> None:
        super().__init__(warmup)
        self.end = end

    def factor(self, progress: Progress) -> float:
        fallen = 1 - (1 - self.end) * progress.share
        return min(fallen, max(FLOOR, self.warmed(progress)))


@SCHEDULES.register("exponential")
class Exponential(Schedule):
    """A straight rise, then 1 until ``hold``, a share of the run, then ever less by the same factor, to ``end``.

    Zaremba et al. 2014 (arXiv:1409.2329, §4.1) keep the rate for some epochs and then divide it after each.
    """

    def __init__(
        self,
        *,
        warmup: Warmup = 0.0,
        hold: Annotated[float, Interval(ge=0, lt=1)] = 0.3,
        end: Annotated[float, Interval(gt=0, le=1)] = 0.01,
    ) -> None:
        super().__init__(warmup)
        self.hold = hold
        self.end = end

    def factor(self, progress: Progress) -> float:
        fallen = max(0.0, progress.share - self.hold) / (1 - self.hold)
        return min(1.0, max(FLOOR, self.warmed(progress))) * float(self.end**fallen)


@SCHEDULES.register("plateau")
class Plateau(Schedule):
    """A straight rise, then 1, cut by ``cut`` whenever ``wait`` validations in a row brought no better score."""

    def __init__(
        self,
        *,
        warmup: Warmup = 0.0,
        cut: Annotated[float, Interval(gt=0, lt=1)] = 0.5,
        wait: Annotated[int, Ge(1)] = 2,
    ) -> None:
        super().__init__(warmup)
        self.cut = cut
        self.wait = wait
        self.cuts = 0
        self.waited = 0

    def factor(self, progress: Progress) -> float:
        return min(1.0, max(FLOOR, self.warmed(progress))) * self.cut**self.cuts

    def observe(self, better: bool) -> None:
        self.waited = 0 if better else self.waited + 1
        if self.waited == self.wait:
            self.cuts += 1
            self.waited = 0

    def state(self) -> dict[str, int]:
        return {"cuts": self.cuts, "waited": self.waited}

    def restore(self, state: dict[str, int]) -> None:
        self.cuts, self.waited = int(state["cuts"]), int(state["waited"])
