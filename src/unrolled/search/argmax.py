"""The best symbol at each step; what a beam of one finds, at less cost."""

from __future__ import annotations

import numpy as np

from unrolled.search.frontier import Frontier, Offer
from unrolled.search.searcher import PathSearcher
from unrolled.search.settings import SEARCHERS

NONE = np.iinfo(np.int64).max


@SEARCHERS.register("argmax")
class Argmax(PathSearcher):
    """ŷ_t = argmax_y log P(y | ŷ_1 … ŷ_{t-1}); of equals the smallest id."""

    paths = 1

    def need(self, vocabulary_size: int) -> int:  # noqa: ARG002
        return 1

    def choose(self, offer: Offer, frontier: Frontier) -> np.ndarray:  # noqa: ARG002
        best = offer.scores == offer.scores.max(axis=1, keepdims=True)
        return np.where(best, offer.ids, NONE).argmin(axis=1)
