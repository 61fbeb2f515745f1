"""What reads the words so far: one vector a place, from a state that can be carried from piece to piece."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Annotated, Any, Literal, NamedTuple, cast

import torch
from torch import Tensor, nn
from torch.func import functional_call

from unrolled.base.errors import SettingsError
from unrolled.base.registry import Part, Registry
from unrolled.layers import CELLS, DROPOUTS, Cell, Recurrent, State
from unrolled.layers.draws import dropout
from unrolled.models.ranges import Count, Share


class Past(NamedTuple):
    """What was read of some words."""

    output: Tensor  # [batch, time, size]; at padding anything
    state: State  # after each row's last real word


class History(nn.Module, ABC):
    """h_t = f(w_1 … w_t): only words up to the place itself are seen.

    A state is a flat tuple of tensors [batch, size]. Reading two pieces of a row one after the other, the second from
    the state that the first left, gives what reading both at once gives.
    """

    output_size: int

    @abstractmethod
    def initial(self, batch: int, like: Tensor) -> State:
        """The state before a document's first word."""

    @abstractmethod
    def forward(self, embedded: Tensor, mask: Tensor | None, state: State) -> Past:
        """Read ``embedded`` [batch, time, embedding]; ``mask`` bool, True = real, a prefix of at least one a row."""


HISTORIES: Registry[History] = Registry("history")


@HISTORIES.register("rnn")
class RecurrentHistory(History):
    """Stacked recurrent layers of any cell (Mikolov et al. 2010; Zaremba et al. 2014, arXiv:1409.2329).

    ``last_size`` is the hidden size of the last layer, where it is to be another (Merity et al. 2018, arXiv:1708.02182:
    the embedding's, so that a tied output layer needs no projection). ``dropout`` is between layers, ``plain`` or
    ``locked`` (one draw for a piece's steps). ``weight_dropout``: the rate at which weights of the hidden product are
    dropped, one draw for a piece's steps (DropConnect; ibid., §2). ``residual`` adds a layer's input to its output from
    the second layer on. ``skips``: every layer reads the input beside the output of the layer below, and h_t is the
    outputs of all layers side by side (Graves 2013, arXiv:1308.0850, §2).
    """

    def __init__(
        self,
        embedding_size: int,
        /,
        *,
        cell: Annotated[Part, CELLS] = "lstm",
        layers: Count = 1,
        last_size: Count | None = None,
        dropout: Share = 0.0,
        dropout_kind: Literal["plain", "locked"] = "plain",
        weight_dropout: Share = 0.0,
        residual: bool = False,
        skips: bool = False,
    ) -> None:
        super().__init__()
        if skips and residual:
            raise SettingsError("[history] skips and residual were both set to true: take one of them.")
        cells: list[dict[str, Any]] = [CELLS.complete(cell, "cell")] * layers
        if last_size is not None:
            cells[-1] = cells[-1] | {"hidden_size": last_size}
        runs = [(cells[0], layers)] if cells[0] == cells[-1] else [(cells[0], layers - 1), (cells[-1], 1)]
        if skips:
            runs = [(kind, 1) for kind in cells]
        stacks: list[Recurrent] = []
        for kind, count in runs:
            beside = embedding_size if skips and stacks else 0
            stacks.append(
                Recurrent(
                    beside + (stacks[-1].output_size if stacks else embedding_size),
                    cell=kind,
                    layers=count,
                    dropout=dropout,
                    dropout_kind=dropout_kind,
                    residual=residual,
                )
            )
        self.stacks = nn.ModuleList(stacks)
        self.dropout = DROPOUTS.build({"kind": dropout_kind, "rate": dropout})
        self.weight_dropout, self.skips = weight_dropout, skips
        self.output_size = sum(stack.output_size for stack in stacks) if skips else stacks[-1].output_size

    def initial(self, batch: int, like: Tensor) -> State:
        return tuple(tensor for stack in self._stacks() for tensor in stack.initial(batch, like))

    def forward(self, embedded: Tensor, mask: Tensor | None, state: State) -> Past:
        x, first = embedded, 0
        ends: list[Tensor] = []
        outputs: list[Tensor] = []
        for place, stack in enumerate(self._stacks()):
            width = len(stack.state_sizes)
            given = self.dropout(x) if place else x
            if self.skips and place:
                given = torch.cat([embedded, given], dim=2)
            x, end = self._run(stack, given, mask, state[first : first + width])
            ends.extend(end)
            outputs.append(x)
            first += width
        return Past(torch.cat(outputs, dim=2) if self.skips else x, tuple(ends))

    def _run(self, stack: Recurrent, x: Tensor, mask: Tensor | None, state: State) -> tuple[Tensor, State]:
        if not (self.training and self.weight_dropout):
            output, end = stack(x, mask, state)
            return output, end
        weights = {
            f"cells.{place}.hidden_weight": dropout(cast(Cell, cell).hidden_weight, self.weight_dropout)
            for place, cell in enumerate(stack.cells)
        }
        output, end = functional_call(stack, weights, (x, mask, state))
        return output, end

    def _stacks(self) -> list[Recurrent]:
        return cast("list[Recurrent]", list(self.stacks))


@HISTORIES.register("feedforward")
class WindowHistory(History):
    """h_t = tanh(W [x_{t-n+1} … x_t] + b): the last ``window`` n words and nothing else (Bengio et al. 2003, JMLR 3).

    Words before the first are 0. The state is the last n - 1 vectors, side by side.
    """

    def __init__(
        self, embedding_size: int, /, *, window: Count = 5, hidden_size: Count = 256, dropout: Share = 0.0
    ) -> None:
        super().__init__()
        self.window, self.embedding_size, self.dropout = window, embedding_size, dropout
        self.hidden = nn.Linear(window * embedding_size, hidden_size)
        self.output_size = hidden_size

    def initial(self, batch: int, like: Tensor) -> State:
        return (like.new_zeros(batch, (self.window - 1) * self.embedding_size),)

    def forward(self, embedded: Tensor, mask: Tensor | None, state: State) -> Past:
        batch, time, size = embedded.shape
        before = self.window - 1
        words = torch.cat([state[0].view(batch, before, size).to(embedded.dtype), embedded], dim=1)
        seen = torch.cat([words[:, place : place + time] for place in range(self.window)], dim=2)
        output = self.hidden(dropout(seen, self.dropout, self.training)).tanh()
        lengths = embedded.new_full((batch,), time, dtype=torch.long) if mask is None else mask.sum(dim=1)
        places = lengths.unsqueeze(1) + torch.arange(before, device=embedded.device)
        kept = words.gather(1, places.unsqueeze(2).expand(batch, before, size))
        return Past(output, (kept.flatten(1),))
