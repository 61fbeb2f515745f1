"""From a vector to the probability of every symbol: one softmax over all, or one in steps for a large vocabulary."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Annotated, ClassVar

from annotated_types import Gt
from torch import Tensor, nn

from unrolled.base.errors import SettingsError
from unrolled.base.registry import Registry
from unrolled.layers import Embedding
from unrolled.models.output import Output


class Softmax(nn.Module, ABC):
    """p(w | h) for every symbol w; ``tied`` is the embedding whose weights it shares, or None."""

    ties: ClassVar[bool] = True
    """Whether there are weights of an embedding's shape to share."""

    @abstractmethod
    def loss(self, hidden: Tensor, targets: Tensor, smoothing: float = 0.0) -> Tensor:
        """Σ cross-entropy (natural log) of ``targets`` [n] given ``hidden`` [n, size]."""

    @abstractmethod
    def forward(self, hidden: Tensor) -> Tensor:
        """Numbers [n, vocabulary] whose log-softmax are the log-probabilities."""


SOFTMAXES: Registry[Softmax] = Registry("softmax")


@SOFTMAXES.register("full")
class FullSoftmax(Softmax):
    """softmax(W h + b) over the whole vocabulary, W perhaps the embedding's (see `Output`)."""

    def __init__(self, size: int, vocabulary_size: int, tied: Embedding | None, /) -> None:
        super().__init__()
        self.output = Output(size, vocabulary_size, tied=tied)

    def loss(self, hidden: Tensor, targets: Tensor, smoothing: float = 0.0) -> Tensor:
        return self.output.loss(hidden, targets, smoothing)

    def forward(self, hidden: Tensor) -> Tensor:
        logits: Tensor = self.output(hidden)
        return logits


@SOFTMAXES.register("adaptive")
class AdaptiveSoftmax(Softmax):
    """Frequent symbols and clusters of rare ones in a first softmax, each cluster's symbols in a second, from ever
    smaller projections (Grave et al. 2017, arXiv:1609.04309; `torch.nn.AdaptiveLogSoftmaxWithLoss`).

    ``cutoffs``: the symbols (by id, which goes by frequency) at which clusters begin; ``shrink``: by what each
    cluster's projection is smaller than the one before. It is an approximation of nothing: a model of its own, several
    times cheaper than a full softmax over 50,000 words and more. It is not tied.
    """

    ties = False

    def __init__(
        self,
        size: int,
        vocabulary_size: int,
        _tied: Embedding | None,
        /,
        *,
        cutoffs: tuple[int, ...] = (2_000, 10_000),
        shrink: Annotated[float, Gt(1)] = 4.0,
    ) -> None:
        super().__init__()
        if not cutoffs or list(cutoffs) != sorted(set(cutoffs)) or cutoffs[0] < 1:
            raise SettingsError(
                f"[cutoffs] {list(cutoffs)} was given; cutoffs are rising numbers of symbols, e.g. [2000, 10000]."
            )
        used = [cut for cut in cutoffs if cut < vocabulary_size - 1]
        if not used:
            raise SettingsError(
                f"[cutoffs] {list(cutoffs)} was given, and the vocabulary has {vocabulary_size} symbols: "
                "no cluster is left. Give smaller cutoffs, or set model.softmax to full."
            )
        if size // shrink ** len(used) < 1:
            raise SettingsError(
                f"[shrink] {shrink:g} was given, and a vector of {size} shrunk {len(used)} times has no number left. "
                "Give fewer cutoffs, or a smaller shrink."
            )
        self.layer = nn.AdaptiveLogSoftmaxWithLoss(size, vocabulary_size, used, div_value=shrink, head_bias=True)

    def loss(self, hidden: Tensor, targets: Tensor, smoothing: float = 0.0) -> Tensor:
        if smoothing:
            raise SettingsError(
                f"[train.label_smoothing] {smoothing} was given, and an adaptive softmax has none. Set it to 0."
            )
        return -self.layer(hidden, targets).output.float().sum()

    def forward(self, hidden: Tensor) -> Tensor:
        return self.layer.log_prob(hidden)
