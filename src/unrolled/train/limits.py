"""How far a run is, when it ends, and how long it will still take."""

from __future__ import annotations

from dataclasses import dataclass

from unrolled.train.settings import TrainSettings


@dataclass
class Position:
    """Where a run stands. All of it is in every checkpoint."""

    step: int = 0  # updates done
    epoch: int = 0
    batch: int = 0  # batches of this epoch done
    batches: int = 1  # batches in this epoch
    elapsed: float = 0.0  # seconds in fit: updates, validation, saving
    validated: int = 0  # the step of the last validation
    validated_at: float = 0.0  # elapsed at its end
    saved: float = 0.0  # elapsed at the last checkpoint
    saved_step: int = 0
    reserve: float = 0.0  # seconds to keep for the validation at the end


def shares(settings: TrainSettings, at: Position) -> dict[str, float]:
    """How much of each given limit is used: 1 ends the run."""
    used = {}
    if settings.epochs is not None:
        used["epochs"] = (at.epoch + at.batch / max(at.batches, 1)) / settings.epochs
    if settings.steps is not None:
        used["steps"] = at.step / settings.steps
    if settings.minutes is not None:
        # Whatever the validation takes, one update's worth of the time is left.
        used["minutes"] = at.elapsed / max(settings.minutes * 60 - at.reserve, 1e-3)
    return used


def share(settings: TrainSettings, at: Position) -> float:
    """How far the run is: by the limit that is nearest."""
    return min(1.0, max(shares(settings, at).values()))


def ended(settings: TrainSettings, at: Position) -> str | None:
    """The limit that is reached: epochs, steps or minutes."""
    return next((name for name, used in shares(settings, at).items() if used >= 1), None)


def validation_is_due(settings: TrainSettings, at: Position) -> bool:
    """Whether to validate before the next update: every ``validate_every`` steps, or at the end of an epoch.

    In a run of so many minutes the ends of short epochs are passed over while validations would take more than a fifth
    of the time. (Of other runs the clock decides nothing, so that they can be repeated.)
    """
    if at.step == at.validated:
        return False
    if settings.validate_every is not None:
        return at.step % settings.validate_every == 0
    return at.batch == 0 and (settings.minutes is None or at.elapsed - at.validated_at >= 4 * at.reserve)


def seconds_left(settings: TrainSettings, at: Position, first: Position) -> float | None:
    """An estimate by the pace since ``first``, where the run stood after the first update since it was started or taken
    up again: that one takes longer than any other (loops are compiled, memory is claimed).

    Never more than a limit in minutes leaves; None while nothing tells: before the second update, unless time alone
    ends the run.
    """
    used, before = shares(settings, at), shares(settings, first)
    if at.step == first.step and set(used) != {"minutes"}:
        return None
    left = []
    for name, share in used.items():
        if name == "minutes":
            left.append((settings.minutes or 0.0) * 60 - at.elapsed)
        elif share > before[name]:
            pace = (at.elapsed - first.elapsed) / (share - before[name])
            left.append(pace * max(0.0, 1 - share) + at.reserve)
    return max(0.0, min(left)) if left else None
