"""Rows of ids side by side: the shape in which a network reads them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np


def pad(rows: Sequence[Sequence[int]]) -> tuple[np.ndarray, np.ndarray]:
    """Rows of ids as int64 [rows, longest] filled with PAD (0), and their mask, True = real."""
    lengths = np.array([len(row) for row in rows])
    mask = np.arange(lengths.max(initial=0)) < lengths[:, None]
    ids = np.zeros(mask.shape, dtype=np.int64)
    ids[mask] = np.concatenate([np.asarray(row, dtype=np.int64) for row in rows]) if len(rows) else 0
    return ids, mask
