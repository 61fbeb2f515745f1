"""The Transformer's layers against torch.nn's own, values and gradients."""

from __future__ import annotations

import pytest
import torch
from small_parts import STACK
from torch import Tensor, nn

from unrolled.base.errors import SettingsError
from unrolled.layers.attention import MultiHead
from unrolled.models import DECODERS, ENCODERS, Encoded
from unrolled.models.positions import POSITIONS
from unrolled.models.transformer import Around, PerPosition

BATCH, SOURCE, TIME, SIZE, MEMORY, WIDE = 3, 5, 4, 6, 6, 7
MASK = torch.tensor([[1, 1, 1, 1, 1], [1, 0, 0, 0, 0], [1, 1, 1, 0, 0]]).bool()


def adopt(oracle: nn.MultiheadAttention, heads: MultiHead) -> None:
    with torch.no_grad():
        oracle.in_proj_weight.copy_(torch.cat((heads.query.weight, heads.key.weight, heads.value.weight)))
        oracle.in_proj_bias.copy_(torch.cat((heads.query.bias, heads.key.bias, heads.value.bias)))
        oracle.out_proj.load_state_dict(heads.output.state_dict())


def adopt_rest(oracle: nn.Module, think: PerPosition, norms: list[Around]) -> None:
    oracle.linear1.load_state_dict(think.widen.state_dict())
    oracle.linear2.load_state_dict(think.narrow.state_dict())
    for number, around in enumerate(norms, start=1):
        getattr(oracle, f"norm{number}").load_state_dict(around.norm.state_dict())


def shake(module: nn.Module) -> None:
    torch.manual_seed(0)
    for weight in module.parameters():
        nn.init.normal_(weight, std=0.5)


def settings(kind: str, norm: str, activation: str) -> dict:
    return {**STACK, "kind": kind, "norm": norm, "activation": activation, "positions": "none"}


def gradients(output: Tensor, inputs: list[Tensor]) -> tuple[Tensor, ...]:
    torch.manual_seed(1)
    return torch.autograd.grad((output * torch.randn(output.shape, dtype=output.dtype)).sum(), inputs)


@pytest.mark.parametrize("activation", ["relu", "gelu"])
@pytest.mark.parametrize("norm", ["pre", "post"])
def test_the_encoder_is_torchs(norm: str, activation: str) -> None:
    encoder = ENCODERS.build(settings("transformer", norm, activation), SIZE).double()
    shake(encoder)
    twins = []
    for layer in encoder.layers:
        twin = nn.TransformerEncoderLayer(
            SIZE, 2, WIDE, dropout=0.0, activation=activation, batch_first=True, norm_first=norm == "pre"
        ).double()
        adopt(twin.self_attn, layer.look.attention)
        adopt_rest(twin, layer.think, [layer.look_around, layer.think_around])
        twins.append(twin)
    x = torch.randn(BATCH, SOURCE, SIZE).double().requires_grad_()
    expected = x
    for twin in twins:
        expected = twin(expected, src_key_padding_mask=~MASK)
    if norm == "pre":
        expected = encoder.norm(expected)
    encoded = encoder(x, MASK)
    torch.testing.assert_close(encoded.output[MASK], expected[MASK], rtol=1e-10, atol=1e-10)
    assert (encoded.output[~MASK] == 0).all()
    torch.testing.assert_close(encoded.summary[2], expected[2, :3].mean(dim=0))
    ours = [x, *(weight for layer in encoder.layers for weight in layer.think.parameters())]
    theirs = [
        x, *(weight for twin in twins for part in (twin.linear1, twin.linear2) for weight in part.parameters())
    ]  # fmt: skip
    for one, other in zip(
        gradients(encoded.output[MASK], ours), gradients(expected[MASK], theirs), strict=True
    ):  # fmt: skip
        torch.testing.assert_close(one, other, rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("activation", ["relu", "gelu"])
@pytest.mark.parametrize("norm", ["pre", "post"])
def test_the_decoder_is_torchs(norm: str, activation: str) -> None:
    decoder = DECODERS.build(settings("transformer", norm, activation), SIZE, MEMORY).double()
    shake(decoder)
    memory = (torch.randn(BATCH, SOURCE, MEMORY).double() * MASK.unsqueeze(2)).requires_grad_()
    x = torch.randn(BATCH, TIME, SIZE).double().requires_grad_()
    causal = nn.Transformer.generate_square_subsequent_mask(TIME, dtype=torch.float64)
    expected, looked = x, []
    for layer in decoder.layers:
        twin = nn.TransformerDecoderLayer(
            SIZE, 2, WIDE, dropout=0.0, activation=activation, batch_first=True, norm_first=norm == "pre"
        ).double()
        adopt(twin.self_attn, layer.back.attention)
        adopt(twin.multihead_attn, layer.across)
        adopt_rest(twin, layer.think, [layer.back_around, layer.across_around, layer.think_around])
        asked: list[Tensor] = []
        twin.multihead_attn.register_forward_pre_hook(lambda _, given, asked=asked: asked.append(given[0]))
        expected = twin(expected, memory, tgt_mask=causal, memory_key_padding_mask=~MASK)
        looked.append(twin.multihead_attn(asked[0], memory, memory, key_padding_mask=~MASK)[1])
    if norm == "pre":
        expected = decoder.norm(expected)
    state = decoder.start(Encoded(memory, MASK, (), memory[:, 0]), ())
    outputs, weights = decoder(x, state)
    torch.testing.assert_close(outputs, expected, rtol=1e-10, atol=1e-10)
    torch.testing.assert_close(weights, looked[0], rtol=1e-10, atol=1e-10)  # the last but one of two layers
    for one, other in zip(gradients(outputs, [x, memory]), gradients(expected, [x, memory]), strict=True):
        torch.testing.assert_close(one, other, rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("asked, layers, shown", [(None, 1, 0), (None, 2, 0), (None, 5, 3), (1, 3, 0), (3, 3, 2)])
def test_the_layer_whose_weights_are_shown(asked: int | None, layers: int, shown: int) -> None:
    decoder = DECODERS.build({"kind": "transformer", **STACK, "layers": layers, "alignment_layer": asked}, SIZE, MEMORY)
    assert decoder.shown == shown


def test_positions_are_the_papers() -> None:
    table = POSITIONS.build("sinusoidal", 5).table(2, 3, torch.zeros(0, dtype=torch.float64))
    for row, time in enumerate((2, 3, 4)):
        for place in range(5):
            angle = torch.tensor(time / 10_000 ** ((place - place % 2) / 5), dtype=torch.float64)
            wanted = angle.cos() if place % 2 else angle.sin()
            torch.testing.assert_close(table[row, place], wanted)


def test_learned_positions_past_the_last_share_it() -> None:
    positions = POSITIONS.build({"kind": "learned", "longest": 3}, 2)
    x = torch.zeros(1, 4, 2)
    assert torch.equal(positions(x, first=1)[0], positions.weight[[1, 2, 2, 2]])


@pytest.mark.parametrize("registry, sizes", [(ENCODERS, (6,)), (DECODERS, (6, 5))])
def test_heads_that_do_not_divide_the_size_are_refused(registry: object, sizes: tuple[int, ...]) -> None:
    with pytest.raises(
        SettingsError,
        match=r"\[heads\] 4 was given, and the embedding's size 6 is not a multiple .* Possible: 1, 2, 3, 6",
    ):
        registry.build({"kind": "transformer", "heads": 4}, *sizes)


def test_an_alignment_layer_that_is_not_there_is_refused() -> None:
    with pytest.raises(SettingsError, match=r"\[alignment_layer\] 3 was given, and there are 2 layers"):
        DECODERS.build({"kind": "transformer", **STACK, "alignment_layer": 3}, SIZE, MEMORY)
