"""Windows over stored series: a forecast's past and future, cut out of the store when a batch is loaded."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from unrolled.base.errors import SettingsError
from unrolled.data.batching import Rows


class Windowed(NamedTuple):
    """A batch of windows. Masks are bool, True = real.

    What is missing is 0 in ``past``, ``future`` and ``target``, or what was last there, and False in its mask.
    """

    past: Tensor  # float32 [batch, context, channels]: all channels, the last step real; padding at the end
    mask: Tensor  # [batch, context]: which steps there are, the first ones of each row
    seen: Tensor  # [batch, context, numbers]: which numbers of the user are not missing
    future: Tensor  # float32 [batch, horizon, known]: what is known ahead
    target: Tensor  # float32 [batch, horizon, targets]
    wanted: Tensor  # [batch, horizon, targets]: which of these there are


class Cutting(NamedTuple):
    """How windows are cut out of series."""

    context: int
    horizon: int
    least: int  # steps of the past that there must be
    targets: int
    numbers: int  # channels that may be missing; those after them never are
    ahead: int  # channels known ahead, the last ones of all
    forward: int  # 1: what is missing of the past is what was last there; 0: it is 0


HEAD = 2 + len(Cutting._fields)
"""Numbers in front of those of a stored series: how many channels, the first step that may be forecast, and how windows
are cut out of it."""


def flat(series: np.ndarray, start: int, how: Cutting) -> np.ndarray:
    """What a store keeps of a series [time, channels], float32 [HEAD + time · channels]."""
    return np.concatenate([np.array([series.shape[1], start, *how], np.float32), series.ravel()])


def cut_window(series: np.ndarray, origin: int, how: Cutting) -> tuple[np.ndarray, ...]:
    """(past, seen, future, target, wanted) of the window of ``series`` [time, channels] that forecasts from step
    ``origin`` on; the past unpadded, what lies behind the end of the series missing."""
    past = series[max(origin - how.context, 0) : origin]
    ahead = series[origin : origin + how.horizon]
    seen = np.isfinite(past[:, : how.numbers])
    if how.forward:
        past = filled(past)
    target = np.full((how.horizon, how.targets), np.nan, np.float32)
    target[: len(ahead)] = ahead[:, : how.targets]
    future = np.zeros((how.horizon, how.ahead), np.float32)
    if how.ahead:
        future[: len(ahead)] = np.nan_to_num(ahead[:, -how.ahead :], nan=0.0)
    return np.nan_to_num(past, nan=0.0), seen, future, np.nan_to_num(target, nan=0.0), np.isfinite(target)


def filled(past: np.ndarray) -> np.ndarray:
    """``past`` [time, channels] with what was last there in the place of what is missing; before the first number, that
    one."""
    real = np.isfinite(past)
    places = np.maximum.accumulate(np.where(real, np.arange(len(past))[:, None], -1), axis=0)
    places = np.where(places >= 0, places, real.argmax(axis=0))
    return np.take_along_axis(past, places, axis=0)


def padded(windows: Sequence[tuple[np.ndarray, ...]], context: int) -> Windowed:
    """Windows of `cut_window` as a batch, each past padded to ``context`` steps."""
    count = len(windows)
    past = np.zeros((count, context, windows[0][0].shape[1]), np.float32)
    seen = np.zeros((count, context, windows[0][1].shape[1]), bool)
    lengths = np.array([len(window[0]) for window in windows])
    for row, window in enumerate(windows):
        past[row, : lengths[row]], seen[row, : lengths[row]] = window[0], window[1]
    mask = np.arange(context) < lengths[:, None]
    others = [np.stack([window[place] for window in windows]) for place in (2, 3, 4)]
    return Windowed(*map(torch.from_numpy, (past, mask, seen, *others)))


class Windows:
    """All windows of a store's series, epoch by epoch in another order (`unrolled.train.corpus.Batches`).

    The store's column ``steps`` is what `flat` makes, its column ``lines`` the line of each step. A window may reach
    over the end of its series: what lies behind is not wanted. ``draw``: so many windows an epoch, drawn anew each;
    None: all. Without ``shuffle`` they come in order, the same each epoch.
    """

    def __init__(self, store: Rows, *, size: int, seed: int, shuffle: bool, name: str, draw: int | None = None) -> None:
        if size < 1:
            raise SettingsError(f"a batch of {size} windows was asked for; it must hold at least 1.")
        self.store, self.size, self.name = store, size, name
        self._seed, self._shuffle, self._draw = seed, shuffle, draw
        heads = [store.take("steps", [row])[0][:HEAD] for row in range(len(store))]
        self.channels = int(heads[0][0]) if heads else 1
        self.how = Cutting(*map(int, heads[0][2:])) if heads else Cutting(1, 1, 1, 1, 1, 0, 0)
        self.begins = np.array([max(int(head[1]), self.how.least) for head in heads], dtype=np.int64)
        lengths = (store.lengths("steps").astype(np.int64) - HEAD) // self.channels
        counts = np.maximum(lengths - self.begins, 0)
        self.short = int((counts == 0).sum())
        self.offsets = np.concatenate([[0], np.cumsum(counts)])

    def __len__(self) -> int:
        return int(self.offsets[-1])

    def plan(self, epoch: int) -> list[np.ndarray]:
        """The window numbers (int64) of each batch of ``epoch``: a function of the store, the seed and the epoch."""
        order = np.arange(len(self))
        if self._shuffle:
            order = np.random.default_rng((self._seed, epoch)).permutation(order)[: self._draw]
        return [order[start : start + self.size] for start in range(0, len(order), self.size)]

    def at(self, window: int) -> tuple[int, int]:
        """(row of the store, step that it forecasts first) of a window."""
        row = int(np.searchsorted(self.offsets, window, side="right")) - 1
        return row, int(self.begins[row] + window - self.offsets[row])

    def load(self, rows: np.ndarray) -> Windowed:
        """The windows of some numbers, cut out of the store."""
        found = []
        for window in np.asarray(rows).tolist():
            row, origin = self.at(window)
            series = self.store.take("steps", [row])[0][HEAD:].reshape(-1, self.channels)
            found.append(cut_window(series, origin, self.how))
        return padded(found, self.how.context)

    def places(self, rows: np.ndarray) -> list[str]:
        """Where the first forecast step of each window stands: ``sales.csv:120``."""
        found = []
        for window in np.asarray(rows).tolist():
            row, origin = self.at(window)
            found.append(f"{self.name}:{int(self.store.take('lines', [row])[0][origin])}")
        return found

    def longest(self) -> np.ndarray:
        """The windows of a whole batch."""
        return np.arange(min(self.size, len(self)))

    def remarks(self) -> list[str]:
        """What is not used: series that are too short."""
        if not self.short:
            return []
        one = self.short == 1
        return [
            f"{self.name}: {self.short:,} series {'has' if one else 'have'} not the {self.how.least} steps back and 1 "
            f"ahead that a window needs, and {'is' if one else 'are'} not used."
        ]
