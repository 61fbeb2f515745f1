"""One column of a split, counted in batches: characters, words, lengths, classes, odd and unseen things.

Texts are kept as 64-bit digests (Python's own hash, keyed anew in each process), never as text.
"""

from __future__ import annotations

import re
import string
import unicodedata
from array import array
from collections import Counter
from collections.abc import Callable, Sequence, Set

import numpy as np

from unrolled.text.labelled import Labels

PLACES = 5
"""Places kept of each kind of finding."""

MOST_ROWS = 20_000_000
"""Rows whose digests are kept; duplicates are not looked for beyond them."""

MOST_WORDS = 1_000_000
"""Different words kept for each column."""

MOST_LABELS = 1_000

SEPARATORS = (",", ";", "|")
"""What people put between the labels of a cell."""

_UNSPACED = "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff"
WORD = re.compile(rf"[{_UNSPACED}]|[^\W{_UNSPACED}]+|[^\w\s]")
"""A run of letters and digits, a mark, or one character of a script written without spaces."""

ODD: dict[str, re.Pattern[str]] = {
    "control": re.compile("[\x01-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u200b\u200e\u200f\u202a-\u202e\u2066-\u2069\ufeff]"),
    "return": re.compile("\r"),
    "replacement": re.compile("\ufffd"),
    "mojibake": re.compile("[ÂÃ][\x80-\xbf]|â€[\x80-\xbf™œ“”˜¦]|Ð[\x80-\xbf]Ñ"),
    "entity": re.compile(r"&(?:amp|lt|gt|quot|apos|nbsp|#\d{2,5}|#x[0-9a-fA-F]{2,5});"),
    "scripts": re.compile("[a-zA-Z][\u0370-\u03ff\u0400-\u04ff]|[\u0370-\u03ff\u0400-\u04ff][a-zA-Z]"),
}
"""What is seldom meant, by the kind of finding."""

_LATIN = frozenset(string.ascii_letters)


def possible_odd(characters: Set[str]) -> list[str]:
    """The kinds in ODD that a text made of ``characters`` can hold: cheap to ask, and mostly none."""
    every = "".join(characters)
    kinds = [kind for kind in ("control", "return", "replacement") if ODD[kind].search(every)]
    if {"Â", "Ã", "Ð"} & characters or {"â", "€"} <= characters:
        kinds.append("mojibake")
    if {"&", ";"} <= characters:
        kinds.append("entity")
    if any("\u0370" <= letter <= "\u04ff" for letter in characters) and _LATIN & characters:
        kinds.append("scripts")
    return kinds


class Tally:
    """A count and the first few places."""

    def __init__(self) -> None:
        self.count = 0
        self.places: list[str] = []

    def add(self, place: str) -> None:
        self.count += 1
        if len(self.places) < PLACES:
            self.places.append(place)


class Parts:
    """The labels of cells in which ``sign`` stands between two. ``trained``: those of train, if of another split."""

    def __init__(self, sign: str, trained: Parts | None = None) -> None:
        self.counts: Counter[str] | None = Counter()  # rows of each label; None: too many different ones to be classes
        self.joint = Tally()  # rows with several labels
        self.example = ""  # the first of their cells
        self.new: dict[str, Tally] = {}  # unseen in train
        self.new_rows = 0
        self._split, self._trained = Labels({}, separator=sign).split, trained
        self._alone: set[str] = set()
        self._beside: set[str] = set()

    @property
    def told(self) -> bool:
        """Whether cells look as if one could hold several labels: parts of some stand alone in others."""
        return self.counts is not None and not self._alone.isdisjoint(self._beside)

    def add(self, places: Sequence[int], cells: Sequence[str], place: Callable[[int], str]) -> None:
        """Count a batch of cells, whose rows are ``places``."""
        if self.counts is None:
            return
        found = {cell: self._split(cell) for cell in dict.fromkeys(cells)}
        for labels in found.values():
            (self._alone if len(labels) == 1 else self._beside).update(labels)
        if len(self._alone | self._beside) > MOST_LABELS:
            self.counts, self.new, self.new_rows = None, {}, 0
            return
        trained = None if self._trained is None else self._trained.counts
        for row, cell in zip(places, cells, strict=True):
            labels = found[cell]
            self.counts.update(labels)
            if len(labels) > 1:
                self.example = self.example or cell
                self.joint.add(place(row))
            unseen = [] if trained is None else [label for label in labels if label not in trained]
            self.new_rows += bool(unseen)
            for label in unseen:
                self.new.setdefault(label, Tally()).add(place(row))


class ColumnCensus:
    """Counts over one column. ``place`` writes a row's place; ``trained`` is the same column of train, if another;
    ``separator`` is what stands between the labels of a cell, None: what the cells tell."""

    def __init__(
        self, name: str, place: Callable[[int], str], trained: ColumnCensus | None, separator: str | None = None
    ) -> None:
        self.name, self._given = name, separator
        self.characters: Counter[str] = Counter()
        self.words: Counter[str] = Counter()
        self.character_lengths: Counter[int] = Counter()
        self.word_lengths: Counter[int] = Counter()
        self.longest = (-1, 0)  # characters, place
        self.longest_in_words = (-1, 0)
        self.labels: Counter[str] | None = Counter()  # None: too many different ones to be classes
        self.digests: array[int] = array("q")
        self.odd: dict[str, Tally] = {}
        self.new_characters: dict[str, str] = {}  # unseen in train → first place
        self.new_labels: dict[str, Tally] = {}
        self.parts: dict[str, Parts] = {
            sign: Parts(sign, None if trained is None else trained.parts[sign])
            for sign in (SEPARATORS if separator is None else (separator,))
        }
        self._place, self._trained = place, trained

    @property
    def separator(self) -> str | None:
        """What stands between the labels of a cell that holds several: given, or as far as cells of train tell."""
        if self._given is not None:
            return self._given
        if self._trained is not None:
            return self._trained.separator
        told = [sign for sign, parts in self.parts.items() if parts.told]
        return max(told, key=lambda sign: self.parts[sign].joint.count, default=None)

    def add(self, places: Sequence[int], texts: Sequence[str]) -> None:
        """Count a batch of texts, whose rows are ``places``."""
        joined = "\n".join(texts)
        characters = count_characters(joined)
        characters["\n"] -= len(texts) - 1
        self.characters.update(characters)
        if len(self.words) < MOST_WORDS:
            self.words.update(WORD.findall(joined))
        if len(self.digests) < MOST_ROWS:
            self.digests.extend(map(hash, texts))
        self._lengths(places, texts)
        self._labels(places, texts)
        for parts in self.parts.values():
            parts.add(places, texts, self._place)
        self._oddities(places, texts, joined, characters.keys())
        if self._trained is not None:
            unseen = characters.keys() - self._trained.characters.keys() - self.new_characters.keys() - {"\n"}
            for character in sorted(unseen):
                first = next(place for place, text in zip(places, texts, strict=True) if character in text)
                self.new_characters[character] = self._place(first)

    def _lengths(self, places: Sequence[int], texts: Sequence[str]) -> None:
        lengths = list(map(len, texts))
        self.character_lengths.update(lengths)
        longest = max(lengths)
        if longest > self.longest[0]:
            self.longest = (longest, places[lengths.index(longest)])
        lengths = [len(text.split()) for text in texts]
        self.word_lengths.update(lengths)
        longest = max(lengths)
        if longest > self.longest_in_words[0]:
            self.longest_in_words = (longest, places[lengths.index(longest)])

    def _labels(self, places: Sequence[int], texts: Sequence[str]) -> None:
        if self.labels is None:
            return
        self.labels.update(texts)
        if len(self.labels) > MOST_LABELS:
            self.labels, self.new_labels = None, {}
        elif self._trained is not None and self._trained.labels is not None:
            for place, text in zip(places, texts, strict=True):
                if text not in self._trained.labels:
                    self.new_labels.setdefault(text, Tally()).add(self._place(place))

    def _oddities(self, places: Sequence[int], texts: Sequence[str], joined: str, characters: Set[str]) -> None:
        for place, text in zip(places, texts, strict=True):
            if not text or text[0].isspace() or text[-1].isspace():
                self._note("spaces" if text.strip() else "empty", place)
        if not unicodedata.is_normalized("NFC", joined):
            for place, text in zip(places, texts, strict=True):
                if not unicodedata.is_normalized("NFC", text):
                    self._note("decomposed", place)
        for kind in possible_odd(characters):
            if ODD[kind].search(joined):
                for place, text in zip(places, texts, strict=True):
                    if ODD[kind].search(text):
                        self._note(kind, place)

    def _note(self, kind: str, place: int) -> None:
        self.odd.setdefault(kind, Tally()).add(self._place(place))


def count_characters(text: str) -> Counter[str]:
    """How often each character occurs, counted by code point all at once."""
    counts = np.bincount(np.frombuffer(text.encode("utf-32-le"), dtype=np.uint32))
    return Counter({chr(code): int(counts[code]) for code in np.flatnonzero(counts).tolist()})
