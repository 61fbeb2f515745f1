"""What torch.nn says of rows of different lengths, a PackedSequence or lengths, as this library says it."""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
from torch import Tensor
from torch.nn.utils.rnn import PackedSequence, pad_packed_sequence

from unrolled.base.errors import UsageError
from unrolled.layers.cells import State
from unrolled.layers.kernels.order import Order
from unrolled.layers.surroundings import followed

WHOLE = (torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64)


def prefix_mask(lengths: Tensor | Sequence[int], batch: int, time: int, device: torch.device) -> Tensor:
    """Mask bool [batch, time], True in the first ``lengths`` [batch] positions of each row.

    UsageError where they are not one whole number of 1 to ``time`` a row.
    """
    try:
        found = torch.as_tensor(lengths)
    except (TypeError, ValueError, RuntimeError):
        raise UsageError(f"lengths is {lengths!r}; it must be {batch} whole numbers, one for each row.") from None
    if found.dim() != 1 or len(found) != batch or found.dtype not in WHOLE:
        raise UsageError(
            f"lengths is {found.dtype} {list(found.shape)}; it must be {batch} whole numbers, one for each row."
        )
    wrong = () if followed(found) else ((found < 1) | (found > time)).nonzero()
    if len(wrong):
        row = int(wrong[0])
        raise UsageError(
            f"lengths: row {row} is {int(found[row])} long; in this input it has at least 1 and at most {time} steps."
        )
    return torch.arange(time, device=device) < found.to(device).unsqueeze(1)


def order_of_packed(packed: PackedSequence) -> Order:
    """The order in which the rows of ``packed`` lie: sorted already, so that it moves none."""
    sizes = packed.batch_sizes
    lengths = (sizes.unsqueeze(1) > torch.arange(int(sizes[0]))).sum(0)
    return Order(len(lengths), len(sizes), lengths.tolist(), packed.data.device)


def check_finite(packed: PackedSequence) -> None:
    """UsageError where ``packed`` holds a number that is not finite, by the caller's number of its row."""
    if followed(packed.data):
        return
    if math.isfinite(packed.data.detach().sum(dtype=torch.promote_types(packed.data.dtype, torch.float32)).item()):
        return
    padded, _ = pad_packed_sequence(packed, batch_first=True)
    found = (~padded.isfinite()).nonzero().tolist()
    if found:  # else only the sum ran over
        row, step, column = found[0]
        raise UsageError(
            f"input holds {padded[row, step, column].item()} at row {row}, step {step}; its numbers must be finite. "
            "Look at what made them, e.g. the data or a weight."
        )


def moved(rows: State, index: Tensor | None) -> State:
    """The rows of a state in another order; None for ``index`` is the order that they have."""
    if index is None:
        return rows
    return tuple(tensor.index_select(0, index) for tensor in rows)
