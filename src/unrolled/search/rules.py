"""What a row may not say next, and what it must: bans by symbol, by length, by repeated n-gram; forced prefixes."""

from __future__ import annotations

import numpy as np

from unrolled.base.protocol import BEGIN, END, PAD, UNKNOWN, Candidates
from unrolled.search.settings import SearchSettings

_LEAST = float(np.finfo(np.float32).min)


class Rules:
    """The rules of one search. A forced symbol is said even where another rule bans it."""

    def __init__(self, settings: SearchSettings, forced: np.ndarray) -> None:
        """``forced`` int64 [sentences, longest prefix], -1 after each prefix."""
        self.repeats = settings.no_repeat_ngram
        self._always = [PAD, BEGIN, UNKNOWN] if settings.ban_unknown else [PAD, BEGIN]
        self._min_length = settings.min_length
        self._prefixes = forced

    def bans(self, text: np.ndarray, step: int) -> list[int | np.ndarray]:
        """Each entry bans one symbol everywhere, or one a row (int64 [rows], -1 for none).

        ``text`` int64 [rows, step] is what the rows have said; only read where n-grams may not repeat. At most as many
        candidates as there are entries can be lost in a row.
        """
        bans: list[int | np.ndarray] = list(self._always)
        if step < self._min_length:
            bans.append(END)
        if self.repeats:
            bans.extend(repeating(text, self.repeats).T)
        return bans

    def forced(self, sentence: np.ndarray, step: int) -> np.ndarray | None:
        """int64 [rows]: the symbol that each row must say now, -1 where it is free; None if all are."""
        if step >= self._prefixes.shape[1]:
            return None
        symbols = self._prefixes[sentence, step]
        return symbols if (symbols >= 0).any() else None


def repeating(text: np.ndarray, n: int) -> np.ndarray:
    """int64 [rows, most]: symbols that would say an n-gram of ``text`` [rows, said] again, -1 where there are fewer.

    The last n - 1 symbols are compared with every window of n symbols; where they agree, the window's last is banned.
    """
    rows, said = text.shape
    if said < n:
        return np.empty((rows, 0), dtype=np.int64)
    windows = np.lib.stride_tricks.sliding_window_view(text, n, axis=1)
    same = (windows[:, :, :-1] == text[:, None, said - n + 1 :]).all(axis=2)
    banned = np.where(same, windows[:, :, -1], -1)
    return np.sort(banned, axis=1)[:, ::-1][:, : int(same.sum(axis=1).max(initial=0))]


def apply(
    candidates: Candidates, bans: list[int | np.ndarray], forced: np.ndarray | None, width: int
) -> tuple[np.ndarray, np.ndarray]:
    """Scores float64 and ids int64 [rows, at most width] under the rules.

    Banned candidates get -inf; a forced row keeps its symbol alone, in the first column. Scores stay the model's
    log-probabilities: nothing is renormalised. A forced symbol that the model holds impossible counts as the least
    float32.
    """
    scores, ids = candidates.scores[:, :width].astype(np.float64), candidates.ids[:, :width].astype(np.int64)
    for ban in bans:
        scores[ids == (ban[:, None] if isinstance(ban, np.ndarray) else ban)] = -np.inf
    if forced is not None:
        rows = np.flatnonzero(forced >= 0)
        column = (candidates.ids[rows] == forced[rows, None]).argmax(axis=1)
        scores[rows] = -np.inf
        scores[rows, 0] = np.maximum(candidates.scores[rows, column], _LEAST)
        ids[rows, 0] = forced[rows]
    return scores, ids
