"""Chance on a processor: draws that are a function of one number from torch's generator, made where they are used."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.autograd import Function
from torch.nn import functional

from unrolled.layers.kernels import compiled
from unrolled.layers.surroundings import traced

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
    if not _ours(out):
        out = out.bernoulli_(chance)
        return out if value == 1 else out.mul_(value)
    return _draw(out, _key(), chance, value)


def _draw(out: Tensor, key: int, chance: float, value: float) -> Tensor:
    from unrolled.layers.kernels.compiled import philox

    philox.compiled(out.dtype)[0](out.data_ptr(), out.numel(), key, _bound(chance), value)
    return out


def dropout(x: Tensor, rate: float, training: bool = True) -> Tensor:
    """``x`` with each number 0 with probability ``rate``, from 0 to below 1, and else divided by 1 - ``rate``.

    What `torch.nn.functional.dropout` does (Srivastava et al. 2014); unchanged where not in ``training``.
    """
    if not training or rate == 0:
        return x
    if not _ours(x):
        return functional.dropout(x, rate)
    return _Dropout.apply(x, _key(), rate)


class _Dropout(Function):
    """Only the key is remembered: from it the way back makes the same draw again."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, key: int, rate: float) -> Tensor:
        from unrolled.layers.kernels.compiled import philox

        ctx.key, ctx.rate, ctx.shape, ctx.dtype = key, rate, x.shape, x.dtype
        x = x.resolve_neg().contiguous()
        out = torch.empty_like(x)
        philox.compiled(x.dtype)[1](x.data_ptr(), out.data_ptr(), x.numel(), key, _bound(1 - rate), 1 / (1 - rate))
        return out

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None, None]:
        if _ours(grad):
            return _Dropout.apply(grad, ctx.key, ctx.rate), None, None
        factors = _draw(torch.empty(ctx.shape, dtype=ctx.dtype), ctx.key, 1 - ctx.rate, 1 / (1 - ctx.rate))
        return grad * factors, None, None  # of a gradient that is batched, the same draw for all


def _ours(tensor: Tensor) -> bool:
    """Whether the compiled loops draw; tensors that are traced or batched by torch.func have no numbers to draw for."""
    if traced(tensor):
        return False
    plain = tensor.device.type == "cpu" and tensor.dtype in TYPES and type(tensor) in compiled.KINDS
    return plain and tensor.numel() > FEW and _has_numbers(tensor)


def _has_numbers(tensor: Tensor) -> bool:
    try:
        return tensor.data_ptr() != 0
    except RuntimeError:  # one of a batch that autograd makes
        return False


def _key() -> int:
    return int(torch.empty((), dtype=torch.int64, device="cpu").random_().item())


def _bound(chance: float) -> int:
    return min(max(round(chance * WORDS), 1), WORDS - 1)
