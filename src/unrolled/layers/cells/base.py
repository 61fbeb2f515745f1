"""A cell is one step of a recurrence: from an input and the state to the next state. It knows no time."""

from __future__ import annotations

import abc
from typing import Literal

import torch
from torch import Tensor, nn
from torch.nn import functional

from unrolled.base.errors import SettingsError, UsageError
from unrolled.base.registry import Registry

State = tuple[Tensor, ...]
"""The tensors of a state, each [batch, size]; the first is the cell's output h."""

Initialisation = Literal["orthogonal", "uniform"]


class Cell(nn.Module, abc.ABC):
    """What all cells share: their weights, one bias a gate, and the input product that needs no state.

    ``input_weight`` is [gates * hidden, input], ``hidden_weight`` [gates * hidden, hidden], ``bias`` [gates * hidden],
    the gates in the order of ``gates``. Input weights start Xavier-uniform (Glorot & Bengio 2010), recurrent ones
    orthogonal gate by gate (Saxe et al. 2014) or uniform in ±1/√hidden, biases at 0.
    """

    gates: tuple[str, ...]
    """Names of the gates, in the order of the weights' rows."""

    state_names: tuple[str, ...] = ("hidden",)
    """Names of the state's tensors, the output first."""

    formula: str
    """Number of parameters with input size m and hidden size n."""

    def __init__(self, input_size: int, hidden_size: int, recurrent_init: Initialisation) -> None:
        super().__init__()
        for name, size in (("input_size", input_size), ("hidden_size", hidden_size)):
            if size < 1:
                raise SettingsError(f"{name} of a cell is {size}; give a whole number of at least 1.")
        if recurrent_init not in ("orthogonal", "uniform"):
            raise SettingsError(f"recurrent_init {recurrent_init!r} is not known. Known: orthogonal, uniform.")
        self.input_size = input_size
        self.hidden_size = hidden_size
        rows = len(self.gates) * hidden_size
        self.input_weight = nn.Parameter(torch.empty(rows, input_size))
        self.hidden_weight = nn.Parameter(torch.empty(rows, hidden_size))
        self.bias = nn.Parameter(torch.zeros(rows))
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
        return (self.hidden_size,) * len(self.state_names)

    def rows(self, gate: str) -> slice:
        """Rows of the weights and of the bias that belong to ``gate``."""
        start = self.gates.index(gate) * self.hidden_size
        return slice(start, start + self.hidden_size)

    def biases(self) -> tuple[Tensor, Tensor]:
        """The bias as (added to the input product, added to the hidden product); each [gates * hidden]."""
        return self.bias, torch.zeros_like(self.bias)

    def project(self, x: Tensor) -> Tensor:
        """The input product with its bias, [..., input] → [..., gates * hidden].

        It needs no state, so it is computed for any number of steps at once.
        """
        return functional.linear(x, self.input_weight, self.bias)

    @abc.abstractmethod
    def advance(self, projected: Tensor, state: State) -> State:
        """One step from a projected input [batch, gates * hidden]; the new state."""

    def forward(self, x: Tensor, state: State) -> State:
        """One step from an input [batch, input]. UsageError where the sizes do not fit."""
        if x.dim() != 2 or x.shape[1] != self.input_size:
            raise UsageError(
                f"x of the cell {type(self).__name__} has shape {list(x.shape)}; it must be [batch, {self.input_size}]."
            )
        check_state(state, self.state_sizes, x.shape[0], f"the cell {type(self).__name__}")
        return self.advance(self.project(x), state)

    def initial(self, batch: int, like: Tensor) -> State:
        """Zeros for ``batch`` rows, with the type and the device of ``like``."""
        return tuple(like.new_zeros(batch, size) for size in self.state_sizes)

    def extra_repr(self) -> str:
        return f"{self.input_size}, hidden_size={self.hidden_size}"


CELLS: Registry[Cell] = Registry("cell")


def check_state(state: State, sizes: tuple[int, ...], batch: int, whose: str) -> None:
    """UsageError where ``state`` is not of ``whose`` kind or not for ``batch`` rows."""
    wanted = [[batch, size] for size in sizes]
    if not isinstance(state, tuple) or not all(isinstance(tensor, Tensor) for tensor in state):
        raise UsageError(
            f"state of {whose} must be a tuple of tensors with the shapes {wanted}, not {type(state).__name__}."
        )
    given = [list(tensor.shape) for tensor in state]
    if given != wanted:
        raise UsageError(
            f"state of {whose} has the shapes {given}; it must have {wanted}. "
            "Take it from `initial`, or from the last call for the same rows."
        )
