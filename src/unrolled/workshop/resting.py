"""On which earlier words each word of a text rests, as a language model sees it."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import numpy as np

from unrolled.tasks.generation import lead_in
from unrolled.tasks.language_scores import log_probs

if TYPE_CHECKING:
    from unrolled.explain.explanation import Explanation
    from unrolled.models import LanguageModel
    from unrolled.text.running import RunningText


def explain_text(network: LanguageModel, text: RunningText, line: str, *, ends: bool, device: Any) -> Explanation:
    """How much of each word's probability goes when an earlier word is left out: 1 - p(word | without it) / p(word).

    Erasure by leaving out (Li et al. 2016, arXiv:1612.08220): what remains is text of the kind that the model knows. A
    word that becomes likelier has 0. Words are what white space divides where the symbols are characters, else the
    tokenizer's own.
    """
    from unrolled.explain.alignment import shares
    from unrolled.explain.explanation import Explanation

    line = " ".join(line.split("\n"))
    spans = text.tokenizer.encode(line).spans
    words = text.tokenizer.words(line)
    if text.tokenizer.kind == "character":
        words = [found.span() for found in re.finditer(r"\S+", line)]
    share = shares(spans, words)
    owner = share.argmax(axis=1)
    lead, ids = lead_in(text, "", ends=ends), np.array(text.encode_ids([line])[0], dtype=np.int64)
    left = [[*lead, *ids[owner != word].tolist()] for word in range(len(words))]
    whole, *without = log_probs(network, [[*lead, *ids.tolist()], *left], device=device, lead=len(lead))
    lost = np.zeros((len(words), len(words)))
    for word, said in enumerate(without):
        found = np.zeros(len(ids))
        found[owner != word] = said - whole[owner != word]
        lost[:, word] = 1 - np.exp(np.minimum(found @ share, 0.0))
    names = [line[start:end] for start, end in words]
    return Explanation(
        source=names,
        target=names,
        weights=np.tril(lost, -1),
        method="erasure",
        scale="probability lost without it",
        source_text=line,
        target_text=line,
        log_probs=(whole @ share).tolist(),
    )
