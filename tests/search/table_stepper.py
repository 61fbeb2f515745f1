"""A fake engine whose every log-probability and attention row is a random table of (source, prefix); and plain oracles.

Rows know nothing of each other, so any influence of batch, order or padding in a result comes from the search.
"""

from __future__ import annotations

import itertools
import math
import zlib
from dataclasses import dataclass, field

import numpy as np

from unrolled.base.protocol import BEGIN, END, PAD, UNKNOWN, Candidates

Prefix = tuple[int, ...]


@dataclass
class TreeModel:
    """A random model. ``grid`` rounds log-probabilities to multiples of it: exact ties, and no distribution any more.

    ``end_bias`` is added to the log-odds of END; ``impossible`` is the share of symbols that get -inf.
    """

    seed: int = 0
    vocabulary_size: int = 6
    attention: bool = True
    grid: float = 0.0
    end_bias: float = 0.0
    impossible: float = 0.0
    rows: list[int] = field(default_factory=list)  # of each step call
    asked: list[int] = field(default_factory=list)  # k of each step call
    _known: dict[tuple[Prefix, Prefix], tuple[np.ndarray, np.ndarray]] = field(default_factory=dict)

    def _entry(self, source: Prefix, prefix: Prefix) -> tuple[np.ndarray, np.ndarray]:
        if (source, prefix) not in self._known:
            generator = np.random.default_rng([self.seed, zlib.crc32(repr((source, prefix)).encode())])
            odds = generator.normal(scale=1.5, size=self.vocabulary_size)
            odds[END] += self.end_bias
            logs = odds - np.log(np.exp(odds).sum())
            if self.grid:
                logs = -np.ceil(-logs / self.grid) * self.grid
            logs[generator.random(self.vocabulary_size) < self.impossible] = -np.inf
            weights = generator.dirichlet(np.ones(len(source)))
            self._known[source, prefix] = logs.astype(np.float32), weights.astype(np.float32)
        return self._known[source, prefix]

    def log_probs(self, source: Prefix, prefix: Prefix) -> np.ndarray:
        """float32 [vocabulary], in order of the ids."""
        return self._entry(source, prefix)[0]

    def weights(self, source: Prefix, prefix: Prefix) -> np.ndarray:
        """float32 [source], the row under which the symbol after ``prefix`` is chosen."""
        return self._entry(source, prefix)[1]

    # the step protocol -----------------------------------------------------------------------------------------------

    def start(self, ids: np.ndarray, mask: np.ndarray) -> tuple[np.ndarray, ...]:
        return ids, mask, np.empty((len(ids), 0), dtype=np.int64)

    def step(self, last_ids: np.ndarray, state: tuple[np.ndarray, ...], k: int) -> Candidates:
        ids, mask, said = state
        self.rows.append(len(last_ids))
        self.asked.append(k)
        said = np.concatenate([said, last_ids[:, None]], axis=1)
        scores = np.empty((len(ids), self.vocabulary_size), dtype=np.float32)
        weights = np.zeros(ids.shape, dtype=np.float32)
        for row in range(len(ids)):
            assert said[row, 0] == BEGIN
            source, prefix = tuple(ids[row, mask[row]].tolist()), tuple(said[row, 1:].tolist())
            scores[row] = self.log_probs(source, prefix)
            weights[row, mask[row]] = self.weights(source, prefix)
        best = np.argsort(-scores, axis=1, kind="stable")[:, :k]
        return Candidates(
            np.take_along_axis(scores, best, axis=1),
            best.astype(np.int64),
            weights if self.attention else None,
            (ids, mask, said),
        )

    def select(self, state: tuple[np.ndarray, ...], rows: np.ndarray) -> tuple[np.ndarray, ...]:
        return tuple(part[rows] for part in state)


def batch(sources: list[list[int]], padding: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Ids and mask, with ``padding`` more columns than needed."""
    width = max(map(len, sources), default=0) + padding
    ids, mask = np.full((len(sources), width), PAD), np.zeros((len(sources), width), dtype=bool)
    for row, source in enumerate(sources):
        ids[row, : len(source)], mask[row, : len(source)] = source, True
    return ids, mask


def allowed(settings, prefix: Prefix, symbol: int, forced: Prefix = ()) -> bool:
    """The rules, written down a second time, one symbol at a time."""
    if len(prefix) < len(forced):
        return symbol == forced[len(prefix)]
    if symbol in (PAD, BEGIN) or (settings.ban_unknown and symbol == UNKNOWN):
        return False
    if symbol == END:
        return len(prefix) >= settings.min_length
    n = settings.no_repeat_ngram
    text = (*prefix, symbol)
    grams = [text[start : start + n] for start in range(len(text) - n + 1)] if n else []
    return not grams or grams[-1] not in grams[:-1]


def rating(model: TreeModel, settings, source: Prefix, said: Prefix, log_prob: float) -> float:
    """Equation 14 of Wu et al. 2016 for ``said``, END included where it was predicted."""
    if settings.length_normalisation == "mean":
        score = log_prob / max(len(said), 1)
    else:
        score = log_prob / ((5 + max(len(said), 1)) ** settings.length_penalty / 6**settings.length_penalty)
    if settings.coverage_penalty:
        rows = [model.weights(source, said[:place]) for place in range(len(said))]
        covered = [sum(float(row[j]) for row in rows) for j in range(len(source))]
        tiny = float(np.finfo(np.float32).tiny)
        score += settings.coverage_penalty * sum(math.log(max(min(mass, 1.0), tiny)) for mass in covered)
    return score


def enumerate_all(model: TreeModel, settings, source: Prefix, forced: Prefix = ()) -> list[tuple[float, Prefix]]:
    """Every finished output of at most ``max_length`` symbols that the rules allow, best first."""
    found = []
    words = [symbol for symbol in range(model.vocabulary_size) if symbol != END]
    for length in range(settings.max_length + 1):
        for ids in itertools.product(words, repeat=length):
            said = (*ids, END)
            if all(allowed(settings, said[:place], said[place], forced) for place in range(len(said))):
                log_prob = sum(float(model.log_probs(source, said[:place])[said[place]]) for place in range(len(said)))
                if log_prob > -math.inf:
                    found.append((rating(model, settings, source, said, log_prob), ids))
    return sorted(found, reverse=True)


def plain_beam(model: TreeModel, settings, source: Prefix, limit: int, forced: Prefix = ()):
    """A beam of one sentence without any early stop: (ids, log P, finished) of the ``nbest``."""
    live: list[tuple[Prefix, float]] = [((), 0.0)]
    done: list[tuple[Prefix, float]] = []
    left: list[tuple[Prefix, float]] = []
    for step in range(limit + 1):
        options = []
        for place, (prefix, total) in enumerate(live):
            logs = model.log_probs(source, prefix)
            for symbol in range(model.vocabulary_size):
                if allowed(settings, prefix, symbol, forced) and logs[symbol] > -np.inf:
                    options.append((-(total + float(logs[symbol])), place, symbol))
        options.sort()
        ends = [option for option in options[: settings.beam] if option[2] == END]
        done += [(live[place][0], -cost) for cost, place, _ in ends]
        left = [hypothesis for place, hypothesis in enumerate(live) if place not in {end[1] for end in ends}]
        lives = [option for option in options if option[2] != END][: settings.beam]
        if step == limit or not lives:
            break
        better = [total for _, total in done if total >= -lives[0][0]]
        if len(better) >= settings.beam:
            break
        live = [((*live[place][0], symbol), -cost) for cost, place, symbol in lives]
    rated = [(rating(model, settings, source, (*ids, END), total), ids, total, True) for ids, total in done]
    rest = [(rating(model, settings, source, ids, total), ids, total, False) for ids, total in left]
    ranked = sorted(rated, key=lambda one: -one[0]) + sorted(rest, key=lambda one: -one[0])
    return ranked[: settings.nbest]
