"""Stored numbers as arrays, and padded batches of frames."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import torch

from unrolled.data.batching import Columns, Rows, Tokens
from unrolled.text.reading import pad_frames as side_by_side

if TYPE_CHECKING:
    from unrolled.data.store import Store


class NumberRows(Rows):
    """A store whose ``column`` is flat arrays (`unrolled.text.reading.flat`), each as ``stored`` makes it again.

    ``axes``: how many they have. The length of a row is how many positions all its axes but the last have,
    ``counted`` of them as one.
    """

    def __init__(
        self, store: Store, column: str, stored: Callable[[np.ndarray], np.ndarray], axes: int, counted: int = 1
    ) -> None:
        self.counted = counted
        self.store, self.columns = store, store.columns
        self.column, self.stored, self.axes = column, stored, axes
        self.channels = int(store.take(column, [0])[0][axes - 2]) if len(store) else 1

    def __len__(self) -> int:
        return len(self.store)

    def lengths(self, column: str, start: int = 0, stop: int | None = None) -> np.ndarray:
        found = self.store.lengths(column, start, stop)
        if column != self.column:
            return found
        positions = (found - (self.axes - 1)) // np.int32(self.channels)
        return -(-positions // np.int32(self.counted))

    def places(self, rows: Sequence[int] | np.ndarray) -> np.ndarray:
        return self.store.places(rows)

    def take(self, column: str, rows: Sequence[int] | np.ndarray) -> list[np.ndarray]:
        taken = self.store.take(column, rows)
        return [self.stored(row) for row in taken] if column == self.column else taken


class Drawings(NamedTuple):
    """A batch of drawings, padded, and their labels."""

    points: Tokens  # float32 [batch, time, 3]
    labels: torch.Tensor  # int64 [batch], 0 for none


def frame_rows(store: Store, column: str = "frames") -> NumberRows:
    """The rows of a store whose ``column`` holds arrays [time, channels]."""
    return NumberRows(store, column, lambda row: row[1:].reshape(-1, int(row[0])), 2)


def pad_frames(rows: Sequence[np.ndarray]) -> Tokens:
    """Frames as float32 [batch, time, channels], 0 at padding, with their mask."""
    frames, mask = side_by_side(rows)
    return Tokens(torch.from_numpy(frames), torch.from_numpy(mask))


def pad_labels(columns: Columns) -> torch.Tensor:
    """The labels of each row, int64 [batch, most of a row], -1 where a row has fewer."""
    labels = np.full((len(columns[1]), max(1, *map(len, columns[1]))), -1, dtype=np.int64)
    for row, ids in zip(labels, columns[1], strict=True):
        row[: len(ids)] = ids
    return torch.from_numpy(labels)
