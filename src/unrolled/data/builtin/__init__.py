"""Data that comes with the package, made when asked for: phrases with gold alignments, dates, spelling to sound."""

from __future__ import annotations

from unrolled.base.errors import UsageError
from unrolled.base.registry import Part
from unrolled.data.builtin.dates import Dates
from unrolled.data.builtin.example import BUILTIN, Built, Example, Maker
from unrolled.data.builtin.g2p import Pronunciation
from unrolled.data.builtin.phrases import Phrases

__all__ = ["BUILTIN", "Built", "Dates", "Example", "Maker", "Phrases", "Pronunciation", "make"]


def make(name: Part, *, seed: int = 1, size: int | None = None) -> Built:
    """The built-in data set ``name`` with ``size`` training examples (None: its own default), fixed by the seed.

    ``name`` may carry settings, ``{"kind": "g2p", "stress": False}``. SettingsError for a name that is not known.
    """
    maker = BUILTIN.build(name)
    if size is not None and size < 1:
        raise UsageError(f"size {size} was given; at least 1 training example is needed.")
    return maker.make(seed, maker.default_size if size is None else size)
