"""What a model is given is looked at once, where it comes in, and named where it does not fit."""

from __future__ import annotations

import torch
from torch import Tensor

from unrolled.base.errors import UsageError
from unrolled.layers import State


def check_pairs(source_ids: Tensor, source_mask: Tensor, target_ids: Tensor, target_mask: Tensor) -> None:
    """UsageError unless ids are [batch, source] and [batch, target], with masks alike and a symbol after the first."""
    for side, ids, mask in (("source", source_ids, source_mask), ("target", target_ids, target_mask)):
        if ids.dim() != 2 or 0 in ids.shape:
            raise UsageError(
                f"{side}_ids have the shape {list(ids.shape)}; they must be [batch, {side}], with at least one row "
                "and one symbol."
            )
        if mask.dtype is not torch.bool or mask.shape != ids.shape:
            raise UsageError(
                f"{side}_mask is {mask.dtype} {list(mask.shape)}; it must be torch.bool {list(ids.shape)}, as the "
                f"{side}_ids, True = real."
            )
    if source_ids.shape[0] != target_ids.shape[0]:
        raise UsageError(
            f"source_ids have {source_ids.shape[0]} rows, target_ids {target_ids.shape[0]}; a row is a pair of both."
        )
    if target_ids.shape[1] < 2:
        raise UsageError("target_ids have one symbol a row; a target begins with BEGIN, and what is asked for follows.")


def check_rows(last_ids: Tensor, state: State) -> None:
    """UsageError unless every tensor of ``state`` has a row for each of ``last_ids`` [batch]."""
    if last_ids.dim() != 1:
        raise UsageError(f"last_ids have the shape {list(last_ids.shape)}; they must be [batch].")
    rows = last_ids.shape[0]
    if not state or any(part.shape[0] != rows for part in state):
        found = sorted({int(part.shape[0]) for part in state})
        raise UsageError(
            f"the state of a step has {len(state)} tensors with {found} rows, last_ids have {rows}; take the state "
            "from start, from select, or from the last step of the same rows."
        )
