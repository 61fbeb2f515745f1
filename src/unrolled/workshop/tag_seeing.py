"""What a tag was read from: the words around it, or the characters of its word, each taken away in turn."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from unrolled.base.protocol import UNKNOWN
from unrolled.text.tagged import Spelt
from unrolled.workshop.tagging import tag_rows

if TYPE_CHECKING:
    from unrolled.explain.explanation import Explanation
    from unrolled.text.tagged import TaggedText

WORD = "(the word)"
"""What a word is apart from its spelling: the vector that it has in the list of words."""


def explain_tags(network: Any, text: TaggedText, words: Sequence[str], *, device: Any) -> Explanation:
    """Each tag by the words of the sentence: what of its probability goes without each, 1 - p(tag | without) / p(tag),
    0 where it grows (Zeiler & Fergus 2014; Li et al. 2016, arXiv:1612.08220). A word goes with its spelling."""
    spelt = text.spell(words)
    rows = [spelt, *(without_word(spelt, word) for word in range(len(words)))]
    found = tag_rows(network, rows, device=device)
    whole = found[0]
    held = np.arange(len(words)), whole.tags
    said = np.stack([one.marginals[held] for one in found])  # [1 + words erased, words tagged]
    return _shown(words, words, text.tags.decode(whole.tags.tolist()), said)


def explain_word(network: Any, text: TaggedText, words: Sequence[str], place: int, *, device: Any) -> Explanation:
    """The tag of one word by what it is as a whole and by each of its characters, as `explain_tags`.

    A character is read as an unknown one, the rest staying as it is; the word as a whole as an unknown one that is
    spelt the same.
    """
    spelt = text.spell(words)
    letters = spelt.characters[place]
    whole = Spelt([*spelt.words[:place], UNKNOWN, *spelt.words[place + 1 :]], spelt.characters)
    rows = [spelt, whole]
    for letter in range(len(letters)):
        other = [*letters[:letter], UNKNOWN, *letters[letter + 1 :]]
        rows.append(Spelt(spelt.words, [*spelt.characters[:place], other, *spelt.characters[place + 1 :]]))
    found = tag_rows(network, rows, device=device)
    tag = found[0].tags[place : place + 1]
    said = np.stack([one.marginals[place, tag] for one in found])
    names = [WORD, *text.characters.tokens(letters)]
    shown = text.tags.decode(found[0].tags.tolist())[place]
    return _shown(names, [words[place]], [shown], said, " ".join(words))


def without_word(spelt: Spelt, word: int) -> Spelt:
    """The sentence, one of its words read as unknown in every way."""
    words, characters = list(spelt.words), list(spelt.characters)
    words[word], characters[word] = UNKNOWN, [UNKNOWN]
    return Spelt(words, characters)


def _shown(
    source: Sequence[str], words: Sequence[str], tags: Sequence[str], said: np.ndarray, sentence: str = ""
) -> Explanation:
    """``said`` [1 + erased, tagged]: the probability of each tag, of the whole sentence first."""
    from unrolled.explain.explanation import Explanation

    lost = 1 - said[1:] / np.maximum(said[:1], 1e-30)
    shown = [f"{word}/{name}" for word, name in zip(words, tags, strict=True)]
    return Explanation(
        source=source,
        target=shown,
        weights=np.clip(lost.T, 0, 1),
        method="erasure",
        scale="probability lost without it",
        source_text=sentence or " ".join(source),
        target_text=" ".join(shown),
        log_probs=np.log(np.maximum(said[0], 1e-30)).tolist(),
    )
