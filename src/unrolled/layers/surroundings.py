"""What surrounds a call: autocast, and whether torch only follows what is done or takes it apart."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import Any, TypeVar, cast

import torch
from torch import Tensor
from torch.autograd import forward_ad

Found = TypeVar("Found")


def left_alone(function: Callable[..., Found], *given: object) -> Found:
    """What ``function`` makes of what is given, behind torch.compile's back: what we compiled it cannot follow."""
    if torch.compiler.is_compiling() and not torch.compiler.is_exporting():
        return cast(Found, torch.compiler.disable(function)(*given))
    return function(*given)


def followed(x: Tensor) -> bool:
    """Whether torch's own operations alone will do, without a look at numbers.

    So it is where torch.jit.trace writes them down, where torch.func or forward mode finds derivatives of them, and for
    ``x`` on the meta device, which has shapes alone. `traced` is also true for torch.export and torch.compile.
    """
    transformed = torch._C._are_functorch_transforms_active() or forward_ad._current_level >= 0
    return transformed or x.is_meta or torch.jit.is_tracing()


def traced(x: Tensor) -> bool:
    """`followed`, or torch.export or torch.compile at work."""
    return torch.compiler.is_compiling() or followed(x)


def autocast_on(x: Tensor) -> bool:
    """Whether autocast is on where ``x`` lies; torch has none for the meta device and will not be asked."""
    return not x.is_meta and torch.is_autocast_enabled(x.device.type)


def without_autocast(x: Tensor) -> AbstractContextManager[Any]:
    """Where autocast changes no type of what is done to ``x``."""
    return torch.autocast(x.device.type, enabled=False) if autocast_on(x) else nullcontext()


def real_places(mask: Tensor) -> Tensor:
    """Where ``mask`` is True, int64 [n], counted over all of it; on the meta device, without numbers, everywhere."""
    return torch.arange(mask.numel(), device=mask.device) if mask.is_meta else mask.flatten().nonzero().squeeze(1)
