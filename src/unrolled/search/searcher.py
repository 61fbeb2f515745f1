"""A searcher turns sentences into hypotheses by driving a stepper; each kind is one file that registers itself."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence

import numpy as np

from unrolled.base.protocol import END, Stepper
from unrolled.search.frontier import Frontier, Offer
from unrolled.search.hypothesis import Hypothesis
from unrolled.search.sentences import Sentences, gather
from unrolled.search.settings import SEARCHERS, SearchSettings


class Searcher(ABC):
    """One way to search. Nothing is remembered between searches."""

    def __init__(self, settings: SearchSettings, /) -> None:
        self.settings = settings

    @abstractmethod
    def search(self, stepper: Stepper, sentences: Sentences) -> list[list[Hypothesis]]:
        """The hypotheses of each sentence, at least one a sentence; there is at least one sentence."""


class PathSearcher(Searcher):
    """A searcher whose rows never meet: each follows one path and only ``choose`` is its own."""

    @property
    @abstractmethod
    def paths(self) -> int:
        """Rows a sentence."""

    @abstractmethod
    def need(self, vocabulary_size: int) -> int:
        """How many allowed symbols ``choose`` has to see."""

    @abstractmethod
    def choose(self, offer: Offer, frontier: Frontier) -> np.ndarray:
        """int64 [rows]: the column of the offer that each row says."""

    def search(self, stepper: Stepper, sentences: Sentences) -> list[list[Hypothesis]]:
        frontier = Frontier(stepper, sentences, self.settings, self.paths)
        while len(frontier):
            offer = frontier.offer(self.need(stepper.vocabulary_size))
            rows, column = np.arange(len(frontier)), self.choose(offer, frontier)
            symbols, log_probs = offer.ids[rows, column], offer.scores[rows, column]
            possible = log_probs > -np.inf
            ended = possible & (symbols == END)
            live = possible & ~ended & (frontier.step < frontier.limit)
            rank = frontier.rank
            if not live.all():
                frontier.end(rows[ended], log_probs[ended])
                frontier.cut(rows[~ended & ~live])
                rows, symbols, log_probs, rank = rows[live], symbols[live], log_probs[live], rank[live]
            frontier.move(rows, symbols, log_probs, rank)
        return frontier.hypotheses(by_score=False)


def decode(
    stepper: Stepper,
    ids: np.ndarray,
    mask: np.ndarray,
    settings: SearchSettings,
    prefixes: Sequence[Sequence[int]] | None = None,
    numbers: Sequence[int] | None = None,
) -> list[list[Hypothesis]]:
    """Search for every sentence of a batch: ``[sentence][place]`` hypotheses, ``nbest`` of them if so many exist.

    ids, mask   int64 and bool [sentences, source], mask True = real; no sentence at all is fine; a source that is no
                text is numbers [sentences, …], with a mask of the positions that a model looks at
    prefixes    for each sentence the symbols its output must begin with, without BEGIN
    numbers     each sentence's number in the whole input, for sampling: give it where batches are not in input order;
                None counts from 0

    A sentence's result does not depend on its neighbours. Equal scores are told apart by beam rank, then by symbol id.
    UsageError for what does not fit together.
    """
    sentences = gather(ids, mask, settings, prefixes, numbers, stepper.vocabulary_size)
    if not len(sentences):
        return []
    return SEARCHERS.build(settings.kind, settings).search(stepper, sentences)
