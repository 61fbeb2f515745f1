"""What readers say of questions, whatever their order; what of the document they read, and what an answer rests on."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from unrolled.data.grouping import by_length
from unrolled.data.questions import sentences
from unrolled.tasks.reading import asked_of
from unrolled.tasks.reading_scores import best_spans, span_probability
from unrolled.text.kinds import read_words

if TYPE_CHECKING:
    from unrolled.explain.explanation import Measure
    from unrolled.text.passages import Passage, ReadText

TOGETHER = 8192
"""Padded symbols of documents that go through a network at once."""

RANKED = 20
"""Answers that are kept of a question, the likeliest ones."""

Span = tuple[int, int]


class Said(NamedTuple):
    """What a network says of one question."""

    probabilities: np.ndarray  # float32 [1, answers], of spans [2, symbols of the document], and the end if none may be
    weights: np.ndarray | None  # float32 [steps, symbols + 1], the end last; None: nothing says what was read


def say(network: Any, passages: Sequence[Passage], *, device: Any, most: int | None = None) -> list[Said]:
    """What ``network`` says of each passage; those of like length go through together, at most ``most`` of them."""
    import torch

    from unrolled.tasks.base import moved

    found: list[Said] = [Said(np.empty((0, 0)), None)] * len(passages)
    for group in by_length([len(one.ids) + 1 for one in passages], TOGETHER, most):
        with torch.inference_mode():
            read = network.probabilities(moved(asked_of([passages[row] for row in group]), device))
        said = read.logits.float().cpu().numpy()
        weights = None if read.weights is None else read.weights.float().cpu().numpy()
        taken = None if read.taken is None else read.taken.sum(dim=1).tolist()
        for place, row in enumerate(group):
            width = len(passages[row].ids)
            points = width + int(network.points_nowhere)
            kept = None if weights is None or taken is None else weights[place, : taken[place], : width + 1]
            found[row] = Said(said[place] if len(said[place]) == 1 else said[place, :, :points], kept)
    return found


class Ranked(NamedTuple):
    """An answer that a network gives."""

    answer: str  # empty: there is none
    probability: float
    place: Span | None  # where a span stands in the document


def end_of(text: ReadText, passage: Passage) -> int | None:
    """The position that stands for no answer; None where there always is one."""
    return len(passage.ids) if text.nowhere and text.answering == "span" else None


def ranked(text: ReadText, document: str, passage: Passage, said: Said) -> list[Ranked]:
    """The likeliest answers to a question, the likeliest first; never none."""
    if text.answering == "span":
        found = []
        end = end_of(text, passage)
        for first, last, probability in best_spans(said.probabilities[0], said.probabilities[1], RANKED, end):
            if first == end:
                found.append(Ranked("", probability, None))
                continue
            place = (passage.spans[first][0], passage.spans[last][1])
            found.append(Ranked(document[slice(*place)], probability, place))
        return found
    row = said.probabilities[0]
    names = text.labels.names if text.answering == "entity" else passage.entities
    order = [int(place) for place in np.argsort(-row, kind="stable") if place < len(names)]
    likely = [place for place in order if row[place] > 0] or order[:1]
    return [Ranked(names[place], float(row[place]), None) for place in likely[:RANKED]]


# --- what was read, and what it rests on ------------------------------------------------------------------------------


class Reading(NamedTuple):
    """A question with what was read of its document, on the words of the document."""

    words: list[Span]
    steps: np.ndarray | None  # float64 [steps, words]: the weights, what lies on the end left out; None: no attention
    effects: np.ndarray | None  # float64 [words]: what the answer loses in log-probability without each word

    @property
    def weights(self) -> np.ndarray:
        """How much of each word was read, the mean over all steps; without attention, what of the answer's probability
        goes without it."""
        if self.steps is not None:
            found: np.ndarray = self.steps.mean(axis=0)
            return found
        lost = np.zeros(len(self.words)) if self.effects is None else self.effects
        return 1 - np.exp(-np.maximum(lost, 0.0))


def on_words(passage: Passage, said: Said, words: Sequence[Span]) -> np.ndarray | None:
    """The weights of symbols as weights of words, [steps, words]."""
    from unrolled.explain.alignment import shares

    if said.weights is None:
        return None
    found: np.ndarray = said.weights[:, :-1].astype(np.float64) @ shares(passage.spans, words)
    return found


def probability_of(said: Said, numbers: Sequence[int], end: int | None) -> float:
    """What an answer, by its numbers (of a span both ends), is given, as `ranked` has it: of a span the product of the
    probabilities of its ends, as a share of that of all spans; ``end`` as `end_of` has it."""
    if len(said.probabilities) == 1:
        return float(said.probabilities[0][numbers[0]])
    return span_probability(said.probabilities[0], said.probabilities[1], numbers, end)


def effects(
    network: Any, text: ReadText, passage: Passage, numbers: Sequence[int], words: Sequence[Span], *, device: Any
) -> np.ndarray:
    """What an answer loses in log-probability without each word of the document, read as unknown: float64 [words]
    (Zeiler & Fergus 2014; Li et al. 2016, arXiv:1612.08220)."""
    said = say(network, [passage, *_erased(text, passage, words)], device=device)
    logs = np.log(np.maximum([probability_of(one, numbers, end_of(text, passage)) for one in said], 1e-30))
    found: np.ndarray = logs[0] - logs[1:]
    return found


def _erased(text: ReadText, passage: Passage, words: Sequence[Span]) -> Iterator[Passage]:
    from unrolled.explain.alignment import shares

    owner = shares(passage.spans, words).argmax(axis=1)
    unknown = text.tokenizer.unknown_ids(passage.ids)
    for word in range(len(words)):
        ids = [other if one == word else symbol for symbol, other, one in zip(passage.ids, unknown, owner, strict=True)]
        yield passage._replace(ids=ids)


def trust(
    network: Any, text: ReadText, asked: Sequence[tuple[str, Passage, Sequence[int]]], *, device: Any
) -> dict[str, Measure] | None:
    """Honest numbers about the weights over documents: each with its passage, and the answer by its numbers; None
    where nothing says what was read.

    A word that is attended stands for its sentence too, which the encoder has read around it; so whole sentences are
    taken away as well as single words.
    """
    from unrolled.explain.erasure import faithfulness

    said = say(network, [passage for _, passage, _ in asked], device=device)
    if not asked or any(one.weights is None for one in said):
        return None
    found = []
    for cut in (read_words, sentences):
        weights, lost = [], []
        for (document, passage, numbers), one in zip(asked, said, strict=True):
            spans = cut(document)
            steps = on_words(passage, one, spans)
            if steps is not None:
                weights.append(steps.mean(axis=0)[None])
                lost.append(effects(network, text, passage, numbers, spans, device=device)[None])
        found.append(faithfulness(weights, lost, part="word", whole="answer"))
    return {**found[0], **_of_sentences(found[1])}


def _of_sentences(found: Mapping[str, Measure]) -> dict[str, Measure]:
    """The measures that mean something of sentences, in words for them; those of one sentence are left out."""
    top, drop = found["top_agreement"], found["top_drop"]
    if top.value is None or drop.value is None:
        return {}
    return {
        "sentence_agreement": top._replace(
            sentence=f"For {top.value:.0%} of the questions the most read sentence is also the one without which the "
            f"answer loses most (picking at random: {top.chance:.0%})."
        ),
        "sentence_drop": drop._replace(
            sentence=f"Without its most read sentence an answer loses {drop.value:z.2f} nats of log-probability; "
            f"without another one {drop.chance:z.2f}."
        ),
    }


class Support(NamedTuple):
    """How much of what was read lies in the sentences that are said to support the answer."""

    share: float  # of the weight, the mean over questions
    chance: float  # the share of their words
    top: float  # of the questions: the most read sentence is one of them
    questions: int


def support(
    documents: Sequence[str], passages: Sequence[Passage], said: Sequence[Said], gold: Sequence[Sequence[int]]
) -> Support | None:
    """Over the questions that have ``gold``, the numbers of their supporting sentences; None where none has, or
    nothing says what was read."""
    found = []
    for document, passage, one, wanted in zip(documents, passages, said, gold, strict=True):
        if not wanted or one.weights is None:
            continue
        spans = sentences(document)
        read = on_words(passage, one, spans)
        if read is None:
            continue
        weights, chosen = read.mean(axis=0), list(wanted)
        within = weights / max(float(weights.sum()), 1e-12)
        sizes = np.array([len(read_words(document[start:end])) for start, end in spans], dtype=np.float64)
        found.append((within[chosen].sum(), sizes[chosen].sum() / sizes.sum(), float(int(weights.argmax()) in wanted)))
    if not found:
        return None
    share, chance, top = np.mean(found, axis=0).tolist()
    return Support(share, chance, top, len(found))
