"""English → French phrases from a synchronous grammar of our own, whose derivations leave gold alignments behind."""

from __future__ import annotations

import random
import re
from collections.abc import Iterator, Sequence
from functools import lru_cache
from importlib.resources import files
from itertools import pairwise

from unrolled.data.builtin import english, french
from unrolled.data.builtin.example import BUILTIN, PATIENCE, Built, Example, Maker, Span, split
from unrolled.data.builtin.grammar import Derived, Drawn, Entry, Grammar
from unrolled.data.builtin.parsing import Parser
from unrolled.data.builtin.words import Word, plain

SHORTEST, LONGEST = 3, 14
"""Words of the English side, punctuation counted."""

_STOPS = frozenset(".?!")
_WORDS = re.compile(r"'s|[.?!]|[^\s.?!']+")


@BUILTIN.register("phrases")
class Phrases(Maker):
    """English phrases and their one French translation; see phrases.rules.txt and phrases.lexicon.txt.

    With ``capitals`` a sentence begins with one, which makes every word that can begin it two words to learn.
    """

    default_size = 40_000

    def __init__(self, *, capitals: bool = False) -> None:
        self._capitals = capitals

    def make(self, seed: int, size: int) -> Built:
        return split(distinct(seed, self._capitals), seed, size)


def distinct(seed: int, capitals: bool = False) -> Iterator[Example]:
    """Phrases, no source twice, until drawing finds nothing new."""
    draw = Drawn(random.Random(seed))
    seen: set[str] = set()
    misses = 0
    while misses < PATIENCE:
        misses += 1
        phrase = example(grammar().derive("Start", draw), capitals)
        if phrase.source not in seen and SHORTEST <= len(phrase.source_spans) <= LONGEST:
            seen.add(phrase.source)
            misses = 0
            yield phrase


def example(derived: Derived, capitals: bool = False) -> Example:
    """Spell a derivation: inflect, join, lay out, and carry the links over to the written words."""
    left, right = derived.sides
    source = english.join([leaf.word.spell(leaf.agreement, leaf.form) for leaf in left])
    keys = [leaf.word.key(leaf.agreement, leaf.form) for leaf in right]
    written = french.join([(leaf.word.forms[key], leaf.word, key) for leaf, key in zip(right, keys, strict=True)])
    columns = {id(leaf): place for place, leaf in enumerate(left)}
    rows = {id(right[origin]): place for place, (_, origins) in enumerate(written) for origin in origins}
    links = {(columns[id(one)], rows[id(other)]) for one, other in derived.links}
    for leaf, after in pairwise(right):
        if leaf.leans:
            links |= {(column, rows[id(leaf)]) for column, row in links if row == rows[id(after)]}
    text, spans = _lay_out(source, "")
    translation, others = _lay_out([text for text, _ in written], " ")
    if capitals and source[-1] in _STOPS:
        text, translation = text[0].upper() + text[1:], translation[0].upper() + translation[1:]
    return Example(text, translation, tuple(sorted(links)), tuple(spans), tuple(others))


def translations(text: str) -> list[Example]:
    """What the grammar makes of an English phrase of its own: one translation (with its links), or none.

    ``text`` as the phrases are written: ``the man's dog sleeps.``; lower case but for names.
    """
    parser = Parser(grammar(), ["a" if word == "an" else word for word in _WORDS.findall(text)])
    found: dict[str, Example] = {}
    for derived in parser.derivations("Start"):
        phrase = example(derived)
        if phrase.source == text:
            found.setdefault(phrase.target, phrase)
    return list(found.values())


def _lay_out(words: Sequence[str], before_mark: str) -> tuple[str, list[Span]]:
    """The text with its words' spans; ``before_mark`` is what the language writes before ? and !."""
    text, spans = "", []
    for word in words:
        if word in ("?", "!"):
            text += before_mark
        elif text and not text.endswith("'") and word != "." and word[0] not in "-'":
            text += " "
        spans.append((len(text), len(text) + len(word)))
        text += word
    return text, spans


@lru_cache(maxsize=1)
def grammar() -> Grammar:
    """The grammar of the two files beside this one."""
    classes = lexicon(_read("phrases.lexicon.txt"))
    classes["Number"] = [Entry(((english.number(n),), (french.number(n),))) for n in range(2, 100)]
    classes["Year"] = [Entry(((plain(str(year)),), (plain(str(year)),))) for year in range(1990, 2000)]
    return Grammar(_read("phrases.rules.txt"), classes, (english.literal, french.literal))


def _read(name: str) -> str:
    return (files("unrolled.data.builtin") / name).read_text("utf-8")


def lexicon(text: str) -> dict[str, list[Entry]]:
    """Word classes by name; adjectives come under each class of nouns that they describe, ``After(Thing)``."""
    classes: dict[str, list[Entry]] = {}
    kind, names = "", [""]
    for line in text.splitlines():
        if line.startswith("["):
            head, kind = line[1:].split("] ")
            names = head.split()
        elif line and not line.startswith("#"):
            left, right = line.split(" = ")
            described = ""
            if kind == "adjective" and " : " in right:
                right, described = right.split(" : ")
            entry = _ENTRIES[kind](left, right)
            for key in [f"{names[0]}({noun})" for noun in described.split()] or names:
                classes.setdefault(key, []).append(entry)
    return classes


def _noun(left: str, right: str) -> Entry:
    forms, gender, *aspirated = right.rsplit(" ", 2) if right.endswith(" h") else right.rsplit(" ", 1)
    singular, _, many = forms.partition(", ")
    word = french.noun(singular, many, gender, bool(aspirated))
    base, _, plural = left.partition(", ")
    return Entry(((english.noun(base, plural),), (word,)), gender=word.gender, counted=True)


def _name(left: str, right: str) -> Entry:
    text, gender = right.rsplit(" ", 1)
    return Entry(((plain(left),), (plain(text),)), gender={"m": "masculine", "f": "feminine"}[gender])


def _adjective(left: str, right: str) -> Entry:
    forms, _, before_vowel = right.partition(" (")
    return Entry(((plain(left),), (french.adjective(*forms.split(", "), before_vowel=before_vowel.rstrip(")")),)))


def _verb(left: str, right: str) -> Entry:
    names, _, present = right.partition(": ")
    infinitive, _, participle = names.partition(", ")
    base, _, past = left.partition(", ")
    first, *others = base.split()
    words: list[Word] = [english.verb(first, past), *map(plain, others)]
    return Entry((tuple(words), (french.verb(infinitive, participle, present.split()),)))


def _word(left: str, right: str) -> Entry:
    return Entry((tuple(map(plain, left.split())), tuple(map(plain, right.split()))))


_ENTRIES = {"noun": _noun, "name": _name, "adjective": _adjective, "verb": _verb, "word": _word}
