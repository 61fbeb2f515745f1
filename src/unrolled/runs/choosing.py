"""Which task a run is of: the one that the settings name, else the one that the data look like."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from unrolled.data.table import Table
from unrolled.tasks import TASKS, recognise
from unrolled.workshop.plan import USUAL_TASK, data_of, task_of, with_preset
from unrolled.workshop.sources import Sources, tables_of

Layers = list[tuple[str, Mapping[str, Any]]]


class Chosen(NamedTuple):
    layers: Layers  # with the task, and unless the run is resumed its preset
    tables: dict[str, Table]
    said: list[str]  # why this task


def choose(layers: Sequence[tuple[str, Mapping[str, Any]]], sources: Sources, *, resumed: bool) -> Chosen:
    """The task of a run, its data as tables; SettingsError for a task that there is not."""
    found, said = list(layers), []
    columns = data_of(found)["columns"]
    kind = task_of(found)
    if kind is None:
        tables = tables_of(sources, columns)
        kind, sentence = recognise(tables, USUAL_TASK)
        said = [sentence] if sentence else []
        if TASKS[kind].plain:  # type: ignore[attr-defined]
            tables = tables_of(sources, columns, plain=True)
        found.insert(0, ("the data", {"task": {"kind": kind}}))
    else:
        plain = TASKS[kind].plain  # type: ignore[attr-defined]
        tables = tables_of(sources, columns, plain=plain)
    if not resumed:
        found = with_preset(found, TASKS[kind].preset)  # type: ignore[attr-defined]
        if "train" in tables:
            tree, sentences = TASKS[kind].conclude(tables["train"])  # type: ignore[attr-defined]
            found = [("the data", tree), *found] if tree else found
            said += sentences
    return Chosen(found, tables, said)
