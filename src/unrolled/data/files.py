"""Which format a single file has: from its name, else from its first bytes and lines, and said aloud."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from unrolled.base.errors import UsageError, known
from unrolled.data.cloze import open_question
from unrolled.data.columnar import open_parquet
from unrolled.data.formats import LONGEST, head, open_csv, open_running, open_text, open_tsv
from unrolled.data.jsonlines import open_jsonl
from unrolled.data.opening import first_bytes, regular_file
from unrolled.data.question_lines import is_questions, open_questions
from unrolled.data.sentences import is_conll, open_conll, open_conllu
from unrolled.data.signals import open_npz, open_ts
from unrolled.data.squad import is_squad, open_squad
from unrolled.data.stories import is_babi, open_babi
from unrolled.data.strokes import is_points, is_strokes, open_points, open_strokes
from unrolled.data.table import Columns, Table
from unrolled.data.tagged_json import open_chunks, open_spans, open_tokens, tagged_kind

FORMATS: dict[str, Callable[[Path, Columns], Table]] = {
    "tsv": open_tsv,
    "csv": open_csv,
    "jsonl": open_jsonl,
    "parquet": open_parquet,
    "text": open_text,
    "running": open_running,
    "conll": open_conll,
    "conllu": open_conllu,
    "spans": open_spans,
    "chunks": open_chunks,
    "tokens": open_tokens,
    "ts": open_ts,
    "npz": open_npz,
    "babi": open_babi,
    "questions": open_questions,
    "squad": open_squad,
    "question": open_question,
    "strokes": open_strokes,
    "points": open_points,
}

SUFFIXES = {
    ".tsv": "tsv",
    ".tab": "tsv",
    ".csv": "csv",
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
    ".json": "jsonl",
    ".parquet": "parquet",
    ".pq": "parquet",
    ".conll": "conll",
    ".bio": "conll",
    ".iob": "conll",
    ".conllu": "conllu",
    ".ts": "ts",
    ".npz": "npz",
    ".question": "question",
}


SAID = {
    "conll": "A word a line, blank lines between sentences: CoNLL.",
    "conllu": "A word a line in ten columns, blank lines between sentences: CoNLL-U.",
    "spans": "Each line is a text with spans.",
    "chunks": "Each line is a text in pieces, some of them entities.",
    "tokens": "Each line is a list of words with a list of tags.",
    "questions": "Each line is a document with a question.",
}


def open_file(path: Path, columns: Columns = None, format: str | None = None) -> Table:  # noqa: A002
    """The table in one file; ``format`` None is guessed."""
    regular_file(path)
    guessed: list[str] = []
    if format is None:
        format, guessed = guess_format(path)  # noqa: A001
    elif format not in FORMATS:
        raise UsageError(f"no format is called '{format}'. {known(format, FORMATS)}")
    table = FORMATS[format](path, columns)
    table.guessed[:0] = guessed
    return table


def named_format(path: Path) -> str | None:
    """The format that a file's name tells, also with .gz behind it."""
    suffixes = [suffix.lower() for suffix in path.suffixes]
    if suffixes[-1:] == [".gz"]:
        suffixes.pop()
    return SUFFIXES.get(suffixes[-1]) if suffixes else None


def guess_format(path: Path) -> tuple[str, list[str]]:
    """(format, what to say about it) of a file."""
    named = named_format(path)
    if named == "npz" and is_points(path):
        return "points", []
    if named not in ("tsv", "jsonl", None):
        return named, []
    if named != "tsv" and is_squad(path):
        return "squad", []
    if named is None and first_bytes(path).startswith(b"PAR1"):
        return "parquet", ["The content is Parquet."]
    sentences = (tagged_kind(path) if named != "tsv" else None) or (is_conll(path) if named != "jsonl" else None)
    if sentences:
        return sentences, [SAID[sentences]]
    if named != "tsv" and is_questions(path):
        return "questions", [SAID["questions"]]
    if named is None and is_babi(path):
        return "babi", []
    if named != "tsv" and is_strokes(path):
        return "strokes", []
    if named:
        return named, []
    lines = [text for _, text in head(path, LONGEST)]
    if all(text.lstrip().startswith("{") for text in lines):
        return "jsonl", ["Each line begins with '{': JSON lines."]
    if sum("\t" in text for text in lines) * 2 > len(lines):
        return "tsv", ["The lines hold tabs: tab-separated."]
    return "text", ["The lines hold no tabs: plain text, one example a line."]
