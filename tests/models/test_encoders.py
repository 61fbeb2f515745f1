"""The encoder's summary and its reversed reading, against torch.nn on packed sequences."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from unrolled.base.errors import SettingsError, UsageError
from unrolled.layers import Recurrent
from unrolled.models import ENCODERS
from unrolled.models.encoders import reverse

MASK = torch.tensor([[1, 1, 1, 1], [1, 0, 0, 0], [1, 1, 1, 0]]).bool()


@pytest.mark.parametrize("cell, width", [("lstm", 2), ("elman", 1), ("gru", 1)])
@pytest.mark.parametrize("bidirectional", [True, False])
def test_the_summary_is_the_top_layers_last_state_of_each_direction(cell: str, width: int, bidirectional: bool) -> None:
    torch.manual_seed(0)
    encoder = ENCODERS.build(
        {"kind": "rnn", "cell": {"kind": cell, "hidden_size": 3}, "layers": 2, "bidirectional": bidirectional}, 5
    )
    encoded = encoder(torch.randn(3, 4, 5), MASK)
    lengths = MASK.sum(dim=1)
    ends = encoded.output[torch.arange(3), lengths - 1, :3]
    expected = torch.cat((ends, encoded.output[:, 0, 3:]), dim=1) if bidirectional else ends
    torch.testing.assert_close(encoded.summary, expected)
    assert encoder.output_size == expected.shape[1]
    assert encoder.layout == ((3,) * width * (1 + bidirectional),) * 2


def test_a_reversed_source_is_read_backwards_inside_its_length() -> None:
    torch.manual_seed(0)
    settings = {"kind": "rnn", "cell": {"kind": "lstm", "hidden_size": 3}, "bidirectional": False}
    encoder = ENCODERS.build({**settings, "reverse": True}, 5)
    plain = ENCODERS.build(settings, 5)
    plain.load_state_dict(encoder.state_dict())
    embedded = torch.randn(3, 4, 5)
    encoded = encoder(embedded, MASK)
    for row, length in enumerate(MASK.sum(dim=1).tolist()):
        backwards = plain(embedded[row : row + 1, :length].flip(1), MASK[row : row + 1, :length])
        torch.testing.assert_close(encoded.output[row, :length], backwards.output[0].flip(0))
        torch.testing.assert_close(encoded.summary[row], backwards.summary[0])
        assert (encoded.output[row, length:] == 0).all()


def test_reversing_twice_changes_nothing() -> None:
    sequence = torch.randn(3, 4, 2)
    once = reverse(sequence, MASK)
    assert torch.equal(once[0], sequence[0].flip(0))
    assert torch.equal(once[2], sequence[2, [2, 1, 0, 3]])
    assert torch.equal(reverse(once, MASK), sequence)


def test_an_lstm_encoder_is_torchs_on_packed_sequences() -> None:
    torch.manual_seed(0)
    encoder = ENCODERS.build({"kind": "rnn", "cell": {"kind": "lstm", "hidden_size": 3}}, 5)
    oracle = nn.LSTM(5, 3, batch_first=True, bidirectional=True)
    for cell, tail in zip(encoder.recurrent.cells, ("", "_reverse"), strict=True):
        with torch.no_grad():
            getattr(oracle, f"weight_ih_l0{tail}").copy_(cell.input_weight)
            getattr(oracle, f"weight_hh_l0{tail}").copy_(cell.hidden_weight)
            getattr(oracle, f"bias_ih_l0{tail}").copy_(cell.bias)
            getattr(oracle, f"bias_hh_l0{tail}").zero_()
    embedded = torch.randn(3, 4, 5)
    packed = nn.utils.rnn.pack_padded_sequence(embedded, MASK.sum(dim=1), batch_first=True, enforce_sorted=False)
    output, (hidden, memory) = oracle(packed)
    encoded = encoder(embedded, MASK)
    torch.testing.assert_close(encoded.output, nn.utils.rnn.pad_packed_sequence(output, batch_first=True)[0])
    expected = [part for direction in range(2) for part in (hidden[direction], memory[direction])]
    for part, other in zip(encoded.state, expected, strict=True):
        torch.testing.assert_close(part, other)


@pytest.mark.parametrize("setting, value", [("layers", 0), ("dropout", 1.0), ("dropout", -0.1), ("bidirectional", 3)])
def test_settings_out_of_range_are_refused_by_name(setting: str, value: float) -> None:
    with pytest.raises(SettingsError, match=rf"\[model\.encoder\.{setting}\] .*{value} was given"):
        ENCODERS.build({"kind": "rnn", setting: value}, 5, where="model.encoder")


def oracle_layer(recurrent: Recurrent, layer: int) -> nn.LSTM:
    """torch's LSTM with the weights of one layer, all directions."""
    cells = recurrent.cells[layer * recurrent.directions : (layer + 1) * recurrent.directions]
    size = cells[0].input_size
    oracle = nn.LSTM(size, cells[0].hidden_size, batch_first=True, bidirectional=len(cells) == 2).double()
    for cell, tail in zip(cells, ("", "_reverse")[: len(cells)], strict=True):
        with torch.no_grad():
            getattr(oracle, f"weight_ih_l0{tail}").copy_(cell.input_weight)
            getattr(oracle, f"weight_hh_l0{tail}").copy_(cell.hidden_weight)
            getattr(oracle, f"bias_ih_l0{tail}").copy_(cell.bias)
            getattr(oracle, f"bias_hh_l0{tail}").zero_()
    return oracle


def packed(oracle: nn.LSTM, x: Tensor, lengths: Tensor) -> Tensor:
    output, _ = oracle(pack_padded_sequence(x, lengths, batch_first=True, enforce_sorted=False))
    return pad_packed_sequence(output, batch_first=True, total_length=x.shape[1])[0]


@pytest.mark.parametrize("residual, adds", [(False, ()), (True, (3, 4)), (3, (3, 4)), (4, (4,))])
def test_the_first_layer_alone_has_two_directions(residual: bool | int, adds: tuple[int, ...]) -> None:
    torch.manual_seed(0)
    cell = {"kind": "lstm", "hidden_size": 3}
    settings = {"kind": "rnn", "cell": cell, "layers": 4, "bidirectional": "first", "residual": residual}
    encoder = ENCODERS.build(settings, 5).double()
    x, lengths = torch.randn(3, 4, 5).double(), MASK.sum(dim=1)
    expected = x
    layers = [(stack, layer) for stack in (*encoder.below, encoder.recurrent) for layer in range(stack.layers)]
    for number, (stack, layer) in enumerate(layers, start=1):
        above = packed(oracle_layer(stack, layer), expected, lengths)
        expected = above + expected if number in adds else above
    encoded = encoder(x, MASK)
    torch.testing.assert_close(encoded.output, expected * MASK.unsqueeze(2), rtol=1e-5, atol=1e-6)
    assert encoder.layout == ((3, 3, 3, 3), (3, 3), (3, 3), (3, 3))
    assert [part.shape[1] for part in encoded.state] == [size for layer in encoder.layout for size in layer]
    assert encoder.output_size == encoded.summary.shape[1] == 3


def test_where_residual_connections_cannot_start_is_said() -> None:
    settings = {"kind": "rnn", "layers": 3, "bidirectional": "first"}
    with pytest.raises(
        SettingsError, match=r"residual\] 2 was given, but .* two directions .* Give 3 or more, or true"
    ):
        ENCODERS.build({**settings, "residual": 2}, 5)
    with pytest.raises(SettingsError, match=r"residual\] 4 was given, and there are 3 layers"):
        ENCODERS.build({**settings, "residual": 4}, 5)


def test_a_pyramid_reads_pairs_inside_the_true_lengths() -> None:
    torch.manual_seed(0)
    encoder = ENCODERS.build({"kind": "pyramidal", "cell": {"kind": "lstm", "hidden_size": 3}, "layers": 2}, 5).double()
    mask = torch.arange(7) < torch.tensor([7, 1, 4]).unsqueeze(1)
    x = torch.randn(3, 7, 5).double()
    encoded = encoder(x, mask)
    assert encoder.reduction == 4
    assert encoded.mask.tolist() == [[True, True], [True, False], [True, False]]
    for row, length in enumerate(mask.sum(dim=1).tolist()):
        output, _ = oracle_layer(encoder.lowest, 0)(x[row : row + 1, :length])
        for layer in encoder.halving:
            pairs = functional.pad(output, (0, 0, 0, output.shape[1] % 2)).reshape(1, -1, 2 * output.shape[2])
            output, _ = oracle_layer(layer, 0)(pairs)
        torch.testing.assert_close(encoded.output[row, : output.shape[1]], output[0], rtol=1e-5, atol=1e-6)
        assert (encoded.output[row, output.shape[1] :] == 0).all()


def convolved(x: Tensor, layer: nn.Linear, width: int) -> Tensor:
    """torch's convolution with the weights of a layer over windows; zeros outside."""
    weight = layer.weight.unflatten(1, (width, -1)).transpose(1, 2)
    filled = functional.pad(x.transpose(1, 2), (width // 2, (width - 1) // 2))
    return functional.conv1d(filled, weight, layer.bias).transpose(1, 2)


@pytest.mark.parametrize("split", [True, False])
@pytest.mark.parametrize("width", [1, 2, 3])
def test_a_convolutional_encoder_is_gated_convolutions(width: int, split: bool) -> None:
    torch.manual_seed(0)
    settings = {"kind": "cnn", "layers": 2, "hidden_size": 4, "width": width, "dropout": 0.0, "weight_norm": split}
    encoder = ENCODERS.build(settings, 5).double()
    x, real = torch.randn(3, 4, 5).double(), MASK.unsqueeze(2)
    read = x + encoder.positions.weight[:4]
    z = encoder.enter(read)
    for layer in encoder.layers:
        z = (functional.glu(convolved(z * real, layer, width), dim=2) + z) * 0.5**0.5
    expected = (encoder.leave(z) + read) * 0.5**0.5 * real
    torch.testing.assert_close(encoder(x, MASK).output, expected)


def test_a_convolutional_encoder_keeps_the_variance_at_the_start() -> None:
    torch.manual_seed(0)
    encoder = ENCODERS.build({"kind": "cnn", "layers": 6, "hidden_size": 128, "dropout": 0.0}, 128)
    encoded = encoder(torch.randn(2, 50, 128), torch.ones(2, 50).bool())
    assert 0.5 < encoded.output.std() < 2


def test_weights_split_into_length_and_direction_start_the_same_and_learn_apart() -> None:
    settings = {"kind": "cnn", "layers": 2, "hidden_size": 4, "dropout": 0.0}
    encoders = []
    for split in (True, False):
        torch.manual_seed(0)
        encoders.append(ENCODERS.build({**settings, "weight_norm": split}, 5).double())
    ours, plain = encoders
    x = torch.randn(3, 4, 5).double()
    torch.testing.assert_close(ours(x, MASK).output, plain(x, MASK).output)
    ours(x, MASK).output.sin().sum().backward()
    plain(x, MASK).output.sin().sum().backward()
    for layer, other in zip(
        (ours.enter, *ours.layers, ours.leave), (plain.enter, *plain.layers, plain.leave), strict=True
    ):
        length, direction = layer.parametrizations.weight.original0, layer.parametrizations.weight.original1
        norm = direction.norm(dim=1, keepdim=True)
        assert length.shape == (layer.out_features, 1)
        # equation 3 of Salimans & Kingma 2016: the gradient of w along v, and across it
        along = (other.weight.grad * direction).sum(1, keepdim=True) / norm
        across = length / norm * other.weight.grad - length * along / norm.square() * direction
        torch.testing.assert_close(length.grad, along, rtol=1e-5, atol=1e-6)
        torch.testing.assert_close(direction.grad, across, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("join", ["concat", "max"])
def test_n_grams_are_convolutions_of_every_width(join: str) -> None:
    torch.manual_seed(0)
    encoder = ENCODERS.build({"kind": "ngram", "widest": 3, "hidden_size": 4, "join": join}, 5).double()
    x = torch.randn(3, 4, 5).double() * MASK.unsqueeze(2)
    found = [convolved(x, layer, width).relu() for width, layer in enumerate(encoder.layers, start=1)]
    expected = torch.cat(found, dim=2) if join == "concat" else torch.maximum(torch.maximum(*found[:2]), found[2])
    encoded = encoder(x, MASK)
    torch.testing.assert_close(encoded.output, expected * MASK.unsqueeze(2))
    torch.testing.assert_close(encoded.summary[2], expected[2, :3].amax(dim=0))
    assert encoder.output_size == (12 if join == "concat" else 4)


def test_a_window_encoder_sees_its_window() -> None:
    torch.manual_seed(0)
    encoder = ENCODERS.build({"kind": "feedforward", "reach": 1, "hidden_size": 7}, 5).double()
    x = torch.randn(3, 4, 5).double() * MASK.unsqueeze(2)
    expected = convolved(x, encoder.hidden, 3).tanh() * MASK.unsqueeze(2)
    torch.testing.assert_close(encoder(x, MASK).output, expected)


@pytest.mark.parametrize("kind", list(ENCODERS))
def test_a_row_without_a_real_position_is_refused(kind: str) -> None:
    encoder = ENCODERS.build(kind, 8)
    with pytest.raises(UsageError, match=r"row 1.*|.*length.*"):
        encoder(torch.randn(2, 3, 8), torch.tensor([[True, True, False], [False, False, False]]))


@pytest.mark.parametrize("kind", list(ENCODERS))
def test_what_an_encoder_cannot_read_is_named(kind: str) -> None:
    encoder, x, real = ENCODERS.build(kind, 8), torch.randn(2, 3, 8), torch.ones(2, 3).bool()
    for given, mask, said in (
        (x[..., :7], real, r"embedded of \w+ has shape \[2, 3, 7\]; it must be \[batch, source, 8\]"),
        (x[:0], real[:0], r"has shape \[0, 3, 8\]; .* with at least one row and one position"),
        (x[:, :0], real[:, :0], r"has shape \[2, 0, 8\]"),
        (x, real[:, :2], r"mask of \w+ is torch.bool \[2, 2\]; it must be torch.bool \[2, 3\], True = real"),
        (x, real.long(), r"mask of \w+ is torch.int64 \[2, 3\]"),
        (x.double(), real, r"embedded of \w+ is torch.float64, its weights are torch.float32; make them alike"),
    ):
        with pytest.raises(UsageError, match=said):
            encoder(given, mask)
