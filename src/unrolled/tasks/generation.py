"""Text that goes on from a beginning: the search's outputs as text, stopped where the user says."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from unrolled.base.errors import UsageError
from unrolled.base.protocol import BEGIN, END, UNKNOWN, Candidates, State, Stepper
from unrolled.search import Hypothesis, SearchSettings, decode
from unrolled.text.padding import pad
from unrolled.text.running import LINE, RunningText


class Generated(NamedTuple):
    """One continuation of a prompt."""

    text: str  # what comes after the prompt, without the stop
    log_prob: float  # natural log, of everything that was said
    tokens: list[str]
    finished: bool  # the text ended, or a stop was said; False: cut at the length
    hypothesis: Hypothesis


class Stopper:
    """A stepper whose rows end when they have said a stop, and otherwise only where the model knows ends of texts.

    Having said one, a row says END with probability 1, so that every search stops there of its own accord. A state is
    that of the engine and the last symbols of each row.
    """

    def __init__(self, engine: Stepper, text: RunningText, stops: Sequence[str], *, ends: bool) -> None:
        self.engine, self.text, self.ends = engine, text, ends
        self.stops = [stop for stop in stops if stop]
        self.vocabulary_size = engine.vocabulary_size
        self._kept = max(map(len, self.stops), default=0) + 2  # a symbol is a character at least

    def start(self, ids: np.ndarray, mask: np.ndarray) -> State:
        return self.engine.start(ids, mask), np.full((len(ids), self._kept), BEGIN)

    def step(self, last_ids: np.ndarray, state: State, k: int) -> Candidates:
        inner, said = state
        said = np.concatenate([said[:, 1:], last_ids[:, None]], axis=1)
        spare = 0 if self.ends else 1
        scores, ids, weights, inner = self.engine.step(last_ids, inner, k + spare)
        scores, ids = scores.copy(), ids.copy()
        if not self.ends:
            scores[ids == END] = -np.inf
        for row in self._stopped(said):
            place = ids.shape[1] - 1 if END not in ids[row] else int((ids[row] == END).argmax())
            scores[row], ids[row, place] = -np.inf, END
            scores[row, place] = 0.0
        order = np.argsort(-scores, axis=1, kind="stable")
        scores, ids = np.take_along_axis(scores, order, axis=1), np.take_along_axis(ids, order, axis=1)
        return Candidates(scores, ids, weights, (inner, said))

    def select(self, state: State, rows: np.ndarray) -> State:
        inner, said = state
        return self.engine.select(inner, rows), said[rows]

    def _stopped(self, said: np.ndarray) -> list[int]:
        if not self.stops:
            return []
        tails = (self.text.decode(row.tolist()) for row in said)
        return [row for row, tail in enumerate(tails) if any(stop in tail for stop in self.stops)]


def lead_in(text: RunningText, prompt: str, *, ends: bool) -> list[int]:
    """The symbols that a prompt is read as. Where a whole file is one document, texts begin after an end of line."""
    return [BEGIN, *([] if ends else [LINE]), *text.encode_ids([prompt])[0]]


def generate(
    engine: Stepper,
    text: RunningText,
    prompts: Sequence[str],
    search: SearchSettings,
    *,
    stops: Sequence[str] = (),
    ends: bool = True,
) -> list[list[Generated]]:
    """``search.nbest`` continuations of each prompt. ``ends``: the model knows where texts end.

    What a prompt gets does not depend on the others. UsageError for a search without an end.
    """
    if search.max_length is None:
        raise UsageError("generate: no length was given. Say how many symbols there may be at most: --length 200.")
    begins = [lead_in(text, prompt, ends=ends) for prompt in prompts]
    ids, mask = pad(begins)
    found = decode(Stopper(engine, text, stops, ends=ends), ids, mask, search)
    given = 1 if ends else 2
    return [
        [_surface(text, begin[given:], one, stops) for one in several]
        for begin, several in zip(begins, found, strict=True)
    ]


def _surface(text: RunningText, prompt: list[int], one: Hypothesis, stops: Sequence[str]) -> Generated:
    before = text.decode(prompt)
    whole = text.decode([*prompt, *one.ids])
    written = whole[len(before) :] if whole.startswith(before) else text.decode(one.ids)
    cuts = [written.index(stop) for stop in stops if stop and stop in written]
    return Generated(written[: min(cuts)] if cuts else written, one.log_prob, text.tokens(one.ids), one.finished, one)


def unknown_in(text: RunningText, prompt: str) -> str | None:
    """A sentence about what of the prompt the model does not know; None where it knows all."""
    ids = text.encode_ids([prompt])[0]
    strange = sum(one == UNKNOWN for one in ids)
    if not strange:
        return None
    return f"{strange} of the prompt's {len(ids)} symbols are unknown to the model: it reads them as <unk>."
