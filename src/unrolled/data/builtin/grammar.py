"""A synchronous grammar: rules with two sides build a phrase and its translation together, so the links come for free.

Each part of a rule is derived once and placed on both sides; ``phrases.rules.txt`` begins with the notation.
"""

from __future__ import annotations

import random
import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import accumulate, product
from typing import NamedTuple

from unrolled.base.errors import DataError
from unrolled.data.builtin.words import Agreement, Word


@dataclass(slots=True, eq=False)
class Leaf:
    """A word at its place: what it agrees with, and the form asked for."""

    word: Word
    agreement: Agreement
    form: str | None
    leans: bool = False


class Derived(NamedTuple):
    """A phrase in both languages, not spelled yet, and which words translate each other."""

    sides: tuple[list[Leaf], list[Leaf]]
    links: list[tuple[Leaf, Leaf]]
    agreement: Agreement


class Entry(NamedTuple):
    """A word class's member: the words of both sides, all translating each other. A noun's gender is the French one."""

    sides: tuple[tuple[Word, ...], tuple[Word, ...]]
    gender: str | None = None
    number: str | None = None
    counted: bool = False


class Item(NamedTuple):
    """One place of one side of a rule: a part of the rule (by its name) or a word."""

    part: str | None
    word: Word | None
    form: str | None
    marks: str
    leans: bool


@dataclass(slots=True, eq=False)
class Rule:
    weight: float
    parts: dict[
        str, str
    ]  # the name in the rule → the phrase or word class it stands for, in the order of the first side
    sides: tuple[list[Item], list[Item]]
    links: list[tuple[int, int]]  # places on both sides that translate each other, beyond the parts themselves
    features: dict[str, str]
    barred: dict[str, str]
    joint: bool
    twins: bool  # two parts are of one kind, and shall differ


@dataclass(slots=True)
class Phrase:
    domain: bool
    rules: list[Rule] = field(default_factory=list)
    cumulated: list[float] = field(default_factory=list)  # the rules' weights, summed up to each


class Chooser(ABC):
    """Makes the choices of a derivation, from the top down and the first side's left to right."""

    @abstractmethod
    def rule(self, phrase: Phrase, agreement: Agreement) -> Rule:
        """One of the rules of ``phrase`` that hold under ``agreement``."""

    @abstractmethod
    def entry(self, entries: Sequence[Entry]) -> Entry:
        """One word of a class."""

    @abstractmethod
    def plural(self) -> bool:
        """The number of the noun just chosen, where nothing has decided it."""


class Drawn(Chooser):
    """Draws by the rules' weights; two nouns in five are plural."""

    def __init__(self, draw: random.Random) -> None:
        self._draw = draw

    def rule(self, phrase: Phrase, agreement: Agreement) -> Rule:
        rule = self._draw.choices(phrase.rules, cum_weights=phrase.cumulated)[0]
        if holds(rule, agreement):
            return rule
        weights = [rule.weight * holds(rule, agreement) for rule in phrase.rules]
        return self._draw.choices(phrase.rules, weights)[0]

    def entry(self, entries: Sequence[Entry]) -> Entry:
        return self._draw.choice(entries)

    def plural(self) -> bool:
        return self._draw.random() < 0.4


_ITEM = re.compile(r'^(?P<name>"[^"]+"|\.|[^._>{}\s]+?)(?:\.(?P<form>[a-z]+))?(?:_(?P<marks>\d+))?(?P<leans>>)?$')
_PART = re.compile(r"^(?P<symbol>[A-Z][A-Za-z]+(?:\(\S*\))?|[A-Z](?=\d*$))\d*$")
_FEATURES = {
    **dict.fromkeys(("singular", "plural"), "number"),
    **dict.fromkeys(("first", "second", "third"), "person"),
    **dict.fromkeys(("masculine", "feminine"), "gender"),
}


class Grammar:
    """Rules as text, word classes as entries, and what makes a literal of each side a word."""

    def __init__(
        self,
        rules: str,
        classes: Mapping[str, Sequence[Entry]],
        literals: tuple[Callable[[str], Word], Callable[[str], Word]],
    ) -> None:
        self._classes = classes
        self._literals = literals
        self._sections = _sections(rules)
        self._phrases: dict[str, Phrase] = {}

    def derive(self, symbol: str, chooser: Chooser) -> Derived:
        """A phrase of the kind ``symbol``, made by the choices of ``chooser``."""
        return self._derive(symbol, chooser, Agreement())

    def entries(self, symbol: str) -> Sequence[Entry]:
        """The members of a word class; none where ``symbol`` is a phrase."""
        return self._classes.get(symbol, ())

    def phrase(self, symbol: str) -> Phrase:
        """The rules that build ``symbol``, those with parameters filled in."""
        return self._phrases.get(symbol) or self._compile(symbol)

    def _derive(self, symbol: str, chooser: Chooser, agreement: Agreement) -> Derived:
        entries = self.entries(symbol)
        if entries:
            return _lexical(chooser.entry(entries), chooser, agreement)
        phrase = self.phrase(symbol)
        if phrase.domain:
            agreement = Agreement()
        rule = chooser.rule(phrase, agreement)
        for feature, value in rule.features.items():
            setattr(agreement, feature, value)
        parts: dict[str, Derived] = {}
        for name, below in rule.parts.items():
            parts[name] = self._derive(below, chooser, agreement)
            if rule.twins:
                others = [other for key, other in parts.items() if key != name and rule.parts[key] == below]
                while any(_same(parts[name], other) for other in others):
                    parts[name] = self._derive(below, chooser, agreement)
        if rule.joint:
            genders = [part.agreement.gender for part in parts.values()]
            agreement.gender = "feminine" if all(gender == "feminine" for gender in genders) else "masculine"
        return _assemble(rule, parts, agreement)

    def _compile(self, symbol: str) -> Phrase:
        """The rules of ``symbol``: its own and those of every head with parameters that fits it."""
        phrase: Phrase | None = None
        for head, domain, lines in self._sections:
            bound = _bind(head, symbol)
            if bound is not None:
                phrase = phrase or Phrase(domain)
                phrase.rules += [self._rule(line, bound) for line in lines]
        if phrase is None:
            raise DataError(f"the grammar has neither rules nor words for '{symbol}'. Add a section of that name.")
        phrase.cumulated = list(accumulate(rule.weight for rule in phrase.rules))
        self._phrases[symbol] = phrase
        return phrase

    def _rule(self, line: str, bound: Mapping[str, str]) -> Rule:
        text, _, flags = line.partition("{")
        weight, _, rest = text.partition(" ") if text[0].isdigit() else ("1", "", text)
        halves = [half.split() for half in rest.split("|")]
        halves = halves * 2 if len(halves) == 1 else halves
        parts: dict[str, str] = {}
        sides = (self._side(halves[0], 0, bound, parts), self._side(halves[1], 1, bound, parts))
        features: dict[str, str] = {}
        barred: dict[str, str] = {}
        for flag in flags.rstrip("} ").split():
            if flag != "joint":
                (barred if flag.startswith("not-") else features)[_FEATURES[flag.removeprefix("not-")]] = (
                    flag.removeprefix("not-")
                )
        twins = len(set(parts.values())) < len(parts)
        return Rule(float(weight), parts, sides, _tie(sides, line), features, barred, "joint" in flags, twins)

    def _side(self, tokens: Sequence[str], side: int, bound: Mapping[str, str], parts: dict[str, str]) -> list[Item]:
        items = []
        for token in tokens:
            match = _ITEM.match(token)
            if match is None:
                raise DataError(f"the grammar cannot read '{token}'. Write a word, a Phrase, word_1 or Word.form.")
            name, form, marks = match["name"], match["form"], match["marks"] or ""
            part = _PART.match(name)
            if part and (len(part["symbol"]) > 1 or part["symbol"] in bound):
                parts.setdefault(name, _substitute(part["symbol"], bound))
                items.append(Item(name, None, form, marks, False))
            elif token != "nothing":
                items.append(Item(None, self._literals[side](name), form, marks, bool(match["leans"])))
        return items


def _sections(text: str) -> list[tuple[str, bool, list[str]]]:
    sections: list[tuple[str, bool, list[str]]] = []
    for line in text.splitlines():
        if not line.strip() or line.startswith("#"):
            continue
        if line[0].isspace():
            sections[-1][2].append(line.strip())
        else:
            sections.append((line.removeprefix("domain ").strip(), line.startswith("domain "), []))
    return sections


def _arguments(symbol: str) -> tuple[str, list[str]]:
    name, _, inside = symbol.partition("(")
    return name, inside.removesuffix(")").split(",") if inside else []


def _bind(head: str, symbol: str) -> dict[str, str] | None:
    """What the parameters (single letters) of ``head`` stand for in ``symbol``; None where they do not fit."""
    (name, parameters), (wanted, arguments) = _arguments(head), _arguments(symbol)
    if name != wanted or len(parameters) != len(arguments):
        return None
    bound = {}
    for parameter, argument in zip(parameters, arguments, strict=True):
        if len(parameter) == 1:
            bound[parameter] = argument
        elif parameter != argument:
            return None
    return bound


def _substitute(symbol: str, bound: Mapping[str, str]) -> str:
    if symbol in bound:
        return bound[symbol]
    name, arguments = _arguments(symbol)
    return f"{name}({','.join(bound.get(a, a) for a in arguments)})" if arguments else name


def _tie(sides: tuple[list[Item], list[Item]], line: str) -> list[tuple[int, int]]:
    """Places that translate each other: by their digits, and the words without one in order."""
    left, right = ([i for i, item in enumerate(side) if not (item.part or item.marks or item.leans)] for side in sides)
    if len(left) != len(right):
        raise DataError(
            f"the rule '{line}' has {len(left)} words without a digit on one side and {len(right)} on the other."
        )
    links = list(zip(left, right, strict=True))
    for (i, one), (j, other) in product(enumerate(sides[0]), enumerate(sides[1])):
        same = one.part is not None and one.part == other.part
        if set(one.marks) & set(other.marks) and not same:
            links.append((i, j))
    return links


def holds(rule: Rule, agreement: Agreement) -> bool:
    """Whether what is decided already allows ``rule``."""
    if not rule.features and not rule.barred:
        return True
    return all(getattr(agreement, feature) in (None, value) for feature, value in rule.features.items()) and not any(
        getattr(agreement, feature) == value for feature, value in rule.barred.items()
    )


def _lexical(entry: Entry, chooser: Chooser, agreement: Agreement) -> Derived:
    if entry.gender:
        agreement.gender = entry.gender
    if entry.counted and agreement.number is None:
        agreement.number = "plural" if chooser.plural() else "singular"
    left, right = ([Leaf(word, agreement, None) for word in side] for side in entry.sides)
    return Derived((left, right), list(product(left, right)), agreement)


def _same(one: Derived, other: Derived) -> bool:
    return [leaf.word for leaf in one.sides[0]] == [leaf.word for leaf in other.sides[0]]


def _assemble(rule: Rule, parts: Mapping[str, Derived], agreement: Agreement) -> Derived:
    placed: list[list[list[Leaf]]] = []
    for side, items in enumerate(rule.sides):
        row = []
        for item in items:
            if item.word is not None:
                row.append([Leaf(item.word, agreement, item.form, item.leans)])
            else:
                leaves = parts[str(item.part)].sides[side]
                if item.form:
                    for leaf in leaves:
                        leaf.form = leaf.form or item.form
                row.append(leaves)
        placed.append(row)
    links = [link for part in parts.values() for link in part.links]
    for i, j in rule.links:
        links.extend(product(placed[0][i], placed[1][j]))
    left, right = ([leaf for leaves in row for leaf in leaves] for row in placed)
    return Derived((left, right), links, agreement)
