"""What a model is given is looked at once, where it comes in, and named where it does not fit."""

from __future__ import annotations

import torch
from torch import Tensor

from unrolled.base.errors import UsageError
from unrolled.layers import State


def check_pairs(source: Tensor, source_mask: Tensor, target_ids: Tensor, target_mask: Tensor) -> None:
    """UsageError unless ids are [batch, source] and [batch, target], with masks alike and a symbol after the first.

    A source of numbers is [batch, …], with a mask [batch, positions] of the positions that are read of it.
    """
    symbols = not source.is_floating_point()
    wanted = "[batch, source]" if symbols else "[batch, …] of numbers"
    for name, given, mask, shape, fits in (
        ("source", source, source_mask, wanted, source.dim() == 2 if symbols else source.dim() > 2),
        ("target", target_ids, target_mask, "[batch, target]", target_ids.dim() == 2),
    ):
        ids = f"{name}_ids" if name == "target" or symbols else name
        if not fits or 0 in given.shape:
            raise UsageError(
                f"{ids} have the shape {list(given.shape)}; they must be {shape}, with at least one row and one symbol."
            )
        alike = mask.shape == given.shape if given.dim() == 2 else mask.dim() == 2 and mask.shape[0] == given.shape[0]
        if mask.dtype is not torch.bool or not alike:
            shown = list(given.shape) if given.dim() == 2 else f"[{given.shape[0]}, positions]"
            raise UsageError(
                f"{name}_mask is {mask.dtype} {list(mask.shape)}; it must be torch.bool {shown}, as the {ids}, "
                "True = real."
            )
    if source.shape[0] != target_ids.shape[0]:
        raise UsageError(
            f"{'source_ids' if symbols else 'source'} have {source.shape[0]} rows, target_ids {target_ids.shape[0]}; a "
            "row is a pair of both."
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
