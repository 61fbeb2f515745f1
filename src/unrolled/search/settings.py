"""What a search is told: one flat group of settings, each checked where it is given."""

from __future__ import annotations

import math
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Literal

from unrolled.base.errors import SettingsError, known
from unrolled.base.registry import Registry
from unrolled.base.settings import complete

if TYPE_CHECKING:
    from unrolled.search.searcher import Searcher

SEARCHERS: Registry[Searcher] = Registry("searcher")


@dataclass(frozen=True, kw_only=True)
class SearchSettings:
    """How outputs are found. SettingsError for what is not allowed.

    kind                  ``argmax`` (the best symbol at each step), ``beam`` or ``sampling``
    beam                  prefixes kept a sentence, at least 1; only ``beam`` reads it
    nbest                 hypotheses returned a sentence: at most ``beam``; 1 for ``argmax``; the number of draws for
                          ``sampling``
    length_normalisation  ``gnmt``: log P / ((5 + n) / 6)^α (Wu et al. 2016, arXiv:1609.08144, eq. 14);
                          ``mean``: log P / n. n counts the predicted symbols, END too
    length_penalty        the exponent α of ``gnmt``, 0 to 10; 0 ranks by log P alone
    coverage_penalty      β of β Σ_j log(min(Σ_i α_ij, 1)) over the real source positions j (same equation), at least 0;
                          needs a model with attention
    min_length            END is banned before this many symbols
    max_length            symbols at most, END not counted; None: ratio × source symbols (END counted) + constant
    max_length_ratio, max_length_constant   the two numbers of that rule
    no_repeat_ngram       n: no n symbols in a row are said twice; 0 allows it
    ban_unknown           never say UNKNOWN
    replace_unknown       the caller replaces UNKNOWN by the most attended source word (see ``replace_unknown``)
    temperature           sampling: probabilities ∝ p^(1/temperature), above 0
    top_k                 sampling: only the k most probable symbols; 0 for all
    top_p                 sampling: only the smallest set of best symbols with at least this mass (Holtzman et al. 2020,
                          arXiv:1904.09751), in (0, 1]; taken after temperature and top_k
    seed                  sampling: draws depend on (seed, sentence number, draw number) and nothing else
    """

    kind: str = "beam"
    beam: int = 5
    nbest: int = 1
    length_normalisation: Literal["gnmt", "mean"] = "gnmt"
    length_penalty: float = 0.6
    coverage_penalty: float = 0.0
    min_length: int = 0
    max_length: int | None = None
    max_length_ratio: float = 2.0
    max_length_constant: int = 50
    no_repeat_ngram: int = 0
    ban_unknown: bool = False
    replace_unknown: bool = False
    temperature: float = 1.0
    top_k: int = 0
    top_p: float = 1.0
    seed: int = 0

    def __post_init__(self) -> None:
        given = {field.name: getattr(self, field.name) for field in fields(self)}
        for name, value in complete(SearchSettings, given, "search").items():
            object.__setattr__(self, name, value)
        if self.kind not in SEARCHERS:
            raise SettingsError(f"[search.kind] no searcher is called '{self.kind}'. {known(self.kind, SEARCHERS)}")
        self._check_numbers()
        self._check_nbest()
        if self.max_length is not None and self.min_length > self.max_length:
            raise SettingsError(
                f"[search.min_length] {self.min_length} was given, but max_length is {self.max_length}. "
                "Lower min_length or raise max_length."
            )

    def _check_numbers(self) -> None:
        self._at_least("beam", 1, "a beam keeps at least 1 prefix (1 finds what argmax finds)")
        self._at_least("nbest", 1, "at least 1 hypothesis is returned")
        self._at_least("length_penalty", 0, "a negative one would favour short outputs; 0 switches it off")
        if self.length_penalty > 10:
            raise SettingsError(
                f"[search.length_penalty] {self.length_penalty} was given; it is an exponent, 0 to 10. Usual: 0.6 to 1."
            )
        self._at_least("coverage_penalty", 0, "a negative one would reward what was not covered; 0 switches it off")
        self._at_least("min_length", 0, "0 allows empty outputs")
        if self.max_length is not None:
            self._at_least("max_length", 1, "an output has room for at least 1 symbol; null takes it from the source")
        self._at_least("max_length_ratio", 0, "it multiplies the source length")
        self._at_least("max_length_constant", 0, "it is added to ratio × source length")
        self._at_least("no_repeat_ngram", 0, "0 switches it off")
        self._at_least("top_k", 0, "0 takes all symbols")
        self._at_least("seed", 0, "a seed is a whole number")
        if not (self.temperature > 0 and math.isfinite(self.temperature)):
            raise SettingsError(
                f"[search.temperature] {self.temperature} was given; a temperature is above 0. "
                "For the most probable symbol at each step set top_k to 1, or kind to argmax."
            )
        if not 0 < self.top_p <= 1:
            raise SettingsError(
                f"[search.top_p] {self.top_p} was given; it is a share of the probability, above 0 and at most 1. "
                "1 takes all symbols."
            )

    def _at_least(self, name: str, least: int, why: str) -> None:
        value = getattr(self, name)
        if not value >= least or value == math.inf:
            raise SettingsError(f"[search.{name}] {value} was given; {why}. Set {name} to {least} or more.")

    def _check_nbest(self) -> None:
        if self.kind == "argmax" and self.nbest > 1:
            raise SettingsError(
                f"[search.nbest] {self.nbest} was given, but argmax finds 1 hypothesis. Set kind to beam or sampling."
            )
        if self.kind == "beam" and self.nbest > self.beam:
            raise SettingsError(
                f"[search.nbest] {self.nbest} was given, but a beam of {self.beam} finds at most {self.beam}. "
                f"Raise beam to {self.nbest} or lower nbest."
            )
