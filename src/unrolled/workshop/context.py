"""On which other words the vector of each word of a text rests, as a two-direction language model reads it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from unrolled.base.protocol import BEGIN, END, UNKNOWN

if TYPE_CHECKING:
    from unrolled.explain.explanation import Explanation
    from unrolled.models.elmo import Elmo
    from unrolled.text.spelled import SpelledText

HIDDEN = [BEGIN, UNKNOWN, END]
"""How a word is spelled that cannot be read."""


def explain_vectors(network: Elmo, text: SpelledText, line: str, *, device: Any) -> Explanation:
    """How far each word's vector of the last layer turns when another word cannot be read: (1 - cosine) / 2.

    Erasure by an unknown symbol in the word's place (Li et al. 2016, arXiv:1612.08220). 0: it stays as it is.
    """
    import torch

    from unrolled.data.spelling import collate_spelled
    from unrolled.explain.explanation import Explanation
    from unrolled.tasks.base import moved

    words = text.cut(line)
    spelled = text.spell(words)
    rows = [spelled, *([*spelled[:place], HIDDEN, *spelled[place + 1 :]] for place in range(len(words)))]
    batch = moved(collate_spelled(rows, [[UNKNOWN] * len(words)] * len(rows)), device)
    with torch.inference_mode():
        read = network(batch.characters, batch.mask).layers()[-1][:, 1:-1].double()
        turned = (1 - torch.cosine_similarity(read[1:], read[:1], dim=2).cpu().numpy()) / 2  # [hidden word, word]
    weights = np.clip(turned.T, 0.0, 1.0)
    np.fill_diagonal(weights, 0.0)
    return Explanation(
        source=words,
        target=words,
        weights=weights,
        method="erasure",
        scale="how far the vector turns without it",
        source_text=line,
        target_text=line,
    )
