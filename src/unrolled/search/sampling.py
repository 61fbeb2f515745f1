"""Draws from the model's distribution, sharpened by temperature and cut to its head (top-k, top-p)."""

from __future__ import annotations

import numpy as np

from unrolled.search.draws import uniform
from unrolled.search.frontier import Frontier, Offer
from unrolled.search.searcher import PathSearcher
from unrolled.search.settings import SEARCHERS


@SEARCHERS.register("sampling")
class Sampling(PathSearcher):
    """``nbest`` independent outputs a sentence, in the order of their draw numbers.

    Each symbol comes from p^(1/temperature), renormalised over the ``top_k`` best allowed ones, then over the smallest
    head of those with mass ``top_p`` or more. A draw depends on (seed, sentence number, draw number, step) alone.
    """

    @property
    def paths(self) -> int:
        return self.settings.nbest

    def need(self, vocabulary_size: int) -> int:
        return self.settings.top_k or vocabulary_size

    def choose(self, offer: Offer, frontier: Frontier) -> np.ndarray:
        settings = self.settings
        mass = head(offer.scores, settings.temperature, settings.top_k, settings.top_p)
        numbers = frontier.sentences.numbers[frontier.sentence]
        return pick(mass, uniform(settings.seed, numbers, frontier.rank, frontier.step))


def head(scores: np.ndarray, temperature: float, top_k: int, top_p: float) -> np.ndarray:
    """float64 [rows, k]: unnormalised probabilities, 0 outside the head; ``scores`` best first, -inf where forbidden.

    Running sums go from left to right, so that further columns after the head change nothing.
    """
    allowed = scores > -np.inf
    best = np.where(allowed, scores, -np.inf).max(axis=1, keepdims=True, initial=np.finfo(np.float64).min)
    with np.errstate(over="ignore"):  # a tiny temperature sends all but the best to -inf, as it should
        mass = np.exp((scores - best) / temperature)
    if top_k:
        mass[np.cumsum(allowed, axis=1) > top_k] = 0.0
    if top_p < 1:
        running = np.cumsum(mass, axis=1)
        mass[running - mass >= top_p * running[:, -1:]] = 0.0
    return mass


def pick(mass: np.ndarray, uniforms: np.ndarray) -> np.ndarray:
    """int64 [rows]: the column in which ``uniforms`` [rows], each in [0, 1), falls; 0 for a row without mass."""
    running = np.cumsum(mass, axis=1)
    whole = running[:, -1]
    target = np.minimum(uniforms * whole, np.nextafter(whole, -1.0))
    return np.where(whole > 0, (running <= target[:, None]).sum(axis=1), 0)
