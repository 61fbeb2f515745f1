"""Text with labels: one tokenizer, and the closed list of labels that the training rows have."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import numpy as np

from unrolled.base.errors import DataError, UnrolledError, nearest
from unrolled.base.registry import Part
from unrolled.text.base import Rows, Text
from unrolled.text.tokenizer import TOKENIZERS, Tokenizer


@dataclass(frozen=True, kw_only=True)
class LabelledSettings:
    """Which tokenizer reads the text. ``separator``: what stands between the labels of a row that may have several,
    or none; null: a row has one label."""

    tokenizer: Annotated[Part, TOKENIZERS] = "bpe"
    separator: str | None = None

    def __post_init__(self) -> None:
        if self.separator is not None and not self.separator.strip(" "):
            raise ValueError("separator is empty: give what stands between two labels, e.g. a comma, or null.")


class UnseenLabel(DataError):
    """A label that no training row has."""

    def __init__(self, label: str, names: Sequence[str]) -> None:
        near = nearest(label, list(names))
        hint = f"Did you mean '{near}'? " if near else ""
        super().__init__(f"the label '{label[:60]}' is none of the {len(names)} that training rows have. {hint}")
        self.label = label


class Labels:
    """Names of labels, sorted, and how many training rows have each."""

    def __init__(self, counts: Mapping[str, int], rows: int = 0, separator: str | None = None) -> None:
        self.rows, self.separator = rows, separator
        self.names = tuple(sorted(counts))
        self.counts = tuple(counts[name] for name in self.names)
        self._ids = {name: number for number, name in enumerate(self.names)}

    @staticmethod
    def learn(cells: Iterable[str], separator: str | None = None) -> Labels:
        """The labels of training rows."""
        reader, counts, rows = Labels({}, separator=separator), Counter[str](), 0
        for cell in cells:
            rows += 1
            counts.update(reader.split(cell))
        return Labels(counts, rows, separator)

    def admitting(self, names: Iterable[str]) -> Labels:
        """These and others, which no training row has."""
        return Labels(
            dict.fromkeys(names, 0) | dict(zip(self.names, self.counts, strict=True)), self.rows, self.separator
        )

    def __len__(self) -> int:
        return len(self.names)

    @property
    def vocabulary_size(self) -> int:
        return len(self.names)

    def split(self, cell: str) -> list[str]:
        """The labels of a cell: white space around each is not part of it, and none stands twice."""
        if self.separator is None:
            return [cell.strip()]
        return list(dict.fromkeys(name for one in cell.split(self.separator) if (name := one.strip())))

    def join(self, names: Sequence[str]) -> str:
        """The cell that holds ``names``."""
        return (self.separator or "").join(names)

    def __contains__(self, label: object) -> bool:
        return label in self._ids

    def encode_ids(self, texts: Sequence[str]) -> list[list[int]]:
        """The numbers of the labels of each cell; UnseenLabel for a label that is not among them."""
        rows = []
        for cell in texts:
            labels = self.split(cell)
            for label in labels:
                if label not in self._ids:
                    raise UnseenLabel(label, self.names)
            rows.append(sorted(self._ids[label] for label in labels))
        return rows


class LabelledText(Text):
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
        return f"{self.tokenizer.fingerprint()} {self.labels.names!r} {self.labels.separator!r}"

    def save(self, folder: str | Path) -> None:
        folder = Path(folder)
        labels = self.labels
        tree = {"labels": labels.names, "counts": labels.counts, "rows": labels.rows, "separator": labels.separator}
        try:
            folder.mkdir(parents=True, exist_ok=True)
            (folder / "labels.json").write_text(json.dumps(tree, ensure_ascii=False, indent=1) + "\n", "utf-8")
        except OSError as error:
            raise UnrolledError(f"{folder}: cannot be written ({error.strerror}).") from None
        self.tokenizer.save(folder / "text.json")

    @classmethod
    def load(cls, folder: str | Path) -> LabelledText:
        path = Path(folder) / "labels.json"
        try:
            tree = json.loads(path.read_text(encoding="utf-8"))
            labels = Labels(dict(zip(tree["labels"], map(int, tree["counts"]), strict=True)), int(tree["rows"]))
            labels.separator = tree["separator"]
        except OSError as error:
            raise DataError(f"{path}: the labels cannot be read ({error.strerror}).") from None
        except (ValueError, TypeError, KeyError):
            raise DataError(
                f"{path}: damaged, no list of labels. Take the file from where the model came from."
            ) from None
        return LabelledText(Tokenizer.load(Path(folder) / "text.json"), labels)

    def about(self) -> dict[str, str]:
        how = "one a row" if self.labels.separator is None else f"any number a row, '{self.labels.separator}' between"
        return {
            "text": self.tokenizer.about(),
            "label": f"{len(self.labels):,} labels, {how}",
        }

    @property
    def vocabulary_size(self) -> int:
        return self.tokenizer.vocabulary_size

    @property
    def several(self) -> bool:
        """Whether a row may have several labels."""
        return self.labels.separator is not None

    def targets(self, cells: Iterable[str]) -> np.ndarray:
        """What the rows should be answered: int64 [rows], -1 for a label unseen in training; where a row may have
        several labels bool [rows, labels + 1], the last column for those unseen."""
        found = [[self.labels._ids.get(label, -1) for label in self.labels.split(cell)] for cell in cells]
        if not self.several:
            return np.array([row[0] for row in found], dtype=np.int64)
        table = np.zeros((len(found), len(self.labels) + 1), dtype=bool)
        for row, ids in zip(table, found, strict=True):
            row[ids] = True
        return table
