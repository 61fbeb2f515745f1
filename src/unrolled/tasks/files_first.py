"""Tables that name images or recordings, as the doctor looks at them: the files first, what is said of them second."""

from __future__ import annotations

from collections.abc import Mapping

from unrolled.data.checks.labels import several
from unrolled.data.table import Table
from unrolled.tasks.captions import Captions, paired
from unrolled.tasks.named_files import NOUNS, concluded, labelled, recognised
from unrolled.tasks.speech import Speech, adapted


def files_first(tables: Mapping[str, Table]) -> dict[str, Table] | None:
    """The tables as files and their labels, or as files and their texts; None where they name none."""
    first = tables.get("train") or next(iter(tables.values()))
    for kind in NOUNS:
        if recognised(first, kind) is not None:
            label = concluded(first, kind)[0].get("task", {}).get("label")
            cells = [row.fields[1] for row in labelled(first, kind, label, bare=True).rows(lambda _: None)]
            bare = several(cells)
            return {name: labelled(table, kind, label, bare=bare) for name, table in tables.items()}
    for task, arrange in ((Captions, paired), (Speech, adapted)):
        if task.recognises(first) is not None:
            return {name: arrange(table) for name, table in tables.items()}
    return None
