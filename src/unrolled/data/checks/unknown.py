"""What a vocabulary made from train would not know of the other splits, for each way to cut text into symbols."""

from __future__ import annotations

import itertools
import unicodedata
from collections.abc import Iterator, Mapping, Sequence

from unrolled.base.registry import Part
from unrolled.data.census import FIRST_FEATURES, Census
from unrolled.data.checks import lengths
from unrolled.data.checks.labels import counts, labels_of_files
from unrolled.data.column import PLACES, ColumnCensus
from unrolled.data.findings import Finding, Severity, Unknown, percent
from unrolled.data.opening import Wrong
from unrolled.data.referenced import text_columns
from unrolled.data.table import Table

MIN_COUNT = 2
"""How often train must hold a word for the word tokenizer to know it, as is its default."""

MUCH = 0.1


def shares(train: Census, census: Census) -> Iterator[Unknown]:
    """Unknown characters, and unknown words (fewer than two in train) where texts are made of words; not of classes."""
    for index, (known, column) in enumerate(_texts(train, census)):
        if counts(train, index) or labels_of_files(train, index):
            continue
        total = sum(column.characters.values()) or 1
        strange = {each: n for each, n in column.characters.items() if n > 0 and known.characters[each] <= 0}
        examples = sorted(strange, key=lambda each: -strange[each])[:PLACES]
        yield Unknown(census.split, column.name, "character", sum(strange.values()) / total, tuple(examples))
        if not lengths.made_of_words(known):
            continue
        new = {word: n for word, n in column.words.items() if known.words[word] < MIN_COUNT}
        words = sorted(new, key=lambda word: (-new[word], -len(word)))[:PLACES]
        total = sum(column.words.values()) or 1
        yield Unknown(census.split, column.name, "word", sum(new.values()) / total, tuple(words))


def _texts(train: Census, census: Census) -> Iterator[tuple[ColumnCensus, ColumnCensus]]:
    """The columns of both that hold texts."""
    return zip(train.columns[:FIRST_FEATURES], census.columns[:FIRST_FEATURES], strict=False)


def _pass_over(_: Wrong) -> None:
    """A wrong line: it is reported elsewhere."""


def trained_shares(tables: Mapping[str, Table], tokenizers: Sequence[Part]) -> Iterator[Unknown]:
    """The same, measured with real tokenizers trained on train."""
    from unrolled.base.protocol import UNKNOWN
    from unrolled.text import TOKENIZERS

    train = tables["train"]
    for part, index in itertools.product(tokenizers, text_columns(train)[:FIRST_FEATURES]):
        tokenizer = TOKENIZERS.build(part)
        tokenizer.train(row.fields[index] for row in train.rows(_pass_over))
        for split, table in tables.items():
            if split == "train" or index >= len(table.columns):
                continue
            unknown = total = 0
            rows = table.rows(_pass_over)
            while batch := [row.fields[index] for row in itertools.islice(rows, 1000)]:
                for ids in tokenizer.encode_ids(batch):
                    unknown += ids.count(UNKNOWN)
                    total += len(ids)
            yield Unknown(split, table.columns[index], tokenizer.kind, unknown / max(total, 1))


def unseen_characters(train: Census, census: Census) -> Iterator[Finding]:
    """Characters that train does not hold, with their names."""
    for index, (known, column) in enumerate(_texts(train, census)):
        new = column.new_characters
        if not new or labels_of_files(train, index):
            continue
        shown = ", ".join(describe(character) for character in list(new)[:PLACES])
        more = f" and {len(new) - PLACES} more" if len(new) > PLACES else ""
        plural = "s" if len(new) > 1 else ""
        message = f"{len(new)} character{plural} of '{known.name}' never seen in train: {shown}{more}."
        yield Finding(
            "note", "unseen characters", census.split, len(new), message, tuple(dict.fromkeys(new.values()))[:PLACES]
        )


def describe(character: str) -> str:
    """A character as a reader can find it: itself, where it prints, and its code point and name."""
    name = unicodedata.name(character, "")
    itself = f"'{character}' " if character.isprintable() and not unicodedata.combining(character) else ""
    return f"{itself}U+{ord(character):04X}{f' {name.lower()}' if name else ''}"


def too_many(unknown: Sequence[Unknown]) -> Iterator[Finding]:
    """Shares of unknown symbols that a model cannot live with, a finding a split and tokenizer."""
    much = [each for each in unknown if each.share > MUCH]
    for split, kind in dict.fromkeys((each.split, each.tokenizer) for each in much):
        columns = [each for each in much if (each.split, each.tokenizer) == (split, kind)]
        listed = " and ".join(f"{percent(each.share)} of '{each.column}'" for each in columns)
        words = [repr(word) for each in columns for word in each.examples[:3]]
        such = f", such as {', '.join(words[:5])}" if words else ""
        cure = "Use bpe or character." if kind in ("word", "whitespace") else "Is train another kind of text?"
        severity: Severity = "note" if kind in ("word", "whitespace") else "warning"
        message = f"a {kind} vocabulary of train would not know {listed}{such}. {cure}"
        yield Finding(severity, "unknown symbols", split, len(columns), message)
