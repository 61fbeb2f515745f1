"""A task says what an example is, its loss and its scores; everything else is shared."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any

from unrolled.base.protocol import Loss
from unrolled.base.registry import Registry

if TYPE_CHECKING:
    from torch import nn

    from unrolled.text.texts import TextPair
    from unrolled.text.tokenizer import Tokenizer


class Task(ABC):
    """One kind of example, from a row of the user's table to a loss and to scores."""

    columns: tuple[str, ...]
    """Columns of a row, in order."""

    stop_on: str
    """The validation score that decides which weights are the best, where the settings name none."""

    @abstractmethod
    def encoders(self, text: TextPair) -> dict[str, Tokenizer]:
        """What turns each column's text into ids, by column."""

    @abstractmethod
    def network(self, settings: dict[str, Any], text: TextPair) -> nn.Module:
        """The model that ``settings`` describe, sized to the vocabulary."""

    @abstractmethod
    def loss(self, network: nn.Module, batch: Any, smoothing: float = 0.0, sampling: float = 0.0) -> Loss:
        """The summed loss of a batch; calls ``network(...)`` once, so that it may be wrapped for many processes."""


TASKS: Registry[Task] = Registry("task")
