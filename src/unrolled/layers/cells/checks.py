"""What a recurrence refuses before it computes: sizes, types and states that do not fit its weights."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from unrolled.base.errors import UsageError
from unrolled.layers.surroundings import autocast_on, traced

State = tuple[Tensor, ...]
"""The tensors of a state, each [batch, size]; the first is the cell's output h."""


def whole(size: object) -> bool:
    """Whether ``size`` is a whole number of at least 1."""
    return isinstance(size, int) and not isinstance(size, bool) and size >= 1


def product_type(x: Tensor) -> torch.dtype:
    """The type of matrix products with ``x``: autocast's where it is on (float64 is left alone), else x's own."""
    if x.dtype is not torch.float64 and autocast_on(x):
        return torch.get_autocast_dtype(x.device.type)
    return x.dtype


def check_type(x: Tensor, weight: Tensor, whose: str = "Recurrent") -> None:
    """UsageError where ``x`` has another type than the weights, or one whose products this processor does not have."""
    product = product_type(x)
    if not x.is_floating_point() or product is not product_type(weight):
        raise UsageError(
            f"x of {whose} is {x.dtype}, its weights are {weight.dtype}. Convert one, or run under torch.autocast."
        )
    if product is torch.float16 and x.device.type == "cpu" and not torch.ops.mkldnn._is_mkldnn_fp16_supported():
        raise UsageError(
            f"{whose} would multiply in torch.float16, which this processor does not have. "
            "Use torch.bfloat16 or torch.float32."
        )


def check_state(state: State, sizes: tuple[int, ...], batch: int, whose: str, weight: Tensor) -> None:
    """UsageError where ``state`` is not of ``whose`` kind or not for ``batch`` rows, has another type or device than
    its ``weight`` (under autocast any type of floating point will do), or on a processor is not finite."""
    wanted = [[batch, size] for size in sizes]
    if not isinstance(state, tuple) or not all(isinstance(tensor, Tensor) for tensor in state):
        raise UsageError(
            f"state of {whose} must be a tuple of tensors with the shapes {wanted}, not {type(state).__name__}."
        )
    given = [list(tensor.shape) for tensor in state]
    if given != wanted:
        raise UsageError(
            f"state of {whose} has the shapes {given}; it must have {wanted}. "
            "Take it from `initial`, or from the last call for the same rows."
        )
    for place, tensor in enumerate(state):
        check_like(tensor, weight, f"state of {whose}: tensor {place}")


def check_like(tensor: Tensor, weight: Tensor, what: str) -> None:
    """UsageError where the state's ``tensor`` has another type or device than ``weight``, or holds no numbers."""
    mixed = tensor.is_floating_point() and autocast_on(weight)
    if tensor.dtype is not weight.dtype and not mixed:
        raise UsageError(f"{what} is {tensor.dtype}, the weights are {weight.dtype}. Convert it.")
    if tensor.device != weight.device:
        raise UsageError(f"{what} is on {tensor.device}, the weights are on {weight.device}. Move it.")
    if tensor.device.type != "cpu" or traced(tensor):
        return  # to look is to wait, or cannot be traced
    if not math.isfinite(tensor.detach().sum(dtype=torch.promote_types(tensor.dtype, torch.float32)).item()):
        found = (~tensor.isfinite()).nonzero()
        if len(found):  # else only the sum ran over
            place = found[0].tolist()
            raise UsageError(
                f"{what} holds {tensor[tuple(place)].item()} at {place}; a state's numbers are finite. Look at what "
                "made them, e.g. the step before."
            )
