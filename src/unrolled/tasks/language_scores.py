"""How probable text is: the log-probability of every symbol, and perplexities that say what they count."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from unrolled.tasks.scores import Score

if TYPE_CHECKING:
    from unrolled.models import LanguageModel

WHOLE = 4096
"""Symbols of a document that are read in one go. A longer one is scored in pieces of so many, side by side."""

WARM = 512
"""Symbols that a piece of a long document reads before it, unscored, to have the state that reading on would give."""

STEPS = 256
"""Symbols of a row that a network reads in one call: more of them only cost memory."""

HELD = 1 << 25
"""Numbers over the vocabulary that are held at a time."""


class Row(NamedTuple):
    """A piece of a document to be scored; ``lead``: how many symbols of it are read and not scored."""

    symbols: np.ndarray
    lead: int


def log_probs(
    network: LanguageModel, documents: Sequence[Sequence[int]], *, device: Any = "cpu", batch: int = 32, lead: int = 1
) -> list[np.ndarray]:
    """Natural-log probability of each symbol of each document but the first ``lead``, float64.

    A document begins with BEGIN. What a document gets does not depend on the others.
    """
    rows = [(number, row) for number, document in enumerate(documents) for row in _cut(np.asarray(document), lead)]
    found: list[list[np.ndarray]] = [[] for _ in documents]
    parts: list[np.ndarray] = [np.empty(0)] * len(rows)
    order = sorted(range(len(rows)), key=lambda place: -len(rows[place][1].symbols))
    for start in range(0, len(order), batch):
        places = order[start : start + batch]
        for place, said in zip(places, _read(network, [rows[place][1] for place in places], device), strict=True):
            parts[place] = said
    for (number, _), part in zip(rows, parts, strict=True):
        found[number].append(part)
    return [np.concatenate([np.empty(0), *pieces]) for pieces in found]


def _cut(document: np.ndarray, lead: int) -> list[Row]:
    rows = [Row(document[:WHOLE], lead)] if len(document) > lead else []
    for start in range(WHOLE, len(document), WHOLE):
        first = max(0, start - WARM)
        rows.append(Row(document[first : start + WHOLE], start - first))
    return rows


def _read(network: LanguageModel, rows: Sequence[Row], device: Any) -> list[np.ndarray]:
    """Log-probabilities of the scored symbols of some rows, longest first."""
    import torch

    from unrolled.text.padding import pad

    ids, mask = (torch.from_numpy(array).to(device) for array in pad([row.symbols.tolist() for row in rows]))
    given, targets, real = ids[:, :-1], ids[:, 1:], mask[:, 1:]
    said = torch.zeros(targets.shape, dtype=torch.float64)
    steps = max(1, min(STEPS, HELD // (len(rows) * network.vocabulary_size)))
    with torch.inference_mode():
        state = network.initial(len(rows))
        for start in range(0, targets.shape[1], steps):
            here = slice(start, start + steps)
            live = int(real[:, start].sum())  # rows go from long to short
            piece = (given[:live, here], real[:live, here], targets[:live, here])
            found, state = network.log_probs(*piece, tuple(tensor[:live] for tensor in state))
            said[:live, start : start + found.shape[1]] = found.double().cpu()
    array = said.numpy()
    return [array[place, row.lead - 1 : len(row.symbols) - 1] for place, row in enumerate(rows)]


class Amount(NamedTuple):
    """How much text was scored. Ends of lines and of documents count as one each, as a symbol, character and word."""

    symbols: int
    characters: int
    words: int
    unknown: int = 0  # symbols

    def plus(self, other: Amount) -> Amount:
        return Amount(*(left + right for left, right in zip(self, other, strict=True)))


def amount_of(text: str, ids: Sequence[int], unknown: int, *, ends: int) -> Amount:
    """Of a text as its symbols spell it, and ``ends`` further ends."""
    lines = text.count("\n") + ends
    return Amount(len(ids), len(text) + ends, len(text.split()) + lines, sum(one == unknown for one in ids))


class Tally:
    """Log-probabilities and amounts of text, added up line by line."""

    def __init__(self) -> None:
        self.log_prob, self.amount, self.count = 0.0, Amount(0, 0, 0), 0

    def add(self, log_prob: float, amount: Amount) -> None:
        self.log_prob, self.amount, self.count = self.log_prob + log_prob, self.amount.plus(amount), self.count + 1

    def scores(self, kind: str) -> list[Score]:
        """See ``perplexities``."""
        return perplexities(self.log_prob, self.amount, kind)


def perplexities(log_prob: float, amount: Amount, kind: str) -> list[Score]:
    """Loss, perplexity a symbol and a word, and bits a character, of text with that natural-log probability."""
    unknown = f", {amount.unknown / max(amount.symbols, 1):.2%} unknown" if amount.unknown else ""
    counted = f"{amount.symbols:,} symbols ({kind}{unknown})"
    ends = "ends of lines and documents count as one each"
    long = f"state carried on; documents of more than {WHOLE:,} symbols in pieces, {WARM} symbols read before each"
    words = f"{amount.words:,} words between white space; {ends}"
    characters = f"{amount.characters:,} characters; {ends}"
    return [
        Score("loss", -log_prob / max(amount.symbols, 1), f"nats a symbol; {counted}; {long}", False),
        Score("perplexity", _exp(-log_prob / max(amount.symbols, 1)), f"exp(loss); {counted}", False),
        Score("word_perplexity", _exp(-log_prob / max(amount.words, 1)), words, False),
        Score("bits_per_character", -log_prob / max(amount.characters, 1) / math.log(2), characters, False),
    ]


def _exp(value: float) -> float:
    return math.exp(value) if value < 700 else math.inf
