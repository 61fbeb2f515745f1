"""From a network and texts to explanations: forced decoding, attention on the user's words, and how far to trust it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from unrolled.base.errors import DataError, UsageError
from unrolled.base.protocol import BEGIN, END, UNKNOWN
from unrolled.tasks.writing import Written
from unrolled.text.featured import Featured
from unrolled.text.padding import pad

if TYPE_CHECKING:
    from unrolled.explain.alignment import Side
    from unrolled.explain.explanation import Explanation, Measure
    from unrolled.text.texts import TextPair
    from unrolled.text.tokenizer import Tokenizer
    from unrolled.text.writing import Sides

Span = tuple[int, int]


class Forced(NamedTuple):
    """A given pair, read by the model."""

    log_probs: np.ndarray  # float64 [target symbols + 1], natural log, the last one of the end
    weights: np.ndarray | None  # float32 [target symbols + 1, source symbols + 1]


def force(
    network: Any,
    text: Sides,
    sources: Sequence[Any],
    targets: Sequence[str],
    *,
    device: Any = "cpu",
    batch: int = 64,
) -> list[Forced]:
    """Log-probabilities and attention of each given pair, the gold previous symbol fed (forced decoding)."""
    import torch

    rows_read = text.read(sources)
    target_ids = [[BEGIN, *one.ids, END] for one in text.read_targets(sources, targets)]
    found: list[Forced] = [Forced(np.zeros(0), None)] * len(rows_read)
    order = sorted(range(len(rows_read)), key=lambda row: (text.positions(rows_read[row]), len(target_ids[row])))
    for start in range(0, len(order), batch):
        rows = order[start : start + batch]
        arrays = (*text.padded([rows_read[row] for row in rows]), *pad([target_ids[row] for row in rows]))
        ids, mask, gold, gold_mask = (torch.from_numpy(array).to(device) for array in arrays)
        with torch.inference_mode():
            forced = network(ids, mask, gold, gold_mask)
            real = gold[:, 1:][gold_mask[:, 1:]]
            flat = torch.log_softmax(forced.logits.float(), -1).gather(1, real[:, None])[:, 0].cpu().numpy()
        begin = 0
        for place, row in enumerate(rows):
            steps, width = len(target_ids[row]) - 1, int(arrays[1][place].sum())
            weights = None if forced.weights is None else forced.weights[place, :steps, :width].float().cpu().numpy()
            found[row] = Forced(flat[begin : begin + steps].astype(np.float64), weights)
            begin += steps
    return found


def source_side(text: TextPair, line: str, words: Sequence[Span] | None = None) -> Side:
    """The source of an explanation: its symbols, and the words they are shown on."""
    from unrolled.explain.alignment import Side

    encoded = text.source.encode(line)
    aside = 0
    if words is None:
        words = text.source.words(line)
        aside = len(text.source.beside(line)) if isinstance(text.source, Featured) else 0
    return Side(line, encoded.tokens, encoded.spans, words, aside)


def target_side(text: TextPair, line: str, words: Sequence[Span] | None = None) -> Side:
    """As ``source_side``, for a given target text."""
    from unrolled.explain.alignment import Side

    encoded = text.target.encode(line)
    return Side(line, encoded.tokens, encoded.spans, words if words is not None else text.target.words(line))


def written_side(target: Tokenizer, ids: Sequence[int], tokens: Sequence[str] | None = None) -> Side:
    """What a model wrote: ``ids`` under the names ``tokens``, their own where none are given.

    An unknown symbol is a word by itself, whether it is written ``<unk>`` or as what was put in its place, and so is
    one that its source has lent.
    """
    from unrolled.explain.alignment import Side, spans_by_prefix

    names = target.tokens(ids) if tokens is None else tokens
    spans = spans_by_prefix(lambda places: target.join([names[place] for place in places]), range(len(names)))
    written = target.join(names)

    def whole(one: int) -> bool:
        return one == UNKNOWN or one >= target.vocabulary_size

    unknown = [_inked(written, span) for one, span in zip(ids, spans, strict=True) if whole(one)]
    return Side(written, names, spans, _words_beside(target, written, [one for one in unknown if one[0] < one[1]]))


def _inked(text: str, span: Span) -> Span:
    """A span without the white space at its ends."""
    start, end = span
    return end - len(text[start:end].lstrip()), start + len(text[start:end].rstrip())


def _words_beside(target: Tokenizer, written: str, whole: Sequence[Span]) -> list[Span]:
    """The spans ``whole``, and those of the words of what is left, cut as if letters stood in between."""
    masked = written
    for first, last in whole:
        masked = masked[:first] + "x" * (last - first) + masked[last:]
    found = list(whole)
    for start, end in target.words(masked):
        for first, last in whole:
            if first < end and last > start:
                if start < first:
                    found.append((start, first))
                start = last
        if start < end:
            found.append((start, end))
    return sorted(found)


def explain_translation(text: TextPair, line: str, translation: Written) -> Explanation:
    """Where the model looked while it wrote ``translation`` of ``line``."""
    from unrolled.explain.alignment import explain_tokens

    hypothesis = translation.hypothesis
    if hypothesis.weights is None:
        raise UsageError(NO_ATTENTION)
    target = written_side(text.target, hypothesis.ids, translation.tokens)
    rows = len(hypothesis.weights)
    return explain_tokens(
        source_side(text, line), target, hypothesis.weights, log_probs=hypothesis.token_log_probs[:rows]
    )


NO_ATTENTION = (
    "this model has no attention to show: its decoder sees one fixed vector. Train one with --preset bahdanau or luong."
)


def align(
    network: Any,
    text: TextPair,
    sources: Sequence[str],
    targets: Sequence[str],
    *,
    source_words: Sequence[Sequence[Span]] | None = None,
    target_words: Sequence[Sequence[Span]] | None = None,
    read_at: int = 0,
    device: Any = "cpu",
) -> list[Explanation]:
    """Attention over given pairs, on the words given by their spans or on the tokenizers' own.

    ``read_at=1`` reads for each word the attention of the step after the one that predicted it.
    """
    from unrolled.explain.alignment import explain_tokens

    found = []
    for row, forced in enumerate(force(network, text, sources, targets, device=device)):
        if forced.weights is None:
            raise UsageError(NO_ATTENTION)
        source = source_side(text, sources[row], source_words[row] if source_words is not None else None)
        target = target_side(text, targets[row], target_words[row] if target_words is not None else None)
        found.append(
            explain_tokens(source, target, forced.weights, log_probs=forced.log_probs, read_at=1 if read_at else 0)
        )
    return found


def trust(
    network: Any,
    text: TextPair,
    explanations: Sequence[Explanation],
    *,
    written: Sequence[Written] | None = None,
    device: Any = "cpu",
) -> dict[str, Measure]:
    """Honest numbers about the attention of some pairs: source words are erased one by one, and the loss compared.

    ``written``: the outputs that are explained; None: the targets were given.
    """
    from unrolled.explain.alignment import shares
    from unrolled.explain.erasure import Case, erase, faithfulness

    cases = []
    for place, one in enumerate(explanations):
        source = text.read([one.source_text])[0]
        if written is None:
            ids = text.read_targets([one.source_text], [one.target_text])[0].ids
            target = target_side(text, one.target_text)
        else:
            ids = list(written[place].hypothesis.ids)
            target = written_side(text.target, ids, written[place].tokens)
        cases.append(
            Case(
                [*source.ids, END],
                [BEGIN, *ids, END],
                shares(source.spans, text.source.words(one.source_text)),
                shares(target.token_spans, target.word_spans),
                text.unknown_ids(source.ids),
            )
        )
    return faithfulness([one.weights for one in explanations], erase(network, cases, device=str(device)))


def check_line(line: str, name: str = "text") -> None:
    """Refuse what holds no word to look at."""
    if not line.strip():
        raise DataError(f"explain: the {name} is empty. Give a sentence.")
