"""Translation by the grammar itself: find what derives a given phrase on the first side, then read the other side."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from unrolled.data.builtin.grammar import Chooser, Derived, Entry, Grammar, Phrase, Rule, holds
from unrolled.data.builtin.words import Agreement, Word

Choice = tuple[Rule | None, Entry | None, bool]
"""A rule, or an entry and whether its noun is in the plural."""
Script = tuple[Choice, ...]
"""All that a derivation chooses, in order."""


class Parser:
    """The derivations of one sequence of words: a chart that sees only forms, then each candidate derived again."""

    def __init__(self, grammar: Grammar, words: Sequence[str]) -> None:
        self._grammar = grammar
        self._words = words
        self._chart: dict[tuple[str, int], list[tuple[int, Script]]] = {}

    def derivations(self, symbol: str) -> Iterator[Derived]:
        """Derivations of ``symbol`` that may spell the words: forms exist, rules hold; the spelling is not compared."""
        for end, script in self._parse(symbol, 0):
            if end == len(self._words):
                try:
                    yield self._grammar.derive(symbol, _Replay(script))
                except _Refused:
                    continue

    def _parse(self, symbol: str, start: int) -> list[tuple[int, Script]]:
        if (symbol, start) not in self._chart:
            entries = self._grammar.entries(symbol)
            self._chart[symbol, start] = self._entries(entries, start) if entries else self._rules(symbol, start)
        return self._chart[symbol, start]

    def _entries(self, entries: Sequence[Entry], start: int) -> list[tuple[int, Script]]:
        found: list[tuple[int, Script]] = []
        for entry in entries:
            words = entry.sides[0]
            given = self._words[start : start + len(words)]
            if len(given) == len(words) and all(map(_may_be, words, given)):
                plural = words[0].kind == "noun" and words[0].forms["plural"] == given[0]
                found.append((start + len(words), ((None, entry, plural),)))
        return found

    def _rules(self, symbol: str, start: int) -> list[tuple[int, Script]]:
        found: list[tuple[int, Script]] = []
        for rule in self._grammar.phrase(symbol).rules:
            ways: list[tuple[int, Script]] = [(start, ((rule, None, False),))]
            for item in rule.sides[0]:
                if item.word is None:
                    below = rule.parts[str(item.part)]
                    ways = [(end, script + more) for at, script in ways for end, more in self._parse(below, at)]
                else:
                    ways = [(at + 1, script) for at, script in ways if _may_be(item.word, *self._words[at : at + 1])]
            found += ways
        return found


def _may_be(word: Word, text: str = "") -> bool:
    return text in word.forms.values()


class _Refused(Exception):
    """A scripted choice that is not allowed where it stands."""


class _Replay(Chooser):
    def __init__(self, script: Script) -> None:
        self._script = iter(script)
        self._plural = False

    def rule(self, phrase: Phrase, agreement: Agreement) -> Rule:
        rule, _, _ = next(self._script, (None, None, False))
        if rule is None or rule not in phrase.rules or not holds(rule, agreement):
            raise _Refused
        return rule

    def entry(self, entries: Sequence[Entry]) -> Entry:
        _, entry, self._plural = next(self._script, (None, None, False))
        if entry is None or entry not in entries:
            raise _Refused
        return entry

    def plural(self) -> bool:
        return self._plural
