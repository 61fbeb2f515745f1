"""What is learnt of training series: clock, columns, season, window; scales of each series; numbers in and out."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from unrolled.base.errors import DataError
from unrolled.text.base import Rows, Text
from unrolled.text.clock import Clock
from unrolled.text.seasons import Naive, by_shares, naive, season_of
from unrolled.text.series import Roles, Series, read_series
from unrolled.text.trees import tree_of, write_tree

MOST_LEVELS = 100
"""Different values of a static column up to which each gets a number of its own."""


@dataclass(frozen=True, kw_only=True)
class ForecastingSettings:
    """``scale``: each target of each series less its mean, through its standard deviation (both of its training steps;
    a series that training never had is scaled by the past that it comes with), or as it is. ``transform``: the natural
    logarithm of targets before that, where all are above 0: always, never, or (``auto``) where higher values spread
    more."""

    scale: Literal["standard", "none"] = "standard"
    transform: Literal["auto", "none", "log"] = "auto"


class Scale(NamedTuple):
    """The scale of a series' targets, and how far naive rules were from it: lists over targets."""

    mean: list[float]
    deviation: list[float]
    last: list[Naive]  # of the step before
    season: list[Naive]  # of the step a season before


class Window(NamedTuple):
    """How far a forecast looks back and ahead, in steps."""

    context: int
    horizon: int
    season: int  # 1: there is none
    least: int  # steps of the past that a forecast needs


class SeriesText(Text):
    """Series as float32 [time, channels] and forecasts as numbers of the user.

    Channels: targets, what is known of the past, what is known ahead, the calendar, static columns (a channel a value).
    """

    settings = ForecastingSettings

    def __init__(
        self, clock: Clock, roles: Roles, window: Window, *, missing: str, ends: float = float("inf"),
        logs: Sequence[bool] = (), cycles: Sequence[float] = (), levels: Sequence[Sequence[str]] = (),
        others: tuple[Sequence[float], Sequence[float]] = ((), ()), scales: Mapping[str, Scale] | None = None,
        scaled: bool = True,
    ) -> None:  # fmt: skip
        self.clock, self.roles, self.window, self.missing, self.ends = clock, roles, window, missing, ends
        self.logs, self.cycles = tuple(logs), tuple(cycles)
        self.levels = tuple(tuple(names) for names in levels)
        self.others = tuple(others[0]), tuple(others[1])
        self.scales, self.scaled = dict(scales or {}), scaled

    # --- learning -------------------------------------------------------------------------------------------------

    @classmethod
    def learn(
        cls, settings: Mapping[str, Any], rows: Rows, *, horizon: int | None = None, context: int | None = None,
        season: int | None = None, calendar: bool = True, missing: str = "refuse",
    ) -> SeriesText:  # fmt: skip
        """From training series alone. What is None follows from them: a season from the calendar or the numbers, a
        horizon of a season, a context of three."""
        all_ = [read_series(row) for row in rows()]
        if not all_:
            raise DataError("there is no series to learn from.")
        clock, roles = all_[0].clock, all_[0].roles
        targets = [one.values[: one.ends, place] for place in range(len(roles.target)) for one in all_]
        cycles = clock.cycles()
        found = season or season_of(targets, cycles)
        longest = max(one.ends for one in all_)
        window = _window(horizon or usual_horizon(clock), context, found, longest)
        counts = range(len(roles.target))
        choice = settings["transform"]
        logs = [
            choice == "log" or (choice == "auto" and by_shares([one.values[: one.ends, at] for one in all_], found))
            for at in counts
        ]
        text = SeriesText(
            clock,
            roles,
            window,
            missing=missing,
            ends=max(one.first + one.ends for one in all_),
            logs=logs,
            cycles=[cycle for cycle in cycles if longest >= 2 * cycle] if calendar else [],
            levels=_levels(all_, roles),
            others=_moments([one.values[:, len(roles.target) :] for one in all_]),
            scaled=settings["scale"] == "standard",
        )
        text.scales = {one.name: text._scale_of(one, one.ends) for one in all_}
        return text

    def _scale_of(self, one: Series, count: int) -> Scale:
        """The scale of a series' first ``count`` steps."""
        given = one.values[:count, : len(self.roles.target)]
        moved = self._transformed(given, one.name)
        mean, deviation = _moments([moved]) if self.scaled else ([0.0] * given.shape[1], [1.0] * given.shape[1])
        columns = given.T
        return Scale(
            list(mean),
            list(deviation),
            [naive(column, 1) for column in columns],
            [naive(column, self.window.season) for column in columns],
        )

    def scale(self, one: Series) -> Scale:
        """The scale of a series: learnt, or of the past that it comes with."""
        known = self.scales.get(one.name)
        return known if known is not None else self._scale_of(one, max(one.start, self.window.least))

    # --- numbers --------------------------------------------------------------------------------------------------

    def _transformed(self, targets: NDArray[np.float64], name: str) -> NDArray[np.float64]:
        found = targets.astype(np.float64).copy()
        for place in np.flatnonzero(self.logs).tolist():
            column = found[:, place]
            if (column <= 0).any():
                which = f" of the series '{name}'" if name else ""
                raise DataError(
                    f"'{self.roles.target[place]}'{which} has a value of {float(np.nanmin(column)):g}, and the model "
                    "takes logarithms, as all training values are above 0. Train with --set text.transform=none"
                )
            found[:, place] = np.log(column)
        return found

    @property
    def numbers(self) -> int:
        """Channels that may be missing: the user's own."""
        return len(self.roles.numbers)

    @property
    def ahead(self) -> int:
        """Channels that are known ahead."""
        return len(self.roles.known) + 2 * len(self.cycles) + sum(map(len, self.levels))

    def encoded(self, one: Series) -> NDArray[np.float32]:
        """Float32 [time, channels] of a series' scaled numbers, NaN where missing. DataError for other columns, and for
        a value without a logarithm where the model takes these."""
        if one.roles.numbers != self.roles.numbers:
            raise DataError(f"columns {', '.join(one.roles.numbers)}; the model reads {', '.join(self.roles.numbers)}.")
        count, scale = len(self.roles.target), self.scale(one)
        targets = (self._transformed(one.values[:, :count], one.name) - scale.mean) / scale.deviation
        others = (one.values[:, count:] - np.array(self.others[0])) / np.array(self.others[1])
        calendar = self.clock.calendar(one.positions(), self.cycles)
        static = [float(value == name) for value, names in zip(one.static, self.levels, strict=True) for name in names]
        constant = np.tile(np.array(static, np.float64), (len(one.values), 1))
        return np.concatenate([targets, others, calendar, constant], axis=1).astype(np.float32)

    def restored(self, scaled: NDArray[np.floating[Any]], scale: Scale) -> NDArray[np.float64]:
        """Numbers of the user [..., targets] of scaled ones."""
        found: NDArray[np.float64] = scaled.astype(np.float64) * scale.deviation + scale.mean
        if any(self.logs):
            found = np.where(np.array(self.logs), np.exp(np.minimum(found, 700.0)), found)
        return found

    # --- files ----------------------------------------------------------------------------------------------------

    def fingerprint(self) -> str:
        return repr(self._tree())

    def _tree(self) -> dict[str, Any]:
        return {
            "clock": self.clock.tree(),
            "roles": {name: list(names) for name, names in self.roles._asdict().items()},
            "window": self.window._asdict(),
            "missing": self.missing,
            "ends": self.ends,
            "logs": list(self.logs),
            "cycles": list(self.cycles),
            "levels": [list(names) for names in self.levels],
            "others": [list(self.others[0]), list(self.others[1])],
            "scaled": self.scaled,
            "scales": {
                name: [
                    scale.mean,
                    scale.deviation,
                    [list(one) for one in scale.last],
                    [list(one) for one in scale.season],
                ]
                for name, scale in self.scales.items()
            },
        }

    def save(self, folder: str | Path) -> None:
        write_tree(Path(folder) / "series.json", self._tree())

    @classmethod
    def load(cls, folder: str | Path) -> SeriesText:
        with tree_of(Path(folder) / "series.json", "scales of the series") as tree:
            scales = {
                name: Scale(mean, deviation, [Naive(*one) for one in last], [Naive(*one) for one in season])
                for name, (mean, deviation, last, season) in tree["scales"].items()
            }
            return SeriesText(
                Clock(**tree["clock"]),
                Roles(**{name: tuple(names) for name, names in tree["roles"].items()}),
                Window(**tree["window"]),
                missing=tree["missing"],
                ends=float(tree["ends"]),
                logs=tree["logs"],
                cycles=tree["cycles"],
                levels=tree["levels"],
                others=(tree["others"][0], tree["others"][1]),
                scales=scales,
                scaled=bool(tree["scaled"]),
            )

    def about(self) -> dict[str, str]:
        window, roles = self.window, self.roles
        season = f"a season of {window.season}" if window.season > 1 else "no season"
        found = {
            "series": f"{len(self.scales):,}, a step each {self.clock.named()}, {season}",
            "window": f"{window.context} steps back, {window.horizon} ahead",
            "target": ", ".join(
                f"{name}{' (its logarithm)' if log else ''}" for name, log in zip(roles.target, self.logs, strict=True)
            ),
        }
        others = [*roles.past, *roles.known, *roles.static]
        return found | ({"beside it": ", ".join(others)} if others else {})


def usual_horizon(clock: Clock) -> int:
    """Steps ahead where nobody says how many: the shortest cycle of the calendar, at least 6 of it; else 12."""
    whole = [round(cycle) for cycle in clock.cycles() if abs(cycle - round(cycle)) < 1e-6]
    return next((cycle for cycle in whole if 6 <= cycle <= 200), 12)


def _window(horizon: int, context: int | None, season: int, longest: int) -> Window:
    usual = max(3 * season if season > 1 else 4 * horizon, horizon)
    chosen = context or max(min(usual, longest - horizon), 2)
    least = min(chosen, season if season > 1 else max(2, chosen // 4))
    return Window(chosen, horizon, season, least)


def _moments(blocks: Iterable[NDArray[np.float64]]) -> tuple[list[float], list[float]]:
    """Mean and standard deviation of each channel over all steps of ``blocks`` [time, channels] that are not missing; 0
    and 1 where there are none, 1 where it never changes."""
    means, deviations = [], []
    for channel in np.concatenate(list(blocks)).T:
        real = channel[np.isfinite(channel)]
        means.append(float(real.mean()) if len(real) else 0.0)
        spread = float(real.std()) if len(real) else 0.0
        deviations.append(spread if spread > 1e-9 * max(abs(means[-1]), 1e-300) else 1.0)
    return means, deviations


def _levels(all_: Sequence[Series], roles: Roles) -> list[list[str]]:
    found = []
    for place, name in enumerate(roles.static):
        values = sorted({one.static[place] for one in all_})
        if len(values) > MOST_LEVELS:
            raise DataError(
                f"the static column '{name}' has {len(values):,} different values; up to {MOST_LEVELS} are told apart. "
                "Leave it out, or put values together."
            )
        found.append(values)
    return found
