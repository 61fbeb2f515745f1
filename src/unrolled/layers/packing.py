"""Between torch.nn's PackedSequence, lengths, and the padded batch with its mask that this library runs on."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor
from torch.nn.utils.rnn import PackedSequence, pack_padded_sequence, pad_packed_sequence

from unrolled.base.errors import UsageError

WHOLE = (torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64)


def prefix_mask(lengths: Tensor | Sequence[int], batch: int, time: int, device: torch.device) -> Tensor:
    """Mask bool [batch, time], True in the first ``lengths`` [batch] positions of each row.

    UsageError where they are not one whole number of 1 to ``time`` a row.
    """
    found = torch.as_tensor(lengths)
    if found.dim() != 1 or len(found) != batch or found.dtype not in WHOLE:
        raise UsageError(
            f"lengths is {found.dtype} {list(found.shape)}; it must be {batch} whole numbers, one for each row."
        )
    wrong = ((found < 1) | (found > time)).nonzero()
    if len(wrong):
        row = int(wrong[0])
        raise UsageError(
            f"lengths: row {row} is {int(found[row])} long; in this input it has at least 1 and at most {time} steps."
        )
    return torch.arange(time, device=device) < found.to(device).unsqueeze(1)


def pad(packed: PackedSequence) -> tuple[Tensor, Tensor]:
    """A PackedSequence as padded rows [batch, time, size] in the caller's order, and their mask [batch, time]."""
    padded, lengths = pad_packed_sequence(packed, batch_first=True)
    return padded, torch.arange(padded.shape[1], device=padded.device) < lengths.to(padded.device).unsqueeze(1)


def pack_like(packed: PackedSequence, padded: Tensor) -> PackedSequence:
    """``padded`` [batch, time, size], in the caller's order, packed as ``packed`` is."""
    rows = padded if packed.sorted_indices is None else padded.index_select(0, packed.sorted_indices)
    sizes = packed.batch_sizes
    lengths = (sizes.unsqueeze(1) > torch.arange(len(rows))).sum(0)
    data = pack_padded_sequence(rows, lengths, batch_first=True).data
    return PackedSequence(data, sizes, packed.sorted_indices, packed.unsorted_indices)
