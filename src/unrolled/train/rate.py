"""Symbols a second, lately: two decaying sums, so that it costs nothing to keep."""

from __future__ import annotations


class Rate:
    """Decays over about ``span`` seconds of updates."""

    def __init__(self, span: float = 10.0) -> None:
        self.span = span
        self.symbols = 0.0
        self.seconds = 0.0

    def note(self, symbols: float, seconds: float) -> float:
        """Add an update; the rate now."""
        keep = max(0.0, 1 - seconds / self.span)
        self.symbols = self.symbols * keep + symbols
        self.seconds = self.seconds * keep + seconds
        return self.symbols / max(self.seconds, 1e-9)
