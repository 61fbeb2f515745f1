import numpy as np
import pandas as pd
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from unrolled.base.protocol import BEGIN, END, PAD, UNKNOWN
from unrolled.explain.alignment import shares
from unrolled.explain.erasure import Case, entropy, erase, erased, faithfulness, rank_correlation
from unrolled.models.seq2seq import Seq2Seq


class Additive:
    """log p(target symbol at t) = Σ over real source places of table[source id, target id] · (place + 1)."""

    def __init__(self, seed: int = 0, size: int = 17) -> None:
        self.table = torch.randn(size, size, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)
        self.table[UNKNOWN] = 0
        self.shapes: list[tuple[int, ...]] = []

    def log_probs(self, source_ids: Tensor, source_mask: Tensor, target_ids: Tensor, target_mask: Tensor) -> Tensor:
        assert source_ids.dtype == torch.int64 and source_mask.dtype == torch.bool
        assert (source_ids[~source_mask] == PAD).all() and (target_ids[~target_mask] == PAD).all()
        self.shapes.append((*source_ids.shape, target_ids.shape[1]))
        places = torch.arange(1, source_ids.shape[1] + 1, dtype=torch.float64)[None, :, None]
        gold = target_ids[:, 1:]
        each = self.table[source_ids[:, :, None], gold[:, None, :]] * places * source_mask[:, :, None]
        return each.sum(1) * target_mask[:, 1:]


@st.composite
def cases(draw: st.DrawFn) -> list[Case]:
    found = []
    for _ in range(draw(st.integers(1, 4))):
        source = draw(st.lists(st.integers(4, 16), min_size=1, max_size=6))
        target = draw(st.lists(st.integers(4, 16), min_size=1, max_size=5))
        sides = []
        for ids in (source, target):
            words = draw(st.integers(1, len(ids)))
            share = np.zeros((len(ids), words))
            for place in range(len(ids)):
                share[place, min(place * words // len(ids), words - 1)] = 1
            sides.append(share)
        finished = draw(st.booleans())
        found.append(Case([*source, END], [BEGIN, *target, *([END] if finished else [])], *sides))
    return found


@given(cases(), st.integers(1, 60))
@settings(max_examples=60, deadline=None)
def test_effects_are_those_of_the_formula_whatever_the_batches(group: list[Case], symbols: int) -> None:
    model = Additive()
    for case, effect in zip(group, erase(model, group, symbols=symbols), strict=True):
        expected = np.zeros((case.target.shape[1], case.source.shape[1]))
        for t, target in enumerate(case.target_ids[1 : 1 + len(case.target)]):
            for s, source in enumerate(case.source_ids[:-1]):
                gain = float(model.table[source, target]) * (s + 1)
                expected[case.target[t].argmax(), case.source[s].argmax()] += gain
        np.testing.assert_allclose(effect, expected, atol=1e-4)  # float32 at the model's door


def test_erasures_are_batched_into_few_calls() -> None:
    model = Additive()
    group = [Case([5, 6, 7, END], [BEGIN, 8, 9, END], np.eye(3), np.eye(2)) for _ in range(10)]
    erase(model, group, symbols=8192)
    assert model.shapes == [(40, 4, 4)]
    model.shapes.clear()
    erase(model, group, symbols=80)
    assert [shape[0] for shape in model.shapes] == [10, 10, 10, 10]


def test_a_real_model_gives_the_same_alone_and_in_company() -> None:
    torch.manual_seed(0)
    model = Seq2Seq(19, 23, embedding_size=5).eval()
    draws = np.random.default_rng(0)
    group = []
    for source, target in ((5, 2), (1, 3), (3, 7), (5, 1)):
        ids = draws.integers(4, 19, source).tolist(), draws.integers(4, 23, target).tolist()
        group.append(Case([*ids[0], END], [BEGIN, *ids[1], END], np.eye(source), np.eye(target)))
    together = erase(model, group)
    for one, other in zip(together, erase(model, group, symbols=1), strict=True):
        np.testing.assert_allclose(one, other, atol=1e-5)
    assert min(np.abs(one).max() for one in together) > 1e-3


def test_erasing_takes_all_symbols_of_a_word_and_only_those() -> None:
    spans, words = [(0, 2), (2, 5), (5, 7), (7, 8)], [(0, 5), (5, 8)]
    case = Case([5, 6, 7, 8, END], [BEGIN, 9, END], shares(spans, words), np.eye(1))
    assert erased(case, -1) == [5, 6, 7, 8, END]
    assert erased(case, 0) == [UNKNOWN, UNKNOWN, 7, 8, END]
    assert erased(case, 1) == [5, 6, UNKNOWN, UNKNOWN, END]


def test_nothing_to_erase_gives_nothing() -> None:
    assert erase(Additive(), []) == []
    assert erase(Additive(), [Case([END], [BEGIN, END], np.zeros((0, 0)), np.zeros((0, 0)))])[0].shape == (0, 0)


def test_faithfulness_of_attention_that_tells_the_truth_and_of_one_that_lies() -> None:
    effect = np.array([[3.0, 1.0, 0.5], [0.2, 0.1, 2.0]])
    honest = np.array([[0.7, 0.2, 0.1], [0.2, 0.1, 0.7]])
    lying = np.array([[0.1, 0.2, 0.7], [0.2, 0.7, 0.1]])
    good, bad = faithfulness([honest], [effect]), faithfulness([lying], [effect])
    assert (good["top_agreement"].value, bad["top_agreement"].value) == (1.0, 0.0)
    assert good["top_agreement"].chance == pytest.approx(1 / 3)
    assert (good["rank_correlation"].value, bad["rank_correlation"].value) == (pytest.approx(1.0), pytest.approx(-1.0))
    assert good["top_drop"].value == pytest.approx(2.5) and good["top_drop"].chance == pytest.approx((0.75 + 0.15) / 2)
    assert good["sharpness"].value == bad["sharpness"].value
    assert (
        "100% of the target words" in good["top_agreement"].sentence
        and "at random: 33%" in good["top_agreement"].sentence
    )
    assert [measure.cases for measure in good.values()] == [2, 2, 2, 2]


def test_attention_drawn_by_lot_scores_what_chance_says() -> None:
    draws = np.random.default_rng(3)
    weights = [draws.dirichlet(np.ones(5), 400)]
    effects = [draws.standard_normal((400, 5))]
    found = faithfulness(weights, effects)
    assert found["top_agreement"].value == pytest.approx(found["top_agreement"].chance, abs=0.06)
    assert found["rank_correlation"].value == pytest.approx(0, abs=0.08)
    assert found["top_drop"].value == pytest.approx(found["top_drop"].chance, abs=0.15)


def test_ties_count_as_a_fair_draw() -> None:
    even, effect = np.full((1, 4), 0.25), np.array([[5.0, 1.0, 2.0, 3.0]])
    found = faithfulness([even], [effect])
    assert found["top_agreement"].value == 0.25 == found["top_agreement"].chance
    assert found["rank_correlation"].value is None and found["rank_correlation"].cases == 0
    assert found["sharpness"].value == pytest.approx(0)


def test_where_there_is_no_choice_nothing_is_claimed() -> None:
    found = faithfulness([np.ones((3, 1)), np.zeros((0, 4))], [np.ones((3, 1)), np.zeros((0, 4))])
    assert all(measure.value is None and measure.cases == 0 for measure in found.values())
    assert "to choose from" in found["top_agreement"].sentence
    assert set(faithfulness([np.eye(2)])) == {"sharpness"}


@given(st.lists(st.tuples(st.integers(0, 4), st.integers(0, 4)), min_size=2, max_size=9))
def test_rank_correlation_is_that_of_pandas(pairs: list[tuple[int, int]]) -> None:
    frame = pd.DataFrame(pairs, columns=["a", "b"], dtype=float)
    expected = frame.corr(method="spearman").loc["a", "b"]
    found = rank_correlation(frame["a"].to_numpy(), frame["b"].to_numpy())
    assert np.isnan(expected) if found is None else found == pytest.approx(expected)


@pytest.mark.parametrize(
    "row, bits", [([0.25] * 4, 2.0), ([1, 0, 0], 0.0), ([0.4, 0.4], 1.0), ([0.0, 0.0], 0.0), ([0.5, 0.25, 0.25], 1.5)]
)
def test_entropy_in_bits(row: list[float], bits: float) -> None:
    assert entropy(np.array(row)) == pytest.approx(bits)
