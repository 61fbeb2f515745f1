"""Training as one line that moves on a terminal, and as plain lines now and then everywhere else."""

from __future__ import annotations

import shutil
import sys
import time
from typing import Any

PLAIN_SECONDS = 10.0
"""Without a terminal a line this often is enough."""


def say(text: str = "") -> None:
    """A line of progress or remark, on stderr."""
    print(text, file=sys.stderr, flush=True)  # noqa: T201


def duration(seconds: float) -> str:
    """``"1:05"`` or ``"2:00:05"``."""
    whole = int(seconds + 0.5)
    hours, rest = divmod(whole, 3600)
    return f"{hours}:{rest // 60:02d}:{rest % 60:02d}" if hours else f"{rest // 60}:{rest % 60:02d}"


class Progress:
    """Shows the reports of a run on stderr. ``unit``: what its rate counts."""

    def __init__(self, *, quiet: bool = False, unit: str = "symbols") -> None:
        self.unit = unit
        self.quiet = quiet
        self.live = sys.stderr.isatty() and not quiet
        self.last = 0.0
        self.width = 0

    def show(self, report: Any) -> None:
        """Print one report; an unknown kind is a mistake of ours and fails loudly."""
        getattr(self, f"_{type(report).__name__.lower()}")(report)

    def _step(self, report: Any) -> None:
        now = time.monotonic()
        if self.quiet or now - self.last < (0.2 if self.live else PLAIN_SECONDS):
            return
        self.last = now
        begin = f"epoch {report.epoch + 1}  step {report.step}  loss {report.loss:.3f}  "
        norm = report.gradient_norm
        middle = f"{'' if norm is None else f'gradient {norm:.2f}  '}rate {report.learning_rate:.2e}  "
        left = "" if report.seconds_left is None else f"  left {duration(report.seconds_left)}"
        end = f"{report.rate:,.0f} {self.unit}/s{left}"
        line = begin + middle + end
        if self.live:
            room = shutil.get_terminal_size().columns - 1  # a line that wraps cannot be written over
            line = (line if len(line) <= room else begin + end)[:room]
            self.width = min(max(self.width, len(line)), room)
            sys.stderr.write("\r" + line.ljust(self.width))
            sys.stderr.flush()
        else:
            say(line)

    def line(self, text: str) -> None:
        """A line that stays."""
        if self.quiet:
            return
        if self.live and self.width:
            sys.stderr.write("\r" + " " * self.width + "\r")
            self.width = 0
        say(text)

    def _validated(self, report: Any) -> None:
        scores = "  ".join(f"{name} {value:.3f}" for name, value in report.scores.items())
        self.line(f"step {report.step}  valid: {scores}{'  ← best' if report.best else ''}")

    def _saved(self, report: Any) -> None:
        if report.best and self.live:
            self.line(f"step {report.step}  kept: {report.path}")

    def _split(self, report: Any) -> None:
        self.line(f"step {report.step}: {report.rows} rows did not fit the memory and ran in {report.pieces} pieces.")

    def _resumed(self, report: Any) -> None:
        self.line(f"resumed at step {report.step} from {report.path}")
        for difference in report.differences:
            self.line(f"  {difference.name}: was {difference.saved}, now {difference.now}")

    def _stopped(self, report: Any) -> None:
        best = "" if report.best_step is None else f"; best {report.best_score:.3f} at step {report.best_step}"
        self.line(f"stopped at step {report.step} ({report.reason}) after {duration(report.seconds)}{best}")
