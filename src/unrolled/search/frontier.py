"""The live rows of all sentences, and the only place that drives the stepper: ask, then end, cut or move rows."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from unrolled.base.errors import UnrolledError, UsageError
from unrolled.base.protocol import BEGIN, Stepper
from unrolled.search.history import Endings, History, Move
from unrolled.search.hypothesis import Hypothesis
from unrolled.search.rules import Rules, apply
from unrolled.search.scoring import coverage_score, length_divisor
from unrolled.search.sentences import Sentences
from unrolled.search.settings import SearchSettings


class Offer(NamedTuple):
    """What each live row may say next."""

    scores: np.ndarray  # float64 [rows, k] log-probabilities, -inf where a rule forbids; best first but for those
    ids: np.ndarray  # int64 [rows, k]


class Frontier:
    """Rows in order of sentence, then rank. A searcher loops: ``offer``, then ``end`` and ``cut``, then ``move``.

    Rows that do not move are gone, from the engine too, so that long outputs do not pay for short ones.

    step      symbols said so far, the same for all live rows
    sentence  int64 [rows]
    rank      int64 [rows]: place in the beam, or draw number
    log_prob  float64 [rows]: of what was said
    """

    def __init__(self, stepper: Stepper, sentences: Sentences, settings: SearchSettings, copies: int = 1) -> None:
        """Encodes the sentences; each starts with ``copies`` rows."""
        self.sentences = sentences
        self._stepper, self._settings = stepper, settings
        self._rules = Rules(settings, sentences.forced)
        self._history = History()
        self.step = 0
        self.sentence = np.repeat(np.arange(len(sentences)), copies)
        self.rank = np.tile(np.arange(copies), len(sentences))
        self.log_prob = np.zeros(len(self.sentence))
        self._last = np.full(len(self.sentence), BEGIN, dtype=np.int64)
        self._state = stepper.start(sentences.ids, sentences.mask)
        if copies > 1:
            self._state = stepper.select(self._state, self.sentence)
        self._text = np.empty((len(self.sentence), 0), dtype=np.int64)
        self._covered = np.zeros((len(self.sentence), 1))  # Σ α of the symbols said; only kept for the penalty
        self._looked = self._covered  # the same with the symbol that is being chosen

    def __len__(self) -> int:
        return len(self.sentence)

    @property
    def limit(self) -> np.ndarray:
        """int64 [rows]: how many symbols each may say."""
        return self.sentences.limits[self.sentence]

    def offer(self, need: int) -> Offer:
        """One step of the engine: in each row at least the ``need`` best symbols that the rules allow, if there are."""
        size = self._stepper.vocabulary_size
        bans = self._rules.bans(self._text, self.step)
        forced = self._rules.forced(self.sentence, self.step)
        width = min(size, need + len(bans))
        candidates = self._stepper.step(self._last, self._state, width if forced is None else size)
        self._check(candidates.scores)
        self._state = candidates.state
        self._history.ask(candidates.weights)
        if self._settings.coverage_penalty:
            self._look(candidates.weights)
        return Offer(*apply(candidates, bans, forced, width))

    def end(self, rows: np.ndarray, log_probs: np.ndarray) -> np.ndarray:
        """``rows`` int64 [n] say END at ``log_probs``; their scores float64 [n]."""
        return self._end(rows, log_probs, True)

    def cut(self, rows: np.ndarray) -> None:
        """``rows`` int64 [n] are hypotheses as they are, unfinished."""
        self._end(rows, np.zeros(len(rows)), False)

    def move(self, rows: np.ndarray, symbols: np.ndarray, log_probs: np.ndarray, rank: np.ndarray) -> None:
        """Live on with these alone: row ``rows[i]`` said ``symbols[i]``; all arrays [rows after], in sentence order."""
        self._history.move(Move(rows, symbols, log_probs))
        if not np.array_equal(rows, np.arange(len(self.sentence))):
            self._state = self._stepper.select(self._state, rows) if len(rows) else self._state
            self.sentence, self.log_prob = self.sentence[rows], self.log_prob[rows]
        self.rank, self._last = rank, symbols
        self.log_prob = self.log_prob + log_probs
        if self._rules.repeats:
            self._text = np.concatenate([self._text[rows], symbols[:, None]], axis=1)
        if self._settings.coverage_penalty:
            self._covered = self._looked[rows]
        self.step += 1

    def hypotheses(self, by_score: bool) -> list[list[Hypothesis]]:
        """What ended, for each sentence at most ``nbest``; see ``History.hypotheses``."""
        return self._history.hypotheses(self.sentences.mask, self._settings.nbest, by_score)

    def _end(self, rows: np.ndarray, log_probs: np.ndarray, finished: bool) -> np.ndarray:
        if not len(rows):
            return np.zeros(0)
        whole = self.log_prob[rows] + log_probs
        score = whole / length_divisor(self._settings, self.step + finished)
        sentence = self.sentence[rows]
        if self._settings.coverage_penalty:
            covered = (self._looked if finished else self._covered)[rows]
            score = score + self._settings.coverage_penalty * coverage_score(covered, self.sentences.mask[sentence])
        step, ended = np.full(len(rows), self.step), np.full(len(rows), finished)
        self._history.end(Endings(sentence, self.rank[rows], step, rows, ended, log_probs, whole, score))
        return score

    def _look(self, weights: np.ndarray | None) -> None:
        if weights is None:
            raise UsageError(
                f"[search.coverage_penalty] {self._settings.coverage_penalty} was given, but this model has no "
                "attention, so nothing says what was covered. Set coverage_penalty to 0, or train with attention."
            )
        self._looked = self._covered + weights

    def _check(self, scores: np.ndarray) -> None:
        wrong = np.isnan(scores)
        if wrong.any():
            wrong = wrong.any(axis=1)
            line = self.sentences.numbers[self.sentence[wrong.argmax()]] + 1
            raise UnrolledError(
                f"search: at symbol {self.step + 1} of sentence {line} the model's log-probabilities are not numbers. "
                "Its weights are damaged, or training diverged: load an earlier checkpoint."
            )
