"""Texts as batches of spelled words: each word its characters and its number, begin and end around them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from unrolled.base.protocol import BEGIN, END, PAD, SPELLED_BEGIN, SPELLED_END

Spelling = Sequence[int] | np.ndarray


class Spelled(NamedTuple):
    """A batch of texts, each [begin, its words, end]."""

    characters: Tensor  # int64 [batch, time, length], PAD behind each word's
    mask: Tensor  # bool [batch, time], True = real, a prefix of each row
    words: Tensor  # int64 [batch, time]: numbers to predict, BEGIN and END at the ends


def joined(words: Sequence[Sequence[int]]) -> list[int]:
    """Spellings as one row of a store, each without its BEGIN; END ends each."""
    return [character for word in words for character in word[1:]]


def parted(row: np.ndarray) -> list[np.ndarray]:
    """The spellings of a row that ``joined`` made, again each with its BEGIN."""
    ends = np.flatnonzero(row == END) + 1
    starts = np.concatenate([[0], ends[:-1]])
    return [np.concatenate([[BEGIN], row[start:stop]]) for start, stop in zip(starts, ends, strict=True)]


def collate_spelled(rows: Sequence[Sequence[Spelling]], words: Sequence[Sequence[int] | np.ndarray]) -> Spelled:
    """A batch of texts from the spellings of each and the numbers of its words, as many; begin and end are added."""
    texts = [[SPELLED_BEGIN, *row, SPELLED_END] for row in rows]
    time = max(map(len, texts))
    length = max(len(word) for text in texts for word in text)
    characters = np.full((len(texts), time, length), PAD, dtype=np.int64)
    numbers = np.full((len(texts), time), PAD, dtype=np.int64)
    for place, (text, row) in enumerate(zip(texts, words, strict=True)):
        for at, word in enumerate(text):
            characters[place, at, : len(word)] = word
        numbers[place, : len(text)] = [BEGIN, *row, END]
    mask = numbers != PAD
    return Spelled(*(torch.from_numpy(array) for array in (characters, mask, numbers)))
