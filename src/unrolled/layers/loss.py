"""Cross-entropy as a sum over symbols, so that any split of a batch adds up; a vocabulary is never held whole."""

from __future__ import annotations

from functools import partial
from typing import Any

import torch
from torch import Tensor
from torch.autograd import Function
from torch.nn import functional

from unrolled.base.errors import UsageError
from unrolled.layers.cells.checks import product_type
from unrolled.layers.kernels import compiled, slabs
from unrolled.layers.once import once_differentiable
from unrolled.layers.surroundings import followed, without_autocast

BLOCK = 1 << 17
"""Numbers that are worked on at a time: what stays in a processor's cache."""

HELD = 1 << 25
"""Bytes of logits that `linear_cross_entropy` holds at a time: enough that each product runs at full speed."""

SLAB = 2048
"""Symbols whose weights' gradient is worked on at a time: a bfloat16 product is added up while it is in the cache."""

LIKE = 64
"""Multiply-adds of a product that take as long as one logit's part in the loss and its gradient."""

ROUND = 64
"""Rows; oneDNN makes a kernel for each shape that it meets, so the largest product shall meet few."""


def cross_entropy(logits: Tensor, targets: Tensor, smoothing: float = 0.0) -> Tensor:
    """Σ over rows of the cross-entropy (natural log) of ``targets`` [n] under softmax(``logits`` [n, vocabulary]).

    With ``smoothing`` ε in [0, 1) the target distribution is (1 - ε) on the gold symbol plus ε / vocabulary on every
    one (Szegedy et al. 2016). Computed in float32 or wider whatever the logits' type. On a processor the gradient is
    taken on the way, some rows at a time: a vocabulary's worth of float32 is then never written to memory.
    """
    if logits.dim() != 2 or targets.shape != logits.shape[:1]:
        raise UsageError(
            f"logits have shape {list(logits.shape)} and targets {list(targets.shape)}; "
            "they must be [n, vocabulary] and [n]."
        )
    _check(smoothing)
    if logits.device.type == "cpu" and not followed(logits):
        return _ByBlocks.apply(logits, targets, smoothing)
    exact = logits.to(torch.promote_types(logits.dtype, torch.float32))
    return functional.cross_entropy(exact, targets, reduction="sum", label_smoothing=smoothing)


def linear_cross_entropy(
    hidden: Tensor, weight: Tensor, bias: Tensor | None, targets: Tensor, smoothing: float = 0.0
) -> Tensor:
    """cross_entropy(``hidden`` [n, size] · ``weight`` [vocabulary, size]ᵀ + ``bias`` [vocabulary], ``targets`` [n]).

    The logits of all rows are never held at once: for some rows at a time they are computed, turned into the gradient
    softmax - target in their place, and multiplied into the gradients of the three (as in Cut Your Losses, Wijmans et
    al. 2025, arXiv:2411.09009). Products are in autocast's type where it is on; softmax and sums over rows in float32
    or wider. The result can be differentiated once.
    """
    if (
        hidden.dim() != 2
        or weight.dim() != 2
        or hidden.shape[1] != weight.shape[1]
        or targets.shape != hidden.shape[:1]
    ):
        raise UsageError(
            f"hidden has shape {list(hidden.shape)}, weight {list(weight.shape)} and targets {list(targets.shape)}; "
            "they must be [n, size], [vocabulary, size] and [n]."
        )
    if bias is not None and bias.shape != weight.shape[:1]:
        raise UsageError(f"bias has shape {list(bias.shape)}; with this weight it must be {list(weight.shape[:1])}.")
    _check(smoothing)
    dtype = product_type(hidden)
    with without_autocast(hidden):
        if followed(hidden):
            logits = functional.linear(hidden.to(dtype), weight.to(dtype))
            return cross_entropy(logits if bias is None else logits + bias, targets, smoothing)
        return _Linear.apply(hidden, weight, bias, targets, smoothing, dtype)


def _check(smoothing: float) -> None:
    if not 0.0 <= smoothing < 1.0:
        raise UsageError(f"smoothing {smoothing} was given; it must be at least 0 and below 1.")


class _Sums:
    """What a loss adds up while it walks over rows: itself, and the gradient's rows where somebody asks."""

    def __init__(self, like: Tensor, vocabulary: int | None) -> None:
        dtype = torch.promote_types(like.dtype, torch.float32)
        self.loss = like.new_zeros((), dtype=dtype)
        self.rows = None if vocabulary is None else like.new_zeros(vocabulary, dtype=dtype)

    def add(
        self, logits: Tensor, targets: Tensor, smoothing: float, into: Tensor | None, bias: Tensor | None = None
    ) -> None:
        """Walk over ``logits`` [n, vocabulary], to which ``bias`` is added.

        softmax - target goes ``into`` a tensor like them, perhaps themselves.
        """
        if compiled.possible(logits) and logits.is_contiguous():
            self._walk(logits, targets, smoothing, into, bias)
        else:
            self._by_blocks(logits if bias is None else logits + bias, targets, smoothing, into)

    def _walk(
        self, logits: Tensor, targets: Tensor, smoothing: float, into: Tensor | None, bias: Tensor | None
    ) -> None:
        from unrolled.layers.kernels.compiled.arrays import array, some
        from unrolled.layers.kernels.compiled.loss import walk
        from unrolled.layers.kernels.compiled.threads import portions, together, worthwhile

        vocabulary = logits.shape[1]
        if len(targets) and not 0 <= int(targets.min()) <= int(targets.max()) < vocabulary:
            raise UsageError(f"targets hold a number that is not of a vocabulary of {vocabulary} symbols, 0 first.")
        shares = array(self.loss.new_tensor([1 - smoothing, smoothing / vocabulary]))
        said, aimed, added = (
            array(logits),
            array(targets),
            some(None if bias is None else bias.to(self.loss.dtype).contiguous()),
        )
        gradient, total = some(into), self.rows
        parts = portions(len(targets), worthwhile(LIKE * logits.numel()))
        sums = [] if total is None else [total, *(torch.zeros_like(total) for _ in parts[1:])]
        losses = [0.0] * len(parts)

        def work(number: int, rows: slice) -> None:
            put = None if gradient is None else gradient[rows]
            own = array(sums[number]) if sums else None
            losses[number] = walk(said[rows], added, aimed[rows], shares, put, own)

        together([partial(work, number, rows) for number, rows in enumerate(parts)])
        self.loss += sum(losses)
        for own in sums[1:]:
            sums[0].add_(own)

    def _by_blocks(self, logits: Tensor, targets: Tensor, smoothing: float, into: Tensor | None) -> None:
        """-Σ log p_gold = Σ log Σ exp(l - max l) - (l_gold - max l), some rows at a time, which stay in the cache."""
        count, vocabulary = logits.shape
        size = max(1, BLOCK // max(1, vocabulary)) if logits.device.type == "cpu" else max(1, count)
        for start in range(0, count, size):
            block, gold = logits[start : start + size], targets[start : start + size].unsqueeze(1)
            work = block.to(self.loss.dtype, copy=True)
            work.sub_(work.amax(dim=1, keepdim=True))
            self.loss -= (1 - smoothing) * work.gather(1, gold).sum()
            if smoothing:
                self.loss -= smoothing / vocabulary * work.sum()
            norm = work.exp_().sum(dim=1, keepdim=True)
            self.loss += norm.log().sum()
            if into is None:
                continue
            work.div_(norm)
            if smoothing:
                work.sub_(smoothing / vocabulary)
            work.scatter_add_(1, gold, work.new_full(gold.shape, smoothing - 1))
            if self.rows is not None:
                self.rows += work.sum(dim=0)
            into[start : start + size] = work


class _Gathered:
    """Σ over portions of gradientᵀ · input in float32 or wider, a slab of the vocabulary at a time."""

    def __init__(self, weight: Tensor, dtype: torch.dtype) -> None:
        self.total = weight.new_empty(weight.shape, dtype=dtype)
        self.fresh = True  # nothing was added yet, and what the memory held does not count

    def add(self, gradient: Tensor, given: Tensor) -> None:
        size = SLAB if gradient.device.type == "cpu" else max(1, len(self.total))
        if compiled.possible(given) and compiled.sums_of(given.dtype):
            from unrolled.layers.kernels.compiled.sums import sum_of_products

            sum_of_products(gradient, given, self.total, keep=not self.fresh)
            self.fresh = False
            return
        for start in range(0, len(self.total), size):
            part, left = self.total[start : start + size], gradient[:, start : start + size].t()
            if part.dtype == given.dtype:
                torch.addmm(part, left, given, beta=0 if self.fresh else 1, out=part)
            elif self.fresh:
                part.copy_(left.mm(given))
            else:
                part.add_(left.mm(given))
        self.fresh = False

    def sum(self) -> Tensor:
        return self.total.zero_() if self.fresh else self.total


class _ByBlocks(Function):
    """-Σ_i log p_i,gold, with the gradient p - onehot of each block of rows while it is in the cache."""

    @staticmethod
    def forward(ctx: Any, logits: Tensor, targets: Tensor, smoothing: float) -> Tensor:
        gradient = torch.empty_like(logits) if ctx.needs_input_grad[0] else None
        sums = _Sums(logits, None)
        sums.add(logits, targets, smoothing, gradient)
        ctx.save_for_backward(*(() if gradient is None else (gradient,)))
        return sums.loss

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, scale: Tensor) -> tuple[Tensor, None, None]:
        (gradient,) = ctx.saved_tensors
        return gradient if scale == 1 else gradient * scale.to(gradient.dtype), None, None


class _Linear(Function):
    """The loss of a linear layer, and its gradients to all three operands, taken on the way."""

    @staticmethod
    def forward(
        ctx: Any,
        hidden: Tensor,
        weight: Tensor,
        bias: Tensor | None,
        targets: Tensor,
        smoothing: float,
        dtype: torch.dtype,
    ) -> Tensor:
        of_hidden, of_weight, of_bias = ctx.needs_input_grad[:3]
        backward = of_hidden or of_weight or of_bias
        held = weight.to(dtype)
        sums = _Sums(hidden, len(weight) if of_bias else None)
        to_hidden = torch.empty_like(hidden) if of_hidden else None
        to_weight = _Gathered(weight, sums.loss.dtype) if of_weight else None
        for rows in _portions(len(hidden), len(weight) * dtype.itemsize):
            part = hidden[rows].to(dtype).contiguous()
            real = len(part)
            part = functional.pad(part, (0, 0, 0, -real % ROUND)) if dtype is torch.bfloat16 else part
            logits = slabs.linear(part, held)
            said = logits[:real]
            sums.add(said, targets[rows], smoothing, said if backward else None, bias)
            logits[real:] = 0
            if to_hidden is not None:
                to_hidden[rows] = slabs.input_gradient(logits, held)[:real]
            if to_weight is not None:
                to_weight.add(logits, part)
        ctx.save_for_backward(to_hidden, None if to_weight is None else to_weight.sum(), sums.rows)
        ctx.types = hidden.dtype, weight.dtype, None if bias is None else bias.dtype
        return sums.loss

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, scale: Tensor) -> tuple[Tensor | None, ...]:
        found = ctx.saved_tensors
        if scale.device.type != "cpu" or scale != 1:
            found = tuple(None if tensor is None else tensor * scale.to(tensor.dtype) for tensor in found)
        cast = (None if tensor is None else tensor.to(dtype) for tensor, dtype in zip(found, ctx.types, strict=True))
        return (*cast, None, None, None)


def _portions(count: int, size_of_row: int) -> list[slice]:
    """Even portions of rows, each of at most HELD bytes where that is more than ROUND rows."""
    most = max(1, HELD // max(1, size_of_row) // ROUND) * ROUND
    pieces = max(1, -(-count // most))
    size = max(1, -(-count // pieces // ROUND) * ROUND)
    return [slice(start, start + size) for start in range(0, count, size)]
