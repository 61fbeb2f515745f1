"""A step of a search in one compiled call, of the models that it stands for; all others go part by part."""

from __future__ import annotations

from typing import cast

from torch import Tensor

from unrolled.layers import Cell, Memory, State
from unrolled.layers.cells import LSTM
from unrolled.layers.kernels import luong
from unrolled.layers.kernels.tiled import TiledWeight
from unrolled.layers.likeliest import FEW
from unrolled.models.decoders import QueryAfter
from unrolled.models.given import check_rows
from unrolled.models.kernels.scores import HandProduct, hand_score
from unrolled.models.said import Offered
from unrolled.models.writing import Writing


class AtOnce:
    """What `Writing.offer` gives, number by number, of a model of Luong's kind with weights that are laid out."""

    def __init__(self, model: Writing, weights: luong.Luong, *, feeds: bool) -> None:
        self._model, self._weights, self._feeds = model, weights, feeds

    @staticmethod
    def of(model: Writing) -> AtOnce | None:
        """None where something of the model is of another kind; it is in evaluation mode."""
        decoder = model.decoder
        if type(decoder) is not QueryAfter or hand_score(decoder.attention) is not HandProduct:
            return None
        cell = cast(Cell, decoder.recurrent.cells[0])
        if len(decoder.recurrent.cells) > 1 or type(cell) is not LSTM or not cell.bare:
            return None
        embedding, output, mix = model.target_embedding, model.output, decoder.readout.mix
        if model.alignment is not None or model.keeps or not model.reads_symbols or output.projection is not None:
            return None
        matrices = embedding.weight, cell.input_weight, cell.hidden_weight, mix.weight, output.weight
        if any(type(weight) is not TiledWeight for weight in matrices):
            return None
        table, into, hidden, joined, said = cast("tuple[TiledWeight, ...]", matrices)
        weights = luong.Luong(table, into, cell.bias, hidden, joined, mix.bias, said, output.bias)
        return AtOnce(model, weights, feeds=decoder.input_feeding)

    def offer(self, last_ids: Tensor, state: State, k: int) -> Offered | None:
        """The ``k`` likeliest symbols after ``last_ids``; None where these tensors, or so many, are of another kind."""
        check_rows(last_ids, state)
        held, feeds = self._model.held, self._feeds
        if k > FEW or len(state) != held + len(MOVING) + feeds:
            return None
        keys, values, mask, *fed, hidden, memory = state[held - len(Memory._fields) :]
        before = luong.Before(keys, values, mask, fed[0] if feeds else None, hidden, memory)
        said = luong.say(self._weights, last_ids, before, k)
        if said is None:
            return None
        moving = (said.output, said.hidden, said.memory) if feeds else (said.hidden, said.memory)
        return Offered(said.scores, said.ids, self._model.on_source(said.weights, state), (*state[:held], *moving))


MOVING = LSTM.state_names
"""What a step changes, but for what is fed."""
