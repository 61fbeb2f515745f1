"""Long short-term memory: a memory cell that gates write to, keep and read from."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

import torch
from torch import Tensor, nn
from torch.nn import functional

from unrolled.base.errors import SettingsError
from unrolled.layers.cells.base import CELLS, Cell, Initialisation, State
from unrolled.layers.cells.norm import normalise
from unrolled.layers.kernels import steps

Peephole = Literal["none", "diagonal", "full", True, False]


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

    ``peephole`` (Gers & Schmidhuber 2000): i and f also see C, o also sees C', each through a vector of its own,
    p * C (``diagonal``, or true), or through a matrix, P C (``full``, the form [C, h, x]). They start at 0.
    ``coupled`` (Greff et al. 2015, arXiv:1503.04069, CIFG): i = 1 - f; the gates are then f, C~, o.
    ``projection_size`` p (Sak et al. 2014, arXiv:1402.1128, LSTMP): h' = W_p (o * tanh(C')), of size p.
    ``layer_norm`` (Ba et al. 2016): LN(W x) + LN(U h) + b, each over the rows of all gates together, and
    h' = o * tanh(LN(C')), the latter with a shift too; peepholes see C and C' as they are.
    ``recurrent_dropout``: see `Cell`. ``zoneout``: of h and of C, each with its own draw; h' is read from the memory
    as it would be without.
    """

    gates: tuple[str, ...] = ("input", "forget", "candidate", "output")
    state_names = ("hidden", "memory")

    def __init__(
        self,
        input_size: int,
        /,
        *,
        hidden_size: int = 128,
        projection_size: int | None = None,
        peephole: Peephole = "none",
        coupled: bool = False,
        layer_norm: bool = False,
        recurrent_dropout: float = 0.0,
        zoneout: float = 0.0,
        forget_bias: float = 1.0,
        recurrent_init: Initialisation = "orthogonal",
    ) -> None:
        if coupled:
            self.gates = ("forget", "candidate", "output")
        self.normed = (len(self.gates),)
        if projection_size is not None and projection_size < 1:
            raise SettingsError(
                f"projection_size of the cell 'lstm' is {projection_size}; give at least 1, or leave it out."
            )
        super().__init__(
            input_size,
            hidden_size,
            recurrent_init,
            output_size=projection_size,
            layer_norm=layer_norm,
            recurrent_dropout=recurrent_dropout,
            zoneout=zoneout,
        )
        self.coupled, self.peephole = coupled, _spelled(peephole)
        seeing = len(self.gates) - 1
        shapes = {"none": None, "diagonal": (seeing, hidden_size), "full": (seeing * hidden_size, hidden_size)}
        shape = shapes[self.peephole]
        self.peephole_weight = None if shape is None else nn.Parameter(torch.zeros(shape))
        self.projection_weight: nn.Parameter | None = None
        if projection_size is not None:
            self.projection_weight = nn.Parameter(torch.empty(projection_size, hidden_size))
            nn.init.xavier_uniform_(self.projection_weight)
        self.memory_gain = nn.Parameter(torch.ones(hidden_size)) if layer_norm else None
        self.memory_shift = nn.Parameter(torch.zeros(hidden_size)) if layer_norm else None
        nn.init.constant_(self.bias.data[self.rows("forget")], forget_bias)
        gates = len(self.gates)
        self.formula = f"{gates}(mn + n² + n)" if projection_size is None else f"{gates}(mn + np + n) + np"
        self.formula += {"none": "", "diagonal": f" + {seeing}n", "full": f" + {seeing}n²"}[self.peephole]
        self.formula += f" + {2 * gates + 2}n" if layer_norm else ""

    @property
    def letters(self) -> Mapping[str, int]:
        projected = {} if self.projection_weight is None else {"p": self.output_size}
        return {**super().letters, **projected}

    @property
    def state_sizes(self) -> tuple[int, ...]:
        return self.output_size, self.hidden_size

    @property
    def bare(self) -> bool:
        return super().bare and self.peephole == "none" and not self.coupled and self.projection_weight is None

    def move(self, projected: Tensor, state: State, seen: Tensor | None) -> State:
        h, memory = state
        n = self.hidden_size
        if self.bare:
            stepped = steps.lstm_step(projected, h, memory, self.hidden_weight)
            if stepped is not None:
                return stepped
        total = self.add_past(projected, h, seen, slice(None))
        if self.bare and steps.plain(total) and memory.shape == (len(total), n) and memory.dtype is total.dtype:
            return steps.lstm(total, memory.contiguous())
        early, candidate, show = total.split((total.shape[1] - 2 * n, n, n), 1)
        early = self._peep(early, memory, slice(0, -1)).sigmoid()
        if self.coupled:
            new = torch.lerp(candidate.tanh().to(memory.dtype), memory, early.to(memory.dtype))
        else:
            write, keep = early.chunk(2, 1)
            new = torch.addcmul(keep * memory, write, candidate.tanh())
        show = self._peep(show, new, slice(-1, None)).sigmoid()
        shown = new if self.memory_gain is None else normalise(new, self.memory_gain, self.memory_shift)
        output = show * shown.tanh()
        if self.projection_weight is not None:
            output = functional.linear(output.to(show.dtype), self.projection_weight)
        return output.to(memory.dtype), new

    def _peep(self, total: Tensor, memory: Tensor, gates: slice) -> Tensor:
        """``total`` [batch, gates * hidden] and what its gates see of the memory."""
        if self.peephole_weight is None:
            return total
        weight = self.peephole_weight.view(len(self.gates) - 1, self.hidden_size, -1)[gates]
        if self.peephole == "full":
            return total + functional.linear(memory.to(total.dtype), weight.flatten(0, 1))
        return total + (weight.squeeze(2) * memory.unsqueeze(1)).flatten(1).to(total.dtype)


def _spelled(peephole: Peephole) -> Literal["none", "diagonal", "full"]:
    """A peephole by its name: true is the diagonal one."""
    if peephole is True:
        return "diagonal"
    if peephole is False:
        return "none"
    if peephole not in ("none", "diagonal", "full"):
        raise SettingsError(f"peephole {peephole!r} of the cell 'lstm' is not known. Known: diagonal, full, none.")
    return peephole
