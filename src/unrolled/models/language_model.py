"""The probability of every next symbol given those before it, read in pieces of any length."""

from __future__ import annotations

from typing import Annotated, Literal, NamedTuple

import torch
from annotated_types import Ge
from torch import Tensor, nn

from unrolled.base.errors import SettingsError
from unrolled.base.registry import Part
from unrolled.layers import DROPOUTS, Embedding, State
from unrolled.layers.draws import kept
from unrolled.layers.likeliest import likeliest
from unrolled.layers.surroundings import real_places
from unrolled.models.histories import HISTORIES
from unrolled.models.ranges import Count, Share
from unrolled.models.said import Offered, Stepped
from unrolled.models.seq2seq import MODELS
from unrolled.models.softmaxes import SOFTMAXES


class Read(NamedTuple):
    """A piece of text, read."""

    hidden: Tensor  # [symbols, size]: what each real place knows of the next symbol, in row order
    state: State  # after each row's last real symbol, with its graph
    penalty: Tensor | None  # to be added to the summed loss


class Scored(NamedTuple):
    """The loss of a piece, and the state that it leaves."""

    total: Tensor  # Σ over symbols, penalties included
    state: State


@MODELS.register("language_model")
class LanguageModel(nn.Module):
    """p(w_1 … w_n) = Π_t p(w_t | w_<t),  p(· | w_<t) = softmax(W h_t + b),  h_t = history(w_<t)

    ``tie``: the output layer uses the embedding's weights (Press & Wolf 2017, arXiv:1608.05859; a projection where the
    sizes differ); null: where it can and there are more symbols than numbers in a vector, for few symbols (characters)
    learn worse so. ``dropout`` is that of the embedded symbols and of the history's output, ``locked`` one draw for a
    piece's steps (Gal & Ghahramani 2016, arXiv:1512.05287). ``embedding_dropout``: the rate at which whole symbols of
    the vocabulary are read as 0 for a piece (ibid., and Merity et al. 2018, arXiv:1708.02182, §4.3); ``word_dropout``:
    at which single places are read as the unknown symbol. ``embedding_scale``: vectors are read as they are, or times
    √embedding_size, so that they start with variance 1 (see `Seq2Seq`).

    Per symbol, the loss takes ``activation_penalty`` α times the mean square of the dropped-out h_t, and
    ``slowness_penalty`` β times that of h_t - h_{t-1} (ibid., §4.6).

    A document is [BEGIN, w_1 … w_n] in and [w_1 … w_n, …] out. Masks are bool, True = real, real places first. A state
    is a flat tuple of tensors, batch first.
    """

    def __init__(
        self,
        vocabulary_size: int,
        /,
        *,
        embedding_size: Count = 256,
        history: Annotated[Part, HISTORIES] = "rnn",
        softmax: Annotated[Part, SOFTMAXES] = "full",
        tie: bool | None = None,
        dropout: Share = 0.2,
        input_dropout: Share | None = None,
        dropout_kind: Literal["plain", "locked"] = "plain",
        embedding_dropout: Share = 0.0,
        word_dropout: Share = 0.0,
        embedding_scale: Literal["none", "root"] = "none",
        activation_penalty: Annotated[float, Ge(0)] = 0.0,
        slowness_penalty: Annotated[float, Ge(0)] = 0.0,
    ) -> None:
        super().__init__()
        kind = SOFTMAXES.complete(softmax, "softmax")["kind"]
        can: bool = SOFTMAXES[kind].ties  # type: ignore[attr-defined]
        tie = (can and vocabulary_size > embedding_size) if tie is None else tie
        if tie and not can:
            raise SettingsError(
                f"[tie] true was given, and the softmax '{kind}' has no weights of the embedding's shape. "
                "Set tie to false, or the softmax to full."
            )
        self.vocabulary_size = vocabulary_size
        self.embedding = Embedding(
            vocabulary_size,
            size=embedding_size,
            dropout=dropout if input_dropout is None else input_dropout,
            dropout_kind=dropout_kind,
            word_dropout=word_dropout,
        )
        self.embedding_factor = embedding_size**0.5 if embedding_scale == "root" else 1.0
        self.history = HISTORIES.build(history, embedding_size, where="history")
        self.dropout = DROPOUTS.build({"kind": dropout_kind, "rate": dropout}, where="dropout")
        tied = self.embedding if tie else None
        self.softmax = SOFTMAXES.build(softmax, self.history.output_size, vocabulary_size, tied, where="softmax")
        self.embedding_dropout = embedding_dropout
        self.activation_penalty, self.slowness_penalty = activation_penalty, slowness_penalty

    def initial(self, batch: int) -> State:
        """The state before a document's BEGIN."""
        return self.history.initial(batch, self.embedding.weight)

    def forward(self, ids: Tensor, mask: Tensor, state: State) -> Read:
        """Read ``ids`` int64 [batch, time] on from ``state``."""
        output, after = self.history(self._embed(ids), mask, state)
        dropped = self.dropout(output)
        places = real_places(mask)
        hidden = dropped.flatten(0, 1).index_select(0, places)
        return Read(hidden, after, self._penalty(output, hidden, mask))

    def loss(self, ids: Tensor, mask: Tensor, targets: Tensor, state: State, *, smoothing: float = 0.0) -> Scored:
        """Σ over real places of the cross-entropy (natural log) of ``targets`` int64 [batch, time]; the state after."""
        read = self(ids, mask, state)
        total = self.softmax.loss(read.hidden, targets[mask], smoothing)
        return Scored(total if read.penalty is None else total + read.penalty, read.state)

    def log_probs(self, ids: Tensor, mask: Tensor, targets: Tensor, state: State) -> tuple[Tensor, State]:
        """Natural-log probability of each target, float32 [batch, time], 0 at padding; the state after."""
        read = self(ids, mask, state)
        said = self.softmax(read.hidden).float().log_softmax(dim=1)
        found = said.gather(1, targets[mask].unsqueeze(1)).squeeze(1)
        return found.new_zeros(mask.shape).masked_scatter(mask, found), read.state

    def vector(self, ids: Tensor, mask: Tensor) -> Tensor:
        """The mean of what is known after each symbol of a text, [batch, size]."""
        output = self.history(self._embed(ids), mask, self.initial(len(ids)))[0]
        return (output * mask.unsqueeze(2)).sum(dim=1) / mask.sum(dim=1, keepdim=True)

    # --- step by step ---------------------------------------------------------------------------------------------

    def start(self, ids: Tensor, mask: Tensor) -> State:
        """Read the beginnings ``ids`` [BEGIN, w_1 … w_n], int64 [batch, time]: the state before the first new symbol.

        The first tensor is each row's last symbol, which is still to be read, in the place of what the first ``step``
        is given.
        """
        lengths = mask.sum(dim=1)
        last = ids.gather(1, (lengths - 1).unsqueeze(1)).squeeze(1)
        state = self.initial(len(ids))
        if ids.shape[1] > 1:
            before = torch.arange(ids.shape[1] - 1, device=ids.device) < (lengths - 1).clamp(min=1).unsqueeze(1)
            read = self.history(self._embed(ids[:, :-1]), before, state).state
            more = (lengths > 1).unsqueeze(1)
            state = tuple(torch.where(more, one, first) for one, first in zip(read, state, strict=True))
        return (last, *state)

    def step(self, last_ids: Tensor, state: State) -> Stepped:
        """What comes after ``last_ids`` int64 [batch]."""
        pending, *before = state
        read = torch.where(pending >= 0, pending, last_ids)
        output, after = self.history(self._embed(read.unsqueeze(1)), None, tuple(before))
        logits = self.softmax(self.dropout(output).squeeze(1))
        return Stepped(logits, None, (torch.full_like(pending, -1), *after))

    def offer(self, last_ids: Tensor, state: State, k: int) -> Offered:
        """The ``k`` likeliest symbols after ``last_ids`` int64 [batch]."""
        logits, weights, state = self.step(last_ids, state)
        return Offered(*likeliest(logits.float(), k), weights, state)

    def select(self, state: State, rows: Tensor) -> State:
        """The state of ``rows`` int64 [n], repeats allowed, in that order."""
        return tuple(tensor.index_select(0, rows) for tensor in state)

    def _embed(self, ids: Tensor) -> Tensor:
        vectors: Tensor = self.embedding(ids) * self.embedding_factor
        if not (self.training and self.embedding_dropout):
            return vectors
        left = kept((self.vocabulary_size,), 1 - self.embedding_dropout, vectors)
        return vectors * (left / (1 - self.embedding_dropout))[ids].unsqueeze(2)

    def _penalty(self, output: Tensor, hidden: Tensor, mask: Tensor) -> Tensor | None:
        if not (self.training and (self.activation_penalty or self.slowness_penalty)):
            return None
        total = self.activation_penalty * hidden.float().square().mean(dim=1).sum()
        if self.slowness_penalty and output.shape[1] > 1:
            moved = (output[:, 1:] - output[:, :-1]).float().square().mean(dim=2)
            total = total + self.slowness_penalty * moved[mask[:, 1:]].sum()
        return total
