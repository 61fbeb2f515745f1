import math

import pytest

from unrolled.base.errors import SettingsError
from unrolled.train.stopping import Stopping


@pytest.mark.parametrize("score", ["loss", "perplexity", "cer", "ter", "aer", "wer"])
def test_less_is_better_for_errors_and_losses(score):
    stopping = Stopping(score, None)
    assert [stopping.observe(step, {score: value}) for step, value in enumerate([3, 2, 2, 4, 1])] == [1, 1, 0, 0, 1]
    assert (stopping.best, stopping.best_step) == (1, 4)


@pytest.mark.parametrize("score", ["bleu", "chrf", "exact_match", "accuracy"])
def test_more_is_better_for_the_others(score):
    stopping = Stopping(score, None)
    assert [stopping.observe(step, {score: value}) for step, value in enumerate([3, 2, 4])] == [1, 0, 1]


def test_patience_counts_validations_since_the_best():
    stopping = Stopping("loss", 2)
    found = []
    for step, value in enumerate([3, 2, math.nan, 1, 1, 5]):
        stopping.observe(step, {"loss": value})
        found.append(stopping.exhausted)
    assert found == [False, False, False, False, False, True]
    assert not Stopping("loss", None).exhausted


def test_what_is_no_number_is_never_the_best():
    stopping = Stopping("loss", None)
    assert not stopping.observe(1, {"loss": math.nan})
    assert stopping.best is None
    assert stopping.observe(2, {"loss": math.inf})
    assert stopping.observe(3, {"loss": 2.0})


def test_another_score_is_compared_afresh():
    first = Stopping("loss", 3)
    first.observe(5, {"loss": 1.0, "bleu": 2.0})
    same, other = Stopping("loss", 3), Stopping("bleu", 3)
    same.restore(first.state())
    other.restore(first.state())
    assert (same.best, same.best_step) == (1.0, 5)
    assert other.best is None


def test_an_unknown_score_is_an_error_that_lists_the_known():
    with pytest.raises(SettingsError, match=r"no score called 'bleo'. Did you mean 'bleu'\? Known: bleu, loss."):
        Stopping("bleo", None).observe(1, {"bleu": 1.0, "loss": 2.0})
