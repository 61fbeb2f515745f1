"""Text with labels: one tokenizer, and the closed list of labels that the training rows have."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import numpy as np

from unrolled.base.errors import DataError, nearest
from unrolled.base.registry import Part
from unrolled.text.base import Rows, Text
from unrolled.text.tokenizer import TOKENIZERS, Tokenizer
from unrolled.text.trees import tree_of, write_tree


@dataclass(frozen=True, kw_only=True)
class LabelsSettings:
    """``separator``: what stands between the labels of a row that may have several, or none; null: a row has one
    label."""

    separator: str | None = None

    def __post_init__(self) -> None:
        if self.separator is not None and not self.separator.strip(" "):
            raise ValueError("separator is empty: give what stands between two labels, e.g. a comma, or null.")


@dataclass(frozen=True, kw_only=True)
class LabelledSettings(LabelsSettings):
    """Which tokenizer reads the text. ``separator``: what stands between the labels of a row that may have several,
    or none; null: a row has one label."""

    tokenizer: Annotated[Part, TOKENIZERS] = "bpe"


class UnseenLabel(DataError):
    """A label that no training row has."""

    def __init__(self, label: str, names: Sequence[str]) -> None:
        near = nearest(label, list(names))
        hint = f"Did you mean '{near}'? " if near else ""
        super().__init__(
            f"the label '{label[:60]}' is none of the {len(names)} that training rows have. {hint}"
            "Correct it, leave the row out, or give training rows of it."
        )


class Labels:
    """Names of labels, sorted, and how many training rows have each.

    ``ordered``: a cell holds one for each step, in their order, white space between.
    """

    def __init__(
        self, counts: Mapping[str, int], rows: int = 0, separator: str | None = None, *, ordered: bool = False
    ) -> None:
        self.rows, self.separator, self.ordered = rows, separator, ordered
        self.names = tuple(sorted(counts))
        self.counts = tuple(counts[name] for name in self.names)
        self._ids = {name: number for number, name in enumerate(self.names)}

    @staticmethod
    def learn(cells: Iterable[str], separator: str | None = None, *, ordered: bool = False) -> Labels:
        """The labels of training rows."""
        reader, counts, rows = Labels({}, separator=separator, ordered=ordered), Counter[str](), 0
        for cell in cells:
            found = reader.split(cell)
            rows += len(found) if ordered else 1
            counts.update(found)
        return Labels(counts, rows, separator, ordered=ordered)

    def admitting(self, names: Iterable[str]) -> Labels:
        """These and others, which no training row has."""
        counts = dict.fromkeys(names, 0) | dict(zip(self.names, self.counts, strict=True))
        return Labels(counts, self.rows, self.separator, ordered=self.ordered)

    def __len__(self) -> int:
        return len(self.names)

    @property
    def vocabulary_size(self) -> int:
        return len(self.names)

    def split(self, cell: str) -> list[str]:
        """The labels of a cell: white space around each is not part of it, and unless ordered none stands twice."""
        if self.ordered:
            return cell.split()
        if self.separator is None:
            return [cell.strip()]
        return list(dict.fromkeys(name for one in cell.split(self.separator) if (name := one.strip())))

    def join(self, names: Sequence[str]) -> str:
        """The cell that holds ``names``."""
        return (self.separator or "").join(names)

    def __contains__(self, label: object) -> bool:
        return label in self._ids

    def number(self, label: str) -> int:
        """The number of a label; -1 for one that is not among them."""
        return self._ids.get(label, -1)

    def fingerprint(self) -> str:
        """Changes when any name or the separator does."""
        return f"{self.names!r} {self.separator!r}{' ordered' if self.ordered else ''}"

    @property
    def how(self) -> str:
        """How many a row has, in words."""
        if self.ordered:
            return "one a step"
        return "one a row" if self.separator is None else f"any number a row, '{self.separator}' between"

    def about(self) -> str:
        """How many there are, in words."""
        return f"{len(self):,} labels, {self.how}"

    def save(self, folder: Path) -> None:
        """Write ``labels.json``; UnrolledError where it cannot be written."""
        tree = {"labels": self.names, "counts": self.counts, "rows": self.rows, "separator": self.separator}
        tree |= {"ordered": True} if self.ordered else {}
        write_tree(folder / "labels.json", tree)

    @staticmethod
    def load(folder: str | Path) -> Labels:
        """What ``save`` wrote; DataError for a missing or damaged file."""
        with tree_of(Path(folder) / "labels.json", "labels") as tree:
            counts = dict(zip(tree["labels"], map(int, tree["counts"]), strict=True))
            return Labels(counts, int(tree["rows"]), tree["separator"], ordered=tree.get("ordered") is True)

    def encode_ids(self, texts: Sequence[str]) -> list[list[int]]:
        """The numbers of the labels of each cell; UnseenLabel for a label that is not among them."""
        rows = []
        for cell in texts:
            labels = self.split(cell)
            for label in labels:
                if label not in self._ids:
                    raise UnseenLabel(label, self.names)
            ids = [self._ids[label] for label in labels]
            rows.append(ids if self.ordered else sorted(ids))
        return rows


class LabelSide(Text):
    """A text side with ``labels``, whatever they are of."""

    labels: Labels

    @property
    def several(self) -> bool:
        """Whether a row may have several labels."""
        return self.labels.separator is not None

    def targets(self, cells: Iterable[str]) -> np.ndarray:
        """What the rows should be answered: int64 [rows], or of the frames of all rows one after the other, -1 for a
        label unseen in training; where a row may have
        several labels bool [rows, labels + 1], the last column for those unseen."""
        found = [[self.labels.number(label) for label in self.labels.split(cell)] for cell in cells]
        if not self.several:
            return np.array([number for row in found for number in row], dtype=np.int64)
        table = np.zeros((len(found), len(self.labels) + 1), dtype=bool)
        for row, ids in zip(table, found, strict=True):
            row[ids] = True
        return table


class LabelledText(LabelSide):
    """Texts through a tokenizer, labels by number."""

    settings = LabelledSettings

    def __init__(self, tokenizer: Tokenizer, labels: Labels) -> None:
        self.tokenizer, self.labels = tokenizer, labels

    @classmethod
    def learn(cls, settings: Mapping[str, Any], rows: Rows) -> LabelledText:
        tokenizer = TOKENIZERS.build(settings["tokenizer"], where="text.tokenizer")
        tokenizer.train(row[0] for row in rows())
        return LabelledText(tokenizer, Labels.learn((row[1] for row in rows()), settings["separator"]))

    def fingerprint(self) -> str:
        return f"{self.tokenizer.fingerprint()} {self.labels.fingerprint()}"

    def save(self, folder: str | Path) -> None:
        self.labels.save(Path(folder))
        self.tokenizer.save(Path(folder) / "text.json")

    @classmethod
    def load(cls, folder: str | Path) -> LabelledText:
        labels = Labels.load(folder)
        return LabelledText(Tokenizer.load(Path(folder) / "text.json"), labels)

    def about(self) -> dict[str, str]:
        return {
            "text": self.tokenizer.about(),
            "label": self.labels.about(),
        }

    @property
    def vocabulary_size(self) -> int:
        return self.tokenizer.vocabulary_size
