"""The doctor's report for people: drawn on a terminal, plain lines elsewhere."""

from __future__ import annotations

import re
import sys
import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import TextIO

from rich.console import Console, Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from unrolled.cli.output import tell
from unrolled.data.findings import Column, Finding, Report, Split, Unknown, percent

BARS = "▁▂▃▄▅▆▇█"

_MARKS = {"error": ("✗", "bold red"), "warning": ("!", "bold yellow"), "note": ("·", "cyan")}


def is_terminal(stream: TextIO) -> bool:
    """Whether ``stream`` can show a drawing."""
    return stream.isatty() and (stream.encoding or "").lower().startswith("utf")


@contextmanager
def waiting(text: str) -> Iterator[None]:
    """A turning sign on stderr, if that is a terminal, while something is done."""
    if not sys.stderr.isatty():
        yield
        return
    with Console(stderr=True).status(text):
        yield


def bars(counts: Sequence[int]) -> str:
    """A histogram in one line; what is not nought shows.

    >>> bars([0, 1, 50, 100])
    ' ▁▄█'
    """
    most = max(counts, default=0) or 1
    return "".join(BARS[min(7, max(0, (8 * count - 1) // most))] if count else " " for count in counts)


def summary(report: Report) -> str:
    """The last line: how many findings of each severity."""
    parts = []
    for severity in ("error", "warning", "note"):
        count = report.count(severity)
        parts.append(f"{count} {severity}{'' if count == 1 else 's'}")
    return ", ".join(parts)


def shortened(places: Sequence[str]) -> str:
    """Places in one line: the file without its folder, and only where it changes: ``a.tsv:3, :7``."""
    shown: list[str] = []
    last = ""
    for place in places:
        match = _PLACE.fullmatch(place)
        path, line = match.groups() if match else (place, "")
        shown.append(line if line and path == last else path.rpartition("/")[2] + line)
        last = path
    return ", ".join(shown)


_PLACE = re.compile(r"(.*?)(:\d+.*)")


def by_tokenizer(report: Report) -> Iterator[tuple[str, str, dict[str, Unknown]]]:
    """(split, column, tokenizer → share) of all that was measured, a row of the table each."""
    rows: dict[tuple[str, str], dict[str, Unknown]] = {}
    for each in report.unknown:
        rows.setdefault((each.split, each.column), {})[each.tokenizer] = each
    for (split, column), shares in rows.items():
        yield split, column, shares


# --- plain lines ------------------------------------------------------------------------------------------------------


def write(report: Report) -> None:
    """One line a fact, the findings last."""
    for split in report.splits:
        names = ", ".join(column.name for column in split.columns)
        what = f"rows, columns {names}" if names else split.format
        tell(f"{split.name}: {split.path}: {split.format}, {split.rows:,} {what}")
        for sentence in split.guessed:
            tell(f"{split.name}: {sentence}")
        for column in split.columns:
            tell(f"{split.name}: {column.name}: {_measures(column)}")
    for split_name, column_name, shares in by_tokenizer(report):
        listed = ", ".join(f"{kind} {percent(each.share)}" for kind, each in shares.items())
        tell(f"{split_name}: {column_name}: symbols unknown to train: {listed}")
    for finding in report.findings:
        tell(f"{finding.severity}: {finding.split}: {finding.message}")
        for place in finding.places:
            tell(f"  {place}")
    tell(summary(report))


def _measures(column: Column) -> str:
    found = column.lengths
    if found is None:
        return "no rows"
    classes = f", {len(column.labels)} classes" if column.labels else ""
    return (
        f"{found.unit}: shortest {found.shortest}, median {found.median}, 99% up to {found.percentile_99}, "
        f"longest {found.longest} ({found.longest_place}); "
        f"{column.characters:,} different characters, {column.words:,} different words{classes}"
    )


# --- a terminal -------------------------------------------------------------------------------------------------------


def draw(report: Report, console: Console | None = None) -> None:
    """Tables and coloured findings."""
    console = console or Console(highlight=False)
    for split in report.splits:
        console.print(_heading(split))
    console.print(_lengths_table(report.splits))
    for split in report.splits:
        for column in split.columns:
            if column.labels:
                console.print(_classes(split, column))
    if report.unknown:
        console.print(_unknown_table(report))
    console.print()
    for finding in report.findings:
        console.print(_finding(finding))
    style = "bold red" if not report.ok else "bold yellow" if report.count("warning") else "bold green"
    console.print(Text(f"\n{summary(report)}", style=style))


def _heading(split: Split) -> RenderableType:
    line = Text.assemble((f"{split.name:<6} ", "bold"), split.path, (f"  {split.format}, {split.rows:,} rows", "dim"))
    return Group(line, Padding(Text(" ".join(split.guessed), style="dim"), (0, 0, 0, 7)))


def _plain_table(title: str) -> Table:
    return Table(
        box=None, padding=(0, 2, 0, 0), pad_edge=False, title=f"\n{title}", title_justify="left", title_style="bold",
        header_style="dim",
    )  # fmt: skip


def _lengths_table(splits: Iterable[Split]) -> Table:
    made = _plain_table("Lengths, and how many different characters and words")
    for name in ("split", "column", "unit"):
        made.add_column(name, no_wrap=True)
    for name in ("min", "median", "99%", "max"):
        made.add_column(name, justify="right", no_wrap=True)
    made.add_column("distribution", no_wrap=True)
    for name in ("chars", "words"):
        made.add_column(name, justify="right", no_wrap=True)
    for split in splits:
        for column in split.columns:
            found = column.lengths
            if found is None:
                made.add_row(split.name, column.name)
                continue
            made.add_row(
                split.name,
                Text(column.name),
                "words" if found.unit == "words" else "chars",
                f"{found.shortest:,}",
                f"{found.median:,}",
                f"{found.percentile_99:,}",
                f"{found.longest:,}",
                Text(bars(found.histogram), style="green"),
                f"{column.characters:,}",
                f"{column.words:,}",
            )
    return made


def _classes(split: Split, column: Column) -> Text:
    labels = column.labels or {}
    most = [f"{name} {count / max(split.rows, 1):.0%}" for name, count in list(labels.items())[:6]]
    more = f" and {len(labels) - 6} more" if len(labels) > 6 else ""
    text = f"{len(labels)} classes in {split.name} '{column.name}': {', '.join(most)}{more}"
    return Text(f"{text}  {bars(sorted(labels.values(), reverse=True)[:40])}")


def _unknown_table(report: Report) -> Table:
    kinds = list(dict.fromkeys(each.tokenizer for each in report.unknown))
    made = _plain_table("Symbols unknown to a vocabulary of train")
    for name in ("split", "column"):
        made.add_column(name, no_wrap=True)
    for kind in kinds:
        made.add_column(kind, justify="right", no_wrap=True)
    made.add_column("such as", style="dim")
    for split, column, shares in by_tokenizer(report):
        cells = [Text(percent(shares[kind].share) if kind in shares else "") for kind in kinds]
        made.add_row(split, Text(column), *cells, Text("  ".join(_examples(shares))))
    return made


def _examples(shares: dict[str, Unknown]) -> list[str]:
    """Three unknown characters (by code point where they do not print) and three unknown words."""
    return [
        symbol if symbol.isprintable() and not unicodedata.combining(symbol[0]) else f"U+{ord(symbol[0]):04X}"
        for each in shares.values()
        for symbol in each.examples[:3]
    ]


def _finding(finding: Finding) -> RenderableType:
    """The mark, the split, the message; wrong lines below it, other places behind it."""
    mark, style = _MARKS[finding.severity]
    line = Table.grid(padding=(0, 1))
    line.add_column(width=1)
    line.add_column(width=6)
    line.add_column()
    sentences = [shortened([place]) for place in finding.places if re.search(r":\d+: ", place)]
    rest = finding.count - len(finding.places)
    more = f"{rest:,} more" if finding.places and rest > 0 else ""
    if sentences:
        below = Text("\n".join([*sentences, *([f"and {more}"] if more else [])]), style="dim")
        told: RenderableType = Group(Text(finding.message), below)
    else:
        places = ", ".join(part for part in (shortened(finding.places), more) if part)
        told = Text.assemble(finding.message, (f" {places}", "dim")) if places else Text(finding.message)
    line.add_row(Text(mark, style=style), Text(finding.split, style="bold"), told)
    return line
