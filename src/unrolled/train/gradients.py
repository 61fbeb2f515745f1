"""The sum of the gradients of a batch, in as many pieces as the memory asks for."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from typing import Any

import torch
from torch import Tensor, nn

from unrolled.base.errors import UnrolledError
from unrolled.base.protocol import Loss
from unrolled.train import memory, randomness

LossFunction = Callable[[nn.Module, Any], Loss]


class Gradients:
    """Adds up ∂(summed loss)/∂weights over batches, pieces of batches, and (by the World) processes.

    Sums, not means: whatever the cut, they add up to the same, and one division by the number of symbols at the end
    makes the mean.
    """

    def __init__(
        self,
        model: nn.Module,
        loss: LossFunction,
        device: torch.device,
        forward: Callable[[], AbstractContextManager[object]],
    ) -> None:
        self.model = model
        self.loss = loss
        self.device = device
        self.forward = forward  # the context of the forward pass: its precision
        self.parameters = [parameter for parameter in model.parameters() if parameter.requires_grad]
        self.clear()

    def clear(self) -> None:
        self.gradients: list[Tensor] | None = None
        self.total: Tensor | None = None
        self.count = 0

    def add(self, batch: Any, places: Callable[[], Sequence[str]]) -> int:
        """Add a batch's gradients; the number of pieces that it took.

        A piece that does not fit the memory is halved and both halves are run, down to single rows; the random
        generators are set back before, so that what failed leaves no trace. Raises UnrolledError with the place of a
        single row that does not fit.
        """
        waiting = [(0, memory.rows(batch))]
        pieces = 0
        while waiting:
            start, stop = waiting.pop()
            before = randomness.capture(self.device)
            piece = batch if stop - start == memory.rows(batch) else memory.cut(batch, start, stop)
            if self._fits(piece):
                pieces += 1
                continue
            del piece
            randomness.restore(before, self.device)
            if self.device.type == "cuda":
                torch.cuda.empty_cache()
            if stop - start <= 1:
                raise UnrolledError(
                    f"{names(list(places())[start:stop]) or 'a batch of one row'}: this row alone does not fit the "
                    "memory. Shorten or remove it, or make the model smaller."
                )
            middle = (start + stop) // 2
            waiting += [(middle, stop), (start, middle)]
        return pieces

    def _fits(self, batch: Any) -> bool:
        """Run a piece and add its gradients, all of them or, where memory runs out, none."""
        try:
            batch = memory.move(batch, self.device)
            with self.forward():
                total, count = self.loss(self.model, batch)
            found = torch.autograd.grad(total, self.parameters, materialize_grads=True)
        except (RuntimeError, MemoryError) as error:
            if not memory.does_not_fit(error):
                raise
            return False
        self.total = total.detach() if self.total is None else self.total + total.detach()
        self.count += int(count)
        if self.gradients is None:
            self.gradients = _own(found)
        else:
            torch._foreach_add_(self.gradients, found)
        return True

    def result(self) -> list[Tensor]:
        """The sums; zeros where nothing was added."""
        return self.gradients or [torch.zeros_like(parameter) for parameter in self.parameters]


def _own(found: Sequence[Tensor]) -> list[Tensor]:
    """Gradients that may be changed in place: autograd hands out one tensor twice, or an expanded one, where it can."""
    seen: set[int] = set()
    owned = []
    for tensor in found:
        if not tensor.is_contiguous():
            tensor = tensor.contiguous()
        elif tensor.data_ptr() in seen:
            tensor = tensor.clone()
        seen.add(tensor.data_ptr())
        owned.append(tensor)
    return owned


def names(places: Sequence[str], most: int = 8) -> str:
    """The places of a batch for a message, not more than a few."""
    more = f" and {len(places) - most} more" if len(places) > most else ""
    return ", ".join(places[:most]) + more


def clip_scale(scale: float, norm: float, most_norm: float | None) -> float:
    """What gradients are multiplied by: ``scale`` (sums become means), and less where the norm, ``norm`` after scaling,
    would be above ``most_norm`` (Pascanu et al. 2013, arXiv:1211.5063)."""
    return scale * most_norm / norm if most_norm is not None and norm > most_norm else scale


def step(
    optimizer: torch.optim.Optimizer,
    parameters: Sequence[nn.Parameter],
    gradients: list[Tensor],
    rate: float,
    scale: float = 1.0,
    most_value: float | None = None,
) -> None:
    """One step of the optimiser with ``gradients`` times ``scale``, each value then at most ±``most_value``.

    No gradient is held afterwards. A fused optimiser scales in its own pass over memory, as torch.amp has it do.
    """
    fused = getattr(optimizer, "_step_supports_amp_scaling", False) and most_value is None
    divisor: Tensor | None = getattr(optimizer, "grad_scale", None)
    if fused and all(gradient.dtype is torch.float32 for gradient in gradients):
        divisor = gradients[0].new_empty(()) if divisor is None else divisor
        divisor.fill_(1 / scale)
    else:
        divisor = None
        torch._foreach_mul_(gradients, scale)
    optimizer.grad_scale = divisor  # type: ignore[attr-defined]
    if most_value is not None:
        torch._foreach_clamp_min_(gradients, -most_value)
        torch._foreach_clamp_max_(gradients, most_value)
    for parameter, gradient in zip(parameters, gradients, strict=True):
        parameter.grad = gradient
    for group in optimizer.param_groups:
        group["lr"] = rate
    optimizer.step()
    optimizer.zero_grad(set_to_none=True)
