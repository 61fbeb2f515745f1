"""Derivatives written by hand are first ones: who wants a second one of them is told so."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any

import torch
from torch import Tensor

SECOND = (
    b"this operation of unrolled has a first derivative alone, written by hand; the plain path of a recurrent network "
    b"(path = 'plain') has further ones"
)


def once_differentiable(backward: Callable[..., Any]) -> Callable[..., Any]:
    """The backward of an autograd Function, whose gradients raise RuntimeError where they are differentiated again.

    torch's own decorator of this name gives gradients without a graph where none comes in, as in a penalty on them.
    """

    @wraps(backward)
    def run(ctx: Any, *grads: Tensor | None) -> Any:
        with torch.no_grad():
            found = backward(ctx, *grads)
        if not torch.is_grad_enabled():  # as it is where nobody builds a graph of gradients
            return found
        gradients = found if isinstance(found, tuple) else (found,)
        raising: Any = torch._C._functions.DelayedError(SECOND, len(gradients))
        return raising(*(None if one is None else one.detach().requires_grad_() for one in gradients))

    return run
