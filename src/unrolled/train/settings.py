"""The settings of a training run, declared once: names, ranges, defaults."""

from __future__ import annotations

from dataclasses import asdict, dataclass, fields
from typing import Annotated, Any, Literal

from annotated_types import Ge, Gt, Interval

from unrolled.base.registry import Part
from unrolled.base.settings import complete
from unrolled.train.averaging import AVERAGES
from unrolled.train.optimizers import OPTIMIZERS
from unrolled.train.schedules import SCHEDULES

EPOCHS = 30
"""How long a run is that was given no end at all."""

Count = Annotated[int, Ge(1)]
Positive = Annotated[float, Gt(0)]
Share = Annotated[float, Interval(ge=0, lt=1)]


@dataclass(frozen=True, kw_only=True)
class TrainSettings:
    """How a model is trained. Raises SettingsError for a value out of range.

    A run ends with the first of ``epochs``, ``steps`` and ``minutes`` that is reached (30 epochs if none is given), or
    by ``patience``. ``minutes`` counts everything from the first update on: updates, validation and saving.
    """

    optimizer: Annotated[Part, OPTIMIZERS] = "adam"
    learning_rate: Positive = 1e-3
    schedule: Annotated[Part, SCHEDULES] = "one_cycle"
    clip_norm: Positive | None = 1.0  # Euclidean norm of all gradients together
    clip_value: Positive | None = None  # each gradient cut to ±this, after the norm
    epochs: Count | None = None
    steps: Count | None = None
    minutes: Positive | None = None
    batch_tokens: Count | None = 4096  # padded source and target symbols
    batch_sentences: Count | None = None  # instead of batch_tokens
    accumulate: Count = 1  # batches an update
    label_smoothing: Share = 0.0
    sampling: Annotated[float, Interval(ge=0, le=1)] = (
        0.0  # how often the model's own symbol is fed back (scheduled sampling)
    )
    average: Annotated[Part, AVERAGES] = "none"
    validate_every: Count | None = None  # steps; None: once an epoch, with minutes perhaps less often
    stop_on: str | None = None  # the validation score that chooses the best weights; None: the task's own, or the loss
    patience: Count | None = None  # validations without a better score
    save_minutes: Positive = 10.0  # a checkpoint at least this often, and at every validation
    save_every: Count | None = None  # steps
    precision: Literal["auto", "bfloat16", "float32"] = "auto"
    device: str = "auto"  # cpu, cuda, cuda:1 …; auto: a GPU where there is one
    deterministic: bool = False
    seed: Annotated[int, Interval(ge=0, lt=2**32)] = 1
    timeout: Positive = 600.0  # seconds that a process waits for another one's part of an update

    def __post_init__(self) -> None:
        given = {field.name: getattr(self, field.name) for field in fields(self)}
        for name, value in complete(type(self), given, "train").items():
            object.__setattr__(self, name, value)
        if self.epochs is None and self.steps is None and self.minutes is None:
            object.__setattr__(self, "epochs", EPOCHS)

    def tree(self) -> dict[str, Any]:
        return asdict(self)
