"""Which task a run is of: the one that the settings name, else the one that the data look like."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from unrolled.base.errors import SettingsError, known
from unrolled.data.table import Table
from unrolled.runs.contextual import with_contextual
from unrolled.runs.vectors import with_vectors
from unrolled.tasks import TASKS, Task, recognise
from unrolled.workshop.plan import USUAL_TASK, Plan, data_of, plan, task_of, with_preset
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


def before_data(
    layers: Sequence[tuple[str, Mapping[str, Any]]], vectors: str | None = None
) -> tuple[Layers, Plan, Task[Any]]:
    """The layers of a new run with what the files say that they name (``vectors``: one more), the plan of them before
    anything is sized by data, and its task; SettingsError for what cannot be trained whatever the data are."""
    kind = task_of(layers) or USUAL_TASK
    grown = with_contextual(with_vectors(layers, kind, vectors), kind)
    unsized = TASKS[kind].unsized  # type: ignore[attr-defined]
    found = plan([("sized", unsized), *grown])
    task: Task[Any] = TASKS.build(found.settings["task"])
    refuse_unknown_score(found.settings["train"]["stop_on"], task)
    return grown, found, task


def refuse_unknown_score(name: str | None, task: Task[Any]) -> None:
    """SettingsError now, not after the first validation."""
    if name is not None and name not in task.measures:
        raise SettingsError(f"[train.stop_on] no validation score is called '{name}'. {known(name, task.measures)}")
