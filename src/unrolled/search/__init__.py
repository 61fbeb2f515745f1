"""Search: argmax, beam and sampling over any engine that speaks the step protocol; NumPy only."""

from unrolled.search import argmax, beam, sampling  # noqa: F401  (they register themselves)
from unrolled.search.diagnosis import diagnose
from unrolled.search.ensemble import Ensemble
from unrolled.search.hypothesis import Hypothesis
from unrolled.search.searcher import Searcher, decode
from unrolled.search.settings import SEARCHERS, SearchSettings
from unrolled.search.unknown import looked_at, replace_unknown
from unrolled.search.unlent import Unlent

__all__ = [
    "SEARCHERS",
    "Ensemble",
    "Hypothesis",
    "SearchSettings",
    "Searcher",
    "Unlent",
    "decode",
    "diagnose",
    "looked_at",
    "replace_unknown",
]
