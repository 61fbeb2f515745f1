"""From a tagger's network and sentences to tags and how sure they are."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from unrolled.base.protocol import END
from unrolled.data.grouping import by_length

if TYPE_CHECKING:
    from unrolled.models import Tagger
    from unrolled.text.tagged import Spelt

TOGETHER = 8192
"""Padded words that go through a network at once."""


class Tagging(NamedTuple):
    """What a network says of a sentence."""

    tags: np.ndarray  # int64 [words]: the likeliest legal ones
    marginals: np.ndarray  # float32 [words, tags]: the probability of each tag of each word
    log_probability: float  # of the tags asked for, else of ``tags``, all together


def tag_rows(
    network: Tagger,
    rows: Sequence[Spelt],
    given: Sequence[Sequence[int]] | None = None,
    *,
    device: Any,
    most: int | None = None,
) -> list[Tagging]:
    """Sentences of one word at least → tags, in any order; ``given`` asks for the probability of other tags.

    Rows of like length go through together, at most ``most`` of them.
    """
    import torch

    from unrolled.tasks.base import moved
    from unrolled.tasks.tagged_batches import collate_tagged

    found: list[Any] = [None] * len(rows)
    for group in by_length([len(row.words) for row in rows], TOGETHER, most):
        ids = [np.array(rows[row].words) for row in group]
        letters = [np.array([one for word in rows[row].characters for one in (*word, END)]) for row in group]
        columns = [ids, letters] if given is None else [ids, letters, [np.array(given[row]) for row in group]]
        batch = moved(collate_tagged(columns), device)
        mask = batch.words.mask
        with torch.inference_mode():
            scores = network(batch.words.ids, mask, batch.characters, batch.which)
            tags = network.decode(scores, mask)
            asked = tags if given is None else batch.tags
            marginals = network.marginals(scores, mask).float().cpu().numpy()
            logs = network.log_probability(scores, asked, mask).cpu().tolist()
        answers = tags.cpu().numpy()
        for place, row in enumerate(group):
            count = len(rows[row].words)
            found[row] = Tagging(answers[place, :count], marginals[place, :count], logs[place])
    return found
