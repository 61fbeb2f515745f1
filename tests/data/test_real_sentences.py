"""Real tagged sets, where they lie beside the checkout: every sentence is read, and comes back as it was."""

import gzip
from pathlib import Path

import pytest

from unrolled.data.files import open_file
from unrolled.data.opening import Wrong
from unrolled.data.sentences import cells
from unrolled.data.tagged_json import parse
from unrolled.pipeline.tagged_files import pieces
from unrolled.tasks.tag import Tag
from unrolled.text.spans import spans_of
from unrolled.text.tagged import scheme_of

SHARED = Path(__file__).parents[3] / "shared" / "data"
pytestmark = [
    pytest.mark.shared,
    pytest.mark.skipif(not SHARED.is_dir(), reason="the real data sets are not beside the checkout (../shared/data)"),
]


@pytest.mark.parametrize("name, kind, sentences, words, scheme", [
    ("ud_english-ewt/en_ewt-ud-dev.conllu.gz", "conllu", 2001, 25147, None),
    ("ud_afrikaans-afribooms/af_afribooms-ud-test.conllu.gz", "conllu", 425, 10063, None),
    ("ner_wnut17/dev.conll.gz", "conll", 1009, 15733, "iob2"),
    ("ner_broad_twitter/e.conll.gz", "conll", 200, None, "iob2"),
])  # fmt: skip
def test_conll(name, kind, sentences, words, scheme):
    path = SHARED / name
    table = open_file(path)
    pick = Tag().named(table.columns)
    rows = [tuple(row.fields[place] for place in pick) for row in table.rows()]
    tags = [cells(row[1]) for row in rows]
    assert (table.format, len(rows), scheme_of(tags)) == (kind, sentences, scheme)
    assert words in (None, sum(map(len, tags)))
    given = iter(tags)
    written = "".join(
        piece.write(next(given), []) if piece.words else piece.write([], [])
        for piece in pieces(str(path), Tag(), spans=scheme is not None)
    )
    assert written.encode() == gzip.decompress(path.read_bytes())


@pytest.mark.parametrize("name, rows", [
    ("train_PlayMusic_full", 2000), ("train_SearchScreeningEvent_full", 1959), ("validate_BookRestaurant", 100),
])  # fmt: skip
def test_slots_in_pieces(name, rows):
    path = SHARED / "slots_snips" / f"{name}.jsonl.gz"
    table = open_file(path)
    found = list(table.rows())
    assert (table.format, len(found)) == ("chunks", rows)
    for piece, row in zip(pieces(str(path), Tag(), spans=True), found, strict=True):
        spans = spans_of(cells(row.fields[1]), "iob2")
        assert parse(piece.write([], spans), "chunks").tags == cells(row.fields[1])


def test_a_slot_that_ends_inside_a_word():
    wrong: list[Wrong] = []
    rows = list(open_file(SHARED / "slots_snips" / "validate_GetWeather.jsonl.gz").rows(wrong.append))
    assert len(rows) == 99 and "validate_GetWeather.jsonl.gz:30: the span 'one pm' [40, 46] ends inside" in str(*wrong)
