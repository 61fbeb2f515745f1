"""What every task with labels shares: which labels there are, the loss of an answer, accuracy and macro-F1."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import islice
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar, cast

import numpy as np

from unrolled.base.errors import DataError, SettingsError
from unrolled.base.protocol import Loss
from unrolled.data.label_folders import FORMAT as FOLDERS
from unrolled.data.parts import Part
from unrolled.tasks.base import Carried, Task, Validation, moved
from unrolled.text.base import Text
from unrolled.text.labelled import Labels

if TYPE_CHECKING:
    from torch import Tensor, nn

    from unrolled.data.batching import Tokens
    from unrolled.models.classifier import Labelling

FEW = 20
"""Labels up to which each may have but one row."""

STEADY = 1000
"""Training rows up to which the held-out ones are too few for F1 to tell one validation from the next."""


T = TypeVar("T", bound=Text)


class Labelled(NamedTuple):
    """A batch of rows, padded, and their labels."""

    given: Tokens  # what is read: symbols, each text ended by END, or frames
    labels: Tensor  # int64 [batch, most labels of a row], -1 where a row has fewer


class LabelTask(Task[T]):
    """A task whose rows have labels in their second column, or in ``labelled``. Its text side has ``labels``
    (`Labels`)."""

    stop_on = "macro_f1"
    measures: tuple[str, ...] = ("loss", "accuracy", "macro_f1")
    labelled = 1
    """Which column, from 0, holds the labels."""

    def check(self, settings: Mapping[str, Any]) -> None:
        super().check(settings)
        if settings["train"]["sampling"]:
            raise SettingsError(
                f"[train.sampling] {settings['train']['sampling']} was given, and a classifier writes no symbols that "
                "could be fed back. Set it to 0."
            )

    @staticmethod
    def few(part: Part) -> bool:
        """Whether so few rows are held out of ``part`` that F1 jumps or stands still."""
        return next(islice(part.rows(), STEADY, None), None) is None

    def labels(self, text: T) -> Labels:
        """The labels of a text side."""
        found: Labels = cast("Any", text).labels
        return found

    def label_of(self, fields: Sequence[str]) -> str:
        """The cell of a row's labels."""
        return fields[self.labelled]

    def learn(self, settings: Mapping[str, Any], part: Part) -> T:
        text = super().learn(settings, part)
        self.admit(text, part)
        return text

    def admit(self, text: T, part: Part) -> None:
        """Give ``text`` the labels of the whole training table; DataError for an empty one, and where there is nothing
        to tell apart."""
        labels = self.labels(text)
        names: set[str] = set()
        rows = 0
        for row in part._replace(low=0.0, high=1.0).rows():
            rows += 1
            found = labels.split(self.label_of(row.fields))
            if not all(found):
                where = part.table.place(row.place, part.pick[self.labelled])
                raise DataError(f"{where}: the label is empty. Give one, or leave the row out.")
            names.update(found)
        cast("Any", text).labels = labels = labels.admitting(names)
        _refuse_labels(labels, part, rows)

    def answers(self, model: Labelling, batch: Labelled) -> tuple[Tensor, Tensor]:
        """Logits [answers, labels] of a batch, and the targets that `Labelling.loss` takes."""
        logits = model(batch.given.ids, batch.given.mask).logits
        return logits, _wanted(model, batch, logits)

    def loss(
        self,
        network: nn.Module,
        batch: Labelled,
        smoothing: float = 0.0,
        sampling: float = 0.0,  # noqa: ARG002
        *,
        carried: Carried | None = None,  # noqa: ARG002
    ) -> Loss:
        model = cast("Labelling", network)
        logits, wanted = self.answers(model, batch)
        return Loss(model.loss(logits, wanted, smoothing), len(wanted))

    def validate(self, given: Validation) -> dict[str, float]:
        from unrolled.tasks.label_scores import accuracy, decided, macro_f1

        model = cast("Labelling", given.network)
        total, said, gold = 0.0, [], []
        with given.forward():
            for rows in given.batches.plan(0):
                batch = moved(given.batches.load(rows), given.device)
                logits, wanted = self.answers(model, batch)
                logits = logits.float()
                total += float(model.loss(logits, wanted))
                said.append((logits.sigmoid() if model.several else logits.softmax(dim=1)).cpu().numpy())
                gold.append(wanted.cpu().numpy())
        targets, answers = np.concatenate(gold), decided(np.concatenate(said), several=model.several)
        return {
            "loss": total / max(len(targets), 1),
            "accuracy": accuracy(targets, answers),
            "macro_f1": macro_f1(targets, answers),
        }


def _wanted(model: Labelling, batch: Labelled, logits: Tensor) -> Tensor:
    """The targets that `Labelling.loss` takes."""
    if not model.several:
        return batch.labels[:, 0]
    table = logits.new_zeros((len(logits), logits.shape[1] + 1), dtype=logits.dtype)
    return table.scatter(1, batch.labels + 1, 1.0)[:, 1:].bool()


def _refuse_labels(labels: Labels, part: Part, rows: int) -> None:
    """DataError where the labels cannot be what is to be learnt."""
    where, names = part.table.path, labels.names
    if len(names) < (2 if labels.separator is None else 1):
        all_ = f"all {rows:,} rows have the label '{names[0]}'" if names else "no row has a label"
        hint = "Give rows of at least two labels."
        if part.table.format == FOLDERS and any(entry.is_dir() for entry in (where / names[0]).iterdir()):
            hint = f"If the labels are the folders in {names[0]}, give {where / names[0]}."
        raise DataError(f"{where}: {all_}: there is nothing to tell apart. {hint}")
    if len(names) > FEW and len(names) * 2 > rows:
        raise DataError(
            f"{where}: {len(names):,} different labels in {rows:,} rows: that is no label ('{names[0][:40]}'). Say "
            "which columns hold text and label: --columns text,label (names or numbers)."
        )
