"""Which columns of a table hold features of the source, by word, by name, or by what they look like."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import islice
from typing import Annotated

from annotated_types import Ge

from unrolled.base.errors import SettingsError
from unrolled.data.table import Table, arranged, default_names, listed

Column = str | Annotated[int, Ge(1)]
"""A column by its name or its 1-based number."""

FEATURES = ("features", "feats", "feature", "msd", "morphology", "tags", "tag")
"""What a column of features is called, the likeliest first; compared in lower case."""

SOURCES = ("source", "src", "lemma", "input", "base", "spelling")
TARGETS = ("target", "trg", "tgt", "form", "inflection", "inflected", "output", "pronunciation")

HEAD = 1000
"""Rows that are looked at."""

FEW = 20
"""Rows below which nothing is concluded of what columns look like."""

MOST_VALUES = 60
"""Different cells of a column of single labels (languages, styles), at most."""


def columns_of(features: Sequence[Column], columns: Sequence[str]) -> tuple[int, ...]:
    """The places of source, ``features`` (by name or 1-based number, in the order given) and target in a table.

    Source and target are the columns that are called so, else the first and the next of the others. SettingsError for
    features that are not there, and where too few columns remain.
    """
    beside = [_place(one, columns) for one in _by_name(features, columns)]
    if len(set(beside)) < len(beside):
        raise SettingsError(f"[task.features] {listed([str(one) for one in features])}: a column is named twice.")
    others = [place for place in range(len(columns)) if place not in beside]
    if len(others) < 2:
        raise SettingsError(
            f"[task.features] {listed([str(one) for one in features])} of the columns {listed(columns)}: two others "
            "must remain, source and target."
        )
    target = _called(TARGETS, columns, others)
    source = _called(SOURCES, columns, [place for place in others if place != target])
    source = source if source is not None else next(place for place in others if place != target)
    target = target if target is not None else next(place for place in others if place != source)
    return (source, *beside, target)


def pairs_first(tables: Mapping[str, Table]) -> dict[str, Table] | None:
    """The tables as source, target and features, where the training table (or the first one) has features."""
    found = guess(tables.get("train") or next(iter(tables.values())))
    if found is None:
        return None
    column, sentence = found
    arrangements = {}
    for split, table in tables.items():
        source, beside, target = columns_of([column], table.columns)
        names = ("source", "target", "features") if table.columns == default_names(3) else None
        said = f"{sentence.partition(': ')[2]}."
        arrangements[split] = arranged(table, (source, target, beside), said, names)
    return arrangements


def sources_of(features: Sequence[Column], columns: Sequence[str], *, named: bool) -> tuple[int, ...]:
    """The places of source and ``features`` in a table to predict from, which may lack the target.

    ``named``: the columns have names of their own. Without the target they stand in the order that they have with it;
    where training went by names and these columns have none, the source is the first. SettingsError where it is not
    told which is which.
    """
    features = _by_name(features, columns)
    numbers = all(isinstance(one, int) for one in features)
    if len(columns) == len(features) + 1:
        if named and not numbers:
            beside = tuple(_place(one, columns) for one in features)
            return (next(place for place in range(len(columns)) if place not in beside), *beside)
        whole = columns_of(features, default_names(len(columns) + 1)) if numbers else tuple(range(len(columns)))
        order = sorted(whole[: len(columns)])
        return tuple(order.index(place) for place in whole[: len(columns)])
    return columns_of(features, columns)[:-1]


def _by_name(features: Sequence[Column], columns: Sequence[str]) -> Sequence[Column]:
    """``features``, by name where their one number leads to a column whose name says source or target: the number is
    that of a table without names, and this one has some, in another order."""
    one, called = features[0], _called(FEATURES, columns, range(len(columns)))
    if len(features) > 1 or called is None or not isinstance(one, int) or one > len(columns):
        return features
    return [columns[called]] if _called((*SOURCES, *TARGETS), columns, [one - 1]) is not None else features


def _place(one: Column, columns: Sequence[str]) -> int:
    if isinstance(one, int):
        if one > len(columns):
            raise SettingsError(f"[task.features] {one} was given, and there are {len(columns)} columns.")
        return one - 1
    names = [name.strip().casefold() for name in columns]
    if one.strip().casefold() not in names:
        raise SettingsError(
            f"[task.features] no column is called '{one}', only {listed(columns)}. A number from 1 works too."
        )
    return names.index(one.strip().casefold())


def _called(names: Sequence[str], columns: Sequence[str], places: Sequence[int]) -> int | None:
    """The first of ``places`` whose column has the likeliest of ``names``."""
    found = [place for name in names for place in places if columns[place].strip().casefold() == name]
    return found[0] if found else None


def guess(table: Table) -> tuple[Column, str] | None:
    """The column of features that ``table`` has beside source and target, and a sentence; None where it has none."""
    columns = table.columns
    if len(columns) < 3 or table.format == "parallel":
        return None
    named = _called(FEATURES, columns, range(len(columns)))
    if named is not None:
        return columns[named], f"{table.path}: the column '{columns[named]}' is read as features of the source"
    if len(columns) == 3 and columns == default_names(3) and _looks(table):
        return 2, f"{table.path}: column 2 looks like features of the source and is read so"
    return None


def _looks(table: Table) -> bool:
    """Whether the second of three columns holds features: lists of values, or a few labels that come again and again
    while the texts on both sides of them do not."""
    rows = [row.fields for row in islice(table.rows(lambda _: None), HEAD)]
    if len(rows) < FEW:
        return False
    cells = [row[1] for row in rows]
    different = Counter(cells)
    if not all(cell.strip() for cell in different):
        return False
    lists = sum(";" in cell or ("=" in cell and "|" in cell) for cell in cells)
    if lists * 2 > len(rows) and not any(" " in cell for cell in different):
        return True
    texts = all(len({row[place] for row in rows}) * 2 > len(rows) for place in (0, 2))
    single = all(len(cell.split()) == 1 and len(cell) <= 20 for cell in different)
    return texts and single and len(different) <= min(MOST_VALUES, len(rows) // 10)
