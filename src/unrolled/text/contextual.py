"""Words spelled for a saved two-direction language model, so that any network can read them as that model does."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import tokenizers
from tokenizers import models, normalizers, pre_tokenizers

from unrolled.base.errors import DataError, SettingsError
from unrolled.base.protocol import SPECIALS, UNKNOWN
from unrolled.text.offsets import SPACE, valid, whole_spans
from unrolled.text.spelled import SpelledText, Words, spans_of_words
from unrolled.text.tokenizer import TOKENIZERS, Encoded, Tokenizer


class Reads(NamedTuple):
    """What is known of the saved model that reads the words."""

    words: Words  # where words begin and end
    longest: int  # characters of a word
    network: dict[str, Any]  # the section ``model`` of its settings


@TOKENIZERS.register("contextual")
class Contextual(Tokenizer):
    """Text for a saved model of the task ``contextual_vectors`` to read: its frozen vectors, mixed as suits the task
    (γ Σ_k s_k h_k; Peters et al. 2018, arXiv:1802.05365, eq. 1), stand in the place of an embedding.

    ``model`` is that model's folder, needed to train only: what is read goes into the model that is trained. Words,
    characters and vectors are those of ``model``. A symbol is a character, one that begins a word another than the
    same inside, and a network has one position a word. Text can be read so, not written.
    """

    kind = "contextual"

    def __init__(self, *, model: str) -> None:
        super().__init__({"model": model})
        self.reads: Reads | None = None

    def _outline(self) -> tokenizers.Tokenizer:
        outline = tokenizers.Tokenizer(models.WordLevel({}, unk_token=SPECIALS[UNKNOWN]))
        outline.normalizer = normalizers.NFC()
        outline.pre_tokenizer = pre_tokenizers.Split(tokenizers.Regex(r"(?m:.)"), "isolated")
        return outline

    def _learn(self, counts: list[tuple[str, int]]) -> Any:  # noqa: ARG002
        text = self._saved()
        inside = text.characters.vocabulary[len(SPECIALS) :]
        begin = [SPACE + SPECIALS[UNKNOWN], *(SPACE + name for name in inside)]
        names = [*SPECIALS, *inside, *begin]
        self.reads = Reads(text.words, text.longest, {})
        return models.WordLevel({name: place for place, name in enumerate(names)}, unk_token=SPECIALS[UNKNOWN])

    def train(self, lines: Iterable[str]) -> None:  # noqa: ARG002
        """Take the characters of the saved model, whatever ``lines`` are. SettingsError where the folder has none."""
        trained = self._outline()
        trained.model = self._learn([])
        self._adopt(trained)

    def _saved(self) -> SpelledText:
        folder = Path(self.settings["model"])
        if not (folder / "text" / "spelling.json").is_file():
            raise SettingsError(
                f"[model] {folder} holds no model of contextual vectors. Train one first: unrolled train text.txt "
                "--preset elmo-small."
            )
        return SpelledText.load(folder / "text")

    def read_by(self, network: Mapping[str, Any]) -> None:
        """Note how the saved model is made: the section ``model`` of its settings."""
        self.reads = self._reads._replace(network=dict(network))

    @property
    def network(self) -> dict[str, Any]:
        """How the saved model is made."""
        return self._reads.network

    # --- ids ------------------------------------------------------------------------------------------------------

    @property
    def characters(self) -> int:
        """How many characters the saved model knows, special ones too: ids from here on begin a word."""
        return (self.vocabulary_size + len(SPECIALS) - 1) // 2

    def begins(self, symbol: int) -> int:
        """The symbol that begins a word with the character ``symbol``."""
        return symbol + self.characters - len(SPECIALS) + 1 if symbol >= len(SPECIALS) else self.characters

    def unknown_ids(self, ids: Iterable[int]) -> list[int]:
        first = self.characters
        return [first if one >= first else UNKNOWN for one in ids]

    def encode_batch(self, texts: Sequence[str]) -> list[Encoded]:
        return [self._encoded(valid(text)) for text in texts]

    def _encoded(self, text: str) -> Encoded:
        ids: list[int] = []
        spans: list[tuple[int, int]] = []
        for start, stop in self.words(text):
            word = text[start:stop]
            row = self._library.encode(word, add_special_tokens=False)
            found = whole_spans(word, row.offsets)[: self._reads.longest]
            ids += self._spell(row.ids)
            spans += [(start + first, start + last) for first, last in found]
        return Encoded(ids, self.tokens(ids), spans)

    def encode_ids(self, texts: Sequence[str]) -> list[list[int]]:
        cache = self._unit_ids
        lines = [[text[start:stop] for start, stop in self.words(valid(text))] for text in texts]
        new = list({word for line in lines for word in line} - cache.keys())
        rows = self._library.encode_batch_fast(new, add_special_tokens=False)
        cache.update((word, self._spell(row.ids)) for word, row in zip(new, rows, strict=True))
        return [[one for word in line for one in cache[word]] for line in lines]

    def _spell(self, ids: Sequence[int]) -> list[int]:
        ids = ids[: self._reads.longest]
        return [self.begins(ids[0]), *ids[1:]] if ids else [self.characters]

    @property
    def _reads(self) -> Reads:
        self._library  # noqa: B018  (says that nothing is learnt yet)
        return self.reads if self.reads is not None else Reads("read", 1, {})

    # --- text -----------------------------------------------------------------------------------------------------

    def words(self, text: str) -> list[tuple[int, int]]:
        return spans_of_words(text, self._reads.words)

    def normalize(self, text: str) -> str:
        text = valid(text)
        return super().normalize(" ".join(text[start:stop] for start, stop in self.words(text)))

    def _join(self, tokens: Sequence[str]) -> str:
        spaced = (f" {token[1:]}" if token[0] == SPACE and len(token) > 1 else token for token in tokens)
        return "".join(spaced).removeprefix(" ")

    def about(self, others: int = 0) -> str:
        """Where its words, characters and vectors come from."""
        beside = f" and {others:,} others" if others else ""
        return f"words by {self.characters:,} characters{beside}, contextual vectors of {self.settings['model']}"

    # --- files ----------------------------------------------------------------------------------------------------

    def _own(self) -> str:
        own = json.loads(super()._own())
        return json.dumps(own | {"reads": self._reads._asdict()}, indent=1) + "\n"

    def _remember(self, own: Mapping[str, Any]) -> None:
        try:
            reads = own["reads"]
            self.reads = Reads(reads["words"], int(reads["longest"]), dict(reads["network"]))
        except (KeyError, TypeError, ValueError):
            raise DataError("the settings of a contextual tokenizer lack 'reads'. Copy the model again.") from None
