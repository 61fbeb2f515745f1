"""Columns that are classes, not text: how they are spread, and which of them train has never seen."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from unrolled.data.census import FIRST_FEATURES, Census
from unrolled.data.findings import Finding, Severity
from unrolled.data.sentences import SENTENCES
from unrolled.data.table import listed, shown

SEPARATORS = (",", ";", "|")
"""What people put between the labels of a row."""


def counts(census: Census, index: int) -> dict[str, int] | None:
    """The classes of a column, most frequent first; None where it holds text, or features, which nobody answers.

    Classes are few and come again often.
    """
    if census.table.format in SENTENCES:
        return None
    labels = census.columns[index].labels
    if (
        (index == 0 and not labels_of_files(census, index))
        or index >= FIRST_FEATURES
        or not labels
        or len(labels) < 2
        or len(labels) * 5 > census.rows
        or census.rows < 20
    ):
        return None
    return dict(labels.most_common())


def labels_of_files(census: Census, index: int) -> bool:
    """Whether a column holds the labels of files that another names."""
    return census.names_files and census.columns[index].name == "label"


def several(cells: Sequence[str]) -> bool:
    """Whether cells look as if one could hold several labels: parts of some stand alone in others."""
    alone = {cell.strip() for cell in cells}
    return any(
        sign in cell and any(part.strip() in alone for part in cell.split(sign))
        for cell in alone
        for sign in SEPARATORS
    )


def single(census: Census) -> Iterator[Finding]:
    """A column of labels that has but one, which training refuses."""
    if census.split != "train" or census.table.format in SENTENCES:
        return
    for column in census.columns:
        if column.name == "label" and column.labels is not None and len(column.labels) == 1 < census.rows:
            name = next(iter(column.labels))
            message = f"one label: all rows have '{shown(name)}', so there is nothing to tell apart. Give rows of two."
            yield Finding("error", "one label", census.split, census.rows, message, (str(census.table.path),))


def spread(census: Census) -> Iterator[Finding]:
    """One class that is nearly all, and classes seen hardly ever."""
    for index, column in enumerate(census.columns):
        labels = counts(census, index)
        if not labels:
            continue
        name, most = next(iter(labels.items()))
        share = most / census.rows
        if share > 0.6:
            message = f"'{shown(name)}' is {share:.0%} of '{column.name}': always answering it is right that often."
            yield Finding("note", "unbalanced", census.split, most, message)
        rare = [label for label, count in labels.items() if count < 5]
        if rare and census.split == "train":
            names = listed(rare, 5)
            message = f"{len(rare)} of {len(labels)} classes of '{column.name}' are seen fewer than 5 times: {names}."
            yield Finding("warning", "rare classes", census.split, len(rare), message)


def unseen(train: Census, census: Census) -> Iterator[Finding]:
    """Classes of a split that train does not hold: no model can answer them."""
    for index, column in enumerate(census.columns[: len(train.columns)]):
        of_files = labels_of_files(train, index)
        if not (counts(train, index) or of_files) or not column.new_labels:
            continue
        if of_files and several(list(train.columns[index].labels or ())):
            continue  # a cell of several labels is no class
        rows = sum(tally.count for tally in column.new_labels.values())
        names = listed(list(column.new_labels), 5)
        count = len(column.new_labels)
        classes = f"{count} class{'es' if count > 1 else ''} of '{column.name}'"
        message = f"{classes} never seen in train, in {rows:,} row{'' if rows == 1 else 's'}: {names}."
        refused = of_files and census.split == "valid"
        cure = "Training refuses them: remove them, or give training rows of them." if refused else ""
        places = [place for tally in column.new_labels.values() for place in tally.places[:1]]
        severity: Severity = "error" if refused else "warning"
        message += f" {cure or 'No model can answer them.'}"
        yield Finding(severity, "unseen classes", census.split, count, message, tuple(places[:5]))
