"""Layer normalisation of a step's sums: over the gates of one row, in float32 or wider."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor
from torch.nn import functional

from unrolled.layers.surroundings import without_autocast

EPSILON = 1e-5
"""Added to the variance, as everywhere."""


def normalise(x: Tensor, gain: Tensor, shift: Tensor | None = None) -> Tensor:
    """gain · (x - mean) / √(variance + ε) (+ shift) over the last axis (Ba et al. 2016, arXiv:1607.06450, equation 4).

    ``x`` [..., size], ``gain`` and ``shift`` [size]; the result has x's type, its statistics are float32 or wider.
    """
    work = torch.promote_types(x.dtype, torch.float32)
    with without_autocast(x):
        shift = None if shift is None else shift.to(work)
        return functional.layer_norm(x.to(work), x.shape[-1:], gain.to(work), shift, EPSILON).to(x.dtype)


def normalise_groups(x: Tensor, gain: Tensor, widths: Sequence[int]) -> Tensor:
    """`normalise` of each of the groups of ``widths`` that stand side by side in ``x`` [..., Σ widths]."""
    if len(widths) == 1:
        return normalise(x, gain)
    groups = zip(x.split(tuple(widths), -1), gain.split(tuple(widths)), strict=True)
    return torch.cat([normalise(part, own) for part, own in groups], -1)
