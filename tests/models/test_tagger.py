"""The tagger's network: padding and neighbours change nothing, spellings are read once, forbidden tags never come."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from unrolled.base.errors import SettingsError
from unrolled.base.protocol import END
from unrolled.layers import Legal
from unrolled.models import ENCODERS, MODELS, Tagger
from unrolled.tasks.tagged_batches import collate_tagged

SMALL = {"embedding_size": 3, "character_size": 2, "character_hidden_size": 5, "dropout": 0.0}


def network(**given):
    torch.manual_seed(0)
    cell = {"kind": "rnn", "cell": {"kind": "lstm", "hidden_size": 7}}
    legal = given.pop("legal", None)
    return Tagger(11, 13, 5, legal, **SMALL | {"encoder": cell} | given).eval()


def batch(rows, tags=True):
    """Sentences of (word, its characters, tag)."""
    columns = [[np.array([one[0] for one in row]) for row in rows]]
    columns.append([np.array([letter for one in row for letter in (*one[1], END)]) for row in rows])
    if tags:
        columns.append([np.array([one[2] for one in row]) for row in rows])
    return collate_tagged(columns)


def run(model, given):
    return model(given.words.ids, given.words.mask, given.characters, given.which)


WORD = st.tuples(st.integers(4, 10), st.lists(st.integers(4, 12), min_size=1, max_size=4), st.integers(0, 4))
ROWS = st.lists(st.lists(WORD, min_size=1, max_size=5), min_size=1, max_size=4)


@settings(max_examples=25)
@given(ROWS, st.sampled_from([{}, {"crf": False}, {"characters": "lstm"}, {"characters": "none"}, {"hidden_size": 2}]))
def test_a_sentence_never_depends_on_its_batch(rows, options):
    model = network(**options)
    together = batch(rows)
    scores, mask = run(model, together), together.words.mask
    tags, sure = model.decode(scores, mask), model.marginals(scores, mask)
    logs = model.log_probability(scores, together.tags, mask)
    for place, row in enumerate(rows):
        alone = batch([row])
        one, real = run(model, alone), alone.words.mask
        torch.testing.assert_close(scores[place, : len(row)], one[0], atol=1e-5, rtol=1e-4)
        assert tags[place, : len(row)].tolist() == model.decode(one, real)[0].tolist()
        torch.testing.assert_close(sure[place, : len(row)], model.marginals(one, real)[0], atol=1e-5, rtol=1e-4)
        torch.testing.assert_close(logs[place], model.log_probability(one, alone.tags, real)[0], atol=1e-4, rtol=1e-4)
    assert sure.sum(-1)[mask].detach().numpy() == pytest.approx(1, abs=1e-5)
    loss = model.loss(scores, together.tags, mask)
    torch.testing.assert_close(loss, -logs.sum(), atol=1e-4, rtol=1e-4)


def test_a_batch_holds_each_spelling_once_and_rows_can_be_cut():
    made = batch([[(4, [5, 6], 1), (5, [7], 2)], [(4, [5, 6], 0)]])
    assert made.characters.shape == (2, 2, 2) and made.which.tolist() == [[0, 1], [0, 0]]
    assert made.words.mask.tolist() == [[True, True], [True, False]] and made.tags.tolist() == [[1, 2], [0, 0]]
    model = network()
    scores = run(model, made)[1:]
    cut = type(made)(*(type(part)(*(t[1:] for t in part)) if isinstance(part, tuple) else part[1:] for part in made))
    torch.testing.assert_close(run(model, cut)[:, :1], scores[:, :1])
    assert batch([[(4, [5], 1)]], tags=False).tags.tolist() == [[0]]


@pytest.mark.parametrize("crf", [True, False])
def test_what_is_not_legal_is_never_answered(crf):
    legal = Legal(torch.tensor([True, False, False, False, True]), torch.eye(5).bool(), torch.tensor([True] * 5))
    model = network(legal=legal, crf=crf)
    draw = torch.Generator().manual_seed(1)
    scores, mask = torch.randn(20, 6, 5, generator=draw) * 9, torch.ones(20, 6, dtype=torch.bool)
    tags = model.decode(scores, mask)
    assert set(tags[:, 0].tolist()) == {0, 4} and (tags == tags[:, :1]).all()
    assert any(parameter.requires_grad for parameter in model.chain.parameters()) is crf


def test_rare_words_are_forgotten_in_training_alone():
    rare = torch.arange(11) >= 8
    model = Tagger(11, 13, 5, None, rare, **SMALL, rare_dropout=0.5, encoder="rnn")
    made = batch([[(9, [5], 0)] * 200, [(5, [5], 0)] * 200])
    model.embedding.register_forward_hook(lambda _, given, __: seen.append(given[0]))
    seen: list[torch.Tensor] = []
    run(model.train(), made)
    assert 60 < int((seen[0][0] == 1).sum()) < 140 and (seen[0][1] == 5).all()
    run(model.eval(), made)
    assert (seen[1][0] == 9).all()
    assert "rare" not in model.state_dict()


@pytest.mark.parametrize("kind", list(ENCODERS))
def test_any_encoder_that_keeps_words_apart(kind):
    settings_ = MODELS.complete({"kind": "tagger", **SMALL, "encoder": kind}, "model")
    if kind == "pyramidal":
        with pytest.raises(SettingsError, match="stands for 2 words, and each needs a tag of its own"):
            MODELS.build(settings_, 11, 13, 5)
        return
    try:
        model = MODELS.build(settings_, 11, 13, 5).eval()
    except SettingsError:  # heads do not divide these sizes
        model = MODELS.build({**settings_, "embedding_size": 27}, 11, 13, 5).eval()
    made = batch([[(4, [5], 1), (5, [6], 2), (6, [7], 3)], [(4, [5], 1)]])
    scores = run(model, made)
    assert scores.shape == (2, 3, 5)
    model.loss(scores, made.tags, made.words.mask).backward()
    alone = batch([[(4, [5], 1)]])
    torch.testing.assert_close(run(model, alone)[0, 0], scores[1, 0], atol=1e-5, rtol=1e-4)
