"""Cross-entropy as a sum over symbols, so that any split of a batch adds up."""

from __future__ import annotations

from torch import Tensor
from torch.nn import functional

from unrolled.base.errors import UsageError


def cross_entropy(logits: Tensor, targets: Tensor, smoothing: float = 0.0) -> Tensor:
    """Σ over rows of the cross-entropy (natural log) of ``targets`` [n] under softmax(``logits`` [n, vocabulary]).

    With ``smoothing`` ε in [0, 1) the target distribution is (1 - ε) on the gold symbol plus ε / vocabulary on every
    one (Szegedy et al. 2016). Computed in float32 whatever the logits' type.
    """
    if logits.dim() != 2 or targets.shape != logits.shape[:1]:
        raise UsageError(
            f"logits have shape {list(logits.shape)} and targets {list(targets.shape)}; "
            "they must be [n, vocabulary] and [n]."
        )
    if not 0.0 <= smoothing < 1.0:
        raise UsageError(f"smoothing {smoothing} was given; it must be at least 0 and below 1.")
    return functional.cross_entropy(logits.float(), targets, reduction="sum", label_smoothing=smoothing)
