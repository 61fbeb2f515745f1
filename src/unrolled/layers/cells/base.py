"""A cell is one step of a recurrence: from an input and the state to the next state. It knows no time."""

from __future__ import annotations

import abc
from collections.abc import Mapping
from typing import Literal, NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional

from unrolled.base.errors import SettingsError, UsageError
from unrolled.base.registry import Registry
from unrolled.layers.cells.checks import State, check_state, check_type, whole
from unrolled.layers.cells.norm import normalise, normalise_groups
from unrolled.layers.draws import kept
from unrolled.layers.kernels import steps

Initialisation = Literal["orthogonal", "uniform"]


class Noise(NamedTuple):
    """What chance decides of a cell's steps. Who runs the steps draws it (`Cell.draw`): a cell knows no time."""

    seen: Tensor | None = None
    """Recurrent dropout: the factor of h where products see it, [rows, output], one draw for a whole sequence."""

    kept: tuple[Tensor, ...] = ()
    """Zoneout: 1 where a number of the state stays as it was, else 0, or in evaluation the rate; one tensor for each of
    the state's, a row for each row of each step, [rows of all steps, size]."""


SILENCE = Noise()


class Cell(nn.Module, abc.ABC):
    """What all cells share: their weights, one bias a gate, and the input product that needs no state.

    ``input_weight`` is [gates * hidden, input], ``hidden_weight`` [gates * hidden, output], ``bias`` [gates * hidden],
    the gates in the order of ``gates``; output is the size of h, the hidden size but where a cell projects it. Input
    weights start Xavier-uniform (Glorot & Bengio 2010), recurrent ones orthogonal gate by gate (Saxe et al. 2014) or
    uniform in ±1/√hidden, biases at 0.

    Options of the gated cells:
    ``layer_norm``: LN(W x) and LN(U h) in the place of the two products (Ba et al. 2016, arXiv:1607.06450), each with a
    gain that starts at 1, both with the one bias; over which gates together, the cell says.
    ``recurrent_dropout``: the rate at which numbers of h are dropped where the products see it, one draw for a whole
    sequence (Gal & Ghahramani 2016, arXiv:1512.05287).
    ``zoneout``: the rate at which numbers of the state stay as they were, drawn for every step; in evaluation the
    expected value, rate · old + (1 - rate) · new (Krueger et al. 2016, arXiv:1606.01305).
    """

    gates: tuple[str, ...]
    """Names of the gates, in the order of the weights' rows."""

    state_names: tuple[str, ...] = ("hidden",)
    """Names of the state's tensors, the output first."""

    formula: str
    """Number of parameters in the letters of `letters`."""

    normed: tuple[int, ...] = ()
    """How many gates are normalised together, in the order of ``gates``."""

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        recurrent_init: Initialisation,
        *,
        output_size: int | None = None,
        layer_norm: bool = False,
        recurrent_dropout: float = 0.0,
        zoneout: float = 0.0,
    ) -> None:
        super().__init__()
        for name, size in (("input_size", input_size), ("hidden_size", hidden_size)):
            if not whole(size):
                raise SettingsError(f"{name} of a cell is {size!r}; give a whole number of at least 1.")
        if recurrent_init not in ("orthogonal", "uniform"):
            raise SettingsError(f"recurrent_init {recurrent_init!r} is not known. Known: orthogonal, uniform.")
        for name, rate in (("recurrent_dropout", recurrent_dropout), ("zoneout", zoneout)):
            if not 0.0 <= rate < 1.0:
                raise SettingsError(f"{name} of a cell is {rate}; it must be at least 0 and below 1.")
        self.input_size, self.hidden_size = input_size, hidden_size
        self.output_size = hidden_size if output_size is None else output_size
        self.recurrent_dropout, self.zoneout = recurrent_dropout, zoneout
        rows = len(self.gates) * hidden_size
        self.input_weight = nn.Parameter(torch.empty(rows, input_size))
        self.hidden_weight = nn.Parameter(torch.empty(rows, self.output_size))
        self.bias = nn.Parameter(torch.zeros(rows))
        self.input_gain = nn.Parameter(torch.ones(rows)) if layer_norm else None
        self.hidden_gain = nn.Parameter(torch.ones(rows)) if layer_norm else None
        for gate in self.input_weight.data.split(hidden_size):
            nn.init.xavier_uniform_(gate)
        for gate in self.hidden_weight.data.split(hidden_size):
            if recurrent_init == "orthogonal":
                nn.init.orthogonal_(gate)
            else:
                nn.init.uniform_(gate, -(hidden_size**-0.5), hidden_size**-0.5)

    @property
    def state_sizes(self) -> tuple[int, ...]:
        """Sizes of the state's tensors, each [batch, size]."""
        return (self.output_size,) * len(self.state_names)

    @property
    def letters(self) -> Mapping[str, int]:
        """The sizes that ``formula`` is written in."""
        return {"m": self.input_size, "n": self.hidden_size}

    @property
    def layer_norm(self) -> bool:
        """Whether the products are normalised."""
        return self.hidden_gain is not None

    @property
    def noisy(self) -> bool:
        """Whether a step needs a draw: in training, with recurrent dropout or zoneout."""
        return self.training and (self.recurrent_dropout > 0 or self.zoneout > 0)

    @property
    def bare(self) -> bool:
        """Whether the equations are the ones of torch.nn and cuDNN, no option changing them in this mode."""
        return not (self.layer_norm or self.zoneout or self.noisy)

    def rows(self, gate: str) -> slice:
        """Rows of the weights and of the bias that belong to ``gate``."""
        start = self.gates.index(gate) * self.hidden_size
        return slice(start, start + self.hidden_size)

    def biases(self) -> tuple[Tensor, Tensor]:
        """The bias as (added to the input product, added to the hidden product); each [gates * hidden]."""
        return self.bias, torch.zeros_like(self.bias)

    def project(self, x: Tensor, beside: State = ()) -> Tensor:
        """The input product with its bias, [..., input] → [..., gates * hidden].

        It needs no state, so it is computed for any number of steps at once. The input is ``x`` and what is ``beside``
        it, side by side.
        """
        bias = self.biases()[0]
        if self.input_gain is None:
            made = steps.product((x, *beside), self.input_weight, bias)
            if made is not None:
                return made
        x = torch.cat((x, *beside), dim=-1) if beside else x
        if self.input_gain is None:
            return functional.linear(x, self.input_weight, bias)
        product = functional.linear(x, self.input_weight)
        widths = [count * self.hidden_size for count in self.normed]
        return normalise_groups(product, self.input_gain, widths) + bias.to(product.dtype)

    def draw(self, rows: int, like: Tensor, *, symbols: int | None = None) -> Noise:
        """Noise for a sequence of ``rows`` rows in the type of ``like``; in evaluation nothing is left to chance.

        ``symbols``: the rows of all its steps together; None: of one step.
        """
        rate, seen = self.recurrent_dropout, None
        if self.training and rate > 0:
            seen = kept((rows, self.output_size), 1 - rate, like, 1 / (1 - rate))
        return Noise(seen, self.keep(rows if symbols is None else symbols, like))

    def keep(self, symbols: int, like: Tensor) -> tuple[Tensor, ...]:
        """The part of `draw` that is drawn anew for every step: the zoneout of ``symbols`` rows of steps."""
        if self.zoneout == 0:
            return ()
        if not self.training:
            return tuple(like.new_full((1, 1), self.zoneout).expand(symbols, size) for size in self.state_sizes)
        return tuple(kept((symbols, size), self.zoneout, like) for size in self.state_sizes)

    @abc.abstractmethod
    def move(self, projected: Tensor, state: State, seen: Tensor | None) -> State:
        """The state that one step's equations give, before zoneout; ``seen`` is the `Noise`'s."""

    def advance(self, projected: Tensor, state: State, noise: Noise = SILENCE) -> State:
        """One step from a projected input [batch, gates * hidden]; the new state.

        In training, recurrent dropout and zoneout need their ``noise`` (UsageError).
        """
        undrawn = (self.recurrent_dropout > 0 and noise.seen is None) or (self.zoneout > 0 and not noise.kept)
        if self.training and undrawn:
            raise UsageError(
                f"recurrent dropout and zoneout of the cell {type(self).__name__} are drawn by who runs its steps. "
                "Use Recurrent, or draw once a sequence: noise = cell.draw(batch, x), and give it to every step."
            )
        new = self.move(projected, state, noise.seen)
        if not self.zoneout:
            return new
        stays = noise.kept or self.keep(len(projected), new[0])
        mixed = zip(new, state, stays, strict=True)
        return tuple(torch.lerp(fresh, old.to(fresh.dtype), stay.to(fresh.dtype)) for fresh, old, stay in mixed)

    def forward(self, x: Tensor, state: State, noise: Noise = SILENCE) -> State:
        """One step from an input [batch, input]. UsageError where the sizes do not fit."""
        if x.dim() != 2 or x.shape[1] != self.input_size:
            raise UsageError(
                f"x of the cell {type(self).__name__} has shape {list(x.shape)}; it must be [batch, {self.input_size}]."
            )
        check_type(x, self.input_weight, f"the cell {type(self).__name__}")
        check_state(state, self.state_sizes, x.shape[0], f"the cell {type(self).__name__}", self.input_weight)
        return self.advance(self.project(x), state, noise)

    def add_past(self, total: Tensor, h: Tensor, seen: Tensor | None, rows: slice) -> Tensor:
        """``total`` + U h for the weights' ``rows``, the product dropped and normalised as the options have it."""
        past = (h if seen is None else h * seen).to(total.dtype)
        weight = self.hidden_weight[rows].t()
        if self.hidden_gain is None:
            return torch.addmm(total, past, weight)
        return total + normalise(torch.mm(past, weight), self.hidden_gain[rows])

    def initial(self, batch: int, like: Tensor) -> State:
        """Zeros for ``batch`` rows, with the type and the device of ``like``."""
        return tuple(like.new_zeros(batch, size) for size in self.state_sizes)

    def extra_repr(self) -> str:
        return f"{self.input_size}, hidden_size={self.hidden_size}"


CELLS: Registry[Cell] = Registry("cell")
