"""Readers: the equations computed anew, values and gradients; padding, order and names of entities say nothing."""

import copy

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.nn import functional

from unrolled.base.errors import SettingsError
from unrolled.base.protocol import END
from unrolled.base.settings import choices
from unrolled.models import ENCODERS, MODELS, READINGS, Asked
from unrolled.models.encoders import Encoded
from unrolled.models.reader import end_to_end

VOCABULARY, ANSWERS, SLOTS = 17, 3, 5
LSTM = {"kind": "lstm", "hidden_size": 3}
BASE = {"kind": "reader", "embedding_size": 4, "size": 7, "dropout": 0.0, "encoder": {"kind": "rnn", "cell": LSTM}}
DEEP = {"kind": "deep_reader", "embedding_size": 4, "dropout": 0.0, "cell": LSTM}
ADDITIVE = {"kind": "additive", "hidden_size": 5}
ATTENTIVE = {"kind": "attentive", "attention": ADDITIVE}
IMPATIENT = {"kind": "impatient", "attention": ADDITIVE}
SMALL = {
    "transformer": {"layers": 1, "heads": 2, "feedforward_size": 7, "dropout": 0.0},
    "cnn": {"layers": 1, "hidden_size": 4, "dropout": 0.0},
    "ngram": {"widest": 2, "hidden_size": 3},
    "feedforward": {"reach": 1, "hidden_size": 6},
    "rnn": {"cell": LSTM},
}
KINDS = {"entity": (ANSWERS, 0), "anonymous": (SLOTS, SLOTS), "span": (0, 0)}


def build(base=BASE, kind="entity", **given):
    torch.manual_seed(0)
    model = MODELS.build(base | given, VOCABULARY, *KINDS[kind], where="model")
    model.spell([-1] * (VOCABULARY - SLOTS) + [place % max(1, KINDS[kind][0]) for place in range(SLOTS)])
    return model


def asked(documents, questions, candidates=None, seed=1, padding=0):
    """Random rows of the given lengths (END counted), every document with two of the last SLOTS symbols in it."""
    draw = torch.Generator().manual_seed(seed)
    sides = []
    for lengths, low in ((documents, 4), (questions, 4)):
        size = torch.tensor(lengths)
        mask = torch.arange(max(lengths) + padding) < size.unsqueeze(1)
        ids = torch.randint(low, VOCABULARY, mask.shape, generator=draw)
        ids[torch.arange(len(lengths)), size - 1] = END
        sides += [ids * mask, mask]
    sides[0][:, 0], sides[0][:, 1] = VOCABULARY - 1, VOCABULARY - SLOTS
    chosen = torch.full((len(documents), 2), -1) if candidates is None else torch.tensor(candidates)
    return Asked(*sides, chosen)


TRIED = [
    *({"encoder": {"kind": one, **SMALL[one]}} for one in ENCODERS if one in SMALL),
    *({"reading": reading} for reading in (ATTENTIVE, ATTENTIVE | {"hops": 3}, IMPATIENT)),
    {"question_encoder": {"kind": "cnn", **SMALL["cnn"]}}, {"answer": "attention_sum"}, {"exact_match": True},
    {"pointer": {"kind": "bilinear"}}, {"size": 5}, {"embedding_size": 6}, {"dropout": 0.4}, {"input_dropout": 0.4},
    {"word_dropout": 0.4},
]  # fmt: skip
DEEP_TRIED = [
    {"cell": {"kind": "gru", "hidden_size": 3}}, {"layers": 3}, {"first": "question"}, {"embedding_size": 6},
    {"dropout": 0.4}, {"input_dropout": 0.4}, {"word_dropout": 0.4},
]  # fmt: skip


def test_every_setting_is_tried():
    assert {name for tree in TRIED for name in tree} == set(choices(MODELS["reader"]))
    assert {name for tree in DEEP_TRIED for name in tree} == set(choices(MODELS["deep_reader"]))
    assert {one["kind"] for one in (ATTENTIVE, IMPATIENT)} == set(READINGS)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("base, tree", [*((BASE, one) for one in TRIED), *((DEEP, one) for one in DEEP_TRIED)], ids=str)
def test_every_value_of_every_setting_trains_two_steps(base, tree, kind):
    if kind == "span" and (base is DEEP or "answer" in tree):
        with pytest.raises(SettingsError, match=r"cannot give spans|is for entities"):
            build(base, kind, **copy.deepcopy(tree))
        return
    model = build(base, kind, **copy.deepcopy(tree))
    given = asked([9, 4, 3], [5, 2, 3])
    targets = torch.tensor([[0, 1], [1, 1], [0, 0]]) if kind == "span" else torch.tensor([[0], [SLOTS - 1], [0]])
    targets = targets.clamp(max=ANSWERS - 1) if kind == "entity" else targets
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    seen = []
    for _ in range(2):
        loss = model.loss(model(given).logits, targets, 0.1)
        optimizer.zero_grad()
        loss.backward()
        assert all(one.grad is None or one.grad.isfinite().all() for one in model.parameters())
        optimizer.step()
        seen.append(loss.item())
    assert torch.tensor(seen).isfinite().all()


# --- the equations of Hermann et al. 2015 -----------------------------------------------------------------------------


def attentive_by_hand(part, y, u, hops=1):
    """One row: y [places, memory], u [question]."""
    attention, weights, r = part.attention, [], torch.zeros(())
    for hop in range(hops):
        if hop:
            u = u + part.move.weight @ r
        scores = torch.stack(
            [attention.vector @ torch.tanh(attention.key_weight @ one + attention.query_weight @ u) for one in y]
        )
        s = scores.exp() / scores.exp().sum()
        r = sum(share * one for share, one in zip(s, y, strict=True))
        weights.append(s)
    return u, r, torch.stack(weights)


def impatient_by_hand(part, y, words):
    attention, r, weights = part.attention, part.first, []
    of_word, of_read = attention.query_weight.split([words.shape[1], y.shape[1]], dim=1)
    for word in words:
        m = [torch.tanh(attention.key_weight @ one + of_read @ r + of_word @ word) for one in y]
        scores = torch.stack([attention.vector @ one for one in m])
        s = scores.exp() / scores.exp().sum()
        r = sum(share * one for share, one in zip(s, y, strict=True)) + torch.tanh(part.again.weight @ r)
        weights.append(s)
    return r, torch.stack(weights)


def by_hand(model, given, row, hops=1):
    """Logits and weights of one row, without padding, in plain products."""
    places, count = int(given.document_mask[row].sum()), int(given.question_mask[row].sum())
    document, question = given.document[row, :places], given.question[row, :count]
    real = torch.ones(1, places, dtype=torch.bool), torch.ones(1, count, dtype=torch.bool)
    embedded = model.embedding.weight[document]
    if model.matched is not None:
        there = [float(one in question.tolist() and one != END) for one in document.tolist()]
        embedded = embedded + torch.tensor(there, dtype=embedded.dtype).unsqueeze(1) * model.matched
    y = model.encoder(embedded[None], real[0]).output[0]
    asking = model.question_encoder(model.embedding.weight[question][None], real[1])
    half = asking.output.shape[2] // 2
    u = torch.cat([asking.output[0, -1, :half], asking.output[0, 0, half:]])  # both ends
    if hasattr(model.reading, "again"):
        r, weights = impatient_by_hand(model.reading, y, asking.output[0])
    else:
        u, r, weights = attentive_by_hand(model.reading, y, u, hops)
    g = torch.tanh(model.of_read.weight @ r + model.of_read.bias + model.of_asked.weight @ u)
    return model.output.weight @ g + model.output.bias, weights


@pytest.mark.parametrize(
    "tree",
    [
        {"reading": ATTENTIVE},
        {"reading": ATTENTIVE | {"hops": 3}},
        {"reading": IMPATIENT},
        {"reading": ATTENTIVE, "exact_match": True},
    ],
    ids=str,
)
def test_readers_are_the_equations_of_hermann(tree):
    model = build(**tree).double()
    if model.matched is not None:
        torch.nn.init.normal_(model.matched)
    if hasattr(model.reading, "first"):
        torch.nn.init.normal_(model.reading.first)
    given = asked([7, 5, 3], [4, 2, 5], padding=2)
    found = model(given)
    hops = tree["reading"].get("hops", 1)
    rows = [by_hand(model, given, row, hops) for row in range(3)]
    torch.testing.assert_close(found.logits[:, 0], torch.stack([logits for logits, _ in rows]))
    for row, (_, weights) in enumerate(rows):
        steps, places = weights.shape
        torch.testing.assert_close(found.weights[row, :steps, :places], weights)
        assert int(found.taken[row].sum()) == steps
        assert not found.weights[row, :steps, places:].any()
    targets = torch.tensor([[2], [0], [1]])
    parameters = [one for name, one in model.named_parameters() if "pointer" not in name]
    mine = torch.autograd.grad(model.loss(found.logits, targets).double(), parameters)
    whole = -sum(logits.log_softmax(0)[target] for (logits, _), target in zip(rows, (2, 0, 1), strict=True))
    for one, other in zip(mine, torch.autograd.grad(whole, parameters), strict=True):
        torch.testing.assert_close(one, other, rtol=1e-5, atol=1e-7)  # the loss itself is in float32


def test_the_deep_reader_is_layers_with_skips_over_one_text():
    model = build(DEEP, layers=3).double()
    given = asked([6, 4], [3, 5], padding=1)
    found = model(given).logits[:, 0]
    for row in range(2):
        one = given.document[row][given.document_mask[row]], given.question[row][given.question_mask[row]]
        x = model.embedding.weight[torch.cat(one)]
        below, ends = x, []
        for stack in model.stacks:
            (cell,) = stack.cells
            h, c, outputs = torch.zeros(3).double(), torch.zeros(3).double(), []
            for step in below:
                h, c = cell(step[None], (h[None], c[None]))
                h, c = h[0], c[0]
                outputs.append(h)
            ends.append(h)
            below = torch.cat([x, torch.stack(outputs)], dim=1)
        torch.testing.assert_close(found[row], model.output.weight @ torch.cat(ends) + model.output.bias)


def test_document_and_question_end_to_end():
    one = torch.tensor([[5, 6, 0], [7, 0, 0]]), torch.tensor([[1, 1, 0], [1, 0, 0]]).bool()
    other = torch.tensor([[8, 0], [9, 10]]), torch.tensor([[1, 0], [1, 1]]).bool()
    ids, mask = end_to_end(one, other)
    assert ids.tolist() == [[5, 6, 8, 0, 0], [7, 9, 10, 0, 0]]
    assert mask.sum(1).tolist() == [3, 3] and mask[:, :3].all()


def test_attention_sum_adds_the_weights_of_the_places_of_each_answer():
    model = build(answer="attention_sum").double()
    given = asked([8, 5], [3, 2])
    found = model.probabilities(given)
    for row in range(2):
        sums = torch.zeros(ANSWERS).double()
        for place, symbol in enumerate(given.document[row].tolist()):
            if given.document_mask[row, place] and model.spelled[symbol] >= 0:
                sums[model.spelled[symbol]] += found.weights[row, -1, place]
        torch.testing.assert_close(found.logits[row, 0].double(), sums / sums.sum(), rtol=1e-4, atol=1e-6)


def test_spans_are_two_pointers_the_second_told_of_the_first():
    model = build(kind="span").double()
    given = asked([6, 4], [3, 2])
    found = model.probabilities(given)
    document, question = model._encoded(given)
    read = model.reading(document, question)
    query = torch.cat([read.asked, read.read], dim=1)
    first, last = model.pointers
    begun = first(query, first.remember(document.output, document.mask))
    ended = last(torch.cat([query, begun.context], dim=1), last.remember(document.output, document.mask))
    for row, places in enumerate((5, 3)):  # END is no place of an answer
        for part, weights in enumerate((begun.weights, ended.weights)):
            inside = weights[row, :places] / weights[row, :places].sum()
            torch.testing.assert_close(found.logits[row, part, :places].double(), inside, rtol=1e-4, atol=1e-6)
            assert not found.logits[row, part, places:].any()


def test_the_loss_is_torch_s_own_over_what_is_possible():
    model = build()
    logits = torch.tensor([[[0.3, float("-inf"), 1.2]], [[0.1, 0.2, 0.3]]], requires_grad=True)
    targets = torch.tensor([[2], [0]])
    kept = functional.cross_entropy(logits[0, 0, [0, 2]][None], torch.tensor([1]), reduction="sum", label_smoothing=0.2)
    kept = kept + functional.cross_entropy(logits[1], torch.tensor([0]), reduction="sum", label_smoothing=0.2)
    found = model.loss(logits, targets, 0.2)
    torch.testing.assert_close(found, kept)
    (gradient,) = torch.autograd.grad(found, logits)
    assert gradient.isfinite().all() and gradient[0, 0, 1] == 0


# --- what says nothing ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("base, tree", [(BASE, {"reading": IMPATIENT, "exact_match": True}), (BASE, {}), (DEEP, {})])
@settings(deadline=None, max_examples=15)
@given(
    lengths=st.lists(st.tuples(st.integers(3, 9), st.integers(1, 6)), min_size=1, max_size=4),
    padding=st.integers(0, 5),
    seed=st.integers(0, 99),
)
def test_padding_and_neighbours_change_nothing(base, tree, kind, lengths, padding, seed):
    if base is DEEP and kind == "span":
        return
    model = build(base, kind, **copy.deepcopy(tree)).eval()
    documents, questions = (list(side) for side in zip(*lengths, strict=True))
    together = asked(documents, questions, seed=seed, padding=padding)
    found = model.probabilities(together)
    turned = model.probabilities(Asked(*(one.flip(0) for one in together)))
    torch.testing.assert_close(turned.logits.flip(0), found.logits)
    for row, (document, question) in enumerate(lengths):
        alone = Asked(
            together.document[row : row + 1, :document],
            together.document_mask[row : row + 1, :document],
            together.question[row : row + 1, :question],
            together.question_mask[row : row + 1, :question],
            together.candidates[row : row + 1],
        )
        one = model.probabilities(alone)
        width = one.logits.shape[2]
        torch.testing.assert_close(one.logits[0], found.logits[row, :, :width], rtol=1e-4, atol=1e-5)
        if one.weights is not None:
            torch.testing.assert_close(
                one.weights[0], found.weights[row, : one.weights.shape[1], :document], rtol=1e-4, atol=1e-5
            )


@pytest.mark.parametrize("answer", ["output", "attention_sum"])
def test_entities_are_drawn_anew_in_training_and_an_answer_keeps_its_number(answer):
    model = build(kind="anonymous", answer=answer)
    given = asked([6, 6], [3, 3])
    model.train()
    torch.manual_seed(3)
    drawn = torch.rand(2, SLOTS).argsort(dim=1)
    torch.manual_seed(3)
    found = model(given).logits
    first = VOCABULARY - SLOTS
    renamed = [
        [first + int(drawn[row, one - first]) if one >= first else one for one in side[row].tolist()]
        for side in (given.document, given.question)
        for row in range(2)
    ]
    shown = given._replace(document=torch.tensor(renamed[:2]), question=torch.tensor(renamed[2:]))
    model.eval()
    plain = model(shown).logits
    for row in range(2):
        for number in range(SLOTS):
            mine, other = found[row, 0, number], plain[row, 0, drawn[row, number]]
            assert mine == other == float("-inf") or torch.isclose(mine, other, atol=1e-5)
    torch.manual_seed(4)
    model.train()
    if answer == "output":
        assert not torch.equal(model(given).logits, found), "the next epoch draws others"


@pytest.mark.parametrize(
    "kind, candidates, possible",
    [
        ("entity", [[-1, -1], [-1, -1]], [[0, 1, 2], [0, 1, 2]]),
        ("entity", [[2, 0], [1, -1]], [[0, 2], [1]]),
        ("anonymous", [[-1, -1], [-1, -1]], [[0, 4], [0, 4]]),
        ("anonymous", [[4, 2], [3, -1]], [[4], [3]]),  # 2 is not in the document; of the second row none is
    ],
)
def test_what_comes_into_question(kind, candidates, possible):
    model = build(kind=kind)
    given = asked([3, 3], [2, 2], candidates)
    assert [torch.nonzero(row).flatten().tolist() for row in model.possible(given)] == possible
    said = model.eval().probabilities(given).logits[:, 0]
    assert [torch.nonzero(row).flatten().tolist() for row in said] == possible
    torch.testing.assert_close(said.sum(1), torch.ones(2))


def test_reading_of_any_attention_sums_to_one():
    torch.manual_seed(0)
    mask = torch.tensor([[1, 1, 1, 0], [1, 0, 0, 0]]).bool()
    document = Encoded(torch.randn(2, 4, 6) * mask.unsqueeze(2), mask, (), torch.randn(2, 6))
    question = Encoded(torch.randn(2, 3, 6), torch.tensor([[1, 1, 0], [1, 1, 1]]).bool(), (), torch.randn(2, 6))
    for attention in ("additive", "bilinear", {"kind": "additive", "normaliser": "sparsemax"}):
        for reading in ({"kind": "attentive", "hops": 2}, {"kind": "impatient"}):
            found = READINGS.build(reading | {"attention": attention}, 6, 6)(document, question)
            torch.testing.assert_close(found.weights.sum(2), torch.ones(found.weights.shape[:2]))


def test_an_encoder_that_makes_fewer_positions_is_refused():
    with pytest.raises(SettingsError, match=r"each word is to be found"):
        build(encoder={"kind": "pyramidal", "cell": {"kind": "gru", "hidden_size": 3}})


def test_a_reader_says_whether_its_steps_are_words():
    assert [build(reading=one).by_word for one in (ATTENTIVE, IMPATIENT)] == [False, True]
    assert not build(DEEP).by_word
