"""An n-gram model beside a language model: learnt on the user's text, in the model's own vocabulary."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np

from unrolled.base.protocol import END, SPECIALS, UNKNOWN
from unrolled.data.parts import Part
from unrolled.tasks.language_model import LanguageModelling
from unrolled.tasks.language_scores import Tally, amount_of
from unrolled.workshop.sources import Sources, part_of

if TYPE_CHECKING:
    from unrolled.tasks.scores import Score
    from unrolled.text.running import RunningText


def ngram_scores(task: LanguageModelling, text: RunningText, part: Part, train: str, *, order: int = 5) -> list[Score]:
    """The scores of an interpolated Kneser–Ney model on a part, learnt on the text of the file ``train``: what a
    language model must be better than."""
    from unrolled.models.ngrams import KneserNey

    size = text.vocabulary_size - len(SPECIALS) + 2  # what can come next: PAD and BEGIN cannot
    learnt = _documents(task, text, part_of(Sources(data=train), task))
    model = KneserNey.learn(learnt, order=order, vocabulary_size=size)
    tally = Tally()
    for piece, ids in task.encoded(part, text):
        ends = int(bool(ids) and ids[-1] == END)
        tally.add(0.0, amount_of(text.normalize(piece.text), ids[piece.begins :], UNKNOWN, ends=ends))
    tally.log_prob = sum(float(model.log_probs(document).sum()) for document in _documents(task, text, part))
    return tally.scores(f"{text.tokenizer.kind}, {order}-gram, modified Kneser–Ney")


def _documents(task: LanguageModelling, text: RunningText, part: Part) -> Iterator[np.ndarray]:
    """The symbols of each document, BEGIN first."""
    held: list[int] = []
    for piece, ids in task.encoded(part, text):
        if piece.begins and held:
            yield np.array(held)
            held = []
        held += ids
    if held:
        yield np.array(held)
