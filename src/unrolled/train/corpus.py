"""What training asks of data: a plan of batches for each epoch, of which every process loads its share of rows."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any, NamedTuple, Protocol

from unrolled.base.errors import DataError
from unrolled.train.devices import World


class Batches(Protocol):
    """What ``fit`` asks of a corpus (``data.batching.Batches`` is one). ``rows`` are arrays of row numbers."""

    def plan(self, epoch: int) -> Sequence[Any]:
        """The rows of each batch; the same for the same epoch always."""
        ...

    def load(self, rows: Any) -> Any:
        """A batch: a tree of tensors whose first axis is its rows."""
        ...

    def places(self, rows: Any) -> list[str]:
        """Where the rows stand in the user's file."""
        ...

    def longest(self) -> Any:
        """The rows of the batch that needs most memory."""
        ...


class Portion(NamedTuple):
    """A batch of an update: loaded when its turn comes, named when something is wrong with it."""

    load: Callable[[], Any]  # None where this process has no row of it
    mine: Callable[[], list[str]]  # places of the rows that this process loads
    places: Callable[[], list[str]]  # places of all its rows


def given(batch: Any) -> Portion:
    """A batch that somebody else loaded, whose lines are not known."""
    return Portion(lambda: batch, list, list)


def portion(batches: Batches, rows: Any, world: World) -> Portion:
    """This process' share of a batch: every ``world.size``-th row, none where there are fewer rows than processes."""
    mine = rows[world.rank :: world.size]
    return Portion(
        load=partial(batches.load, mine) if len(mine) else lambda: None,
        mine=partial(batches.places, mine),
        places=partial(batches.places, rows),
    )


class Corpus:
    """Walks over ``batches``; holds the plan of one epoch."""

    def __init__(self, batches: Batches, world: World) -> None:
        self.batches = batches
        self.world = world
        self._epoch: int | None = None
        self._plan: Sequence[Any] = ()

    def size(self, epoch: int) -> int:
        """Batches in ``epoch``; DataError where there are none."""
        if epoch != self._epoch:
            self._epoch, self._plan = epoch, self.batches.plan(epoch)
            if len(self._plan) == 0:
                raise DataError("there is no batch to train on: no row of the training data is left. Check the data.")
        return len(self._plan)

    def take(self, epoch: int, start: int, count: int) -> list[Portion]:
        """The portions of the batches from ``start`` on, at most ``count``."""
        size = self.size(epoch)
        return [
            portion(self.batches, self._plan[place], self.world) for place in range(start, min(start + count, size))
        ]

    def longest(self) -> Portion:
        return portion(self.batches, self.batches.longest(), self.world)


def all_places(portions: Sequence[Portion]) -> Iterator[str]:
    for one in portions:
        yield from one.places()
