import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from unrolled.base.errors import UsageError
from unrolled.explain.alignment import Side, explain_tokens, merge, shares, spans_by_prefix


@st.composite
def cut(draw: st.DrawFn) -> tuple[int, list[tuple[int, int]], list[tuple[int, int]]]:
    """A text of some length, cut into symbols and, independently, into words."""
    length = draw(st.integers(1, 12))
    cuts = []
    for _ in range(2):
        inner = sorted(draw(st.sets(st.integers(1, length - 1), max_size=5))) if length > 1 else []
        cuts.append(list(zip([0, *inner], [*inner, length], strict=True)))
    return length, cuts[0], cuts[1]


def test_symbols_of_a_word_add_up_and_its_rows_are_averaged() -> None:
    # "un|believ|able cats" → words: unbelievable, cats; target "le|s chats": words les, chats
    source = shares([(0, 2), (2, 8), (8, 12), (12, 17)], [(0, 12), (13, 17)])
    target = shares([(0, 2), (2, 3), (3, 9)], [(0, 3), (4, 9)])
    weights = np.array([[0.1, 0.2, 0.3, 0.3, 0.1], [0.3, 0.2, 0.1, 0.2, 0.2], [0, 0, 0.1, 0.9, 0], [0, 0, 0, 0, 1]])
    merged = merge(weights, source, target)
    np.testing.assert_allclose(merged.weights, [[0.6, 0.25], [0.1, 0.9]], atol=1e-7)
    np.testing.assert_allclose(merged.end_column, [0.15, 0.0], atol=1e-7)
    np.testing.assert_allclose(merged.end_row, [0, 0])


@given(cut(), cut(), st.booleans(), st.integers(0, 1), st.integers(0, 9))
@settings(deadline=None)
def test_it_agrees_with_a_sum_over_characters(
    source: tuple[int, list[tuple[int, int]], list[tuple[int, int]]],
    target: tuple[int, list[tuple[int, int]], list[tuple[int, int]]],
    finished: bool,
    read_at: int,
    seed: int,
) -> None:
    rows, columns = len(target[1]) + finished, len(source[1]) + 1
    weights = np.random.default_rng(seed).dirichlet(np.ones(columns), rows)
    merged = merge(weights, shares(source[1], source[2]), shares(target[1], target[2]), read_at=read_at)

    def owner(place: int, spans: list[tuple[int, int]]) -> int:
        return next(number for number, (start, end) in enumerate(spans) if start <= place < end)

    # Every character carries an equal part of its symbol's attention; a target word averages over its symbols'
    # parts that lie in it.
    expected = np.zeros((len(target[2]), len(source[2])))
    mass = np.zeros(len(target[2]))
    for t in range(target[0]):
        symbol = owner(t, target[1])
        part = 1 / (target[1][symbol][1] - target[1][symbol][0])
        word = owner(t, target[2])
        mass[word] += part
        row = min(symbol + read_at, rows - 1)
        for s in range(source[0]):
            place = owner(s, source[1])
            share = weights[row, place] / (source[1][place][1] - source[1][place][0])
            expected[word, owner(s, source[2])] += part * share
    np.testing.assert_allclose(merged.weights, expected / mass[:, None], atol=1e-6)
    np.testing.assert_allclose(merged.weights.sum(1) + merged.end_column, 1, atol=1e-5)


def test_a_symbol_outside_every_word_goes_to_the_nearest() -> None:
    np.testing.assert_array_equal(shares([(0, 3), (3, 4), (4, 6)], [(0, 3), (4, 6)]), [[1, 0], [1, 0], [0, 1]])
    np.testing.assert_array_equal(shares([(5, 5)], [(0, 3), (4, 6)]), [[0, 1]])
    assert shares([(0, 1)], []).shape == (1, 0) and shares([], [(0, 1)]).shape == (0, 1)


@pytest.mark.parametrize(
    "end, expected, kept",
    [("keep", [[0.6, 0.2]], [0.2]), ("drop", [[0.6, 0.2]], [0.2]), ("renormalise", [[0.75, 0.25]], [0.2])],
)
def test_what_becomes_of_the_end(end: str, expected: list[list[float]], kept: list[float]) -> None:
    merged = merge(np.array([[0.6, 0.2, 0.2]]), np.eye(2), np.eye(1), end=end)
    np.testing.assert_allclose(merged.weights, expected, atol=1e-6)
    np.testing.assert_allclose(merged.end_column, kept, atol=1e-6)
    assert merged.end_row is None


def test_a_row_that_looks_at_the_end_only_or_a_word_without_symbols_gives_zeros() -> None:
    merged = merge(np.array([[0.0, 0.0, 1.0]]), np.eye(2), np.array([[1.0, 0.0]]), end="renormalise")
    np.testing.assert_array_equal(merged.weights, [[0, 0], [0, 0]])


def test_reading_one_step_later_shifts_the_rows() -> None:
    weights = np.array([[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.2, 0.3, 0.5]])
    np.testing.assert_allclose(merge(weights, np.eye(2), np.eye(2), read_at=1).weights, [[0, 1], [0.2, 0.3]], atol=1e-7)
    np.testing.assert_allclose(merge(weights[:2], np.eye(2), np.eye(2), read_at=1).weights, [[0, 1], [0, 1]])
    np.testing.assert_allclose(merge(weights, np.eye(2), np.eye(2)).end_row, [0.2, 0.3], atol=1e-7)


@pytest.mark.parametrize("shape", [(3, 5), (1, 4), (4, 4), (2, 2)])
def test_rows_that_do_not_fit_are_refused(shape: tuple[int, int]) -> None:
    with pytest.raises(UsageError, match=r"attention of shape .* does not fit 2 target and 3 source symbols"):
        merge(np.zeros(shape), np.eye(3), np.eye(2))


def test_an_explanation_has_the_users_words_and_the_models_symbols() -> None:
    source = Side("Big cats!", ["▁big", "▁cat", "s", "!"], [(0, 3), (3, 7), (7, 8), (8, 9)], [(0, 3), (4, 8), (8, 9)])
    target = Side("chats", ["▁ch", "ats"], [(0, 2), (2, 5)], [(0, 5)])
    weights = np.array([[0.0, 0.5, 0.5, 0, 0], [0.2, 0.4, 0.4, 0, 0], [0, 0, 0, 0, 1.0]])
    one = explain_tokens(source, target, weights, log_probs=np.array([-0.5, -0.25, -0.1]))
    assert (one.source, one.target, one.source_text) == (("Big", "cats", "!"), ("chats",), "Big cats!")
    np.testing.assert_allclose(one.weights, [[0.1, 0.9, 0.0]], atol=1e-7)
    assert one.log_probs == (-0.75,)
    assert one.tokens is not None and one.tokens.target == ("▁ch", "ats", "</s>") and one.tokens.source[-1] == "</s>"
    assert one.tokens.log_probs == (-0.5, -0.25, -0.1) and one.to_dict()["tokens"]["weights"][2][4] == 1
    assert explain_tokens(source, target, weights, end="renormalise").end_column is None
    assert explain_tokens(source, target, weights[:2]).end_row is None


def test_an_empty_hypothesis_is_an_empty_explanation() -> None:
    nothing = explain_tokens(Side("a", ["a"], [(0, 1)], [(0, 1)]), Side("", [], [], []), np.array([[0.5, 0.5]]))
    assert nothing.weights.shape == (0, 1) and nothing.end_row is not None


@given(st.lists(st.sampled_from(["ab", " c", "d", "", "  "]), max_size=7))
def test_spans_by_prefix_tile_the_text(pieces: list[str]) -> None:
    def decode(ids: list[int]) -> str:
        return "".join(pieces[number] for number in ids).strip()

    spans = spans_by_prefix(decode, range(len(pieces)))
    whole = decode(list(range(len(pieces))))
    assert "".join(whole[start:end] for start, end in spans) == whole
    for piece, (start, end) in zip(pieces, spans, strict=True):
        assert piece.strip() in whole[start:end]
