"""Tagging: words in, a tag for each: parts of speech, names, slots."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, cast

import numpy as np
from annotated_types import Ge

from unrolled.base.errors import DataError, SettingsError
from unrolled.base.protocol import Loss
from unrolled.base.settings import Tree
from unrolled.data.parts import Part, hold_out
from unrolled.data.sentences import SENTENCES, cells, places, usual
from unrolled.data.table import Table, listed
from unrolled.tasks.base import TASKS, Batches, Carried, Manual, Sized, Task, Validation, moved
from unrolled.tasks.bucketing import bucketed
from unrolled.tasks.tagged_batches import Tagged, collate_tagged
from unrolled.text.contextual import Contextual
from unrolled.text.spans import OUTSIDE, Scheme, spans_of
from unrolled.text.tagged import LetterIds, TaggedText, Tags, UnseenTag, WordIds, scheme_of, spelled

if TYPE_CHECKING:
    import numpy as np
    from torch import Tensor, nn

    from unrolled.data.store import Encoder, Store
    from unrolled.layers import Legal
    from unrolled.models import Tagger

SKETCHED = 20
SKETCHED_CHARACTERS = 100
"""Tags and characters of a preset that is shown without data."""


@TASKS.register("tag")
class Tag(Task[TaggedText]):
    """A tag for each word: its own (parts of speech), or what spans of words are, in the scheme IOB1, IOB2 or BIOES.

    ``tags`` is the column that holds them, by name or 1-based number; null: ``upos`` of CoNLL-U, else the one called
    tag or label, else the last. ``scheme``: how spans are written; ``auto`` reads it off the tags, ``plain`` says that
    there are none.
    """

    columns = ("words", "tags")
    noun = "sentence"
    unit = "words"
    text = TaggedText
    read_by = {"words": "text.tokenizer"}
    embedded = {"words": "embedding"}
    contextual = {"text.characters": "context"}
    models = ("tagger",)
    preset = "tagger"
    stop_on = "accuracy"
    measures = ("loss", "accuracy", "f1")
    instead = ", a word a line, or give JSON lines with text and spans"
    manual = Manual(
        commands=(
            "unrolled predict {} sentences.conllu",
            "unrolled evaluate {} test.conllu",
            "unrolled explain {} 'one sentence' --to picture.svg",
        ),
        python="predict([['one', 'sentence']])",
        tags=("token-classification", "rnn"),
        pipeline="token-classification",
    )

    def __init__(
        self,
        *,
        tags: str | Annotated[int, Ge(1)] | None = None,
        scheme: Literal["auto", "plain", "iob1", "iob2", "bioes"] = "auto",
    ) -> None:
        self.tags, self.scheme = tags, scheme

    # --- settings and data ----------------------------------------------------------------------------------------

    @classmethod
    def recognises(cls, table: Table) -> str | None:
        if table.format not in SENTENCES or len(table.columns) < 2:
            return None
        return f"{table.path}: sentences of words with tags ({table.format})."

    @classmethod
    def conclude(cls, table: Table) -> tuple[Tree, list[str]]:
        if len(table.columns) <= 2 or table.format not in SENTENCES:
            return {}, []
        name = table.columns[usual(table.columns)[1]]
        return {}, [f"The tags are those of the column '{name}', unless task.tags names another."]

    def named(self, columns: Sequence[str]) -> tuple[int, ...] | None:
        words, tags = usual(columns)
        if isinstance(self.tags, int):
            if self.tags > len(columns):
                raise SettingsError(f"[task.tags] {self.tags} was given, and there are {len(columns)} columns.")
            tags = self.tags - 1
        elif self.tags is not None:
            if self.tags not in columns:
                raise SettingsError(
                    f"[task.tags] no column is called '{self.tags}', only {listed(columns)}. A number works too."
                )
            tags = columns.index(self.tags)
        return words, tags

    def check(self, settings: Mapping[str, Any]) -> None:
        super().check(settings)
        kinds = (
            ("tokenizer", ("whitespace",), "The words are given"),
            ("characters", ("character", "contextual"), "Words are spelt"),
        )
        for name, taken, why in kinds:
            given = settings["text"][name]["kind"]
            if given not in taken:
                raise SettingsError(
                    f"[text.{name}] '{given}' was given. {why}, so a tagger takes {' or '.join(taken)} alone."
                )
        train = settings["train"]
        if train["sampling"]:
            raise SettingsError(
                f"[train.sampling] {train['sampling']} was given, and a tagger writes no symbols that could be fed "
                "back. Set it to 0."
            )
        if train["label_smoothing"] and settings["model"]["crf"]:
            raise SettingsError(
                f"[train.label_smoothing] {train['label_smoothing']} was given; a chain over the tags has none. Set it "
                "to 0, or model.crf to false."
            )

    def divide(self, part: Part, data: Mapping[str, Any]) -> tuple[Part, Part, str]:
        return hold_out(part, data, self.noun)

    def size(self, part: Part) -> Sized:
        """A chain where tags are of spans; what chooses the best weights."""
        tags, rows = [], 0
        for row in part.rows():
            rows += 1
            tags.append(cells(row.fields[1]))
        scheme = self._scheme(tags)
        tree = {"model": {"crf": scheme is not None}, "train": {"stop_on": "accuracy" if scheme is None else "f1"}}

        def said(origins: Mapping[str, str]) -> list[str]:  # noqa: ARG001
            how = "each word has its own tag" if scheme is None else f"the tags write spans of words ({scheme})"
            return [f"{rows:,} sentences to train on; {how}."]

        return Sized(f"sized to {rows} rows", tree, said)

    def _scheme(self, tags: Sequence[Sequence[str]]) -> Scheme | None:
        if self.scheme == "auto":
            return scheme_of(tags)
        return None if self.scheme == "plain" else self.scheme

    def learn(self, settings: Mapping[str, Any], part: Part) -> TaggedText:
        """The words of the training rows, and the tags of the whole training table, all of which follow the scheme."""
        inside = {row.place for row in part.rows()}
        words, tags, found = Counter[str](), [], []
        for row in part._replace(low=0.0, high=1.0).rows():
            if row.place in inside:
                words.update(spelled(row.fields[0]))
            found.append(row.place)
            tags.append(cells(row.fields[1]))
        scheme = self._scheme(tags)
        if scheme is not None:
            for place, sentence in zip(found, tags, strict=True):
                check_scheme(part, place, sentence, scheme)
        text = TaggedText.of(settings, words, tags, scheme)
        names = text.tags.kinds
        if len(names) < (2 if scheme is None else 1):
            what = f"all words have the tag '{names[0]}'" if names else "no word has a tag other than O"
            raise DataError(
                f"{part.table.path}: {what}: there is nothing to tell apart. Is it the right column (task.tags)?"
            )
        return text

    def encoders(self, text: TaggedText) -> dict[str, Encoder]:
        return {"words": WordIds(text.tokenizer), "characters": LetterIds(text.characters), "tags": text.tags}

    def store(self, folder: Path, part: Part, text: TaggedText, mark: str) -> Store:
        """Words; the characters of each with END behind them; tags. DataError with the place of a tag that breaks the
        scheme, or that no training row has."""
        from unrolled.data.store import Store

        def rows() -> Iterator[tuple[int, tuple[str, ...]]]:
            for row in part.rows():
                words, tags = row.fields
                check_tags(part, row.place, cells(tags), text.tags)
                yield row.place, (words, words, tags)

        return Store.encode(folder, rows, self.encoders(text), fingerprint=mark, name=str(part.table.path))

    def batches(self, store: Store, settings: Mapping[str, Any], *, train: bool, name: str) -> Batches:
        return bucketed(
            store, settings, train=train, name=name, specials=(0,), collate=lambda columns, _: collate_tagged(columns)
        )

    # --- the model ------------------------------------------------------------------------------------------------

    def network(self, settings: Mapping[str, Any], text: TaggedText) -> nn.Module:
        from unrolled.models import MODELS
        from unrolled.models.contextual import size_of

        sizes = text.vocabulary_size, text.characters.vocabulary_size, len(text.tags)
        context = size_of(text.characters.network) if isinstance(text.characters, Contextual) else 0
        return MODELS.build(settings, *sizes, legal_of(text), _rare_of(text), context, where="model")

    def sketch(self, settings: Mapping[str, Any], source: int, target: int) -> tuple[nn.Module, str]:  # noqa: ARG002
        from unrolled.models import MODELS

        network = MODELS.build(settings["model"], source, SKETCHED_CHARACTERS, SKETCHED, where="model")
        return network, f"{source:,} words, {SKETCHED_CHARACTERS} characters and {SKETCHED} tags"

    def loss(
        self,
        network: nn.Module,
        batch: Tagged,
        smoothing: float = 0.0,
        sampling: float = 0.0,  # noqa: ARG002
        *,
        carried: Carried | None = None,  # noqa: ARG002
    ) -> Loss:
        model, mask = cast("Tagger", network), batch.words.mask
        scores = model(batch.words.ids, mask, batch.characters, batch.which)
        return Loss(model.loss(scores, batch.tags, mask, smoothing), int(mask.sum()))

    def validate(self, given: Validation) -> dict[str, float]:
        """``f1``: of spans, exactly; where there are none, the mean over tags."""
        from unrolled.tasks.label_scores import macro_f1
        from unrolled.tasks.tag_scores import exact_f1

        model, text = cast("Tagger", given.network), given.text
        total, answers, targets = 0.0, [], []
        with given.forward():
            for rows in given.batches.plan(0):
                batch = moved(given.batches.load(rows), given.device)
                mask = batch.words.mask
                scores = model(batch.words.ids, mask, batch.characters, batch.which)
                total += float(model.loss(scores, batch.tags, mask))
                said = model.decode(scores, mask).cpu().numpy()
                gold, real = batch.tags.cpu().numpy(), mask.cpu().numpy()
                answers += [row[one] for row, one in zip(said, real, strict=True)]
                targets += [row[one] for row, one in zip(gold, real, strict=True)]
        right, given_ = np.concatenate(targets), np.concatenate(answers)
        found = {"loss": total / max(len(right), 1), "accuracy": float((right == given_).mean())}
        if text.tags.scheme is None:
            return found | {"f1": macro_f1(right, given_)}
        spans = [[text.tags.learnt_spans(row.tolist()) for row in rows] for rows in (targets, answers)]
        return found | {"f1": exact_f1(*spans)}


def check_tags(part: Part, row: int, tags: Sequence[str], known: Tags) -> None:
    """DataError with the file and line of a tag that breaks the scheme, or that is not ``known``."""
    try:
        known.encode(tags)
    except UnseenTag as error:
        raise DataError(f"{_places(part, row, len(tags))[error.word]}: {error}") from None
    except DataError:
        known.encode(tags, _places(part, row, len(tags)))
        raise


def check_scheme(part: Part, row: int, tags: Sequence[str], scheme: Scheme) -> None:
    """DataError with the file and line of a tag that ``scheme`` does not allow where it stands."""
    try:
        spans_of(tags, scheme)
    except DataError:
        spans_of(tags, scheme, _places(part, row, len(tags)))
        raise


def _places(part: Part, row: int, count: int) -> list[str]:
    """Where each word of the sentence in ``row`` stands."""
    return places(part.table, row) or [f"{part.table.place(row)}, word {word + 1}" for word in range(count)]


def legal_of(text: TaggedText) -> Legal | None:
    """Which of the learnt tags may begin, follow one another and end; None where all may."""
    import torch

    from unrolled.layers import Legal

    tags = text.tags
    if tags.learnt is None:
        return None
    follow = [[tags.allowed(before, tag) for tag in tags.names] for before in tags.names]
    start = [tags.allowed(OUTSIDE, tag) for tag in tags.names]
    end = [tags.allowed(tag, OUTSIDE) for tag in tags.names]
    return Legal(torch.tensor(start), torch.tensor(follow), torch.tensor(end))


def _rare_of(text: TaggedText) -> Tensor:
    """bool [vocabulary]: the words that training has once, but for those that keep a vector that they were given."""
    import torch

    rare = torch.arange(text.vocabulary_size) >= text.rare
    if text.tokenizer.held is not None:
        rare[text.tokenizer.held.symbols()] = False
    return rare
