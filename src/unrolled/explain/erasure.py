"""How far to trust attention: take source words away one by one and see whose loss the translation feels most."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple, Protocol

import numpy as np

from unrolled.base.protocol import PAD, UNKNOWN
from unrolled.explain.explanation import Measure

if TYPE_CHECKING:
    from torch import Tensor


class Scorer(Protocol):
    """A model that gives the log-probability of each gold next symbol: float32 [batch, target - 1], 0 on padding."""

    def log_probs(self, source_ids: Tensor, source_mask: Tensor, target_ids: Tensor, target_mask: Tensor) -> Tensor: ...


class Case(NamedTuple):
    """One sentence to test. ``source_ids`` end in END, ``target_ids`` run from BEGIN to END or to the cut."""

    source_ids: Sequence[int]
    target_ids: Sequence[int]
    source: np.ndarray  # share of each source symbol (END left out) in each source word, [symbols, words]
    target: np.ndarray  # share of each target symbol (BEGIN, END left out) in each target word, [symbols, words]
    unknown: Sequence[int] | None = None  # what is put for each source symbol (END left out); None: UNKNOWN for all


def erase(model: Scorer, cases: Sequence[Case], *, symbols: int = 8192, device: str = "cpu") -> list[np.ndarray]:
    """What each target word loses in log-probability without each source word: float64 [target words, source words].

    Erasing replaces every symbol that is mostly of that word by the unknown one (Zeiler & Fergus 2014; Li et al. 2016,
    arXiv:1612.08220). Positive: the word helped. ``model`` is in evaluation mode.
    At most ``symbols`` padded symbols go through it at once.
    """
    rows = [(number, word) for number, case in enumerate(cases) for word in range(-1, case.source.shape[1])]
    rows.sort(key=lambda row: (len(cases[row[0]].source_ids), len(cases[row[0]].target_ids), row))
    scores: dict[tuple[int, int], np.ndarray] = {}
    for group in _groups(rows, cases, symbols):
        for row, values in zip(group, _score(model, group, cases, device), strict=True):
            case = cases[row[0]]
            scores[row] = values[: len(case.target)] @ case.target
    effects = []
    for number, case in enumerate(cases):
        words = case.source.shape[1]
        effect = np.zeros((case.target.shape[1], words))
        for word in range(words):
            effect[:, word] = scores[number, -1] - scores[number, word]
        effects.append(effect)
    return effects


def erased(case: Case, word: int) -> list[int]:
    """``source_ids`` without source word ``word`` (-1: untouched)."""
    ids = list(case.source_ids)
    if word >= 0:
        for place in np.flatnonzero((case.source.argmax(1) == word) & (case.source.max(1) > 0)).tolist():
            ids[place] = UNKNOWN if case.unknown is None else case.unknown[place]
    return ids


def _groups(rows: Sequence[tuple[int, int]], cases: Sequence[Case], symbols: int) -> Iterable[list[tuple[int, int]]]:
    group: list[tuple[int, int]] = []
    longest = 0
    for row in rows:
        case = cases[row[0]]
        size = max(longest, len(case.source_ids) + len(case.target_ids))
        if group and size * (len(group) + 1) > symbols:
            yield group
            group, size = [], len(case.source_ids) + len(case.target_ids)
        group.append(row)
        longest = size
    if group:
        yield group


def _score(model: Scorer, group: Sequence[tuple[int, int]], cases: Sequence[Case], device: str) -> np.ndarray:
    import torch

    def padded(sequences: list[list[int]]) -> tuple[Tensor, Tensor]:
        ids = np.full((len(sequences), max(map(len, sequences))), PAD, dtype=np.int64)
        mask = np.zeros(ids.shape, dtype=bool)
        for row, sequence in enumerate(sequences):
            ids[row, : len(sequence)] = sequence
            mask[row, : len(sequence)] = True
        return torch.from_numpy(ids).to(device), torch.from_numpy(mask).to(device)

    source_ids, source_mask = padded([erased(cases[number], word) for number, word in group])
    target_ids, target_mask = padded([list(cases[number].target_ids) for number, _ in group])
    with torch.inference_mode():
        values = model.log_probs(source_ids, source_mask, target_ids, target_mask)
    return values.float().cpu().numpy().astype(np.float64)


def faithfulness(
    weights: Sequence[np.ndarray],
    effects: Sequence[np.ndarray] | None = None,
    *,
    part: str = "source word",
    whole: str = "target word",
) -> dict[str, Measure]:
    """Honest numbers about attention rows, each beside what chance gives, over all sentences given.

    ``weights`` and ``effects`` (from ``erase``) are [target words, source words], one pair a sentence. Keys:
    ``sharpness``, and with effects ``top_agreement``, ``rank_correlation`` and ``top_drop``. Target words of
    one-word sources are left out: there is nothing to choose. ``part`` is what of a source is erased and ``whole`` what
    then loses, in words.
    """
    measures = {"sharpness": _sharpness([row for one in weights for row in one if len(row) > 1], part, whole)}
    if effects is None:
        return measures
    pairs = [
        (row, effect)
        for one, other in zip(weights, effects, strict=True)
        for row, effect in zip(one, other, strict=True)
        if len(row) > 1
    ]
    return {**_agreement(pairs, part, whole), **measures}


def entropy(row: np.ndarray) -> float:
    """Entropy of an attention row in bits, the row renormalised to 1; 0 for a row of zeros."""
    total = float(row.sum())
    shares = row[row > 0] / total if total > 0 else np.ones(1)
    return float(-(shares * np.log2(shares)).sum())


def rank_correlation(first: np.ndarray, second: np.ndarray) -> float | None:
    """Spearman's rho, ties at their mean rank; None where one side is constant."""
    ranks = [_ranks(np.asarray(one, dtype=np.float64)) for one in (first, second)]
    centred = [one - one.mean() for one in ranks]
    scale = float(np.sqrt((centred[0] ** 2).sum() * (centred[1] ** 2).sum()))
    return float((centred[0] * centred[1]).sum() / scale) if scale > 0 else None


def _ranks(values: np.ndarray) -> np.ndarray:
    below = (values[None, :] < values[:, None]).sum(1)
    equal = (values[None, :] == values[:, None]).sum(1)
    return below + (equal + 1) / 2


def _sharpness(rows: Sequence[np.ndarray], part: str, whole: str) -> Measure:
    if not rows:
        return Measure(None, 0.0, 0, f"No {whole} had more than one {part} to choose from.")
    value = float(np.mean([1 - entropy(row) / np.log2(len(row)) for row in rows]))
    sentence = (
        f"Attention is {value:.0%} as sharp as it could be (0 %: spread evenly; 100 %: on one {part.split()[-1]} "
        "only). "
        "Sharp is easy to read, not by itself true."
    )
    return Measure(value, 0.0, len(rows), sentence, "%")


def _agreement(pairs: Sequence[tuple[np.ndarray, np.ndarray]], part: str, whole: str) -> Mapping[str, Measure]:
    if not pairs:
        nothing = Measure(None, None, 0, f"No {whole} had more than one {part} to choose from.")
        return {"top_agreement": nothing, "rank_correlation": nothing, "top_drop": nothing}
    top = [_same_top(row, effect) for row, effect in pairs]
    chance = float(np.mean([1 / len(row) for row, _ in pairs]))
    share = float(np.mean(top))
    drops = [float(effect[row.argmax()]) for row, effect in pairs]
    others = [float(np.delete(effect, row.argmax()).mean()) for row, effect in pairs]
    found = [rho for rho in (rank_correlation(row, effect) for row, effect in pairs) if rho is not None]
    one = f"{'an' if whole[0] in 'aeiou' else 'a'} {whole}"
    return {
        "top_agreement": Measure(
            share,
            chance,
            len(pairs),
            f"For {share:.0%} of the {whole}s the most attended {part} is also the one whose removal hurts "
            f"most (picking at random: {chance:.0%}).",
            "%",
        ),
        "rank_correlation": _correlation(found, len(pairs), part),
        "top_drop": Measure(
            float(np.mean(drops)),
            float(np.mean(others)),
            len(pairs),
            f"Without its most attended {part} {one} loses {np.mean(drops):z.2f} nats of log-probability; "
            f"without another one {np.mean(others):z.2f}.",
            "nats",
        ),
    }


def _same_top(row: np.ndarray, effect: np.ndarray) -> float:
    """1 where both have their maximum at the same place; ties as a fair draw among the equal would give."""
    first, second = row == row.max(), effect == effect.max()
    return float((first & second).sum() / (first.sum() * second.sum()))


def _correlation(found: Sequence[float], asked: int, part: str) -> Measure:
    if not found:
        return Measure(None, 0.0, 0, f"All {asked} rows are constant: there is no order to compare.")
    value = float(np.mean(found))
    return Measure(
        value,
        0.0,
        len(found),
        f"Attention orders the {part}s like their removal does with a rank correlation of {value:z.2f} "
        "(0: no relation; 1: the same order).",
    )
