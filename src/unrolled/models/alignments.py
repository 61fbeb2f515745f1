"""Hard attention: a symbol is said from one source position, which is not known, so the model sums over all."""

from __future__ import annotations

import abc
from collections.abc import Callable
from typing import ClassVar, NamedTuple

import torch
from torch import Tensor, nn

from unrolled.base.registry import Registry
from unrolled.layers import Memory, State
from unrolled.layers.attention import Bilinear
from unrolled.models.ranges import Count

NEVER = -1e9
"""The logarithm of a probability that is exactly 0 once it is taken back, in any precision."""


class Marginal(NamedTuple):
    """A target said from no known position."""

    log_probs: Tensor  # [symbols, vocabulary], log p(y_i | y_<i), float32 at least
    weights: Tensor  # [batch, time, source], p(a_i = j | y_<i)


Say = Callable[[Tensor, Tensor | None], Tensor]
"""Log-probabilities [rows, source, vocabulary] of vectors o [rows, source, size], and of which row of the batch each of
them is (None: each of its own)."""


class Alignment(nn.Module, abc.ABC):
    """p(y_i | y_<i) = Σ_j p(a_i = j | y_<i) p(y_i | a_i = j, y_<i)

    where a_i is the source position that symbol i is said from. Nothing is drawn and nothing is approximated: the sum
    is over all positions, and what is trained is its logarithm. With s_i the decoder's output and h_j the encoder's,

    e_ij = s_i W_s h_j                                      how likely it is that symbol i is said from position j
    o_ij = tanh(W [s_i, h_j] + b)                           what the output layer then says it from

    A kind says what a_i depends on. The decoder sees no context, unless it has an attention of its own: s_i must not
    depend on the positions of the symbols before. ``hidden_size`` is that of o; None: the decoder's. Time and memory
    grow with target × source × vocabulary: it is meant for letters and other small vocabularies.
    """

    moves: ClassVar[int] = 0
    """Number of tensors that `initial` gives: what a step needs to know of the step before."""

    def __init__(self, decoder_size: int, memory_size: int, /, *, hidden_size: Count | None = None) -> None:
        super().__init__()
        self.score = Bilinear(decoder_size, memory_size)
        self.output_size = hidden_size or decoder_size
        self.of_state = nn.Linear(decoder_size, self.output_size)
        self.of_memory = nn.Linear(memory_size, self.output_size, bias=False)

    def remember(self, encoded: Tensor, mask: Tensor) -> Memory:
        """What of ``encoded`` [batch, source, memory] needs no decoder; ``mask`` bool [batch, source]."""
        return Memory(self.score.remember(encoded, mask).keys, self.of_memory(encoded), mask)

    def vectors(self, states: Tensor, values: Tensor) -> Tensor:
        """o [rows, source, size] of ``states`` [rows, decoder] and of each one's memory ``values``."""
        return (self.of_state(states).unsqueeze(1) + values).tanh()

    def scores(self, states: Tensor, memory: Memory) -> Tensor:
        """e [batch, time, source] of ``states`` [batch, time, decoder], float32 at least; `NEVER` on padding."""
        scores = self.score.score(states, memory)
        scores = scores.to(torch.promote_types(scores.dtype, torch.float32))
        return scores.masked_fill(~memory.mask.unsqueeze(1), NEVER)

    @abc.abstractmethod
    def initial(self, memory: Memory, vocabulary_size: int) -> State:
        """What the first step knows of the step before it, `moves` tensors [batch, …]."""

    @abc.abstractmethod
    def follow(self, scores: Tensor, before: Tensor, said: Tensor) -> Tensor:
        """log p(a_i = j | y_<i) [batch, source], from ``scores`` e_i.

        ``before`` is log p(a_{i-1} = j | y_<i-1), ``said`` log p(y_{i-1} | a_{i-1} = j), both [batch, source].
        """

    def forward(self, outputs: Tensor, target: Tensor, places: Tensor, memory: Memory, say: Say) -> Marginal:
        """What all steps say at once; ``target`` int64 [batch, time] is what each has said for the steps that follow.

        ``outputs`` [batch, time, decoder] are the decoder's, ``places`` int64 [symbols] those of the real symbols in
        the flattened [batch, time]; ``say`` makes log-probabilities of o.
        """
        rows = places // target.shape[1]
        states = outputs.flatten(0, 1).index_select(0, places)
        said = say(self.vectors(states, memory.values.index_select(0, rows)), rows)
        gold = target.flatten().index_select(0, places).view(-1, 1, 1).expand(-1, said.shape[1], 1)
        chosen = said.gather(2, gold).squeeze(2)
        scores = self.scores(outputs, memory)
        filled = scores.new_zeros(scores.shape).flatten(0, 1).index_copy(0, places, chosen.to(scores.dtype))
        looked = self._follow_all(scores, filled.view_as(scores), memory)
        log_probs = _added(said, looked.flatten(0, 1).index_select(0, places))
        return Marginal(log_probs, looked.exp())

    def step(
        self, output: Tensor, last: Tensor, memory: Memory, state: State, say: Say
    ) -> tuple[Tensor, Tensor, State]:
        """Log-probabilities [batch, vocabulary] of the next symbol, p(a = j) [batch, source], and the next state.

        ``output`` [batch, decoder] is the decoder's after ``last`` int64 [batch].
        """
        scores = self.scores(output.unsqueeze(1), memory).squeeze(1)
        before = told = torch.zeros_like(scores)
        if self.moves:
            before, all_told = state
            told = all_told.gather(2, last.view(-1, 1, 1).expand(-1, before.shape[1], 1)).squeeze(2)
        looked = self.follow(scores, before, told)
        said = say(self.vectors(output, memory.values), None)
        return _added(said, looked), looked.exp(), (looked, said) if self.moves else ()

    def _follow_all(self, scores: Tensor, said: Tensor, memory: Memory) -> Tensor:
        """log p(a_i = j | y_<i) of all steps, from ``scores`` e and ``said`` log p(y_i | a_i = j).

        All are [batch, time, source].
        """
        looked: list[Tensor] = []
        before = _first(memory)
        told = torch.zeros_like(before)
        for now, saying in zip(scores.unbind(1), said.unbind(1), strict=True):
            before = self.follow(now, before, told)
            looked.append(before)
            told = saying
        return torch.stack(looked, dim=1)


ALIGNMENTS: Registry[Alignment] = Registry("alignment")


@ALIGNMENTS.register("independent")
class Independent(Alignment):
    """p(a_i = j) = softmax_j(e_ij): any position, whatever the one before (Wu, Shapiro & Cotterell 2018,
    arXiv:1808.10024)."""

    def initial(self, memory: Memory, vocabulary_size: int) -> State:  # noqa: ARG002
        return ()

    def follow(self, scores: Tensor, before: Tensor, said: Tensor) -> Tensor:  # noqa: ARG002
        return scores.log_softmax(-1)


@ALIGNMENTS.register("monotonic")
class Monotonic(Alignment):
    """p(a_i = j | a_{i-1} = k) = exp e_ij / Σ_{l ≥ k} exp e_il for j ≥ k, else 0; a_0 is the first position.

    p(a_i = j | y_<i) = Σ_k p(a_i = j | a_{i-1} = k) p(a_{i-1} = k | y_<i): a hidden Markov model over positions that
    never goes back (Wu & Cotterell 2019, arXiv:1905.06319, first order). It suits spellings, sounds and endings,
    whose order is the same on both sides.
    """

    moves = 2

    def initial(self, memory: Memory, vocabulary_size: int) -> State:
        before = _first(memory)
        return before, before.new_zeros(*before.shape, vocabulary_size)

    def follow(self, scores: Tensor, before: Tensor, said: Tensor) -> Tensor:
        after = (before + said).log_softmax(-1)
        later = scores.flip(-1).logcumsumexp(-1).flip(-1)  # log Σ_{l ≥ k} exp e_l
        return scores + (after - later).logcumsumexp(-1)


def _first(memory: Memory) -> Tensor:
    """All on the first real position, as logarithms [batch, source], float32 at least."""
    first = memory.mask & (memory.mask.cumsum(1) == 1)
    exact = torch.promote_types(memory.keys.dtype, torch.float32)
    return torch.where(first, 0.0, NEVER).to(exact)


def _added(said: Tensor, looked: Tensor) -> Tensor:
    """log Σ_j p(a = j) p(y | a = j) [rows, vocabulary] of ``said`` [rows, source, vocabulary] and ``looked`` [rows,
    source], both logarithms."""
    both = said + looked.unsqueeze(2)
    top = both.detach().amax(
        1, keepdim=True
    )  # torch.logsumexp does the same, and is not exported for any number of rows
    return (both - top).exp().sum(1).log() + top.squeeze(1)
