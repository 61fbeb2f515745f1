"""An answer shown on its document: words and sentences by what was read of them, or step by step."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from unrolled.base.errors import UsageError
from unrolled.data.questions import Question, sentences
from unrolled.text.kinds import read_words
from unrolled.workshop.reading import Reading, Said, effects, on_words, trust

if TYPE_CHECKING:
    from unrolled.explain.explanation import Explanation
    from unrolled.explain.highlights import Highlights
    from unrolled.text.passages import Passage, ReadText


class Given(NamedTuple):
    """An answer, how the network says it, and how likely that is, as `predict` has it."""

    answer: str
    numbers: Sequence[int]
    probability: float


MANY = 40
"""Words of a document up to which a heatmap of steps has a column for each; of longer ones for each sentence."""


def explain_answer(
    network: Any,
    text: ReadText,
    row: Question,
    passage: Passage,
    said: Said,
    given: Given,
    *,
    trusted: bool,
    device: Any,
) -> Highlights:
    """The document of ``row``, its words shaded by the mean attention over all steps, or without attention by what of
    the answer's probability goes without each. ``trusted`` says of attention how far it agrees with that."""
    from unrolled.explain.highlights import Highlights, Sentence

    answer, numbers, probability = given
    words = read_words(row.document)
    steps = on_words(passage, said, words)
    lost = effects(network, text, passage, numbers, words, device=device) if steps is None else None
    found = Reading(words, steps, lost)
    faith = trust(network, text, [(row.document, passage, numbers)], device=device) if trusted else None
    kept = []
    for number, (start, end) in enumerate(sentences(row.document)):
        held = [place for place, (first, _) in enumerate(words) if start <= first < end]
        names = tuple(row.document[slice(*words[place])] for place in held)
        kept.append(Sentence(names, found.weights[held], number in row.support))
    attention = steps is not None
    return Highlights(
        sentences=kept,
        question=row.question,
        answer=answer,
        probability=probability,
        method="attention" if attention else "erasure",
        scale="share of attention" if attention else "probability lost without it",
        summed=attention,
        faithfulness=faith,
    )


def explain_steps(row: Question, passage: Passage, said: Said, given: Given, *, by_word: bool) -> Explanation:
    """What each step read, as rows: at each symbol of the question (``by_word``), or at each hop. Columns
    are the words of the document, or its sentences where it is long."""
    from unrolled.explain.explanation import Explanation

    spans = read_words(row.document)
    whole = len(spans) > MANY
    columns = sentences(row.document) if whole else spans
    steps = on_words(passage, said, columns)
    if steps is None:
        raise UsageError("explain: this model has no attention, and so no steps to show. Leave --by out.")
    symbols = [row.question[slice(*span)] for span in passage.question_spans]
    names = [*symbols, "(end)"] if by_word else [f"hop {n + 1}" for n in range(len(steps))]
    return Explanation(
        source=[" ".join(row.document[slice(*span)].split()) for span in columns],
        target=names,
        weights=np.clip(steps, 0.0, 1.0),
        source_text=" ".join(row.document.split()),
        target_text=f"{row.question} {given.answer} ({given.probability:.3f})",
        log_probs=None,
    )
