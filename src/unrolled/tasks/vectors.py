"""Vectors from files, for every task whose words have an embedding: read once, joined, put in, frozen."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, cast

import numpy as np

from unrolled.base.errors import SettingsError
from unrolled.base.protocol import SPECIALS
from unrolled.data.vectors import Numbers, fill, read_vectors
from unrolled.tasks.base import Task
from unrolled.text.contextual import Contextual
from unrolled.text.given import VECTORS, Given, Held

if TYPE_CHECKING:
    from collections.abc import Iterator

    from torch import nn

    from unrolled.layers import Embedding
    from unrolled.models.contextual import Contextual as ContextualWords
    from unrolled.text.tokenizer import Tokenizer

MANY_LOWERED = 0.1
"""A share of words found in lower case only, above which it is said that a tokenizer can lower them."""


class Side(NamedTuple):
    """A column of running text, the tokenizer that reads it, and where both stand."""

    column: str
    setting: str  # of the tokenizer, e.g. "text.source"
    tokenizer: Tokenizer
    place: str  # of its embedding in the network, e.g. "source_embedding"

    def embedding(self, network: nn.Module) -> Embedding:
        return cast("Embedding", network.get_submodule(self.place))


def sides(task: Task[Any], text: Any) -> Iterator[Side]:
    """The columns with an embedding of words, each tokenizer once."""
    seen: set[int] = set()
    for column, place in task.embedded.items():
        setting = task.read_by[column]
        tokenizer = text.reader(setting.rpartition(".")[2])
        if id(tokenizer) not in seen and not isinstance(tokenizer, Contextual):
            seen.add(id(tokenizer))
            yield Side(column, setting, tokenizer, place)


def take_vectors(task: Task[Any], text: Any) -> dict[str, Numbers]:
    """Read the files that the tokenizers' settings name, and join their words to the vocabularies.

    Of each column the vectors of its symbols, float32 [vocabulary, width], NaN where there is none.
    """
    found = {}
    for side in sides(task, text):
        settings = side.tokenizer.settings.get("vectors")
        if settings is not None:
            given = VECTORS.build(settings, where=f"{side.setting}.vectors")
            others = {task.read_by[name] for name in task.written}
            written = any(text.reader(path.rpartition(".")[2]) is side.tokenizer for path in others)
            found[side.column] = _take(side.tokenizer, given, joined=0 if written else None)
    return found


def _take(tokenizer: Tokenizer, given: Given, *, joined: int | None) -> Numbers:
    """``joined``: how many words join where the settings do not say, None: all."""
    joined = joined if given.joined is None else given.joined
    first = len(SPECIALS)
    surfaces = [tokenizer.surface(symbol) for symbol in tokenizer.vocabulary[first:]]
    wanted = {*surfaces, *(word.lower() for word in surfaces)} if joined == 0 else None
    vectors = read_vectors(given.file, wanted=wanted)
    width = vectors.matrix.shape[1]
    if not width:
        raise SettingsError(
            f"[vectors] no word of {given.file} is one of the text's: are they of the same language? "
            "Leave the vectors out, or take another file."
        )
    learnt = np.full((len(surfaces), width), np.nan, np.float32)
    counts = fill(learnt, surfaces, vectors)
    added = tokenizer.admit(vectors.words[:joined])
    names = tokenizer.vocabulary[first + len(surfaces) :]
    rows = {word: row for row, word in enumerate(vectors.words)}
    more = vectors.matrix[[rows[tokenizer.surface(name)] for name in names]]
    table = np.concatenate([np.full((first, width), np.nan, np.float32), learnt, more.reshape(-1, width)])
    kept = ~np.isnan(table[:, 0])
    if not given.frozen:
        kept[: first + len(surfaces)] = False
    tokenizer.held = Held(
        file=Path(given.file).name,
        width=width,
        exact=counts.exact,
        lowered=counts.lowered,
        missing=counts.missing,
        joined=added,
        tuned=not given.frozen,
        frozen=Held.ranges(np.flatnonzero(kept).tolist()),
    )
    return table


class ContextualSide(NamedTuple):
    """A tokenizer whose words a saved model reads, and where both stand."""

    setting: str  # of the tokenizer, e.g. "text.source"
    tokenizer: Contextual
    place: str  # of what reads them in the network, e.g. "source_embedding"

    def module(self, network: nn.Module) -> ContextualWords:
        return cast("ContextualWords", network.get_submodule(self.place))


def contextual_sides(task: Task[Any], text: Any) -> Iterator[ContextualSide]:
    """The tokenizers of a text whose words a saved model reads."""
    for setting, place in task.contextual.items():
        tokenizer = text.reader(setting.rpartition(".")[2])
        if isinstance(tokenizer, Contextual):
            yield ContextualSide(setting, tokenizer, place)


def _read_in_context(network: nn.Module, side: ContextualSide) -> None:
    """Put the frozen reader of a side where the network has an embedding, or nothing yet."""
    from unrolled.layers import Embedding
    from unrolled.models.contextual import Contextual as Words

    old = getattr(network, side.place)
    dropout, forgotten = (old.dropout, old.word_dropout) if isinstance(old, Embedding) else (None, 0.0)
    words = Words(side.tokenizer.characters, side.tokenizer.network, forgotten, dropout=dropout)
    if isinstance(old, Embedding) and old.size != words.size:
        raise SettingsError(
            f"[model.embedding_size] {old.size} was given, and the vectors of {side.tokenizer.settings['model']} "
            f"([{side.setting}]) have {words.size} numbers. Leave the size out, it follows from the vectors."
        )
    setattr(network, side.place, words)


def build_network(task: Task[Any], settings: Any, text: Any) -> nn.Module:
    """The task's network for the section ``model`` of some settings, what does not learn taken out of its weights.

    SettingsError where an output layer shares the weights of which some are frozen.
    """
    import torch

    network = task.network(settings, text)
    for side in sides(task, text):
        symbols = side.tokenizer.held.symbols() if side.tokenizer.held else []
        if symbols:
            embedding = side.embedding(network)
            shared = [
                name for name, weight in network.named_parameters(remove_duplicate=False) if weight is embedding.weight
            ]
            if len(shared) > 1:
                raise SettingsError(
                    f"[{side.setting}.vectors] {len(symbols):,} symbols keep the vectors that they are given, and "
                    f"{' and '.join(shared)} are the same weights. Set model.tie to false (none), or take the vectors "
                    "as tuned, with joined: 0."
                )
            embedding.freeze(torch.tensor(text.network_ids(symbols)))
    for contextual in contextual_sides(task, text):
        _read_in_context(network, contextual)
    return network


def put_vectors(task: Task[Any], text: Any, network: nn.Module, tables: dict[str, Numbers]) -> None:
    """Let the words that have a vector start from it.

    Each table is multiplied by a number that makes its mean square that of a new embedding, 1/width: the scale of a
    preset, and of the words without a vector, is then theirs too, and angles and ratios stay as they were.
    """
    import torch

    for side in sides(task, text):
        if side.column in tables:
            table = tables[side.column]
            known = np.flatnonzero(~np.isnan(table[:, 0]))
            vectors = table[known]
            scale = 1 / np.sqrt(np.square(vectors, dtype=np.float64).mean() * vectors.shape[1])
            ids = torch.tensor(text.network_ids(known.tolist()))
            side.embedding(network).put(ids, torch.from_numpy(vectors * np.float32(scale)))


def remarks(task: Task[Any], text: Any) -> list[str]:
    """What to say of the vectors before training."""
    said = []
    for side in sides(task, text):
        held = side.tokenizer.held
        if (
            held
            and held.lowered > MANY_LOWERED * (held.exact + held.lowered)
            and not side.tokenizer.settings["lowercase"]
        ):
            said.append(
                f"{held.lowered:,} words have a vector in lower case only; --set {side.setting}.lowercase=true reads "
                "all words so."
            )
    return said
