"""What a search asks of logits: the likeliest symbols and their probabilities."""

from __future__ import annotations

import torch
from torch import Tensor

from unrolled.layers.kernels import compiled
from unrolled.layers.surroundings import followed

FEW = 64
"""Up to how many symbols a row is gone through for them; more are found faster by sorting."""


def likeliest(logits: Tensor, k: int) -> tuple[Tensor, Tensor]:
    """The ``k`` likeliest symbols of each row of ``logits`` [rows, vocabulary], at most all, the best first.

    Their natural-log probabilities under softmax [rows, k], in the logits' type, and their ids int64 [rows, k].
    """
    k = min(k, logits.shape[1])
    numbers = compiled.possible(logits) and not followed(logits)
    if 0 < k <= FEW and numbers and logits.dtype in (torch.float32, torch.float64):
        from unrolled.layers.kernels.compiled.arrays import array
        from unrolled.layers.kernels.compiled.likeliest import pick

        scores = logits.new_empty(len(logits), k)
        ids = torch.empty(len(logits), k, dtype=torch.int64)
        whole = _rows(logits)
        pick(array(whole), logits.shape[1], array(scores), array(ids))
        return scores, ids
    ids = logits.sort(dim=-1, descending=True, stable=True).indices[:, :k]
    return logits.log_softmax(dim=-1).gather(-1, ids), ids


def _rows(logits: Tensor) -> Tensor:
    """``logits`` as whole rows side by side, with what stands between them in memory where they are part of others."""
    rows, apart = len(logits), logits.stride(0)
    room = logits.untyped_storage().nbytes() // logits.itemsize - logits.storage_offset()
    if logits.stride(1) == 1 and apart > logits.shape[1] and rows * apart <= room:
        return logits.as_strided((rows, apart), (apart, 1))
    return logits.contiguous()
