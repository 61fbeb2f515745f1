"""The sentences of one search, checked once: sources, length limits, forced prefixes, numbers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from unrolled.base.errors import UsageError
from unrolled.base.protocol import BEGIN, END, PAD, SPECIALS
from unrolled.search.settings import SearchSettings

_ENDLESS = 2**31 - 1


@dataclass(frozen=True)
class Sentences:
    """What is searched for, one row a sentence."""

    ids: np.ndarray  # int64 [sentences, source], or numbers [sentences, …]
    mask: np.ndarray  # bool [sentences, source], True = real
    limits: np.ndarray  # int64 [sentences]: symbols at most, END not counted
    forced: np.ndarray  # int64 [sentences, longest prefix]: the symbols that must come first, -1 after them
    numbers: np.ndarray  # int64 [sentences]: each one's number in the whole input; sampling draws depend on it

    def __len__(self) -> int:
        return len(self.ids)


def gather(
    ids: np.ndarray,
    mask: np.ndarray,
    settings: SearchSettings,
    prefixes: Sequence[Sequence[int]] | None,
    numbers: Sequence[int] | None,
    vocabulary_size: int,
) -> Sentences:
    """Check what ``decode`` was given; UsageError names the sentence, counted from 1."""
    ids, mask = np.asarray(ids), np.asarray(mask, dtype=bool)
    symbols = ids.dtype.kind != "f"
    ids = ids.astype(np.int64, copy=False) if symbols else ids
    if mask.ndim != 2 or (ids.shape != mask.shape if symbols else len(ids) != len(mask)):
        raise UsageError(
            f"search: ids have shape {ids.shape} and mask {mask.shape}. Give both as [sentences, source length]."
        )
    counted = np.arange(len(ids)) if numbers is None else np.asarray(numbers, dtype=np.int64)
    prefixes = [()] * len(ids) if prefixes is None else prefixes
    for name, given in (("prefixes", prefixes), ("numbers", counted)):
        if len(given) != len(ids):
            raise UsageError(f"search: {len(given)} {name} for {len(ids)} sentences. Give one a sentence, or None.")
    if (counted < 0).any():
        raise UsageError(f"search: {counted.min()} is among the sentence numbers; they count from 0.")
    lengths = mask.sum(axis=1)
    for row, (length, prefix) in enumerate(zip(lengths, prefixes, strict=True), start=1):
        if not length:
            raise UsageError(f"search: sentence {row} has no real source position. Leave empty sentences out.")
        _check_prefix(row, prefix, settings.max_length, vocabulary_size)
    forced = np.full((len(ids), max(map(len, prefixes), default=0)), -1, dtype=np.int64)
    for line, prefix in zip(forced, prefixes, strict=True):
        line[: len(prefix)] = prefix
    return Sentences(ids, mask, _limits(settings, lengths, (forced >= 0).sum(axis=1)), forced, counted)


def _check_prefix(row: int, prefix: Sequence[int], longest: int | None, vocabulary_size: int) -> None:
    for symbol in prefix:
        if not 0 <= symbol < vocabulary_size:
            raise UsageError(
                f"search: the forced prefix of sentence {row} has the symbol {symbol}, "
                f"which is not among the {vocabulary_size} of the vocabulary."
            )
        if symbol in (PAD, BEGIN, END):
            raise UsageError(
                f"search: the forced prefix of sentence {row} has {SPECIALS[symbol]} in it. Give words only."
            )
    if longest is not None and len(prefix) > longest:
        raise UsageError(
            f"search: the forced prefix of sentence {row} has {len(prefix)} symbols, max_length is {longest}. "
            "Shorten the prefix or raise max_length."
        )


def _limits(settings: SearchSettings, lengths: np.ndarray, forced: np.ndarray) -> np.ndarray:
    """A limit made from the source gives way to ``min_length`` and to the prefix; a given one holds."""
    if settings.max_length is not None:
        return np.full(len(lengths), min(settings.max_length, _ENDLESS), dtype=np.int64)
    made = np.floor(settings.max_length_ratio * lengths + settings.max_length_constant)
    least = np.maximum(forced + 1, max(settings.min_length, 1))
    return np.minimum(np.maximum(made, least), _ENDLESS).astype(np.int64)
