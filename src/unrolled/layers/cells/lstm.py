"""Long short-term memory: a memory cell that gates write to, keep and read from."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from unrolled.layers.cells.base import CELLS, Cell, Initialisation, State


@CELLS.register("lstm")
class LSTM(Cell):
    """Long short-term memory (Hochreiter & Schmidhuber 1997; forget gate: Gers et al. 2000).

    i = σ(W_i [h, x] + b_i)           how much of the candidate is written
    f = σ(W_f [h, x] + b_f)           how much of the memory is kept
    C~ = tanh(W_C [h, x] + b_C)       the candidate
    o = σ(W_o [h, x] + b_o)           how much of the memory is shown
    C' = f * C + i * C~
    h' = o * tanh(C')

    State: (h, C). ``forget_bias`` is where b_f starts: at 1 the memory is kept until training says otherwise
    (Jozefowicz et al. 2015).
    """

    gates = ("input", "forget", "candidate", "output")
    state_names = ("hidden", "memory")
    formula = "4(mn + n² + n)"

    def __init__(
        self,
        input_size: int,
        /,
        *,
        hidden_size: int = 128,
        forget_bias: float = 1.0,
        recurrent_init: Initialisation = "orthogonal",
    ) -> None:
        super().__init__(input_size, hidden_size, recurrent_init)
        nn.init.constant_(self.bias.data[self.rows("forget")], forget_bias)

    def advance(self, projected: Tensor, state: State) -> State:
        h, memory = state
        n = self.hidden_size
        total = torch.addmm(projected, h.to(projected.dtype), self.hidden_weight.t())
        both, candidate, show = total.split((2 * n, n, n), 1)
        write, keep = both.sigmoid().chunk(2, 1)
        memory = torch.addcmul(keep * memory, write, candidate.tanh())
        return show.sigmoid() * memory.tanh(), memory
