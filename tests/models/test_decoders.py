"""Each order of looking and moving against the same written out with torch.nn's own cells."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor, nn

from unrolled.base.errors import SettingsError
from unrolled.base.settings import choices
from unrolled.layers import Cell
from unrolled.models import DECODERS, Decoder, Encoded

BATCH, SOURCE, TIME, EMBEDDING, MEMORY, HIDDEN = 2, 4, 3, 5, 7, 3
MASK = torch.tensor([[1, 1, 1, 1], [1, 1, 0, 0]]).bool()


def oracle(cell: Cell) -> nn.LSTMCell:
    """torch's LSTM with the cell's weights; its gates stand in our order: input, forget, candidate, output."""
    twin = nn.LSTMCell(cell.input_size, cell.hidden_size).double()
    with torch.no_grad():
        twin.weight_ih.copy_(cell.input_weight)
        twin.weight_hh.copy_(cell.hidden_weight)
        twin.bias_ih.copy_(cell.bias)
        twin.bias_hh.zero_()
    return twin


def build(**settings: object) -> tuple[Decoder, Tensor, Tensor, tuple[Tensor, ...]]:
    """A decoder, encoded sentences, embedded symbols, a first state; float64."""
    torch.manual_seed(0)
    decoder = DECODERS.build({"cell": {"kind": "lstm", "hidden_size": HIDDEN}, **settings}, EMBEDDING, MEMORY).double()
    for weight in decoder.parameters():
        nn.init.normal_(weight)
    encoded = torch.randn(BATCH, SOURCE, MEMORY).double() * MASK.unsqueeze(2)
    embedded = torch.randn(BATCH, TIME, EMBEDDING).double()
    state = tuple(torch.randn(BATCH, size).double() for layer in decoder.layout for size in layer)
    return decoder, encoded, embedded, state


def unroll(decoder: Decoder, encoded: Tensor, embedded: Tensor, state: tuple[Tensor, ...]) -> tuple:
    summary = encoded[:, 0]
    return decoder(embedded, decoder.start(Encoded(encoded, MASK, (), summary), state))


def additive(decoder: Decoder, query: Tensor, encoded: Tensor) -> tuple[Tensor, Tensor]:
    attention = decoder.attention
    hidden = torch.tanh((query @ attention.query_weight.T)[:, None] + encoded @ attention.key_weight.T)
    scores = (hidden @ attention.vector).masked_fill(~MASK, -torch.inf)
    weights = scores.exp() / scores.exp().sum(dim=1, keepdim=True)
    return (weights[:, :, None] * encoded).sum(dim=1), weights


@pytest.mark.parametrize("readout", ["state", "tanh", "maxout"])
def test_query_before_looks_with_the_old_state_and_feeds_the_context(readout: str) -> None:
    size = {} if readout == "state" else {"readout_size": 4}
    attention = {"kind": "additive", "hidden_size": 6}
    decoder, encoded, embedded, state = build(kind="query_before", attention=attention, readout=readout, **size)
    outputs, weights = unroll(decoder, encoded, embedded, state)
    assert outputs.shape == (BATCH, TIME, decoder.output_size)
    cell, (hidden, memory) = oracle(decoder.cell), state
    for step in range(TIME):
        context, looked = additive(decoder, hidden, encoded)
        hidden, memory = cell(torch.cat((embedded[:, step], context), dim=1), (hidden, memory))
        expected = hidden
        if readout != "state":
            mix = decoder.readout.mix
            expected = torch.cat((hidden, context, embedded[:, step]), dim=1) @ mix.weight.T + mix.bias
            expected = expected.tanh() if readout == "tanh" else torch.maximum(expected[:, 0::2], expected[:, 1::2])
        torch.testing.assert_close(weights[:, step], looked, rtol=1e-5, atol=1e-6, check_dtype=False)
        torch.testing.assert_close(outputs[:, step], expected, rtol=1e-5, atol=1e-6, check_dtype=False)


def test_upper_layers_of_query_before_stand_on_the_lowest() -> None:
    decoder, encoded, embedded, state = build(
        kind="query_before", attention="bilinear", readout="state", layers=3, residual=True
    )
    outputs, _ = unroll(decoder, encoded, embedded, state)
    cells = [oracle(decoder.cell), *(oracle(layer.cells[0]) for layer in decoder.upper)]
    states = [(state[place], state[place + 1]) for place in (0, 2, 4)]
    for step in range(TIME):
        scores = torch.einsum("bh,hm,bsm->bs", states[0][0], decoder.attention.weight, encoded)
        context = torch.einsum("bs,bsm->bm", scores.masked_fill(~MASK, -torch.inf).softmax(dim=1), encoded)
        below = torch.cat((embedded[:, step], context), dim=1)
        for layer, cell in enumerate(cells):
            states[layer] = cell(below, states[layer])
            below = states[layer][0] + (below if layer else 0)
        torch.testing.assert_close(outputs[:, step], below, rtol=1e-5, atol=1e-6, check_dtype=False)


@pytest.mark.parametrize("residual, adds", [(False, ()), (True, (2, 3, 4)), (3, (3, 4))])
def test_gnmt_feeds_what_the_lowest_layer_reads_to_every_layer(residual: bool | int, adds: tuple[int, ...]) -> None:
    attention = {"kind": "additive", "hidden_size": 6}
    decoder, encoded, embedded, state = build(kind="gnmt", attention=attention, layers=4, residual=residual)
    outputs, weights = unroll(decoder, encoded, embedded, state)
    cells = [oracle(decoder.cell), *(oracle(layer.cells[0]) for layer in decoder.upper)]
    states = [(state[place], state[place + 1]) for place in (0, 2, 4, 6)]
    for step in range(TIME):
        context, looked = additive(decoder, states[0][0], encoded)
        below = embedded[:, step]
        for layer, cell in enumerate(cells):
            states[layer] = cell(torch.cat((below, context), dim=1), states[layer])
            below = states[layer][0] + (below if layer + 1 in adds else 0)
        torch.testing.assert_close(weights[:, step], looked, rtol=1e-5, atol=1e-6, check_dtype=False)
        torch.testing.assert_close(outputs[:, step], below, rtol=1e-5, atol=1e-6, check_dtype=False)


@pytest.mark.parametrize("attention", ["bilinear", None])
def test_a_window_decoder_sees_its_last_words_and_the_source(attention: str | None) -> None:
    torch.manual_seed(0)
    settings = {"kind": "feedforward", "window": 2, "hidden_size": HIDDEN, "attention": attention, "readout_size": 4}
    decoder = DECODERS.build(settings, EMBEDDING, MEMORY).double()
    encoded = torch.randn(BATCH, SOURCE, MEMORY).double() * MASK.unsqueeze(2)
    embedded = torch.randn(BATCH, TIME, EMBEDDING).double()
    outputs, weights = unroll(decoder, encoded, embedded, ())
    assert (weights is None) == (attention is None)
    before = torch.zeros(BATCH, EMBEDDING).double()
    for step in range(TIME):
        hidden = decoder.hidden(torch.cat((before, embedded[:, step]), dim=1)).tanh()
        before, context = embedded[:, step], encoded[:, 0]
        if attention is not None:
            scores = torch.einsum("bh,hm,bsm->bs", hidden, decoder.attention.weight, encoded)
            looked = scores.masked_fill(~MASK, -torch.inf).softmax(dim=1)
            context = torch.einsum("bs,bsm->bm", looked, encoded)
            torch.testing.assert_close(weights[:, step], looked, check_dtype=False)
        expected = decoder.readout.mix(torch.cat((hidden, context), dim=1)).tanh()
        torch.testing.assert_close(outputs[:, step], expected)


@pytest.mark.parametrize("feeding", [True, False])
def test_query_after_looks_with_the_new_state(feeding: bool) -> None:
    decoder, encoded, embedded, state = build(
        kind="query_after", attention="bilinear", input_feeding=feeding, readout_size=2
    )
    outputs, weights = unroll(decoder, encoded, embedded, state)
    assert outputs.shape == (BATCH, TIME, 2)
    cell, (hidden, memory) = oracle(decoder.recurrent.cells[0]), state
    fed, mix = torch.zeros(BATCH, 2).double(), decoder.readout.mix
    for step in range(TIME):
        given = torch.cat((embedded[:, step], fed), dim=1) if feeding else embedded[:, step]
        hidden, memory = cell(given, (hidden, memory))
        scores = torch.einsum("bh,hm,bsm->bs", hidden, decoder.attention.weight, encoded)
        looked = scores.masked_fill(~MASK, -torch.inf).softmax(dim=1)
        context = torch.einsum("bs,bsm->bm", looked, encoded)
        fed = torch.tanh(torch.cat((hidden, context), dim=1) @ mix.weight.T + mix.bias)
        torch.testing.assert_close(weights[:, step], looked, rtol=1e-5, atol=1e-6, check_dtype=False)
        torch.testing.assert_close(outputs[:, step], fed, rtol=1e-5, atol=1e-6, check_dtype=False)


@pytest.mark.parametrize("context", ["once", "every_step"])
@pytest.mark.parametrize("readout", ["state", "maxout"])
def test_a_fixed_context_comes_once_or_at_every_step(context: str, readout: str) -> None:
    size = {} if readout == "state" else {"readout_size": 4}
    decoder, encoded, embedded, state = build(kind="fixed", context=context, readout=readout, **size)
    outputs, weights = unroll(decoder, encoded, embedded, state)
    assert weights is None
    cell, (hidden, memory) = oracle(decoder.recurrent.cells[0]), state
    summary = [encoded[:, 0]] if context == "every_step" else []
    for step in range(TIME):
        hidden, memory = cell(torch.cat((embedded[:, step], *summary), dim=1), (hidden, memory))
        expected = hidden
        if readout == "maxout":
            mixed = torch.cat((hidden, *summary, embedded[:, step]), dim=1) @ decoder.readout.mix.weight.T
            mixed = mixed + decoder.readout.mix.bias
            expected = torch.maximum(mixed[:, 0::2], mixed[:, 1::2])
        torch.testing.assert_close(outputs[:, step], expected)


def test_context_once_reads_nothing_but_the_first_state() -> None:
    decoder, encoded, embedded, state = build(kind="fixed", context="once")
    other = unroll(decoder, torch.randn_like(encoded), embedded, state)
    assert torch.equal(unroll(decoder, encoded, embedded, state).outputs, other.outputs)


@pytest.mark.parametrize("kind", ["query_before", "fixed"])
def test_a_size_for_the_readout_state_is_refused(kind: str) -> None:
    with pytest.raises(SettingsError, match=r"\[readout_size\] 4 was given; the readout 'state' has the cell's"):
        DECODERS.build({"kind": kind, "readout": "state", "readout_size": 4}, EMBEDDING, MEMORY)


@pytest.mark.parametrize("kind", list(DECODERS))
def test_dead_settings_do_not_exist_and_names_are_suggested(kind: str) -> None:
    name = next(iter(choices(DECODERS[kind])))
    with pytest.raises(
        SettingsError, match=rf"no setting of the decoder '{kind}' is called '{name}s'. Did you mean '{name}'"
    ):
        DECODERS.build({"kind": kind, f"{name}s": 2}, EMBEDDING, MEMORY, where="model.decoder")
