"""Engines as one: the mean of their probabilities, in every step and so in whole outputs."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from unrolled.base.errors import UsageError
from unrolled.base.protocol import BEGIN, END
from unrolled.models import MODELS, TorchStepper
from unrolled.search import Ensemble, SearchSettings, Unlent, decode

SYMBOLS = 9


def network(seed: int, target: int = SYMBOLS, **settings: object) -> torch.nn.Module:
    torch.manual_seed(seed)
    cell = {"kind": "gru", "hidden_size": 5}
    tree = {"kind": "seq2seq", "embedding_size": 4, "encoder": {"kind": "rnn", "cell": cell}} | settings
    found = MODELS.build(tree, 7, target, where="model")
    torch.nn.init.normal_(next(iter(found.output.parameters())), std=1.0)
    return found.eval()


IDS = np.array([[4, 5, 6, END], [5, END, 0, 0]])
MASK = IDS > 0


@pytest.mark.parametrize("beam", [1, 3])
def test_a_model_with_itself_is_itself(beam):
    stepper = TorchStepper(network(1))
    search = SearchSettings(kind="beam", beam=beam, max_length=6)
    alone, both = decode(stepper, IDS, MASK, search), decode(Ensemble([stepper, stepper]), IDS, MASK, search)
    for one, other in zip(alone, both, strict=True):
        assert one[0].ids == other[0].ids
        np.testing.assert_allclose(one[0].token_log_probs, other[0].token_log_probs, atol=1e-5)
        np.testing.assert_allclose(one[0].weights, other[0].weights, atol=1e-6)


def test_probabilities_are_the_mean_of_forced_ones():
    nets = [network(1), network(2, decoder="query_after"), network(3)]
    (found,), *_ = decode(
        Ensemble([TorchStepper(one) for one in nets]), IDS[:1], MASK[:1], SearchSettings(max_length=6)
    )
    target = torch.tensor([[BEGIN, *found.ids, END]])
    given = torch.from_numpy(IDS[:1]), torch.from_numpy(MASK[:1]), target, target >= 0
    each = torch.stack([one.log_probs(*given)[0] for one in nets])
    mean = (each.logsumexp(dim=0) - np.log(3)).detach().numpy()
    np.testing.assert_allclose(found.token_log_probs, mean[: len(found.token_log_probs)], atol=1e-5)


def test_one_without_attention_leaves_it_to_the_others():
    looking, blind = TorchStepper(network(1)), TorchStepper(network(2, decoder="fixed"))
    state = Ensemble([blind, looking]).start(IDS, MASK)
    last = np.full(2, BEGIN)
    found = Ensemble([blind, looking]).step(last, state, 3)
    np.testing.assert_allclose(found.weights, looking.step(last, looking.start(IDS, MASK), 3).weights)
    assert found.ids.shape == (2, 3) and (np.diff(found.scores, axis=1) <= 0).all()


def test_unequal_vocabularies_are_refused():
    with pytest.raises(UsageError, match=r"the models write \[9, 10\] symbols"):
        Ensemble([TorchStepper(network(1)), TorchStepper(network(1, target=10))])
    with pytest.raises(UsageError, match=r"write \[\] symbols"):
        Ensemble([])


def test_attention_over_other_places_is_left_out():
    one, other = TorchStepper(network(1)), TorchStepper(network(2))

    class Coarser(TorchStepper):
        def step(self, last_ids, state, k):
            found = super().step(last_ids, state, k)
            return found._replace(weights=found.weights[:, :2])

    both = Ensemble([one, Coarser(network(2))])
    last = np.full(2, BEGIN)
    found = both.step(last, both.start(IDS, MASK), 3)
    np.testing.assert_allclose(found.weights, one.step(last, one.start(IDS, MASK), 3).weights)
    mean = Ensemble([one, other])
    np.testing.assert_allclose(found.scores, mean.step(last, mean.start(IDS, MASK), 3).scores)


def test_an_engine_that_copies_nothing_reads_lent_symbols_as_unknown_and_never_says_them() -> None:
    plain = TorchStepper(network(1))
    size, source = plain.vocabulary_size, 9
    found = Unlent(plain, source, 3)
    assert found.vocabulary_size == size + 3
    ids, mask = np.array([[source, 5, source + 2, 3]]), np.ones((1, 4), dtype=bool)
    state, expected = found.start(ids, mask), plain.start(np.array([[1, 5, 1, 3]]), mask)
    for last, known in ((2, 2), (size + 1, 1)):
        mine = found.step(np.array([last]), state, size + 9)
        theirs = plain.step(np.array([known]), expected, size)
        np.testing.assert_array_equal(mine.ids, [[*theirs.ids[0], size, size + 1, size + 2]])
        np.testing.assert_array_equal(mine.scores, [[*theirs.scores[0], -np.inf, -np.inf, -np.inf]])
        few = found.step(np.array([last]), state, 2)
        np.testing.assert_array_equal(few.ids, theirs.ids[:, :2])
        state, expected = mine.state, theirs.state
    state = found.select(state, np.array([0, 0]))
    assert found.step(np.array([4, 5]), state, 1).ids.shape == (2, 1)
