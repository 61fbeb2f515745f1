"""A cell's loop over time as one compiled function: one pass over each row of a step, no calls from Python."""

from __future__ import annotations

from functools import cache

import torch
from torch import Tensor
from torch.nn import Parameter


def possible(weight: Tensor) -> bool:
    """Whether compiled loops can multiply with this weight: on a processor whose torch brings the product along.

    A tensor of another kind, as torch.export and the like trace with, has no numbers to work on.
    """
    return weight.device.type == "cpu" and type(weight) in (Tensor, Parameter) and product_found(weight.dtype)


@cache
def product_found(dtype: torch.dtype) -> bool:
    """Whether compiled code finds a matrix product of this type."""
    if dtype not in (torch.float32, torch.float64, torch.bfloat16):
        return False
    from unrolled.layers.kernels.compiled.products import found

    return found(dtype)
