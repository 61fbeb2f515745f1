import gzip
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from unrolled.base.errors import DataError, UsageError
from unrolled.explain.links import (
    Gold,
    alignment_error_rate,
    check_links,
    diagonal_links,
    links_from_weights,
    parse_links,
)

LINKS = st.frozensets(st.tuples(st.integers(0, 3), st.integers(0, 3)), max_size=6)
ALIBI = Path(__file__).parents[3] / "shared" / "data" / "align_alibi_fr-en"


def test_the_most_attended_word_is_the_link() -> None:
    weights = np.array([[0.1, 0.8], [0.45, 0.45], [0.3, 0.1], [0.0, 0.0]])
    assert links_from_weights(weights) == {(1, 0), (0, 1), (0, 2)}
    assert links_from_weights(weights, end_column=[0.1, 0.1, 0.6, 1.0]) == {(1, 0), (0, 1)}
    assert links_from_weights(weights, threshold=0.3) == {(1, 0), (0, 1), (1, 1), (0, 2)}
    assert links_from_weights(np.zeros((2, 0))) == frozenset() == links_from_weights(np.zeros((0, 3)))


def test_the_diagonal_is_the_baseline() -> None:
    assert diagonal_links(3, 3) == {(0, 0), (1, 1), (2, 2)}
    assert diagonal_links(2, 4) == {(0, 0), (0, 1), (1, 2), (1, 3)}
    assert diagonal_links(4, 2) == {(1, 0), (3, 1)} and diagonal_links(0, 2) == frozenset()


def test_a_worked_example() -> None:
    # found 3 links; 1 of 2 sure links found, 2 of the found are possible: 1 - (1 + 2) / (3 + 2)
    gold = Gold(frozenset({(0, 0), (1, 1)}), frozenset({(0, 0), (1, 1), (2, 1)}))
    score = alignment_error_rate([frozenset({(0, 0), (2, 1), (2, 2)})], [gold])
    assert score == (pytest.approx(0.4), pytest.approx(2 / 3), 0.5, 3, 1)


@given(st.lists(st.tuples(LINKS, LINKS), min_size=1, max_size=4))
def test_with_sure_links_only_it_is_one_less_f1(pairs: list[tuple[frozenset, frozenset]]) -> None:
    found, gold = [one for one, _ in pairs], [Gold(sure, sure) for _, sure in pairs]
    size, truth = sum(map(len, found)), sum(len(one.sure) for one in gold)
    if size + truth == 0:
        with pytest.raises(UsageError, match="nothing to compare"):
            alignment_error_rate(found, gold)
        return
    score = alignment_error_rate(found, gold)
    both = sum(1 for one, other in zip(found, gold, strict=True) for link in one if link in other.sure)
    assert score.aer == pytest.approx(1 - 2 * both / (size + truth))
    if both:
        harmonic = 2 * score.precision * score.recall / (score.precision + score.recall)
        assert score.aer == pytest.approx(1 - harmonic)


@given(LINKS, LINKS, LINKS)
def test_its_ends_and_that_a_sure_link_is_possible(found: frozenset, sure: frozenset, more: frozenset) -> None:
    if sure:
        assert alignment_error_rate([sure], [Gold(sure, sure | more)]).aer == 0
        assert alignment_error_rate([found], [Gold(sure, more)]) == alignment_error_rate(
            [found], [Gold(sure, sure | more)]
        )
        assert 0 <= alignment_error_rate([found], [Gold(sure, more)]).aer <= 1


def test_another_number_of_sentences_is_refused() -> None:
    with pytest.raises(UsageError, match="of another number of sentences"):
        alignment_error_rate([frozenset(), frozenset()], [Gold(frozenset({(0, 0)}), frozenset())])


def test_pharaoh_lines() -> None:
    assert parse_links("0-0 1p2\t3?4\n") == Gold(frozenset({(0, 0)}), frozenset({(0, 0), (1, 2), (3, 4)}))
    assert parse_links("1-1", first=1) == Gold(frozenset({(0, 0)}), frozenset({(0, 0)}))
    assert parse_links("") == Gold(frozenset(), frozenset())


@pytest.mark.parametrize(
    "line, first, message",
    [
        ("0-0 1_2", 0, r"gold.txt:12: '1_2' is not a link. Write source-target, e.g. 0-0 1-2, with p for a link that"),
        ("0--1", 0, "'0--1' is not a link"),
        ("0-x", 0, "is not a link"),
        ("1" * 50 + "-0", 0, f"'{'1' * 40}' is not a link"),
        ("0-1", 1, "'0-1' has a word 0 where words are counted from 1"),
    ],
)
def test_a_wrong_link_names_its_line(line: str, first: int, message: str) -> None:
    with pytest.raises(DataError, match=message):
        parse_links(line, "gold.txt:12", first=first)


@given(st.text(st.characters(codec=None), max_size=20))
def test_any_line_is_links_or_an_error(line: str) -> None:
    try:
        gold = parse_links(line)
    except DataError:
        return
    assert gold.sure <= gold.possible


def test_links_outside_the_pair_are_refused() -> None:
    gold = parse_links("0-0 2p1")
    assert check_links(gold, 3, 2, "gold.txt:7") is gold
    with pytest.raises(DataError, match=r"gold.txt:7: the link 2-1 is outside a pair of 3 and 1 words"):
        check_links(gold, 3, 1, "gold.txt:7")


@pytest.mark.shared
def test_the_links_of_alibi_are_read_whole() -> None:
    if not ALIBI.is_dir():
        pytest.skip("shared/data/align_alibi_fr-en is not beside the checkout")
    name = "LaBarbeBleue", "BlueBeard"

    def lines(file: str) -> list[str]:
        return gzip.decompress((ALIBI / file).read_bytes()).decode().splitlines()

    golds, diagonals = [], []
    for source, target, links in zip(
        lines(f"{name[0]}_sents.txt.gz"),
        lines(f"{name[1]}_sents.txt.gz"),
        lines(f"ali_w2w_{name[0]}_{name[1]}.txt.gz"),
        strict=True,
    ):
        left, right = (len(text.split("\t")[1].split()) for text in (source, target))
        golds.append(check_links(parse_links(links.split("\t")[1]), left, right, links.split("\t")[0]))
        diagonals.append(diagonal_links(left, right))
    score = alignment_error_rate(diagonals, golds)
    assert score.sentences == 68 and 0.5 < score.aer < 0.9
    assert alignment_error_rate([one.sure for one in golds], golds).aer == 0
