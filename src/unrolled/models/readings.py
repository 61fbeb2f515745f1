"""How a document is read for a question: once for the whole of it, in several looks, or anew at each of its words."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Annotated, NamedTuple

import torch
from torch import Tensor, nn

from unrolled.base.registry import Part, Registry
from unrolled.layers.attention import ATTENTIONS
from unrolled.models.encoders import Encoded
from unrolled.models.ranges import Count


class Found(NamedTuple):
    """What was read of a document."""

    asked: Tensor  # [batch, question]: u, what was asked
    read: Tensor  # [batch, document]: r, what was read
    weights: Tensor  # [batch, steps, document positions]: how much of each, step by step; rows sum to 1
    taken: Tensor  # bool [batch, steps]: which steps a row took, the first ones


class Reading(nn.Module, ABC):
    """Encoded documents and questions → what is read of each document. Padding is never part of it."""

    by_word = False
    """Whether a step is a word of the question; else it is a look for the whole of it."""

    @abstractmethod
    def forward(self, document: Encoded, question: Encoded) -> Found: ...


READINGS: Registry[Reading] = Registry("reading")


@READINGS.register("attentive")
class Attentive(Reading):
    """The attentive reader (Hermann et al. 2015, arXiv:1506.03340, §3.2): the document is read for the whole question.

    u = both ends of the question's encoder,  s(t) ∝ exp score(u, y(t)),  r = Σ_t s(t) y(t)

    with the attention 'additive' score(u, y) = wᵀ tanh(W_y y + W_u u). ``hops``: it is asked so often, each time with
    what was read before, u ← u + H r (Sukhbaatar et al. 2015, arXiv:1503.08895, §2.2, "layer-wise").
    """

    def __init__(
        self, document_size: int, question_size: int, /, *, attention: Annotated[Part, ATTENTIONS] = "additive",
        hops: Count = 1,
    ) -> None:  # fmt: skip
        super().__init__()
        self.hops = hops
        self.attention = ATTENTIONS.build(attention, question_size, document_size, where="attention")
        size = self.attention.context_size
        self.move = nn.Linear(size, question_size, bias=False) if hops > 1 else None

    def forward(self, document: Encoded, question: Encoded) -> Found:
        memory = self.attention.remember(document.output, document.mask)
        asked, state, weights = question.summary, None, []
        seen = self.attention(asked, memory, state)
        weights.append(seen.weights)
        for _ in range(1, self.hops):
            asked = asked if self.move is None else asked + self.move(seen.context)
            seen = self.attention(asked, memory, seen.state)
            weights.append(seen.weights)
        taken = document.mask.new_ones(len(asked), self.hops)
        return Found(asked, seen.context, torch.stack(weights, dim=1), taken)


@READINGS.register("impatient")
class Impatient(Reading):
    """The impatient reader (Hermann et al. 2015, arXiv:1506.03340, §3.3): the document is read again at each word of
    the question, with what was read before.

    m(i,t) = tanh(W_y y(t) + W_r r(i-1) + W_q y_q(i)),  s(i,t) ∝ exp wᵀ m(i,t)
    r(i) = Σ_t s(i,t) y(t) + tanh(W_rr r(i-1)),  r(0) learned

    which is the attention 'additive' asked with [y_q(i), r(i-1)].
    """

    by_word = True

    def __init__(
        self, document_size: int, question_size: int, /, *, attention: Annotated[Part, ATTENTIONS] = "additive"
    ) -> None:
        super().__init__()
        self.attention = ATTENTIONS.build(attention, question_size + document_size, document_size, where="attention")
        self.again = nn.Linear(document_size, document_size, bias=False)
        self.first = nn.Parameter(torch.zeros(document_size))

    def forward(self, document: Encoded, question: Encoded) -> Found:
        memory = self.attention.remember(document.output, document.mask)
        read = self.first.to(document.output.dtype).expand(len(document.output), -1)
        state, weights = None, []
        for word, real in zip(question.output.unbind(1), question.mask.unbind(1), strict=True):
            seen = self.attention(torch.cat([word, read], dim=1), memory, state)
            state = seen.state
            new = seen.context + self.again(read).tanh()
            read = torch.where(real.unsqueeze(1), new.to(read.dtype), read)
            weights.append(seen.weights)
        return Found(question.summary, read, torch.stack(weights, dim=1), question.mask)
