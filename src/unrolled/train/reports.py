"""What training says while it runs: plain named values that are printed, streamed or tested."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple


class Step(NamedTuple):
    """One update of the weights."""

    step: int  # updates so far, this one included
    epoch: int  # from 0
    loss: float  # mean over the predicted symbols of all processes, natural log
    gradient_norm: float | None  # Euclidean, before clipping; None where the model steps its own weights
    learning_rate: float
    symbols: int  # predicted symbols in this update
    rate: float  # predicted symbols a second, lately
    seconds_left: float | None  # estimated by the pace after the first update; None where nothing tells


class Validated(NamedTuple):
    """The scores of the weights that would be kept now (the averaged ones, where averaging is on)."""

    step: int
    epoch: int
    scores: Mapping[str, float]
    best: bool  # better than all before, by the score that training stops on
    seconds: float


class Saved(NamedTuple):
    """A folder that is whole on disk: a checkpoint to go on from, or (``best``) the best weights."""

    step: int
    path: Path
    best: bool


class Split(NamedTuple):
    """A batch did not fit the memory and was run in ``pieces``; the gradients add up to the same."""

    step: int
    rows: int
    pieces: int


class Difference(NamedTuple):
    """A setting that is not what the checkpoint was trained with; ``now`` is used."""

    name: str
    saved: Any
    now: Any


class Resumed(NamedTuple):
    step: int
    path: Path
    differences: tuple[Difference, ...]


class Stopped(NamedTuple):
    """The last report. ``reason``: epochs, steps, minutes, patience or interrupted."""

    reason: str
    step: int
    best_step: int | None
    best_score: float | None
    seconds: float


class Trial(NamedTuple):
    """The longest batch, once through a whole update, with the weights left as they were."""

    rows: int
    symbols: int  # predicted symbols
    pieces: int  # 1 where the batch fits
    seconds: float
    memory: int  # bytes at the peak: of the process on a CPU, of the device's allocations on a GPU


Report = Step | Validated | Saved | Split | Resumed | Stopped
