import random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sacrebleu.metrics.bleu import BLEU
from sacrebleu.metrics.chrf import CHRF
from sacrebleu.metrics.ter import TER
from sacrebleu.significance import PairedTest

from unrolled.base.errors import DataError, UsageError
from unrolled.tasks.comparison import compare
from unrolled.tasks.scores import MEASURES, score

WORDS = ["the", "cat", "dog", "sat", "on", "a", "mat", "big", "small", "red", "house", "is", "was", "here"]


def noisy(lines: list[str], share: float, seed: int) -> list[str]:
    draw = random.Random(seed)
    return [" ".join(word if draw.random() > share else draw.choice(WORDS) for word in line.split()) for line in lines]


DRAW = random.Random(1)
REFERENCES = [" ".join(DRAW.choices(WORDS, k=DRAW.randint(4, 9))) for _ in range(60)]
WORSE, BETTER = noisy(REFERENCES, 0.34, 2), noisy(REFERENCES, 0.25, 3)


@pytest.mark.parametrize(("measure", "metric"), [("bleu", BLEU()), ("chrf", CHRF()), ("ter", TER())])
def test_sacrebleu_finds_the_same_p(measure, metric, monkeypatch):
    monkeypatch.setenv("SACREBLEU_SEED", "7")
    test = PairedTest([("a", WORSE), ("b", BETTER)], {"m": metric}, [REFERENCES], test_type="bs", n_samples=300)
    _, found = test()
    (name,) = set(found) - {"System"}
    ours = compare(measure, WORSE, BETTER, REFERENCES, samples=300, seed=7)
    assert ours.p_value == pytest.approx(found[name][1].p_value)
    assert ours.difference == pytest.approx(found[name][1].score - found[name][0].score)
    assert ours.protocol.endswith("|bs:300|seed:7")


@pytest.mark.parametrize("measure", list(MEASURES))
def test_a_system_is_not_better_than_itself(measure):
    same = compare(measure, WORSE, WORSE, REFERENCES, samples=50)
    assert same[2:6] == (0, 0, 0, 1)


@pytest.mark.parametrize("measure", list(MEASURES))
def test_the_difference_lies_in_its_interval(measure):
    found = compare(measure, WORSE, BETTER, REFERENCES, samples=200)
    assert found.baseline == score(measure, WORSE, REFERENCES)
    assert found.system == score(measure, BETTER, REFERENCES)
    assert found.low <= found.difference <= found.high
    assert (found.difference > 0) == found.system.higher_is_better
    turned = compare(measure, BETTER, WORSE, REFERENCES, samples=200)
    assert turned.difference == -found.difference
    assert turned.p_value == found.p_value
    assert (turned.low, turned.high) == pytest.approx((-found.high, -found.low))
    assert compare(measure, WORSE, BETTER, REFERENCES, samples=200) == found
    assert compare(measure, WORSE, BETTER, REFERENCES, samples=200, seed=1) != found


def test_exact_match_against_the_normal_approximation():
    # 100 sentences, the system alone right on 30, the baseline alone on 10: difference 0.2, standard error 0.06.
    references = ["x"] * 100
    baseline = ["x"] * 10 + ["y"] * 90
    system = ["y"] * 10 + ["x"] * 30 + ["y"] * 60
    found = compare("exact_match", baseline, system, references, samples=2000)
    error = np.sqrt((0.4 - 0.2**2) / 100)
    assert found.difference == pytest.approx(0.2)
    assert found.low == pytest.approx(0.2 - 1.96 * error, abs=0.02)
    assert found.high == pytest.approx(0.2 + 1.96 * error, abs=0.02)
    assert found.p_value < 0.01


@given(st.lists(st.tuples(*[st.sampled_from("ab")] * 3), min_size=1, max_size=6), st.integers(0, 9))
def test_p_is_a_probability(rows, seed):
    baseline, system, references = map(list, zip(*rows, strict=True))
    found = compare("cer", baseline, system, references, samples=19, seed=seed)
    assert 1 / 20 <= found.p_value <= 1
    assert found.low <= found.high


def test_wrong_calls():
    with pytest.raises(UsageError, match="samples 0 was given"):
        compare("bleu", ["a"], ["a"], ["a"], samples=0)
    with pytest.raises(DataError, match="2 outputs were given for 1 references"):
        compare("bleu", ["a"], ["a", "b"], ["a"])
