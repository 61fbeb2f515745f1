"""What a command shows: results on stdout, progress on stderr; nothing that a terminal or a pipe cannot hold."""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Iterable, Sequence
from typing import Any

Cell = str | int | float | None


def tell(text: str = "", end: str = "\n") -> None:
    """A line of result, on stdout. What stdout's encoding cannot hold is escaped, never a crash."""
    encoding = sys.stdout.encoding or "utf-8"
    print(text.encode(encoding, "backslashreplace").decode(encoding), end=end, flush=True)  # noqa: T201


def tell_json(value: Any) -> None:
    """One line of JSON on stdout; numbers that JSON does not know become null."""
    tell(json.dumps(_plain(value), ensure_ascii=False))


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    if hasattr(value, "item"):
        value = value.item()
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value if value is None or isinstance(value, str | int | float | bool) else str(value)


def table(
    columns: Sequence[str], rows: Iterable[Sequence[Cell]], *, title: str = "", right: Sequence[int] = ()
) -> None:
    """A table on stdout; ``right`` are the indices of columns set flush right."""
    from rich.box import SIMPLE_HEAD
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    console = (
        Console(soft_wrap=False) if sys.stdout.isatty() else Console(width=140, force_terminal=False, color_system=None)
    )
    made = Table(title=title or None, box=SIMPLE_HEAD, title_justify="left", title_style="bold")
    for index, name in enumerate(columns):
        made.add_column(name, justify="right" if index in right else "left", overflow="fold")
    for row in rows:
        made.add_row(*(Text("" if cell is None else str(cell)) for cell in row))
    console.print(made)


def size(count: float) -> str:
    """Bytes in the unit that reads best: ``"1.5 GiB"``."""
    for unit in ("B", "KiB", "MiB", "GiB"):
        if count < 1024 or unit == "GiB":
            return f"{count:.0f} {unit}" if unit == "B" else f"{count:.1f} {unit}"
        count /= 1024
    return f"{count:.1f} GiB"


def number(value: float | None, digits: int = 3) -> str:
    """A score as text; ``"–"`` where there is none."""
    return "–" if value is None else f"{value:.{digits}f}"


def draw(picture: Any) -> None:
    """A heatmap on stdout, as wide and as colourful as the terminal allows."""
    import os
    import shutil

    width = shutil.get_terminal_size((100, 40)).columns
    color = "none"
    if sys.stdout.isatty() and "NO_COLOR" not in os.environ:
        color = "24bit" if os.environ.get("COLORTERM", "") in {"truecolor", "24bit"} else "256"
    tell(picture.text(width, color))
