"""Which scores suit a target, and rows that share their references."""

import pytest

from unrolled.base.errors import DataError
from unrolled.tasks.judging import APART, LETTERS, RUNNING, judged, scored, suiting
from unrolled.text import TOKENIZERS

WORDS, SENTENCES = ["walked", "went"], ["he went home", "I walked there"]


def tokenizer(kind: str, lines: list[str]):
    found = TOKENIZERS.build(kind)
    found.train(lines)
    return found


@pytest.mark.parametrize(
    ("kind", "lines", "measures"),
    [
        ("character", WORDS, LETTERS),
        ("character", SENTENCES, RUNNING),
        ("whitespace", ["K AE T", "D AO G"], APART),
        ("whitespace", [" ".join(f"w{n}" for n in range(400))], RUNNING),
        ("bpe", WORDS, RUNNING),
    ],
)
def test_the_measures_follow_from_tokenizer_and_references(kind, lines, measures) -> None:
    assert suiting(tokenizer(kind, lines), lines) is measures


def test_rows_of_one_source_share_their_references_and_it_counts_once() -> None:
    sources, references = ["live", "dog", "live"], ["L IH V", "D AO G", "L AY V"]
    grouped = judged(sources, references, grouped=True)
    assert grouped.sources == ["live", "dog"]
    assert grouped.references == [["L IH V", "L AY V"], ["D AO G"]]
    exact, rate = scored(["exact_match", "ser"], ["L AY V", "D AO G G"], grouped)
    assert (exact.value, rate.value) == (0.5, 1 / 6)
    assert exact.protocol == "exact|nrefs:var|case:mixed|norm:nfc|space:stripped|3 rows of 2 sources"
    assert exact.name == "exact_match" and rate.name == "ser"
    each = judged(sources, references, grouped=False)
    assert each.sources == sources and each.note == ""
    assert scored(["exact_match"], ["L AY V", "D AO G", "L AY V"], each)[0].value == pytest.approx(2 / 3)


def test_several_references_of_a_row_join_those_of_its_source() -> None:
    grouped = judged(["a", "a", "b"], [["x", "y"], "y", "z"], grouped=True)
    assert grouped.references == [["x", "y"], ["z"]]
    assert judged(["a"], ["x"], grouped=True).note == ""


def test_as_many_references_as_sources() -> None:
    with pytest.raises(DataError, match="1 outputs were given for 2 references"):
        judged(["a"], ["x", "y"], grouped=True)
