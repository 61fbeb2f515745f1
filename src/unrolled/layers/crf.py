"""A linear-chain conditional random field: the labels of a row are scored together, not one by one."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor, nn

from unrolled.base.errors import UsageError

FORBIDDEN = -1e9
"""Added to the score of what must not be: its weight is exactly 0, and gradients stay numbers, as with -inf they do
not."""


class Legal(NamedTuple):
    """Which labels may begin a row, follow one another and end a row; True = may."""

    start: Tensor  # bool [label]
    follow: Tensor  # bool [label, label]: from the first to the second
    end: Tensor  # bool [label]


class Path(NamedTuple):
    """The likeliest labels of each row and their score, not normalised."""

    labels: Tensor  # int64 [batch, time]; 0 in padding
    score: Tensor  # [batch]


class ConditionalRandomField(nn.Module):
    """Linear-chain conditional random field (Lafferty et al. 2001; above a BiLSTM: Lample et al. 2016,
    arXiv:1603.01360).

    s(x, y) = start[y_1] + Σ_t scores[t, y_t] + Σ_t follow[y_t, y_{t+1}] + end[y_n]
    log p(y | x) = s(x, y) - log Σ_y' exp s(x, y')

    What ``legal`` forbids has probability 0, in training too; at least one labelling of every length must be legal.
    ``scores`` are float [batch, time, label], ``labels`` int64 [batch, time], ``mask`` bool [batch, time].
    Half precision is computed in float32. A mask is True in the first 1 to ``time`` positions of each row.
    """

    def __init__(self, labels: int, /, *, legal: Legal | None = None) -> None:
        super().__init__()
        self.labels = labels
        self.start = nn.Parameter(torch.empty(labels))
        self.follow = nn.Parameter(torch.empty(labels, labels))
        self.end = nn.Parameter(torch.empty(labels))
        for parameter in self.parameters():
            nn.init.uniform_(parameter, -0.1, 0.1)
        shapes = {"start": (labels,), "follow": (labels, labels), "end": (labels,)}
        for name, shape in shapes.items():
            may = torch.ones(shape, dtype=torch.bool) if legal is None else getattr(legal, name)
            if may.dtype != torch.bool or may.shape != shape:
                raise UsageError(
                    f"legal.{name} is {may.dtype} {list(may.shape)}; for {labels} labels it must be bool {list(shape)}."
                )
            self.register_buffer(f"may_{name}", may.clone())

    def forward(self, scores: Tensor, labels: Tensor, mask: Tensor) -> Tensor:
        """log p(labels | scores) of each row, [batch]; the loss is its negative. Labels in padding are not looked at.

        UsageError where a row's labels are not legal: their probability is 0.
        """
        found = self._score(scores, labels, mask)
        if found.numel() and found.min() < FORBIDDEN / 2:
            row = int(found.argmin())
            raise UsageError(
                f"labels: row {row} holds a transition that 'legal' forbids. Repair the labels or allow it."
            )
        return found - self.log_partition(scores, mask)

    def log_partition(self, scores: Tensor, mask: Tensor) -> Tensor:
        """log Σ_y exp s(x, y) over all labellings of each row, [batch], by the forward algorithm."""
        ends = self._forwards(_exact(scores), _checked(scores, mask))[-1] + self._scored("end")
        return ends.logsumexp(-1)

    def marginals(self, scores: Tensor, mask: Tensor) -> Tensor:
        """p(y_t = label | x), [batch, time, label], by forward and backward sums; 0 in padding."""
        exact, mask = _exact(scores), _checked(scores, mask)
        forwards = torch.stack(self._forwards(exact, mask), 1)
        after = self._scored("end").expand(exact.shape[0], -1)
        backwards, weights = [after], self._weights().T
        for step in range(exact.shape[1] - 1, 0, -1):
            moved = _summed(exact[:, step] + after, weights)
            after = torch.where(mask[:, step, None], moved, after)
            backwards.append(after)
        found = (forwards + torch.stack(backwards[::-1], 1)).softmax(-1)
        return found * mask.unsqueeze(-1)

    def decode(self, scores: Tensor, mask: Tensor) -> Path:
        """The likeliest labels of each row (Viterbi 1967)."""
        exact, mask = _exact(scores.detach()), _checked(scores, mask)
        with torch.no_grad():
            best = self._scored("start") + exact[:, 0]
            stay = torch.arange(self.labels, device=scores.device).expand_as(best)
            origins = []
            for step in range(1, exact.shape[1]):
                top, origin = (best.unsqueeze(2) + self._scored("follow")).max(1)
                real = mask[:, step, None]
                best = torch.where(real, top + exact[:, step], best)
                origins.append(torch.where(real, origin, stay))
            score, label = (best + self._scored("end")).max(-1)
        chosen = [label]
        for origin in reversed(origins):
            label = origin.gather(1, label.unsqueeze(1)).squeeze(1)
            chosen.append(label)
        return Path(torch.stack(chosen[::-1], 1) * mask, score)

    def _scored(self, name: str) -> Tensor:
        """The parameter ``name`` with what must not be made impossible."""
        return _exact(getattr(self, name)) + FORBIDDEN * (~getattr(self, f"may_{name}"))

    def _forwards(self, scores: Tensor, mask: Tensor) -> list[Tensor]:
        """Per step, log of the summed weights of all beginnings that end in each label, [batch, label]."""
        before = self._scored("start") + scores[:, 0]
        found, weights = [before], self._weights()
        for step in range(1, scores.shape[1]):
            moved = _summed(before, weights) + scores[:, step]
            before = torch.where(mask[:, step, None], moved, before)
            found.append(before)
        return found

    def _weights(self) -> Tensor:
        """exp of the scores from label to label, float64: 0 where they are forbidden."""
        return self._scored("follow").double().exp()

    def _score(self, scores: Tensor, labels: Tensor, mask: Tensor) -> Tensor:
        mask = _checked(scores, mask)
        labels = labels.masked_fill(~mask, 0)
        if labels.numel() and (labels.min() < 0 or labels.max() >= self.labels):
            raise UsageError(
                f"labels must be 0 to {self.labels - 1}; found {int(labels.min())} to {int(labels.max())}."
            )
        emitted = _exact(scores).gather(2, labels.unsqueeze(2)).squeeze(2).where(mask, 0.0).sum(1)
        moved = self._scored("follow")[labels[:, :-1], labels[:, 1:]].where(mask[:, 1:], 0.0).sum(1)
        last = labels.gather(1, mask.sum(1, keepdim=True) - 1).squeeze(1)
        return self._scored("start")[labels[:, 0]] + emitted + moved + self._scored("end")[last]


def _summed(before: Tensor, weights: Tensor) -> Tensor:
    """log Σ_i exp(before_i) · weights_ij, [batch, label]: a product instead of an exponential for each pair of labels.

    In float64 a label counts until its weight is e^-745 of the greatest one; what nothing leads to is FORBIDDEN.
    """
    top = before.detach().amax(-1, keepdim=True)
    total = (before - top).double().exp() @ weights
    found = total.clamp(min=torch.finfo(total.dtype).tiny).log().to(before.dtype) + top
    return torch.where(total > 0, found, FORBIDDEN)


def _exact(scores: Tensor) -> Tensor:
    return scores.to(torch.promote_types(scores.dtype, torch.float32))


def _checked(scores: Tensor, mask: Tensor) -> Tensor:
    if mask.shape != scores.shape[:2]:
        raise UsageError(f"mask is {list(mask.shape)}; for these scores it must be {list(scores.shape[:2])}.")
    if not mask[:, :1].all() or mask.shape[1] == 0 or (mask[:, 1:] & ~mask[:, :-1]).any():
        raise UsageError("mask: each row must be True in its first positions, at least in one, and False after them.")
    return mask
