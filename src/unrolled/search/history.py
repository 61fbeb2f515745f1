"""Who came from whom: back-pointers step by step, walked backwards once when the search is over."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from unrolled.search.hypothesis import Hypothesis


class Move(NamedTuple):
    """One step: for each row that lives on, the row it came from, what it said, and at what log-probability."""

    parents: np.ndarray  # int64 [rows after], index into the rows before
    symbols: np.ndarray  # int64 [rows after]
    log_probs: np.ndarray  # float64 [rows after], of the symbol alone


class Endings(NamedTuple):
    """Rows that are hypotheses now. Every field is an array [endings]."""

    sentence: np.ndarray  # int64
    rank: np.ndarray  # int64: beam rank or draw number
    step: np.ndarray  # int64: symbols said, END not counted
    row: np.ndarray  # int64: among the rows of that step
    finished: np.ndarray  # bool: END was said
    end_log_prob: np.ndarray  # float64, of END alone; 0 where it was not said
    log_prob: np.ndarray  # float64, of the whole
    score: np.ndarray  # float64


class History:
    """The trellis of one search. Rows are never copied: a step adds its survivors' pointers and nothing else."""

    def __init__(self) -> None:
        self._weights: list[np.ndarray | None] = []
        self._moves: list[Move] = []
        self._endings: list[Endings] = []

    def ask(self, weights: np.ndarray | None) -> None:
        """The attention [rows, source] under which this step's symbols are chosen."""
        self._weights.append(weights)

    def move(self, move: Move) -> None:
        self._moves.append(move)

    def end(self, endings: Endings) -> None:
        self._endings.append(endings)

    def hypotheses(self, mask: np.ndarray, nbest: int, by_score: bool) -> list[list[Hypothesis]]:
        """The first ``nbest`` of each sentence; ``mask`` bool [sentences, source].

        In order of rank, or ``by_score``: finished ones first, then by score, then the one that ended earlier.
        """
        found: list[list[Hypothesis]] = [[] for _ in mask]
        if not self._endings:
            return found
        every = Endings(*(np.concatenate(column) for column in zip(*self._endings, strict=True)))
        order = np.lexsort(
            (-every.score, ~every.finished, every.sentence) if by_score else (every.rank, every.sentence)
        )
        owner = every.sentence[order]
        place = np.arange(len(order)) - np.searchsorted(owner, owner)
        best = Endings(*(column[order[place < nbest]] for column in every))
        ids, log_probs, rows = self._trace(best)
        looked = self._looked(rows, best.step + best.finished)
        symbols, of_symbols = ids.tolist(), log_probs.tolist()
        for each, one in enumerate(zip(*(column.tolist() for column in best), strict=True)):
            sentence, _, said, _, finished, of_end, log_prob, score = one
            found[sentence].append(
                Hypothesis(
                    ids=symbols[each][:said],
                    score=score,
                    log_prob=log_prob,
                    token_log_probs=[*of_symbols[each][:said], *[of_end][:finished]],
                    weights=None if looked is None else looked[each][: said + finished, mask[sentence]],
                    finished=finished,
                )
            )
        return found

    def _trace(self, endings: Endings) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Symbols and their log-probabilities [endings, longest], and the row [endings, longest + 1] of each step."""
        longest = int(endings.step.max(initial=0))
        ids = np.zeros((len(endings.step), longest), dtype=np.int64)
        log_probs = np.zeros(ids.shape)
        rows = np.zeros((len(ids), longest + 1), dtype=np.int64)
        rows[np.arange(len(ids)), endings.step] = endings.row
        for step in range(longest - 1, -1, -1):
            alive = np.flatnonzero(endings.step > step)
            move, row = self._moves[step], rows[alive, step + 1]
            ids[alive, step] = move.symbols[row]
            log_probs[alive, step] = move.log_probs[row]
            rows[alive, step] = move.parents[row]
        return ids, log_probs, rows

    def _looked(self, rows: np.ndarray, asked: np.ndarray) -> np.ndarray | None:
        """Float32 [endings, most that asked, source]: the attention of each step that an ending asked for, then 0."""
        if self._weights[0] is None:
            return None
        most = int(asked.max(initial=0))
        looked = np.zeros((len(asked), most, self._weights[0].shape[1]), dtype=np.float32)
        for step, weights in enumerate(self._weights[:most]):
            alive = np.flatnonzero(asked > step)
            if weights is not None:
                looked[alive, step] = weights[rows[alive, step]]
        return looked
