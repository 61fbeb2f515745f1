"""Each direction is a plain language model, sees its own side alone, and does not care what stands beside a text."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.nn import functional

from unrolled.base.errors import SettingsError, UsageError
from unrolled.base.protocol import BEGIN, END
from unrolled.data.spelling import Spelled, collate_spelled, joined, parted
from unrolled.layers import SpellingEncoder, to_torch
from unrolled.models import Elmo, LanguageModel

CHARACTERS, WORDS, SIZE = 11, 13, 5


def network(**given: object) -> Elmo:
    torch.manual_seed(0)
    cell = {"kind": "lstm", "hidden_size": 7, "projection_size": SIZE}
    model = Elmo(
        CHARACTERS, WORDS, **{"character_size": 3, "filters": (2, 0, 3), "cell": cell, "dropout": 0.0, **given}
    )
    with torch.no_grad():
        for weight in model.parameters():
            weight.normal_(std=0.5)
        model.reader.spelling.embedding.weight[0] = 0.0
    return model.eval()


def spelled(lengths: list[int], seed: int = 0) -> Spelled:
    draw = torch.Generator().manual_seed(seed)

    def numbers(low: int, high: int, count: int) -> list[int]:
        return torch.randint(low, high, (count,), generator=draw).tolist()

    rows = [[[BEGIN, *numbers(4, CHARACTERS, numbers(1, 5, 1)[0]), END] for _ in range(length)] for length in lengths]
    return collate_spelled(rows, [numbers(4, WORDS, length) for length in lengths])


# --- oracles


@pytest.mark.parametrize("layers", [1, 3])
def test_each_direction_is_a_plain_language_model_of_the_same_weights(layers):
    """The forward direction over words as they come, the backward one over the same text turned round."""
    model, batch = network(layers=layers), spelled([4])
    history = {
        "kind": "rnn",
        "cell": {"kind": "lstm", "hidden_size": 7, "projection_size": SIZE},
        "layers": layers,
        "residual": True,
    }
    ahead, back = model.log_probs(*batch)
    vectors = model.reader.spell(batch.characters, batch.mask)[0]
    for stack, order, found in (
        (model.reader.ahead, list(range(6)), ahead),
        (model.reader.back, list(range(5, -1, -1)), back),
    ):
        plain = LanguageModel(6, embedding_size=SIZE, history=history, dropout=0.0, tie=False).eval()
        with torch.no_grad():  # place t of the text is the plain model's symbol t
            plain.embedding.weight.copy_(vectors)
        cells = {
            name.replace(f"{layer}.cells.0", f"0.cells.{layer}"): weight
            for layer in range(layers)
            for name, weight in stack.state_dict().items()
            if name.startswith(f"{layer}.")
        }
        plain.history.stacks.load_state_dict(cells)
        ids = torch.tensor([order])
        read = functional.embedding(ids, vectors)
        output = plain.history(read, None, plain.initial(1)).output[0]
        said = model.softmax(output[:-1]).log_softmax(1)
        wanted = batch.words[0, order[1:]]
        expected = said.gather(1, wanted[:, None])[:, 0]
        torch.testing.assert_close(found[0, order[1:]], expected, atol=1e-5, rtol=1e-5)


def test_the_backward_direction_is_the_forward_one_on_the_text_turned_round():
    model, batch = network(), spelled([5])
    model.reader.back.load_state_dict(model.reader.ahead.state_dict())
    turned = Spelled(batch.characters.flip(1), batch.mask, batch.words.flip(1))
    ahead, back = model.log_probs(*batch)
    other_ahead, other_back = model.log_probs(*turned)
    torch.testing.assert_close(back.flip(1), other_ahead)
    torch.testing.assert_close(ahead.flip(1), other_back)
    read, other = model(batch.characters, batch.mask), model(turned.characters, turned.mask)
    for one, two in zip(read.backward, other.forward, strict=True):
        torch.testing.assert_close(one.flip(1), two)


def test_lstms_of_torch_say_the_same():
    """One layer without projection against torch.nn.LSTM, row by row and without padding."""
    model, batch = network(layers=1, cell={"kind": "lstm", "hidden_size": SIZE}), spelled([6, 3])
    read = model(batch.characters, batch.mask)
    for stack, found in ((model.reader.ahead, read.forward[0]), (model.reader.back, read.backward[0])):
        theirs = torch.nn.LSTM(SIZE, SIZE, batch_first=True)
        theirs.load_state_dict(to_torch(stack[0]))
        for row, length in enumerate((8, 5)):
            x = model.reader.spell(batch.characters, batch.mask)[row : row + 1, :length]
            x = x if stack is model.reader.ahead else x.flip(1)
            expected = theirs(x)[0][0]
            expected = expected if stack is model.reader.ahead else expected.flip(0)
            torch.testing.assert_close(found[row, :length], expected, atol=1e-5, rtol=1e-5)


def test_the_loss_is_both_directions_log_likelihood():
    model, batch = network(), spelled([4, 1, 6])
    ahead, back = model.log_probs(*batch)
    assert (ahead[:, 0] == 0).all() and (back[~batch.mask] == 0).all()
    torch.testing.assert_close(model.loss(*batch), -(ahead.sum() + back.sum()))
    assert int((ahead != 0).sum()) == int((back != 0).sum()) == 5 + 2 + 7


def test_layers_are_both_directions_side_by_side():
    model, batch = network(layers=2, residual=False), spelled([4])
    read = model(batch.characters, batch.mask)
    layers = read.layers()
    assert len(layers) == model.count == 3 and layers[0].shape[2] == model.output_size == 2 * SIZE
    torch.testing.assert_close(layers[0], torch.cat([read.words, read.words], 2))
    torch.testing.assert_close(layers[2], torch.cat([read.forward[1], read.backward[1]], 2))
    added = network(layers=2)(batch.characters, batch.mask)
    torch.testing.assert_close(added.forward[1], read.forward[1] + read.forward[0])


# --- what a text gets is its own


@settings(max_examples=20, deadline=None)
@given(st.lists(st.integers(1, 7), min_size=1, max_size=5), st.integers(0, 5), st.randoms(use_true_random=False))
def test_neighbours_padding_and_order_change_nothing(lengths, more, random):
    model, batch = network(), spelled(lengths)
    whole = model.log_probs(*batch)
    order = random.sample(range(len(lengths)), len(lengths))
    rows = [batch.characters[row] for row in order]
    wide = [functional.pad(row, (0, more, 0, more)) for row in rows]
    words = functional.pad(batch.words[order], (0, more))
    mask = functional.pad(batch.mask[order], (0, more))
    for one, two in zip(whole, model.log_probs(torch.stack(wide), mask, words), strict=True):
        torch.testing.assert_close(one[order], two[:, : one.shape[1]], atol=1e-5, rtol=1e-5)
    for row, length in enumerate(lengths):
        alone = model.log_probs(*(part[row : row + 1, : length + 2] for part in batch))
        for one, two in zip(whole, alone, strict=True):
            torch.testing.assert_close(one[row, : length + 2], two[0], atol=1e-5, rtol=1e-5)


@settings(max_examples=20, deadline=None)
@given(st.integers(2, 7), st.data())
def test_a_direction_never_sees_the_other_side(length, data):
    model, batch = network(), spelled([length])
    place = data.draw(st.integers(1, length))
    read = model(batch.characters, batch.mask)
    changed = batch.characters.clone()
    changed[0, place, 1] = 4 + (changed[0, place, 1] - 3) % (CHARACTERS - 4)
    other = model(changed, batch.mask)
    for one, two in zip(read.forward, other.forward, strict=True):
        assert near(one[:, :place], two[:, :place]) and not near(one[:, place:], two[:, place:])
    for one, two in zip(read.backward, other.backward, strict=True):
        assert near(one[:, place + 1 :], two[:, place + 1 :]) and not near(one[:, : place + 1], two[:, : place + 1])


def near(one, two):
    """The same but for last bits: in a library's product they can depend on where a row lies in memory."""
    return torch.allclose(one, two, rtol=1e-5, atol=1e-6)


def test_gradients_flow_through_what_may_be_seen_alone():
    model, batch = network(), spelled([5])
    vectors = torch.randn(1, 7, SIZE, requires_grad=True)
    model.reader.spell = lambda characters, mask: vectors  # type: ignore[method-assign]
    ahead, back = model.log_probs(*batch)
    (forward,) = torch.autograd.grad(ahead[0, 3], vectors, retain_graph=True)
    (backward,) = torch.autograd.grad(back[0, 3], vectors)
    assert (forward[0].abs().sum(1) > 0).tolist() == [True, True, True, False, False, False, False]
    assert (backward[0].abs().sum(1) > 0).tolist() == [False, False, False, False, True, True, True]


# --- words from characters


def test_spellings_are_the_greatest_answers_of_filters():
    """Against the same products written out window by window."""
    torch.manual_seed(1)
    layer = SpellingEncoder(CHARACTERS, 4, size=3, filters=(2, 3), highways=0)
    word = torch.tensor([[2, 7, 9, 3]])
    vectors = layer.embedding(word)[0]
    after = torch.cat([vectors, torch.zeros(1, 3)])
    (one, two), (weight, pair) = layer.filters, (each.weight for each in layer.filters)
    first = torch.stack([weight[:, :, 0] @ here for here in vectors]) + one.bias
    second = torch.stack([pair[:, :, 0] @ after[at] + pair[:, :, 1] @ after[at + 1] for at in range(4)]) + two.bias
    found = torch.cat([first.amax(0), second.amax(0)]).relu()
    torch.testing.assert_close(layer(word)[0], layer.projection(found))
    more = functional.pad(word, (0, 5))
    torch.testing.assert_close(layer(more), layer(word))


def test_a_highway_that_is_shut_changes_nothing():
    layer = SpellingEncoder(CHARACTERS, 4, filters=(5,), highways=2)
    plain = SpellingEncoder(CHARACTERS, 4, filters=(5,), highways=0)
    plain.load_state_dict({name: one for name, one in layer.state_dict().items() if "highways" not in name})
    with torch.no_grad():
        for way in layer.highways:
            way.both.bias[5:] = -200.0
    word = torch.tensor([[2, 5, 3]])
    torch.testing.assert_close(layer(word), plain(word))


def test_each_different_word_is_spelled_once(monkeypatch):
    model, batch = network(), spelled([3])
    twice = Spelled(*(torch.cat([part, part]) for part in batch))
    seen = []
    read = SpellingEncoder.forward
    monkeypatch.setattr(SpellingEncoder, "forward", lambda self, given: seen.append(len(given)) or read(self, given))
    model(twice.characters, twice.mask)
    assert seen == [5]


def test_spellings_come_back_from_a_store_row():
    words = [[BEGIN, 5, 6, END], [BEGIN, END], [BEGIN, 7, END]]
    row = joined(words)
    assert row == [5, 6, END, END, 7, END]
    assert [one.tolist() for one in parted(torch.tensor(row).numpy())] == words


@pytest.mark.parametrize(
    ("given", "match"),
    [
        ({"filters": ()}, r"\[model\.filters\]|filters\] \[\] was given; give how many"),
        ({"filters": (3, 0)}, r"filters\] \[3, 0\] was given"),
        ({"highways": -1}, r"highways\] -1 was given; give 0 or more"),
    ],
)
def test_wrong_settings_are_refused(given, match):
    with pytest.raises(SettingsError, match=match):
        network(**given)


def test_characters_of_another_shape_are_refused():
    layer = SpellingEncoder(CHARACTERS, 4)
    with pytest.raises(UsageError, match=r"characters have the shape \[2, 3, 4\]; give \[words, length\]"):
        layer(torch.ones(2, 3, 4, dtype=torch.long))
    with pytest.raises(UsageError, match=r"a word has no character, or PAD inside"):
        layer(torch.tensor([[2, 0, 3]]))
