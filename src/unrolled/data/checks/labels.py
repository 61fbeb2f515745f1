"""Columns that are classes, not text: how they are spread, and which of them train has never seen."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from unrolled.data.census import FIRST_FEATURES, Census
from unrolled.data.column import SEPARATORS, Parts
from unrolled.data.findings import Finding, Severity
from unrolled.data.label_folders import FORMAT as FOLDERS
from unrolled.data.questions import ASKED
from unrolled.data.sentences import SENTENCES
from unrolled.data.table import listed, shown


def counts(census: Census, index: int) -> dict[str, int] | None:
    """The classes of a column, most frequent first; None where it holds text, or features, which nobody answers.

    Classes are few and come again often. Where a cell may hold several, each is counted by itself.
    """
    if census.table.format in SENTENCES:
        return None
    found = parts(census, index)
    labels = census.columns[index].labels if found is None else found.counts
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


def parts(census: Census, index: int) -> Parts | None:
    """The labels of a column in which a cell may hold several; None where each is one, as the name of a folder is, and
    the answer to a question."""
    sign = census.columns[index].separator
    if sign is None or census.table.format == FOLDERS or census.table.columns == ASKED:
        return None
    return census.columns[index].parts[sign]


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


def joint(census: Census) -> Iterator[Finding]:
    """A column whose cells look as if one could hold several labels, which training must be told."""
    if census.split != "train":
        return
    for index, column in enumerate(census.columns):
        found = parts(census, index)
        if found is None or not (counts(census, index) or labels_of_files(census, index)):
            continue
        rows = found.joint.count
        if not rows:
            continue
        hold = f"{rows:,} cells of '{column.name}' hold" if rows > 1 else f"one cell of '{column.name}' holds"
        message = (
            f"{hold} several labels, as '{shown(found.example)}', and each label is counted here. A classifier "
            f"reads them so with --set {_setting(column.separator or '')}."
        )
        yield Finding("note", "several labels", census.split, rows, message, tuple(found.joint.places))


def _setting(sign: str) -> str:
    """The setting of what stands between two labels, as a shell takes it."""
    return f"text.separator={sign}" if sign == "," else f"'text.separator={sign}'"


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
            if parts(census, index) is not None:
                message = f"'{shown(name)}' is among the labels of {share:.0%} of the rows ('{column.name}')."
            yield Finding("note", "unbalanced", census.split, most, message)
        rare = [label for label, count in labels.items() if count < 5]
        if rare and census.split == "train":
            names = listed(rare, 5)
            message = f"{len(rare)} of {len(labels)} classes of '{column.name}' are seen fewer than 5 times: {names}."
            yield Finding("warning", "rare classes", census.split, len(rare), message)


def unseen(train: Census, census: Census) -> Iterator[Finding]:
    """Classes of a split that train does not hold: no model can answer them. Of a cell with several, each that is
    new."""
    for index, column in enumerate(census.columns[: len(train.columns)]):
        of_files = labels_of_files(train, index)
        if not (counts(train, index) or of_files):
            continue
        found = None if parts(train, index) is None else parts(census, index)
        new = column.new_labels if found is None else found.new
        if not new:
            continue
        rows = sum(tally.count for tally in new.values()) if found is None else found.new_rows
        names = listed(list(new), 5)
        count = len(new)
        classes = f"{count} class{'es' if count > 1 else ''} of '{column.name}'"
        message = f"{classes} never seen in train, in {rows:,} row{'' if rows == 1 else 's'}: {names}."
        refused = of_files and census.split == "valid"
        cure = "Training refuses them: remove them, or give training rows of them." if refused else ""
        places = list(dict.fromkeys(place for tally in new.values() for place in tally.places[:1]))
        severity: Severity = "error" if refused else "warning"
        message += f" {cure or 'No model can answer them.'}"
        yield Finding(severity, "unseen classes", census.split, count, message, tuple(places[:5]))
