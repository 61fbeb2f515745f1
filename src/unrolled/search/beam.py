"""The best few prefixes of each sentence, extended together (Sutskever et al. 2014), with an exact early stop."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from unrolled.base.protocol import END, Stepper
from unrolled.search.frontier import Frontier, Offer
from unrolled.search.hypothesis import Hypothesis
from unrolled.search.scoring import length_divisor
from unrolled.search.searcher import Searcher
from unrolled.search.sentences import Sentences
from unrolled.search.settings import SEARCHERS


class Ranked(NamedTuple):
    """The best 2 × beam continuations of each sentence that is still searched. All fields [active, 2 × beam]."""

    rows: np.ndarray  # int64: the live row that is continued
    symbols: np.ndarray  # int64
    log_probs: np.ndarray  # float64, of the symbol alone
    totals: np.ndarray  # float64, of the whole prefix; falls from left to right, -inf where there is no more


@SEARCHERS.register("beam")
class Beam(Searcher):
    """Each step ranks all continuations of a sentence's prefixes by log P, then by beam rank, then by symbol id.

    Continuations by END among the first ``beam`` are finished hypotheses, the first ``beam`` others live on. A sentence
    is searched until the best ``beam`` of all it has, finished and live together by log P, are finished ones (so that
    an unlikely END counts for nothing while a likely prefix lives), until its length limit, or until nothing may
    follow. It stops before that where no prefix can reach the ``nbest`` best scores any more, which changes no result:
    log P only falls and the coverage penalty is at most 0, so log P / divisor(limit + 1) bounds every score to come.
    A sentence with fewer than ``nbest`` finished hypotheses is filled up with its last prefixes, unfinished.
    """

    def search(self, stepper: Stepper, sentences: Sentences) -> list[list[Hypothesis]]:
        settings = self.settings
        frontier = Frontier(stepper, sentences, settings)
        lasting = np.array([length_divisor(settings, limit + 1) for limit in sentences.limits.tolist()])
        scores = np.full((len(sentences), settings.nbest), -np.inf)  # the best of the finished ones, falling
        totals = np.full((len(sentences), settings.beam), -np.inf)  # their log P, the same
        while len(frontier):
            active, start = np.unique(frontier.sentence, return_index=True)
            ranked = rank(frontier.offer(settings.beam + 1), frontier, start, settings.beam)
            ends, lives = divide(ranked, settings.beam)
            lives &= (frontier.step < sentences.limits[active])[:, None]
            ended = np.full(ends.shape, -np.inf)
            ended[ends] = frontier.end(ranked.rows[ends], ranked.log_probs[ends])
            scores[active] = merge(scores[active], ended)
            totals[active] = merge(totals[active], np.where(ends, ranked.totals, -np.inf))
            live = np.where(lives, ranked.totals, -np.inf).max(axis=1)
            done = (live <= totals[active, -1]) | (live / lasting[active] <= scores[active, -1])
            self._fill(frontier, ranked.rows[ends], active[done & (scores[active, -1] == -np.inf)])
            lives &= ~done[:, None]
            frontier.move(
                ranked.rows[lives],
                ranked.symbols[lives],
                ranked.log_probs[lives],
                (np.cumsum(lives, axis=1) - 1)[lives],
            )
        return frontier.hypotheses(by_score=True)

    def _fill(self, frontier: Frontier, ended: np.ndarray, short: np.ndarray) -> None:
        """Give back the prefixes of the sentences ``short`` as they are, but for those that have just ``ended``."""
        left = np.isin(frontier.sentence, short)
        left[ended] = False
        frontier.cut(np.flatnonzero(left))


def rank(offer: Offer, frontier: Frontier, start: np.ndarray, beam: int) -> Ranked:
    """The best 2 × beam continuations a sentence; ``start`` int64 [active] is each sentence's first row.

    Columns are brought into the order of their ids first; a stable sort then breaks ties by rank and id.
    """
    by_id = np.argsort(offer.ids, axis=1, kind="stable")
    ids, scores = np.take_along_axis(offer.ids, by_id, axis=1), np.take_along_axis(offer.scores, by_id, axis=1)
    width = ids.shape[1]
    place = np.repeat(np.arange(len(start)), np.diff(start, append=len(ids)))
    grid = np.full((len(start), beam, width), -np.inf)
    grid[place, frontier.rank] = frontier.log_prob[:, None] + scores
    flat = grid.reshape(len(start), beam * width)
    best = np.argsort(-flat, axis=1, kind="stable")[:, : 2 * beam]
    totals = np.take_along_axis(flat, best, axis=1)
    rows = np.where(totals > -np.inf, start[:, None] + best // width, start[:, None])
    return Ranked(rows, ids[rows, best % width], scores[rows, best % width], totals)


def divide(ranked: Ranked, beam: int) -> tuple[np.ndarray, np.ndarray]:
    """Which continuations end and which live, bool [active, 2 × beam]."""
    possible, says_end = ranked.totals > -np.inf, ranked.symbols == END
    ends = possible & says_end
    ends[:, beam:] = False
    lives = possible & ~says_end
    lives &= np.cumsum(lives, axis=1) <= beam
    return ends, lives


def merge(best: np.ndarray, more: np.ndarray) -> np.ndarray:
    """The best of both in each row, falling, as many as ``best`` [active, n] holds; ``more`` [active, any]."""
    return -np.sort(-np.concatenate([best, more], axis=1), axis=1)[:, : best.shape[1]]
