"""Features in front of a source: read from a table of their own, placed apart, attended to, never copied."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from small_parts import DECODERS, ENCODERS

from unrolled.base.errors import UsageError
from unrolled.base.protocol import BEGIN, END, PAD, UNKNOWN
from unrolled.models import MODELS
from unrolled.models.pointer import Pointer

TEXT, TARGET, FEATURES = 9, 8, 6
KINDS = {
    "rnn": {"encoder": ENCODERS["rnn"], "decoder": DECODERS["query_before"], "copy": True},
    "transformer": {"encoder": ENCODERS["transformer"], "decoder": DECODERS["transformer"]},
    "cnn": {"encoder": ENCODERS["cnn"], "decoder": DECODERS["query_after"]},
    "pyramidal": {"encoder": ENCODERS["pyramidal"], "decoder": DECODERS["gnmt"], "copy": True},
}
SOURCE = st.tuples(
    st.lists(st.integers(TEXT + 4, TEXT + FEATURES - 1), max_size=4),
    st.lists(st.integers(4, TEXT - 1), min_size=1, max_size=6),
).map(lambda both: [*both[0], *both[1], END])


def model(kind: str, features: int = FEATURES):
    torch.manual_seed(3)
    return MODELS.build({"kind": "seq2seq", "embedding_size": 6, **KINDS[kind]}, TEXT, TARGET, features).double().eval()


def padded(rows: list[list[int]], more: int = 0):
    longest = max(map(len, rows)) + more
    ids = torch.tensor([row + [PAD] * (longest - len(row)) for row in rows])
    mask = torch.tensor([[True] * len(row) + [False] * (longest - len(row)) for row in rows])
    return ids, mask


@pytest.mark.parametrize("kind", KINDS)
@settings(max_examples=25)
@given(rows=st.lists(SOURCE, min_size=2, max_size=3), more=st.integers(0, 3))
def test_a_row_depends_neither_on_padding_nor_on_its_neighbours(kind, rows, more) -> None:
    network = model(kind)
    target = [BEGIN, 4, 5, END]
    gold = [padded([target] * count) for count in (1, len(rows))]
    with torch.no_grad():
        together = network.log_probs(*padded(rows, more), *gold[1])
        for row, said in zip(rows, together, strict=True):
            torch.testing.assert_close(network.log_probs(*padded([row]), *gold[0])[0], said)


@pytest.mark.parametrize("kind", KINDS)
def test_features_change_what_is_said_and_learn(kind) -> None:
    network = model(kind)
    gold = padded([[BEGIN, 4, 5, END]])
    with torch.no_grad():
        said = [network.log_probs(*padded([[TEXT + one, 5, 6, END]]), *gold) for one in (4, 5)]
    assert not torch.allclose(*said)
    network.loss(*padded([[TEXT + 4, 5, 6, END]]), *gold).backward()
    rows = network.feature_embedding.weight.grad.abs().sum(1)
    assert rows.nonzero().flatten().tolist() == [4]


def test_the_order_of_features_is_nothing_to_an_encoder_that_adds_positions() -> None:
    network, gold = model("transformer"), padded([[BEGIN, 4, END]])
    with torch.no_grad():
        one, other, text = (
            network.log_probs(*padded([row]), *gold)
            for row in (
                [TEXT + 4, TEXT + 5, 6, 7, END],
                [TEXT + 5, TEXT + 4, 6, 7, END],
                [TEXT + 4, TEXT + 5, 7, 6, END],
            )
        )
    torch.testing.assert_close(one, other)
    assert not torch.allclose(one, text)


def test_step_by_step_is_the_whole_pass() -> None:
    network = model("rnn")
    rows, target = [[TEXT + 4, 5, END], [TEXT + 5, TEXT + 4, 6, 7, END]], [BEGIN, 4, 5, END]
    with torch.no_grad():
        whole = network.log_probs(*padded(rows), *padded([target] * 2))
        state = network.select(network.start(*padded(rows)), torch.tensor([1, 0]))
        for place, symbol in enumerate(target[:-1]):
            logits, weights, state = network.step(torch.full((2,), symbol), state)
            said = logits.log_softmax(1)[:, target[place + 1]]
            torch.testing.assert_close(said.float(), whole[[1, 0], place])
            assert weights.shape == (2, 5)
            torch.testing.assert_close(weights.sum(1), torch.ones(2, dtype=weights.dtype))


def test_a_feature_that_is_not_there_is_refused() -> None:
    with pytest.raises(UsageError, match="ids of an embedding hold 6; with 6 symbols they are from 0 to 5"):
        model("rnn").start(*padded([[TEXT + FEATURES, 5, END]]))


def test_a_feature_is_not_copied() -> None:
    """What lies on it goes to the written part, and all adds up to 1."""
    torch.manual_seed(1)
    pointer = Pointer(3, 7, 5)
    output, logits = torch.randn(2, 3), torch.randn(2, 5)
    weights = torch.tensor([[0.5, 0.3, 0.2], [0.0, 0.25, 0.75]])
    said = pointer(output, logits, weights, torch.tensor([[PAD, 4, UNKNOWN]] * 2)).exp()
    gate = pointer.gate(output).sigmoid()
    expected = logits.softmax(1) * (gate + (1 - gate) * weights[:, :1])
    expected[:, 4] += ((1 - gate) * weights[:, 1:2])[:, 0]
    expected[:, UNKNOWN] += ((1 - gate) * weights[:, 2:])[:, 0]
    torch.testing.assert_close(said, expected)
    torch.testing.assert_close(said.sum(1), torch.ones(2))
