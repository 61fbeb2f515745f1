"""Tables of sentences: found by content, read with their odd cases, and wrong lines named."""

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from unrolled.base.errors import DataError
from unrolled.data.files import FORMATS, guess_format, open_file
from unrolled.data.opening import Wrong
from unrolled.data.sentences import places
from unrolled.data.tagged_json import parse, replaced
from unrolled.text.spans import Span

UNIVERSAL = (
    "# sent_id = 1\n# text = du New York\n1-2\tdu\t_\t_\t_\t_\t_\t_\t_\t_\n"
    "1\tde\tde\tADP\tP\t_\t3\tcase\t_\t_\n2\tle\tle\tDET\tD\tDefinite=Def\t3\tdet\t_\t_\n"
    "2.1\tx\t_\tX\t_\t_\t_\t_\t_\t_\n3\tNew York\tNew York\tPROPN\tN\t_\t0\troot\t_\t_\n\n"
    "1\t#\t#\tSYM\tS\t_\t0\troot\t_\t_\n\n"
)
CONLL = "-DOCSTART- -X- O\n\nEU NNP B-ORG\nrejects VBZ O\n\nGerman JJ B-MISC\n# NN O\nlamb NN O\n\t\ncall NN O\n"
SPANS = '{"id": 7, "text": "Ana\'s in New York.", "spans": [{"start": 9, "end": 17, "label": "LOC"}]}\n'
CHUNKS = '[{"text": "play "}, {"text": "Blue Train", "entity": "album"}, {"text": " now\\n"}]\n'
TOKENS = '{"tokens": ["a", "10 000"], "ner_tags": ["O", "B-N"]}\n'


def rows(tmp_path: Path, name: str, text: str) -> tuple[str, list[tuple[str, ...]]]:
    path = tmp_path / name
    path.write_bytes(text.encode())
    table = open_file(path)
    return table.format, [row.fields for row in table.rows()]


@pytest.mark.parametrize("name, text, kind", [
    ("a.conllu", UNIVERSAL, "conllu"),
    ("a.txt", UNIVERSAL, "conllu"),
    ("a.conll", CONLL, "conll"),
    ("a.txt", CONLL, "conll"),
    ("a.tsv", CONLL.replace(" ", "\t"), "conll"),
    ("a.jsonl", SPANS * 2, "spans"),
    ("a.txt", SPANS + '{"text": "no spans"}\n', "spans"),
    ("a.jsonl", CHUNKS * 2, "chunks"),
    ("a.json", TOKENS, "tokens"),
    ("a.tsv", "a b\tX\nc d\tX\n\ne\tX\n", "tsv"),
    ("a.tsv", "a\tX\nc\tX\ne\tX\nd\tX\n", "tsv"),
    ("a.txt", "a line\nanother one\n\nand one\n", "text"),
    ("a.jsonl", '{"text": "a", "label": "x"}\n', "jsonl"),
    ("a.jsonl", '{"text": "a", "other": []}\n', "jsonl"),
    ("a.jsonl", '[1, 2]\n', "jsonl"),
])  # fmt: skip
def test_a_format_is_told_by_its_content(tmp_path, name, text, kind):
    (tmp_path / name).write_text(text)
    assert guess_format(tmp_path / name)[0] == kind


def test_conllu(tmp_path):
    _, found = rows(tmp_path, "a.conllu", UNIVERSAL)
    assert [one[1] for one in found] == ["de\tle\tNew York", "#"]
    assert [one[3] for one in found] == ["ADP\tDET\tPROPN", "SYM"]
    table = open_file(tmp_path / "a.conllu", "form,5")
    assert table.columns == ("form", "xpos") and next(iter(table.rows())) == (4, ("de\tle\tNew York", "P\tD\tN"))
    assert places(table, 4) == [f"{tmp_path}/a.conllu:{line}" for line in (4, 5, 7)]


def test_conll_with_document_marks_hashes_and_lines_of_white_space(tmp_path):
    kind, found = rows(tmp_path, "a.txt", CONLL)
    assert kind == "conll" and open_file(tmp_path / "a.txt").columns == ("word", "2", "tag")
    assert found == [
        ("EU\trejects", "NNP\tVBZ", "B-ORG\tO"),
        ("German\t#\tlamb", "JJ\tNN\tNN", "B-MISC\tO\tO"),
        ("call", "NN", "O"),
    ]
    numbered = "1 EU B-ORG\n2 rejects O\n\n1 a O\n"
    (tmp_path / "b.conll").write_text(numbered)
    assert open_file(tmp_path / "b.conll").columns == ("id", "word", "tag")


def test_json_in_three_forms(tmp_path):
    assert rows(tmp_path, "a.jsonl", SPANS)[1] == [("Ana\t's\tin\tNew\tYork\t.", "O\tO\tO\tB-LOC\tI-LOC\tO")]
    assert rows(tmp_path, "b.jsonl", CHUNKS)[1] == [("play\tBlue\tTrain\tnow", "O\tB-album\tI-album\tO")]
    assert rows(tmp_path, "c.jsonl", TOKENS)[1] == [("a\t10 000", "O\tB-N")]
    doccano = '{"text": "Ana ran", "label": [[0, 3, "PER"]]}\n'
    assert rows(tmp_path, "d.jsonl", doccano)[1] == [("Ana\tran", "B-PER\tO")]


@pytest.mark.parametrize("name, text, said", [
    ("a.conll", "a O\nb\n\nc O\n", "a.conll:2: 1 column where 2 are expected, as in the lines before"),
    ("a.conll", "a\n\n", None),
    ("a.conll", "# only this\n\n", "a.conll: there is no sentence in it"),
    ("a.conllu", UNIVERSAL.replace("3\tNew", "x\tNew"), "a.conllu:7: the ID 'x' is no number, range or 8.1"),
    ("a.jsonl", SPANS + SPANS.replace("17", "15"), r"a.jsonl:2: .* inside a word: words are New, York"),
    ("a.jsonl", SPANS + SPANS.replace("17", "99"), r"a.jsonl:2: the span \[9, 99\] does not lie in a text of 18"),
    ("a.jsonl", SPANS + '{"text": "a"}\n', r"a.jsonl:2: there are no spans beside the text"),
    ("a.jsonl", TOKENS + '{"tokens": ["a"], "tags": []}\n', r"a.jsonl:2: 1 words and 0 tags"),
    ("a.jsonl", SPANS + "{\n", r"a.jsonl:2: not JSON"),
])  # fmt: skip
def test_wrong_lines_are_named_and_may_be_left_out(tmp_path, name, text, said):
    (tmp_path / name).write_text(text)
    if said is None:
        assert len(open_file(tmp_path / name).columns) == 1
        return
    if "no sentence" in said:
        with pytest.raises(DataError, match=said):
            open_file(tmp_path / name)
        return
    table = FORMATS[
        {".conll": "conll", ".conllu": "conllu"}.get(Path(name).suffix, "tokens" if "tokens" in text else "spans")
    ](tmp_path / name, None)
    with pytest.raises(DataError, match=said):
        list(table.rows())
    wrong: list[Wrong] = []
    kept = list(table.rows(wrong.append))
    assert len(wrong) == 1 and len(kept) == 1


@given(st.text(st.characters(codec="utf-8"), max_size=30), st.lists(st.sampled_from(["A", "B", ""]), max_size=40))
def test_spans_come_back_from_any_text(text, labels):
    line = json.dumps({"text": text, "spans": [], "z": [1, {"spans": 2}]}, ensure_ascii=len(labels) % 2 == 0)
    found = parse(line, "spans")
    spans = [Span(at, at + 1, label) for at, label in enumerate(labels[: len(found.words)]) if label]
    written = found.write([], spans)
    tree = json.loads(written)
    assert [text[one["start"] : one["end"]] for one in tree["spans"]] == [found.words[span.start] for span in spans]
    assert parse(written, "spans").tags == [
        f"B-{label}" if label else "O" for label in [*labels, *[""] * len(found.words)][: len(found.words)]
    ]
    assert {key: tree[key] for key in ("text", "z")} == {"text": text, "z": [1, {"spans": 2}]}


def test_chunks_and_tokens_are_written_back():
    found = parse(CHUNKS, "chunks")
    assert json.loads(found.write([], [Span(1, 3, "song")])) == json.loads(CHUNKS.replace("album", "song"))
    assert json.loads(found.write([], [])) == [{"text": "play Blue Train now\n"}]
    assert parse(TOKENS, "tokens").write(["X", "Y"], []) == TOKENS.replace('["O", "B-N"]', '["X", "Y"]')


@pytest.mark.parametrize("line, said", [
    ('{ "a" : [ "}" ] , "spans":\t[ 1, {"x": "]"} ]  , "b": 1 }', '{ "a" : [ "}" ] , "spans":\t[2]  , "b": 1 }'),
    ('{"a": "é"}\n', '{"a": "é", "spans": [2]}\n'),
    ("{}", '{"spans": [2]}'),
])  # fmt: skip
def test_one_value_is_replaced_and_nothing_else(line, said):
    assert replaced(line, "spans", [2]) == said


def test_the_doctor_looks_at_tags(tmp_path):
    from unrolled.data.doctor import examine

    (tmp_path / "train.conll").write_text("a B-X\nb I-X\n\n" * 9 + "c O\nd I-X\n\ne B-Y\nf O\n\n")
    (tmp_path / "valid.conll").write_text("a B-Z\nb I-Z\n\n")
    report = examine({name: open_file(tmp_path / f"{name}.conll") for name in ("train", "valid")})
    found = {finding.kind: finding for finding in report.findings}
    assert found["broken tags"].severity == "error" and not report.ok
    assert (
        found["broken tags"].places[0].startswith(f"{tmp_path}/train.conll:29: I-X after O, which iob2 does not allow")
    )
    assert "1 of 2 kinds of span (iob2) are seen fewer than 5 times: Y" in found["rare tags"].message
    assert "1 tags never seen in train: Z" in found["unseen tags"].message
    assert found["unseen tags"].places == (f"{tmp_path}/valid.conll:1",) and "rare classes" not in found


def test_check_looks_at_words_and_their_tags(run, tmp_path):
    (tmp_path / "a.conllu").write_text(UNIVERSAL)
    shown = run("check", tmp_path / "a.conllu")
    assert shown.code == 0 and "columns form, upos" in shown.out
    assert "4 tags: ADP 1, DET 1, PROPN 1, SYM 1." in shown.out
