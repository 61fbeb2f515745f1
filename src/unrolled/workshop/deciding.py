"""Which words a classifier read, and which its answer rests on: attention, erasure, and how far they agree."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from unrolled.base.protocol import END
from unrolled.data.grouping import by_length

if TYPE_CHECKING:
    from unrolled.explain.explanation import Explanation, Measure
    from unrolled.models import Classifier
    from unrolled.text.labelled import LabelledText

TOGETHER = 8192
"""Padded symbols that go through a network at once."""


class Answered(NamedTuple):
    """What a network says of some texts."""

    probabilities: np.ndarray  # float32 [texts, labels]
    weights: list[np.ndarray] | None  # of each text float32 [symbols + 1], the end last; None: the pooling has none


def answer(
    network: Classifier, rows: Sequence[Sequence[int]], labels: int, *, device: Any, most: int | None = None
) -> Answered:
    """Texts as symbols without END → the probability of each label, whatever the order of the texts.

    Rows of like length go through together, at most ``most`` of them.
    """
    import torch

    from unrolled.text.padding import pad

    probabilities = np.zeros((len(rows), labels), dtype=np.float32)
    weights: list[np.ndarray] = [np.empty(0, dtype=np.float32)] * len(rows)
    weighted = True
    for group in by_length([len(row) + 1 for row in rows], TOGETHER, most):
        ids, mask = pad([[*rows[row], END] for row in group])
        with torch.inference_mode():
            said, read = network.probabilities(torch.from_numpy(ids).to(device), torch.from_numpy(mask).to(device))
        probabilities[group] = said.cpu().numpy()
        if read is None:
            weighted = False
            continue
        for place, row in enumerate(group):
            weights[row] = read[place, : len(rows[row]) + 1].float().cpu().numpy()
    return Answered(probabilities, weights if weighted and len(rows) else None)


class Case(NamedTuple):
    """A text by its words."""

    line: str
    words: list[tuple[int, int]]
    share: np.ndarray  # float64 [symbols, words]: how much of each symbol belongs to each word
    ids: list[int]
    unknown: list[int]  # what stands for each symbol that is not read


def case_of(text: LabelledText, line: str) -> Case:
    """Words are what white space divides where the symbols are characters, else the tokenizer's own."""
    from unrolled.explain.alignment import shares

    encoded = text.tokenizer.encode(line)
    words = list(text.tokenizer.words(line))
    if text.tokenizer.kind == "character":
        words = [found.span() for found in re.finditer(r"\S+", line)]
    unknown = text.tokenizer.unknown_ids(encoded.ids)
    return Case(line, words, shares(encoded.spans, words), list(encoded.ids), unknown)


def without_words(case: Case) -> list[list[int]]:
    """The text, then the text without each of its words: their symbols are read as unknown."""
    owner = case.share.argmax(axis=1) if len(case.words) else np.empty(0, dtype=int)
    rows = [case.ids]
    for word in range(len(case.words)):
        given = zip(case.ids, case.unknown, owner, strict=True)
        rows.append([unknown if one == word else symbol for symbol, unknown, one in given])
    return rows


def explain_label(
    network: Any, text: LabelledText, line: str, labels: Sequence[int] | None, *, trusted: bool, device: Any
) -> Explanation:
    """What was read to answer ``line``, a row for each of ``labels``; None: the likeliest, or where a text may have
    several all that it is answered with.

    With attention the weights are those of the pooling; else what of the label's probability goes without each word,
    1 - p(label | without it) / p(label), 0 where it grows (Zeiler & Fergus 2014; Li et al. 2016, arXiv:1612.08220).
    ``trusted`` says of attention how far it agrees with that, over the labels that are shown.
    """
    from unrolled.explain.explanation import Explanation
    from unrolled.tasks.label_scores import decided

    case = case_of(text, line)
    names = text.labels.names
    read = answer(network, [case.ids], len(names), device=device)
    said = read.probabilities[0]
    if labels is None and text.several:
        labels = np.flatnonzero(decided(said, several=True)).tolist()
    chosen = list(labels or [int(said.argmax())])
    shown = Explanation(
        source=[line[start:end] for start, end in case.words],
        target=[names[label] for label in chosen],
        weights=np.zeros((len(chosen), len(case.words))),
        source_text=" ".join(line.split()),
        target_text=", ".join(f"{names[label]} ({said[label]:.3f})" for label in chosen),
        log_probs=[float(_logs(said[label])) for label in chosen],
    )
    if read.weights is None:
        lost = 1 - np.exp(-np.maximum(_effects(network, text, case, chosen, device), 0.0))
        return replace(shown, weights=lost, method="erasure", scale="probability lost without it")
    weights = np.tile(read.weights[0], (len(chosen), 1))  # one attention for all of them
    found = replace(shown, weights=weights[:, :-1] @ case.share, end_column=weights[:, -1])
    if not trusted:
        return found
    return replace(found, faithfulness=_faith([found.weights], [_effects(network, text, case, chosen, device)]))


def _effects(network: Any, text: LabelledText, case: Case, labels: Sequence[int], device: Any) -> np.ndarray:
    """What each label loses in log-probability without each word, float64 [labels, words]."""
    said = _logs(answer(network, without_words(case), len(text.labels.names), device=device).probabilities)
    effects: np.ndarray = (said[0] - said[1:])[:, list(labels)].T
    return effects


def trust(network: Any, text: LabelledText, lines: Sequence[str], *, device: Any) -> dict[str, Measure] | None:
    """Honest numbers about the attention over ``lines``; None where the pooling has none."""
    cases = [case for case in (case_of(text, line) for line in lines) if case.words]
    count = len(text.labels.names)
    read = answer(network, [case.ids for case in cases], count, device=device)
    if read.weights is None:
        return None
    weights, effects = [], []
    for case, row, said in zip(cases, read.weights, read.probabilities, strict=True):
        weights.append((row[:-1] @ case.share)[None])
        effects.append(_effects(network, text, case, [int(said.argmax())], device))
    return _faith(weights, effects)


def _faith(weights: list[np.ndarray], effects: list[np.ndarray]) -> dict[str, Measure]:
    from unrolled.explain.erasure import faithfulness

    return dict(faithfulness(weights, effects, part="word", whole="label"))


def _logs(values: Any) -> Any:
    return np.log(np.maximum(np.asarray(values, dtype=np.float64), 1e-30))
