"""Chance on a processor: draws that are a function of one number from torch's generator, made where they are used."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.autograd import Function
from torch.nn import functional

from unrolled.layers.kernels import compiled

TYPES = (torch.float32, torch.float64, torch.bfloat16)

FEW = 1024
"""Numbers up to which torch's own draw is about as fast: a call of ours takes 6 µs whatever their number."""

WORDS = 1 << 32
"""Values of the words that a chance is compared with."""


def kept(shape: tuple[int, ...], chance: float, like: Tensor, value: float = 1.0) -> Tensor:
    """Numbers of ``shape``, each ``value`` with probability ``chance`` and else 0, in the type and place of ``like``.

    ``chance`` is between 0 and 1, both left out, in steps of 2⁻³². `torch.manual_seed` decides what comes, whatever the
    number of threads.
    """
    out = torch.empty(shape, dtype=like.dtype, device=like.device)
    if not _ours(like, out.numel()):
        out = out.bernoulli_(chance)
        return out if value == 1 else out.mul_(value)
    from unrolled.layers.kernels.compiled import philox

    philox.compiled(out.dtype)[0](out.data_ptr(), out.numel(), _key(), _bound(chance), value)
    return out


def dropout(x: Tensor, rate: float, training: bool = True) -> Tensor:
    """``x`` with each number 0 with probability ``rate``, from 0 to below 1, and else divided by 1 - ``rate``.

    What `torch.nn.functional.dropout` does (Srivastava et al. 2014); unchanged where not in ``training``.
    """
    if not training or rate == 0:
        return x
    if not _ours(x, x.numel()):
        return functional.dropout(x, rate)
    return _Dropout.apply(x, _key(), rate)


class _Dropout(Function):
    """Only the key is remembered: from it the way back makes the same draw again."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, key: int, rate: float) -> Tensor:
        from unrolled.layers.kernels.compiled import philox

        ctx.key, ctx.rate = key, rate
        x = x.contiguous()
        out = torch.empty_like(x)
        philox.compiled(x.dtype)[1](x.data_ptr(), out.data_ptr(), x.numel(), key, _bound(1 - rate), 1 / (1 - rate))
        return out

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None, None]:
        return _Dropout.apply(grad, ctx.key, ctx.rate), None, None


def _ours(like: Tensor, size: int) -> bool:
    """Whether the compiled loops draw; tensors that are traced or batched by torch.func have no numbers to draw for."""
    if torch.compiler.is_compiling() or torch._C._are_functorch_transforms_active():
        return False
    return like.device.type == "cpu" and like.dtype in TYPES and type(like) in compiled.KINDS and size > FEW


def _key() -> int:
    return int(torch.empty((), dtype=torch.int64).random_().item())


def _bound(chance: float) -> int:
    return min(max(round(chance * WORDS), 1), WORDS - 1)
