"""Recurrent layers read the sentence in one or two directions."""

from __future__ import annotations

from typing import Annotated, Literal, cast

import torch
from torch import Tensor, nn

from unrolled.base.errors import SettingsError
from unrolled.base.registry import Part
from unrolled.layers import CELLS, DROPOUTS, Recurrent, State
from unrolled.models.encoders.base import ENCODERS, Encoded, Encoder
from unrolled.models.layout import by_layer
from unrolled.models.ranges import Count, ResidualFrom, Share, residual_from


@ENCODERS.register("rnn")
class RecurrentEncoder(Encoder):
    """Stacked recurrent layers in one or two directions: h_j = h_j^forward ⊕ h_j^backward.

    ``bidirectional``: all layers, none, or the ``first`` alone (GNMT, Wu et al. 2016, arXiv:1609.08144, §3.2).
    ``residual`` adds a layer's input to its output: true from the second layer on (the third where the first alone has
    two directions), a number from that layer on, false never (§3.1). ``reverse`` reads the source from its end, inside
    its true length (Sutskever et al. 2014, arXiv:1409.3215, §3.3). ``initial``: the first states are zeros or learned.
    The summary is the last state of each direction's top layer, so the backward one's stands at the first symbol.
    """

    def __init__(
        self,
        embedding_size: int,
        /,
        *,
        cell: Annotated[Part, CELLS] = "lstm",
        layers: Count = 1,
        bidirectional: bool | Literal["first"] = True,
        residual: ResidualFrom = False,
        reverse: bool = False,
        dropout: Share = 0.0,
        dropout_kind: Literal["plain", "locked"] = "plain",
        initial: Literal["zeros", "learned"] = "zeros",
    ) -> None:
        super().__init__(embedding_size)
        self.reverse = reverse
        self.dropout = DROPOUTS.build({"kind": dropout_kind, "rate": dropout}, where="dropout")
        stacks: list[Recurrent] = []
        for count, both, adds in _stacks(layers, bidirectional, residual):
            stacks.append(
                Recurrent(
                    stacks[-1].output_size if stacks else embedding_size,
                    cell=cell,
                    layers=count,
                    bidirectional=both,
                    residual=adds,
                    dropout=dropout,
                    dropout_kind=dropout_kind,
                    initial=initial,
                )
            )
        self.below = nn.ModuleList(stacks[:-1])
        self.recurrent = stacks[-1]
        self.output_size = self.recurrent.output_size
        self.layout = sum((by_layer(stack.state_sizes, stack.layers) for stack in stacks), ())
        directions = self.recurrent.directions
        self._outputs = tuple(len(self.layout[-1]) // directions * k for k in range(directions))

    def encode(self, embedded: Tensor, mask: Tensor) -> Encoded:
        output = reverse(embedded, mask) if self.reverse else embedded
        state: State = ()
        for stack in cast("list[Recurrent]", self.below):
            output, ends = stack(output, mask)
            output, state = self.dropout(output), (*state, *ends)
        output, ends = self.recurrent(output, mask)
        state = (*state, *ends)
        if self.reverse:
            output = reverse(output, mask)
        top = state[-len(self.layout[-1]) :]
        return Encoded(output, mask, state, torch.cat([top[place] for place in self._outputs], dim=-1))

    @property
    def forwards(self) -> bool:
        """Whether it reads from left to right only, so that a piece can be read before the next is there."""
        stacks = [*cast("list[Recurrent]", self.below), self.recurrent]
        return not self.reverse and all(stack.directions == 1 for stack in stacks)

    def go_on(self, embedded: Tensor, state: State | None) -> tuple[Tensor, State]:
        """Output [batch, time, size] of the next piece of the same rows, all of it real, and the state after it.

        ``state`` is what the piece before returned; None: the sequence begins. Where it is not ``forwards`` the result
        is not that of the whole.
        """
        ends: list[Tensor] = []
        output = embedded
        for stack in [*cast("list[Recurrent]", self.below), self.recurrent]:
            if ends:
                output = self.dropout(output)
            width = len(stack.state_sizes)
            first = None if state is None else state[len(ends) : len(ends) + width]
            output, end = stack(output, None, first)
            ends.extend(end)
        return output, tuple(ends)


def _stacks(layers: int, bidirectional: bool | str, residual: bool | int) -> list[tuple[int, bool, bool]]:
    """(layers, two directions?, residual from its own second layer on?) of each stack, bottom first."""
    alone = bidirectional == "first"
    first = residual_from(residual, 3 if alone else 2, layers)
    if alone and residual == 2:
        raise SettingsError(
            "[residual] 2 was given, but with bidirectional: first the second layer's input has two "
            "directions and its output one. Give 3 or more, or true."
        )
    starts = {1}
    if alone and layers > 1:
        starts.add(2)  # where the directions change
    if first <= layers:
        starts.add(first - 1)  # whose own second layer is the first that adds its input
    ordered = sorted(starts)
    return [
        (end - start, bidirectional is True or (alone and start == 1), first <= layers and start == first - 1)
        for start, end in zip(ordered, [*ordered[1:], layers + 1], strict=True)
    ]


def reverse(sequence: Tensor, mask: Tensor) -> Tensor:
    """``sequence`` [batch, time, size] read backwards inside the true lengths; padding stays where it is."""
    time = torch.arange(mask.shape[1], device=mask.device)
    last = mask.sum(dim=1, keepdim=True) - 1
    places = torch.where(mask, last - time, time)
    return sequence.gather(1, places.unsqueeze(-1).expand_as(sequence))
