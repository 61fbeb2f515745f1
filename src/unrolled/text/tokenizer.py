"""A tokenizer turns a line into symbols and back without loss, and knows where each symbol stood in the user's text."""

from __future__ import annotations

import hashlib
import json
import os
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar, NamedTuple

import tokenizers

from unrolled.base.errors import DataError, SettingsError, UnrolledError
from unrolled.base.protocol import BEGIN, END, PAD, SPECIALS, UNKNOWN
from unrolled.base.registry import Registry
from unrolled.text.counting import count_words
from unrolled.text.given import Held
from unrolled.text.offsets import spans_without_space, valid, whole_spans

SILENT = (PAD, BEGIN, END)
MOST_REMEMBERED = 200_000
"""Different words whose ids are kept for the next lines."""

TOKENIZERS: Registry[Tokenizer] = Registry("tokenizer")

# The library warns when a process forks after it used threads. Set, it does not warn; a child then stays sequential,
# because the threads of its parent are not there.
os.environ.setdefault("TOKENIZERS_PARALLELISM", "true")


def _stay_sequential() -> None:
    os.environ["TOKENIZERS_PARALLELISM"] = "false"


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_stay_sequential)


class Encoded(NamedTuple):
    """A line as symbols, without special ones. ``text[start:end]`` of the given line is what a symbol covers."""

    ids: list[int]
    tokens: list[str]
    spans: list[tuple[int, int]]


class Tokenizer(ABC):
    """One kind of tokenizer: trained once on text, then a fixed vocabulary. Ids 0 to 3 are the special symbols.

    A kind says how text is normalised and cut (``_outline``) and how its vocabulary is learnt (``_learn``). Text is
    normalised to NFC; every kind but ``character`` also folds white space to single spaces and reads a literal "▁"
    as a space: ``normalize`` shows what ``decode`` gives back.
    """

    kind: ClassVar[str]
    separator: ClassVar[str] = ""

    def __init__(self, settings: Mapping[str, Any]) -> None:
        self.settings = dict(settings)
        self._trained: tokenizers.Tokenizer | None = None
        self._names: list[str] = []
        self._unit_ids: dict[str, list[int]] = {}
        self._outline_only = self._outline()
        self.held: Held | None = None  # what the symbols have of a file of vectors

    @abstractmethod
    def _outline(self) -> tokenizers.Tokenizer:
        """The library's tokenizer with the kind's normalizer, pre-tokenizer and decoder, and an empty model."""

    @abstractmethod
    def _learn(self, counts: list[tuple[str, int]]) -> Any:
        """The library's model from pieces of text and their counts, most frequent first, ties by code point."""

    @abstractmethod
    def words(self, text: str) -> list[tuple[int, int]]:
        """Spans of the user's own words in ``text``, in order: what a row of attention is shown on."""

    def pieces(self, text: str) -> list[tuple[int, int]]:
        """Spans of words and marks, clitics cut at their apostrophes: what can stand in for an unknown symbol."""
        return self.words(text)

    def _join(self, tokens: Sequence[str]) -> str:
        return "".join(tokens)

    def _units(self, line: str) -> list[str]:
        """The units of a line that no symbol crosses: each different one is cut once."""
        return line.split()

    # --- training -------------------------------------------------------------------------------------------------

    def train(self, lines: Iterable[str]) -> None:
        """Learn the vocabulary. Memory grows with the number of different words only; the same lines in the same
        order give the same vocabulary on every run. Raises DataError when there is no text."""
        counts = count_words((self._units(line) for line in lines), self._cut)
        if not counts:
            raise DataError("the training text is empty: there is nothing to learn a vocabulary from. Give some lines.")
        trained = self._outline()
        trained.model = self._learn(counts)
        self._adopt(trained)

    def admit(self, words: Iterable[str]) -> int:
        """Put words behind the vocabulary that are not in it; the number of symbols that this makes.

        Words that this tokenizer would cut or write otherwise are left out, for no text is read so.
        """
        new = dict.fromkeys(name for word in words for name in self.spelt(word))
        for name in (*self._names, *SPECIALS):
            new.pop(name, None)
        trained = self._library
        names = [*self._names, *new]
        trained.model = tokenizers.models.WordLevel(
            {name: place for place, name in enumerate(names)}, unk_token=SPECIALS[UNKNOWN]
        )
        self._adopt(trained)
        return len(new)

    def spelt(self, word: str) -> list[str]:  # noqa: ARG002
        """The names of the symbols that are the whole of ``word``; none where symbols are not words."""
        return []

    def surface(self, symbol: str) -> str:
        """The word that a symbol's name stands for."""
        return symbol

    def unknown_ids(self, ids: Iterable[int]) -> list[int]:
        """For each id the one that says "unknown" in its place."""
        return [UNKNOWN for _ in ids]

    def _remember(self, own: Mapping[str, Any]) -> None:  # noqa: B027
        """Take from the saved settings what a kind has written there beside them."""

    def _cut(self, unit: str) -> list[str]:
        clean = self._outline_only.normalizer.normalize_str(valid(unit))
        return [piece for piece, _ in self._outline_only.pre_tokenizer.pre_tokenize_str(clean)]

    def _adopt(self, trained: tokenizers.Tokenizer) -> None:
        vocabulary = trained.get_vocab(with_added_tokens=False)
        names = sorted(vocabulary, key=vocabulary.__getitem__)
        if tuple(names[:4]) != SPECIALS or sorted(vocabulary.values()) != list(range(len(names))):
            raise DataError(f"the vocabulary must begin with {' '.join(SPECIALS)} and have no holes.")
        self._trained, self._names, self._unit_ids = trained, names, {}

    @property
    def _library(self) -> tokenizers.Tokenizer:
        if self._trained is None:
            raise UnrolledError(f"the {self.kind} tokenizer has no vocabulary yet. Call train() or load() first.")
        return self._trained

    # --- text to ids ----------------------------------------------------------------------------------------------

    def normalize(self, text: str) -> str:
        """``text`` as the symbols spell it: what ``decode`` gives back when every symbol is known."""
        clean = self._outline_only.normalizer.normalize_str(valid(text))
        return str(clean)

    def encode(self, text: str) -> Encoded:
        return self.encode_batch([text])[0]

    def encode_batch(self, texts: Sequence[str]) -> list[Encoded]:
        """Symbols with their spans; raises DataError for a lone surrogate, which no file can hold."""
        texts = [valid(text) for text in texts]
        rows = self._library.encode_batch(texts, add_special_tokens=False)
        return [Encoded(row.ids, row.tokens, self._spans(text, row)) for text, row in zip(texts, rows, strict=True)]

    def _spans(self, text: str, row: tokenizers.Encoding) -> list[tuple[int, int]]:
        return spans_without_space(text, row.tokens, whole_spans(text, row.offsets))

    def encode_ids(self, texts: Sequence[str]) -> list[list[int]]:
        """Ids alone, as ``encode_batch`` gives them: the quick way for a whole file, each different word cut once."""
        cache = self._unit_ids
        lines = [self._units(text) for text in texts]
        new = list({unit for line in lines for unit in line} - cache.keys())
        if new:
            if len(cache) + len(new) > MOST_REMEMBERED:
                cache.clear()
                new = list({unit for line in lines for unit in line})
            new = [valid(unit) for unit in new]
            rows = self._library.encode_batch_fast(new, add_special_tokens=False)
            cache.update((unit, row.ids) for unit, row in zip(new, rows, strict=True))
        return [[i for unit in line for i in cache[unit]] for line in lines]

    # --- ids to text ----------------------------------------------------------------------------------------------

    @property
    def vocabulary_size(self) -> int:
        return self._library.get_vocab_size(with_added_tokens=False)

    @property
    def vocabulary(self) -> tuple[str, ...]:
        """Every symbol, by id."""
        return tuple(self._names)

    def id_of(self, token: str) -> int:
        """The id of a symbol, or that of ``<unk>``."""
        found = self._library.token_to_id(token)
        return UNKNOWN if found is None else found

    def tokens(self, ids: Iterable[int]) -> list[str]:
        """The name of each id, special ones too. Raises DataError for an id outside the vocabulary."""
        named = []
        for i in ids:
            if not 0 <= i < len(self._names):
                raise DataError(f"no symbol has the id {i}: the vocabulary has the ids 0 to {len(self._names) - 1}.")
            named.append(self._names[i])
        return named

    def decode(self, ids: Iterable[int]) -> str:
        """Text again. Padding, begin and end are skipped, an unknown symbol is written ``<unk>``."""
        return self.join(self.tokens(i for i in ids if i not in SILENT))

    def join(self, tokens: Sequence[str]) -> str:
        """Text from the names of symbols, also from those that stand in for unknown ones (`standing_in`)."""
        return self._join(tokens)

    def standing_in(self, word: str, before: str = "", behind: str = "") -> str:  # noqa: ARG002
        """The name of a symbol under which ``word``, put in for an unknown symbol, is written where that one was: after
        the symbol named ``before``. ``behind`` is the character that it stood right behind in its own text."""
        return word

    # --- files ----------------------------------------------------------------------------------------------------

    def text(self) -> str:
        """The trained tokenizer in the ``tokenizers`` library's own JSON."""
        return str(self._library.to_str(pretty=True))

    def fingerprint(self) -> str:
        """Changes when any symbol or setting does."""
        return hashlib.blake2b((self.text() + self._own()).encode(), digest_size=16).hexdigest()

    def about(self, others: int = 0) -> str:
        """Kind, size with so many ``others``, and where its vectors come from, in words."""
        held = f"; {self.held}" if self.held else ""
        return f"{self.kind}, {self.vocabulary_size + others:,} symbols{held}"

    def _own(self) -> str:
        own: dict[str, Any] = {"format": 1, "kind": self.kind, "settings": self.settings}
        if self.held is not None:
            own["vectors"] = self.held.tree()
        return json.dumps(own, indent=1) + "\n"

    def save(self, path: str | Path) -> None:
        """Two files: ``path`` (the library's format) and, beside it, ``*.settings.json`` (kind and settings)."""
        path = Path(path)
        for place, text in ((path, self.text() + "\n"), (_settings_path(path), self._own())):
            beside = place.with_name(place.name + ".part")
            try:
                beside.write_text(text, encoding="utf-8", newline="\n")
                beside.replace(place)
            except OSError as error:
                beside.unlink(missing_ok=True)
                raise UnrolledError(f"{place}: the tokenizer cannot be written ({error.strerror}).") from None

    @staticmethod
    def load(path: str | Path) -> Tokenizer:
        """A saved tokenizer, of whichever kind. Raises DataError for a missing or damaged file."""
        path = Path(path)
        own = _read_own(_settings_path(path))
        try:
            built = TOKENIZERS.build({**own["settings"], "kind": own["kind"]})
            trained = tokenizers.Tokenizer.from_str(path.read_text(encoding="utf-8"))
            built._adopt(trained)
            built.held = Held.of(own["vectors"]) if "vectors" in own else None
            built._remember(own)
        except OSError as error:
            raise DataError(f"{path}: the tokenizer cannot be read ({error.strerror}).") from None
        except SettingsError as error:
            raise DataError(f"{_settings_path(path)}: {error}") from None
        except BaseException as error:
            # The library reports damage as a bare Exception, some of it as a Rust panic, which is a BaseException.
            if isinstance(error, (KeyboardInterrupt, SystemExit, MemoryError)):
                raise
            raise DataError(f"{path}: the tokenizer file is damaged ({error}). Copy the model again.") from None
        return built


def _settings_path(path: Path) -> Path:
    return path.with_name(f"{path.stem}.settings.json")


def _read_own(path: Path) -> dict[str, Any]:
    try:
        own = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise DataError(f"{path}: the tokenizer's settings cannot be read ({error.strerror}).") from None
    except (ValueError, RecursionError):
        raise DataError(f"{path}: the tokenizer's settings are damaged: not JSON. Copy the model again.") from None
    if not isinstance(own, dict) or not isinstance(own.get("settings"), dict) or "kind" not in own:
        raise DataError(f"{path}: the tokenizer's settings are damaged: 'kind' or 'settings' is missing.")
    if own.get("format") != 1:
        raise DataError(f"{path}: written in format {own.get('format')}; this version of unrolled reads format 1.")
    return own


def unknown_share(encoded: Iterable[Encoded | Sequence[int]]) -> float:
    """The share of symbols that are ``<unk>``, 0 to 1; 0 for no symbols at all."""
    unknown = total = 0
    for row in encoded:
        ids = row.ids if isinstance(row, Encoded) else list(row)
        unknown += ids.count(UNKNOWN)
        total += len(ids)
    return unknown / total if total else 0.0
