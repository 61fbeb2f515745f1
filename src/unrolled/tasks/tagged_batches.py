"""Batches of tagged sentences: a spelling stands once in a batch, however many of its words have it."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from unrolled.base.protocol import END, PAD

if TYPE_CHECKING:
    from torch import Tensor

    from unrolled.data.batching import Columns, Tokens


class Tagged(NamedTuple):
    """A batch of sentences. A spelling stands once, however many words of the batch have it."""

    words: Tokens
    characters: Tensor  # int64 [batch, different words, characters], PAD behind each; every row the same
    which: Tensor  # int64 [batch, words]: the spelling of each word
    tags: Tensor  # int64 [batch, words]; 0 in padding


def collate_tagged(columns: Columns) -> Tagged:
    """A batch of sentences; a row without tags (one column less) has 0 in their place."""
    import torch

    from unrolled.data.batching import Tokens

    words, spellings = columns[0], columns[1]
    shape = len(words), max(map(len, words))
    ids, which, tags = (np.full(shape, fill, dtype=np.int64) for fill in (PAD, 0, 0))
    mask = np.zeros(shape, dtype=bool)
    different: dict[bytes, int] = {}
    spelt: list[np.ndarray] = []
    for row, (one, characters) in enumerate(zip(words, spellings, strict=True)):
        count = len(one)
        ids[row, :count], mask[row, :count] = one, True
        if len(columns) > 2:
            tags[row, :count] = columns[2][row][:count]
        start = 0
        for word, end in enumerate(np.flatnonzero(characters == END)[:count].tolist()):
            spelling = characters[start:end]
            start = end + 1
            number = different.setdefault(spelling.tobytes(), len(different))
            if number == len(spelt):
                spelt.append(spelling)
            which[row, word] = number
    letters = np.full((len(spelt), max(map(len, spelt))), PAD, dtype=np.int64)
    for row, spelling in enumerate(spelt):
        letters[row, : len(spelling)] = spelling
    held = torch.from_numpy(letters).expand(len(words), -1, -1)
    return Tagged(
        Tokens(torch.from_numpy(ids), torch.from_numpy(mask)), held, torch.from_numpy(which), torch.from_numpy(tags)
    )
