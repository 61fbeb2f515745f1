"""The encoder's summary and its reversed reading, against torch.nn on packed sequences."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from unrolled.base.errors import SettingsError
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
