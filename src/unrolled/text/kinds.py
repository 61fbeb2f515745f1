"""The kinds of tokenizers: each says how a line is cut and how its vocabulary is learnt from counts."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Annotated, Any

from annotated_types import Ge
from tokenizers import Encoding, Regex, decoders, models, normalizers, pre_tokenizers, trainers
from tokenizers import Tokenizer as Library

from unrolled.base.protocol import SPECIALS
from unrolled.base.registry import Part
from unrolled.text.given import VECTORS
from unrolled.text.offsets import SPACE, valid, whole_spans
from unrolled.text.spacing import spaced
from unrolled.text.tokenizer import TOKENIZERS, Tokenizer
from unrolled.text.unigram import learn_pieces

Size = Annotated[int, Ge(len(SPECIALS) + 1)]
Count = Annotated[int, Ge(1)]
Vectors = Annotated[Part | None, VECTORS]

# Scripts written without spaces, where a character is the only word that can be seen.
UNSPACED = r"\p{Han}\p{Hiragana}\p{Katakana}\p{Thai}\p{Lao}\p{Khmer}\p{Myanmar}\x{30FC}"
PUNCTUATION = rf"{SPACE}?(?!{SPACE})\X"
WORDS = rf"{SPACE}?[{UNSPACED}]\p{{M}}*|{SPACE}?[\p{{L}}\p{{M}}\p{{N}}_&&[^{UNSPACED}]]+|{PUNCTUATION}"
"""A run of letters and digits; each other character alone, an emoji of several code points whole."""
RUNS = rf"{SPACE}?[\p{{L}}\p{{M}}\p{{N}}_]+|{PUNCTUATION}"
"""As WORDS, but runs of unspaced scripts stay together: subwords find the words in them. Letters never share a symbol
with punctuation, so no text can spell a special symbol."""

TRAINING_LENGTH = 1000
"""Characters of one run that subword training looks at."""


def _normalizer(lowercase: bool, clean: list[Any]) -> Any:
    return normalizers.Sequence([normalizers.NFC(), *([normalizers.Lowercase()] if lowercase else []), *clean])


WHITE = r"[\s\x1c-\x1f]+"
"""What ``str.split`` splits at."""
FOLD = [
    normalizers.Replace(SPACE, " "),
    normalizers.Replace(Regex(WHITE), " "),
    normalizers.Strip(),
]


def _metaspace(pattern: str) -> Any:
    return pre_tokenizers.Sequence(
        [pre_tokenizers.Metaspace(SPACE, "always"), pre_tokenizers.Split(Regex(pattern), "isolated")]
    )


LETTER = rf"[\p{{L}}\p{{M}}\p{{N}}_&&[^{UNSPACED}]]"
APOSTROPHE = "['\u2019]"
NEGATION = rf"[nN]{APOSTROPHE}[tT](?!{LETTER})"
CLITIC = rf"{APOSTROPHE}(?i:s|re|ll|ve|d|m)(?!{LETTER}|{APOSTROPHE}(?!(?i:ve)(?!{LETTER})){LETTER})"
"""English: sister | 's, we | 'd | 've, and by NEGATION do | n't."""
ELIDED = (
    rf"(?<!{LETTER})(?i:[cçdjlmnstv]|(?:jus|lors|puis|quoi|quel)?qu|\p{{Latin}}{{0,3}}ll|un|anch|com|cos|dov|quand|quest"
    rf"|sant|tutt)(?!{CLITIC}){APOSTROPHE}(?={LETTER})"
)
"""French, Italian, Catalan: l' | accord, qu' | elle, dell' | arte."""
STRETCH = rf"(?:(?!{NEGATION}){LETTER})+"
READ = (
    rf"[{UNSPACED}]\p{{M}}*|{ELIDED}|{NEGATION}|(?<={LETTER}){CLITIC}"
    rf"|{STRETCH}(?:(?!{CLITIC}){APOSTROPHE}{STRETCH})*|{PUNCTUATION}"
)
"""A word as a reader sees it: any other apostrophe between letters stays inside (aujourd'hui, O'Brien, İstanbul'da)."""


def _between_spaces(pattern: str) -> Any:
    return pre_tokenizers.Sequence(
        [pre_tokenizers.Split(Regex(WHITE), "removed"), pre_tokenizers.Split(Regex(pattern), "isolated")]
    )


_READ_WORDS, _PIECES = _between_spaces(READ), _between_spaces(WORDS)
_USER_CHARACTERS = pre_tokenizers.Split(Regex(r"\X"), "isolated")


def _cuts(cutter: Any, text: str) -> list[tuple[int, int]]:
    return [span for _, span in cutter.pre_tokenize_str(valid(text))]


def read_words(text: str) -> list[tuple[int, int]]:
    """Spans of the words and marks that a reader sees in ``text``, in order: ``do|n't``, ``Ana|'s``, ``(|1|)``."""
    return _cuts(_READ_WORDS, text)


def _listed(counts: list[tuple[str, int]], size: int, min_count: int) -> dict[str, int]:
    """The vocabulary of a kind that only lists: special symbols, then the most frequent others."""
    known = [word for word, count in counts if count >= min_count and word not in SPECIALS]
    return {word: i for i, word in enumerate([*SPECIALS, *known[: size - len(SPECIALS)]])}


def _alphabet(counts: list[tuple[str, int]], size: int, min_count: int) -> list[str]:
    """The characters of all pieces that are seen ``min_count`` times, most frequent first, the space mark always."""
    seen: Counter[str] = Counter()
    for piece, count in counts:
        for character in piece:
            seen[character] += count
    order = sorted(seen.items(), key=lambda item: (item[0] != SPACE, -item[1], item[0]))
    return [character for character, count in order if count >= min_count or character == SPACE][: size - len(SPECIALS)]


class _Spaced(Tokenizer):
    """What the kinds share whose symbols carry the space before them."""

    pattern = RUNS

    def _outline(self) -> Library:
        outline = Library(models.WordLevel({}, unk_token=SPECIALS[1]))
        outline.normalizer = _normalizer(self.settings["lowercase"], FOLD)
        outline.pre_tokenizer = _metaspace(self.pattern)
        outline.decoder = decoders.Metaspace(SPACE, "always")
        return outline

    def words(self, text: str) -> list[tuple[int, int]]:
        return _cuts(_READ_WORDS, text)

    def pieces(self, text: str) -> list[tuple[int, int]]:
        return _cuts(_PIECES, text)

    def surface(self, symbol: str) -> str:
        return symbol.removeprefix(SPACE)

    def _join(self, tokens: Sequence[str]) -> str:
        return "".join(tokens).replace(SPACE, " ").removeprefix(" ")


@TOKENIZERS.register("word")
class Word(_Spaced):
    """Words and punctuation marks; a word that starts after a space is another symbol than one that does not.

    ``He said, 'no'.`` is ``▁He ▁said , ▁' no ' .`` and comes back exactly. Characters of scripts without spaces are
    words. Words seen fewer than ``min_count`` times, or past the ``size`` most frequent, are ``<unk>``, which is
    written as a word of its own. ``vectors``: what words start from, out of a file.
    """

    kind = "word"
    pattern = WORDS

    def __init__(
        self, *, size: Size = 30_000, min_count: Count = 2, lowercase: bool = False, vectors: Vectors = None
    ) -> None:
        super().__init__({"size": size, "min_count": min_count, "lowercase": lowercase, "vectors": vectors})

    def _learn(self, counts: list[tuple[str, int]]) -> Any:
        vocabulary = _listed(counts, self.settings["size"], self.settings["min_count"])
        return models.WordLevel(vocabulary, unk_token=SPECIALS[1])

    def spelt(self, word: str) -> list[str]:
        return [SPACE + word, word] if self._cut(word) == [SPACE + word] else []

    def _join(self, tokens: Sequence[str]) -> str:
        pairs = pairwise(["", *tokens])
        return super()._join([self.standing_in(one, last) if one == SPECIALS[1] else one for last, one in pairs])

    def standing_in(self, word: str, before: str = "", behind: str = "") -> str:
        return SPACE + word if spaced(word, before, behind) else word


@TOKENIZERS.register("plain_word")
class PlainWord(Tokenizer):
    """Words and punctuation marks as ``word`` cuts them, the same symbol after a space and without one.

    ``He said, 'no'.`` is ``He said , ' no ' .``, and comes back with these spaces: for text that is only read.
    ``vectors``: what words start from, out of a file.
    """

    kind = "plain_word"

    def __init__(
        self, *, size: Size = 30_000, min_count: Count = 2, lowercase: bool = False, vectors: Vectors = None
    ) -> None:
        super().__init__({"size": size, "min_count": min_count, "lowercase": lowercase, "vectors": vectors})

    def _outline(self) -> Library:
        outline = Library(models.WordLevel({}, unk_token=SPECIALS[1]))
        outline.normalizer = _normalizer(self.settings["lowercase"], FOLD)
        outline.pre_tokenizer = _PIECES
        return outline

    def _learn(self, counts: list[tuple[str, int]]) -> Any:
        vocabulary = _listed(counts, self.settings["size"], self.settings["min_count"])
        return models.WordLevel(vocabulary, unk_token=SPECIALS[1])

    def normalize(self, text: str) -> str:
        return " ".join(self._cut(text))

    def spelt(self, word: str) -> list[str]:
        return [word] if self._cut(word) == [word] else []

    def words(self, text: str) -> list[tuple[int, int]]:
        return _cuts(_PIECES, text)

    def _join(self, tokens: Sequence[str]) -> str:
        return " ".join(tokens)


@TOKENIZERS.register("whitespace")
class Whitespace(Tokenizer):
    """Text that is tokenised already: cut at white space, joined by single spaces (phonemes, commands, Moses output).

    A special symbol that stands in the text as a word of its own is read as ``<unk>``. ``vectors``: what words start
    from, out of a file.
    """

    kind = "whitespace"

    def __init__(
        self, *, size: Size = 30_000, min_count: Count = 1, lowercase: bool = False, vectors: Vectors = None
    ) -> None:
        super().__init__({"size": size, "min_count": min_count, "lowercase": lowercase, "vectors": vectors})

    def _outline(self) -> Library:
        outline = Library(models.WordLevel({}, unk_token=SPECIALS[1]))
        special = normalizers.Replace(Regex(r"(?<!\S)<(?:pad|s|/s)>(?!\S)"), SPECIALS[1])
        outline.normalizer = _normalizer(self.settings["lowercase"], [*FOLD[1:], special])
        outline.pre_tokenizer = pre_tokenizers.CharDelimiterSplit(" ")
        return outline

    def _learn(self, counts: list[tuple[str, int]]) -> Any:
        vocabulary = _listed(counts, self.settings["size"], self.settings["min_count"])
        return models.WordLevel(vocabulary, unk_token=SPECIALS[1])

    def spelt(self, word: str) -> list[str]:
        return [word] if self._cut(word) == [word] else []

    def words(self, text: str) -> list[tuple[int, int]]:
        return _cuts(pre_tokenizers.Split(Regex(WHITE), "removed"), text)

    def _join(self, tokens: Sequence[str]) -> str:
        return " ".join(tokens)


@TOKENIZERS.register("character")
class Character(Tokenizer):
    """Single characters (code points after NFC), white space among them: every known text comes back exactly."""

    kind = "character"

    def __init__(self, *, size: Size = 10_000, min_count: Count = 1, lowercase: bool = False) -> None:
        super().__init__({"size": size, "min_count": min_count, "lowercase": lowercase})

    def _outline(self) -> Library:
        outline = Library(models.WordLevel({}, unk_token=SPECIALS[1]))
        outline.normalizer = _normalizer(self.settings["lowercase"], [])
        outline.pre_tokenizer = pre_tokenizers.Split(Regex(r"(?m:.)"), "isolated")
        outline.decoder = decoders.Fuse()
        return outline

    def _units(self, line: str) -> list[str]:
        return list(self.normalize(line))

    def _cut(self, unit: str) -> list[str]:
        return [unit]

    def _spans(self, text: str, row: Encoding) -> list[tuple[int, int]]:
        return whole_spans(text, row.offsets)

    def _learn(self, counts: list[tuple[str, int]]) -> Any:
        vocabulary = _listed(counts, self.settings["size"], self.settings["min_count"])
        return models.WordLevel(vocabulary, unk_token=SPECIALS[1])

    def words(self, text: str) -> list[tuple[int, int]]:
        """The characters a reader sees (grapheme clusters), white space included."""
        return _cuts(_USER_CHARACTERS, text)


@TOKENIZERS.register("bpe")
class BPE(_Spaced):
    """Byte-pair encoding on characters (Sennrich et al. 2016, arXiv:1508.07909): the most frequent pair is merged,
    until the vocabulary has ``size`` symbols or no pair is seen twice. Characters seen fewer than ``min_count`` times
    are ``<unk>``."""

    kind = "bpe"

    def __init__(self, *, size: Size = 8_000, min_count: Count = 1, lowercase: bool = False) -> None:
        super().__init__({"size": size, "min_count": min_count, "lowercase": lowercase})

    def _learn(self, counts: list[tuple[str, int]]) -> Any:
        size = self.settings["size"]
        alphabet = _alphabet(counts, size, self.settings["min_count"])
        learner = Library(models.BPE())
        learner.pre_tokenizer = pre_tokenizers.CharDelimiterSplit("\n")
        trainer = trainers.BpeTrainer(
            vocab_size=size,
            min_frequency=2,
            special_tokens=list(SPECIALS),
            initial_alphabet=alphabet,
            limit_alphabet=len(alphabet),
            show_progress=False,
        )
        learner.train_from_iterator(_repeated(counts), trainer)
        learnt = json.loads(learner.to_str())["model"]
        merges = [tuple(merge) for merge in learnt["merges"]]
        return models.BPE(learnt["vocab"], merges, unk_token=SPECIALS[1])


def _repeated(counts: list[tuple[str, int]], most: int = 10_000) -> Iterator[str]:
    """The counted pieces as text again, in blocks: the library's trainer takes no counts."""
    for piece, count in counts:
        piece = piece[:TRAINING_LENGTH]
        while count > 0:
            yield "\n".join([piece] * min(count, most))
            count -= most


@TOKENIZERS.register("unigram")
class Unigram(_Spaced):
    """The unigram language model (Kudo 2018, arXiv:1804.10959): pieces that make the training text likeliest, pruned
    to ``size``. Characters seen fewer than ``min_count`` times are ``<unk>``; neighbouring ones share one."""

    kind = "unigram"

    def __init__(self, *, size: Size = 8_000, min_count: Count = 1, lowercase: bool = False) -> None:
        super().__init__({"size": size, "min_count": min_count, "lowercase": lowercase})

    def _learn(self, counts: list[tuple[str, int]]) -> Any:
        alphabet = _alphabet(counts, self.settings["size"], self.settings["min_count"])
        pieces = learn_pieces(counts, alphabet, self.settings["size"] - len(SPECIALS))
        return models.Unigram([*((name, 0.0) for name in SPECIALS), *pieces], unk_id=1, byte_fallback=False)
