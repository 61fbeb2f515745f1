"""Stored frames as rows [time, channels], and padded batches of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
import torch

from unrolled.data.batching import Columns, Rows, Tokens

if TYPE_CHECKING:
    from unrolled.data.store import Store


class FrameRows(Rows):
    """A store whose column ``frames`` is flat: how many channels, then so many numbers a frame."""

    def __init__(self, store: Store) -> None:
        self.store, self.columns = store, store.columns
        self.channels = int(store.take("frames", [0])[0][0]) if len(store) else 1

    def __len__(self) -> int:
        return len(self.store)

    def lengths(self, column: str, start: int = 0, stop: int | None = None) -> np.ndarray:
        found = self.store.lengths(column, start, stop)
        return (found - 1) // np.int32(self.channels) if column == "frames" else found

    def places(self, rows: Sequence[int] | np.ndarray) -> np.ndarray:
        return self.store.places(rows)

    def take(self, column: str, rows: Sequence[int] | np.ndarray) -> list[np.ndarray]:
        taken = self.store.take(column, rows)
        return [row[1:].reshape(-1, self.channels) for row in taken] if column == "frames" else taken


def pad_frames(rows: Sequence[np.ndarray]) -> Tokens:
    """Frames as float32 [batch, time, channels], 0 at padding, with their mask."""
    lengths = np.array([len(row) for row in rows], dtype=np.int64)
    frames = np.zeros((len(rows), int(lengths.max()), rows[0].shape[1]), dtype=np.float32)
    for out, row in zip(frames, rows, strict=True):
        out[: len(row)] = row
    mask = np.arange(frames.shape[1]) < lengths[:, None]
    return Tokens(torch.from_numpy(frames), torch.from_numpy(mask))


def pad_labels(columns: Columns) -> torch.Tensor:
    """The labels of each row, int64 [batch, most of a row], -1 where a row has fewer."""
    labels = np.full((len(columns[1]), max(1, *map(len, columns[1]))), -1, dtype=np.int64)
    for row, ids in zip(labels, columns[1], strict=True):
        row[: len(ids)] = ids
    return torch.from_numpy(labels)
