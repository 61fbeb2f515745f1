"""Ctrl-C and SIGTERM ask training to stop at the next clean point; a second Ctrl-C stops it at once."""

from __future__ import annotations

import signal
import threading
from types import FrameType, TracebackType
from typing import Any


class Interruption:
    """A context in which signals are noted in ``asked``. Between ``open()`` and ``close()`` they raise at once."""

    def __init__(self) -> None:
        self.asked = False
        self._open = False
        self._before: dict[signal.Signals, Any] = {}

    def __enter__(self) -> Interruption:
        self.asked = self._open = False
        if threading.current_thread() is threading.main_thread():
            for kind in (signal.SIGINT, signal.SIGTERM):
                self._before[kind] = signal.signal(kind, self._note)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler if handler is not None else signal.SIG_DFL)

    def open(self) -> None:
        """From here on nothing is half done: a signal may raise KeyboardInterrupt."""
        self._open = True

    def close(self) -> None:
        self._open = False

    def _note(self, number: int, frame: FrameType | None) -> None:  # noqa: ARG002
        again = self.asked and number == signal.SIGINT
        self.asked = True
        if self._open or again:
            raise KeyboardInterrupt
