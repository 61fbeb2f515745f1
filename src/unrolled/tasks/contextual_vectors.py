"""Contextual vectors: text is predicted from both sides, and what was learnt to do so is what its words are read by."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice, tee
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, cast

from unrolled.base.protocol import Loss
from unrolled.base.settings import Tree
from unrolled.data.documents import divide, pieces
from unrolled.data.parts import Part
from unrolled.data.table import Table
from unrolled.tasks.base import TASKS, Batches, Carried, Manual, Sized, Task, Validation
from unrolled.tasks.bucketing import bucketed
from unrolled.text.spelled import SpelledText

if TYPE_CHECKING:
    import numpy as np
    from torch import nn

    from unrolled.data.batching import Columns
    from unrolled.data.spelling import Spelled
    from unrolled.data.store import Encoder, Store
    from unrolled.models.elmo import Elmo

CHUNK = 4096
"""Texts that are encoded together."""

HEAD = 2000
"""Lines that are looked at to tell whether blank ones set texts apart."""

SIZES = ((300_000, 5_000), (3_000_000, 15_000))
"""Up to so many characters of text, so many words to predict; of more text the default."""


class Written(NamedTuple):
    """A text of a part, and the 1-based line where it begins."""

    place: int
    text: str


@TASKS.register("contextual_vectors")
class ContextualVectors(Task[SpelledText]):
    """Text, each word predicted from those before it and from those behind it (Peters et al. 2018, arXiv:1802.05365).

    A text is read by itself, from its first word to its last: it is a ``line`` of plain text, or what stands between
    blank lines (``blank_line``), or a row of a table.
    """

    columns = ("text",)
    noun = "text"
    text = SpelledText
    read_by: Mapping[str, str] = {}  # every word is read: an unknown one is only never predicted
    models = ("elmo",)
    preset = "elmo-small"
    stop_on = "loss"
    measures = ("loss", "perplexity")
    plain = True
    manual = Manual(
        commands=(
            "unrolled embed {} lines.txt --to vectors.npz",
            "unrolled score {} lines.txt",
            "unrolled evaluate {} text.txt",
            "unrolled explain {} 'one line' --to picture.svg",
        ),
        python="embed(['one line'])",
        tags=("elmo", "contextual-embeddings", "rnn"),
        pipeline="feature-extraction",
    )

    def __init__(self, *, documents: Literal["line", "blank_line"] = "line") -> None:
        self.documents: Literal["line", "blank_line"] = documents

    # --- settings and data ----------------------------------------------------------------------------------------

    @classmethod
    def conclude(cls, table: Table) -> tuple[Tree, list[str]]:
        if table.format not in ("text", "running"):
            return {}, []
        lines = [row.fields[0] for row in islice(table.rows(lambda _: None), HEAD)]
        if sum(not line.strip() for line in lines) * 10 < len(lines):
            return {}, ["Each line is a text (what stands between blank lines: task.documents=blank_line)."]
        tree: Tree = {"task": {"documents": "blank_line"}}
        return tree, ["What stands between blank lines is a text (each line: task.documents=line)."]

    def size(self, part: Part) -> Sized:
        letters = sum(len(row.fields[0]) for row in part.rows())
        size = next((size for most, size in SIZES if letters <= most), None)
        said = [f"{letters:,} characters to train on."]
        origin = f"sized to {letters} characters"
        return Sized(origin, {"text": {"size": size}} if size else {}, lambda _: said)

    def divide(self, part: Part, data: Mapping[str, Any]) -> tuple[Part, Part, str]:
        return divide(part, self.documents, data["valid_share"], data["valid_rows"])

    def learn(self, settings: Mapping[str, Any], part: Part) -> SpelledText:
        return SpelledText.learn(settings, lambda: ((one.text,) for one in self.texts(part)))

    def texts(self, part: Part) -> Iterator[Written]:
        """The texts of a part, in order; ends of lines inside one are white space."""
        held: list[str] = []
        place = 0
        for piece in pieces(part, self.documents):
            if piece.begins and held:
                yield Written(place, " ".join("".join(held).split("\n")))
                held = []
            place = piece.place if piece.begins else place
            held.append(piece.text)
        if held:
            yield Written(place, " ".join("".join(held).split("\n")))

    def encoders(self, text: SpelledText) -> dict[str, Encoder]:
        return {"text": _Numbers(text), "characters": _Characters(text)}

    def store(self, folder: Path, part: Part, text: SpelledText, mark: str) -> Store:
        from unrolled.data.store import Store

        encoders = self.encoders(text)
        first, second, third = tee((one for one in self.texts(part) if text.cut(one.text)), 3)
        return Store.build(
            folder,
            {"text": _encoded(encoders["text"], first), "characters": _encoded(encoders["characters"], second)},
            places=(one.place for one in third),
            vocabulary_sizes={name: encoder.vocabulary_size for name, encoder in encoders.items()},
            fingerprint=mark,
        )

    def batches(self, store: Store, settings: Mapping[str, Any], *, train: bool, name: str) -> Batches:
        return bucketed(store, settings, train=train, name=name, specials=(2,), collate=collate_texts)

    # --- the model ------------------------------------------------------------------------------------------------

    def network(self, settings: Mapping[str, Any], text: SpelledText) -> nn.Module:
        from unrolled.models import MODELS

        return MODELS.build(settings, text.characters.vocabulary_size, text.vocabulary_size, where="model")

    def sketch(self, settings: Mapping[str, Any], source: int, target: int) -> tuple[nn.Module, str]:  # noqa: ARG002
        from unrolled.models import MODELS

        network = MODELS.build(settings["model"], SKETCHED, target, where="model")
        return network, f"{SKETCHED} characters, {target:,} words to predict"

    def loss(
        self,
        network: nn.Module,
        batch: Spelled,
        smoothing: float = 0.0,
        sampling: float = 0.0,  # noqa: ARG002
        *,
        carried: Carried | None = None,  # noqa: ARG002
    ) -> Loss:
        """Each word but the ends counts twice: it is predicted from both sides."""
        total = cast("Elmo", network).loss(batch.characters, batch.mask, batch.words, smoothing)
        return Loss(total, 2 * int(batch.mask[:, 1:].sum()))

    def validate(self, given: Validation) -> dict[str, float]:
        loss = self.mean_loss(given)
        return {"loss": loss, "perplexity": math.exp(loss) if loss < 700 else math.inf}


SKETCHED = 200
"""Characters of a preset that is shown without data."""


class _Numbers:
    """The words of a text as numbers to predict."""

    def __init__(self, text: SpelledText) -> None:
        self.text, self.vocabulary_size = text, text.vocabulary_size

    def encode_ids(self, texts: Sequence[str]) -> list[list[int]]:
        return [self.text.numbers(self.text.cut(one)) for one in texts]


class _Characters:
    """The words of a text as characters, word after word."""

    def __init__(self, text: SpelledText) -> None:
        self.text, self.vocabulary_size = text, text.characters.vocabulary_size

    def encode_ids(self, texts: Sequence[str]) -> list[list[int]]:
        from unrolled.data.spelling import joined

        return [joined(self.text.spell(self.text.cut(one))) for one in texts]


def _encoded(encoder: Encoder, texts: Iterator[Written]) -> Iterator[list[int]]:
    while found := list(islice(texts, CHUNK)):
        yield from encoder.encode_ids([one.text for one in found])


def collate_texts(columns: Columns, rows: np.ndarray) -> Spelled:  # noqa: ARG001
    """A batch of the numbers of words (cut, perhaps) and of their characters."""
    from unrolled.data.spelling import collate_spelled, parted

    words, characters = columns
    return collate_spelled([parted(row)[: len(one)] for one, row in zip(words, characters, strict=True)], words)
