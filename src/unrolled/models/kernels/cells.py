"""A cell's step and its derivative, both by hand: what a backward over the whole sequence is made of."""

from __future__ import annotations

from abc import ABC, abstractmethod

import torch
from torch import Tensor
from torch.nn import functional

from unrolled.layers import GRU, LSTM, Cell, Elman, State

aten = torch.ops.aten

Kept = tuple[Tensor, ...]
"""What one step keeps for its derivative; each kind of cell has its own."""


class HandCell(ABC):
    """One cell over many steps, on plain tensors. Sums and activations have the state's type, products the weight's.

    ``total`` is everything that is added before the activations except the hidden product.
    """

    def __init__(self, weight: Tensor, bias: Tensor) -> None:
        self.weight = weight  # [gates * hidden, hidden]
        self.bias = bias  # [gates * hidden]; 0 but for a cell with a bias inside its hidden product
        self.size = weight.shape[1]

    @abstractmethod
    def forward(self, total: Tensor, state: State) -> tuple[State, Kept]:
        """One step on, and what ``backward`` will want."""

    @abstractmethod
    def backward(self, gradient: State, kept: Kept) -> tuple[Tensor, State]:
        """From the gradient of the new state those of ``total`` and of the old state."""

    def weight_gradient(self, totals: Tensor, kept: list[Kept]) -> tuple[Tensor, Tensor | None]:
        """Gradients of weight and bias in one product; ``totals`` [time, batch, gates * hidden], products' type."""
        before = torch.stack([step[0] for step in kept])
        return totals.flatten(0, 1).t() @ before.flatten(0, 1), None

    def product(self, hidden: Tensor, rows: slice = slice(None)) -> Tensor:
        """U h, [batch, rows], of ``hidden`` in the products' type."""
        return functional.linear(hidden, self.weight[rows])


class HandElman(HandCell):
    """h' = tanh(total + U h)"""

    def forward(self, total: Tensor, state: State) -> tuple[State, Kept]:
        before = state[0].to(self.weight.dtype)
        hidden = torch.tanh(total + self.product(before))
        return (hidden,), (before, hidden)

    def backward(self, gradient: State, kept: Kept) -> tuple[Tensor, State]:
        total = aten.tanh_backward(gradient[0], kept[1])
        return total, ((total.to(self.weight.dtype) @ self.weight).to(total.dtype),)


class HandLSTM(HandCell):
    """i, f, o = σ(·), C~ = tanh(·);  C' = f * C + i * C~;  h' = o * tanh(C')"""

    def forward(self, total: Tensor, state: State) -> tuple[State, Kept]:
        before = state[0].to(self.weight.dtype)
        gates = total + self.product(before)
        n = self.size
        gates[:, : 2 * n].sigmoid_()
        gates[:, 2 * n : 3 * n].tanh_()
        gates[:, 3 * n :].sigmoid_()
        write, keep, candidate, show = gates.chunk(4, dim=1)
        memory = torch.addcmul(keep * state[1], write, candidate)
        squashed = memory.tanh()
        return (show * squashed, memory), (before, gates, state[1], squashed)

    def backward(self, gradient: State, kept: Kept) -> tuple[Tensor, State]:
        _, gates, memory, squashed = kept
        write, keep, candidate, show = gates.chunk(4, dim=1)
        of_memory = gradient[1] + aten.tanh_backward(gradient[0] * show, squashed)
        n = self.size
        total = torch.empty_like(gates)
        total[:, :n] = aten.sigmoid_backward(of_memory * candidate, write)
        total[:, n : 2 * n] = aten.sigmoid_backward(of_memory * memory, keep)
        total[:, 2 * n : 3 * n] = aten.tanh_backward(of_memory * write, candidate)
        total[:, 3 * n :] = aten.sigmoid_backward(gradient[0] * squashed, show)
        return total, ((total.to(self.weight.dtype) @ self.weight).to(total.dtype), of_memory * keep)


class HandGRU(HandCell):
    """z, r = σ(·);  n = tanh(total + U (r * h));  h' = h + z * (n - h)"""

    def forward(self, total: Tensor, state: State) -> tuple[State, Kept]:
        (hidden,) = state
        before, n = hidden.to(self.weight.dtype), self.size
        gates = (total[:, : 2 * n] + self.product(before, slice(2 * n))).sigmoid_()
        update, reset = gates.chunk(2, dim=1)
        seen = (reset * hidden).to(self.weight.dtype)
        candidate = (total[:, 2 * n :] + self.product(seen, slice(2 * n, None))).tanh_()
        return (torch.lerp(hidden, candidate, update),), (before, gates, seen, candidate, hidden)

    def backward(self, gradient: State, kept: Kept) -> tuple[Tensor, State]:
        _, gates, _, candidate, hidden = kept
        update, reset = gates.chunk(2, dim=1)
        (above,), n, dtype = gradient, self.size, self.weight.dtype
        total = above.new_empty(above.shape[0], 3 * n)
        moved = above * update
        total[:, 2 * n :] = aten.tanh_backward(moved, candidate)
        seen = (total[:, 2 * n :].to(dtype) @ self.weight[2 * n :]).to(above.dtype)
        total[:, :n] = aten.sigmoid_backward(above * (candidate - hidden), update)
        total[:, n : 2 * n] = aten.sigmoid_backward(seen * hidden, reset)
        below = torch.addcmul(above - moved, seen, reset)
        return total, (below + total[:, : 2 * n].to(dtype) @ self.weight[: 2 * n],)

    def weight_gradient(self, totals: Tensor, kept: list[Kept]) -> tuple[Tensor, Tensor | None]:
        before, seen = (torch.stack([step[place] for step in kept]).flatten(0, 1) for place in (0, 2))
        flat, n = totals.flatten(0, 1), self.size
        return torch.cat((flat[:, : 2 * n].t() @ before, flat[:, 2 * n :].t() @ seen)), None


class HandGRUAfter(HandCell):
    """z, r = σ(·);  n = tanh(total + r * (U h + b));  h' = h + z * (n - h)"""

    def forward(self, total: Tensor, state: State) -> tuple[State, Kept]:
        (hidden,) = state
        before, n = hidden.to(self.weight.dtype), self.size
        product = functional.linear(before, self.weight, self.bias).to(hidden.dtype)
        gates = (total[:, : 2 * n] + product[:, : 2 * n]).sigmoid_()
        update, reset = gates.chunk(2, dim=1)
        past = product[:, 2 * n :]
        candidate = torch.addcmul(total[:, 2 * n :], reset, past).tanh_()
        return (torch.lerp(hidden, candidate, update),), (before, gates, past, candidate, hidden)

    def backward(self, gradient: State, kept: Kept) -> tuple[Tensor, State]:
        _, gates, past, candidate, hidden = kept
        update, reset = gates.chunk(2, dim=1)
        (above,), n = gradient, self.size
        total = above.new_empty(above.shape[0], 3 * n)
        moved = above * update
        total[:, 2 * n :] = aten.tanh_backward(moved, candidate)
        total[:, :n] = aten.sigmoid_backward(above * (candidate - hidden), update)
        total[:, n : 2 * n] = aten.sigmoid_backward(total[:, 2 * n :] * past, reset)
        inside = total.clone()
        inside[:, 2 * n :] *= reset
        return total, (above - moved + inside.to(self.weight.dtype) @ self.weight,)

    def weight_gradient(self, totals: Tensor, kept: list[Kept]) -> tuple[Tensor, Tensor | None]:
        resets = torch.stack([step[1][:, self.size :] for step in kept]).to(totals.dtype)
        inside = torch.cat((totals[..., : 2 * self.size], totals[..., 2 * self.size :] * resets), dim=-1)
        weight, _ = super().weight_gradient(inside, kept)
        return weight, inside.flatten(0, 1).sum(dim=0)


def hand_cell(cell: Cell) -> type[HandCell] | None:
    """The hand-written kind of ``cell``, or None where it has none: then the plain loop runs."""
    if type(cell) is GRU:
        return HandGRU if cell.reset == "before" else HandGRUAfter
    if type(cell) is LSTM:
        return HandLSTM
    if type(cell) is Elman and cell.activation == "tanh":
        return HandElman
    return None
