"""The probability of each answer to a question about a document: readers with attention, and one LSTM over both."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Annotated, Literal, NamedTuple, cast

import torch
from torch import Tensor, nn
from torch.nn import functional

from unrolled.base.errors import SettingsError
from unrolled.base.protocol import END
from unrolled.base.registry import Part
from unrolled.layers import ATTENTIONS, CELLS, DROPOUTS, Attention, Embedding, Recurrent
from unrolled.models.encoders import ENCODERS, Encoded
from unrolled.models.ranges import Count, Share
from unrolled.models.readings import READINGS, Found
from unrolled.models.seq2seq import MODELS


class Asked(NamedTuple):
    """What a reader is given; symbols end with END."""

    document: Tensor  # int64 [batch, positions]
    document_mask: Tensor  # bool, True = real
    question: Tensor  # int64 [batch, words]
    question_mask: Tensor
    candidates: Tensor  # int64 [batch, most]: the numbers of the answers that come into question, -1; a row of -1: all


class Read(NamedTuple):
    """What is said of a batch."""

    logits: Tensor  # [batch, 1, answers]; of spans [batch, 2, positions], first and last; -∞: impossible
    weights: Tensor | None  # [batch, steps, positions]: how much of the document was read, step by step
    taken: Tensor | None  # bool [batch, steps]: which steps a row took


class AnswerModel(nn.Module, ABC):
    """p(answer | document, question) = softmax of logits over the answers that come into question.

    ``slots`` of the last symbols of the vocabulary are entities without names. In training each row draws anew which of
    them its entities are, so that only the document can tell them apart (Hermann et al. 2015, arXiv:1506.03340, §2.2);
    an answer is then one of those that stand in the document. With ``answers`` 0 it is a span of the document.
    """

    several = False
    by_word = False
    """Whether a step of reading is a word of the question."""

    def __init__(self, vocabulary_size: int, answers: int, slots: int, embedding: Embedding) -> None:
        super().__init__()
        self.vocabulary_size, self.answers, self.slots = vocabulary_size, answers, slots
        self.embedding = embedding
        self.points_nowhere = False
        self.spelled: Tensor
        self.register_buffer("spelled", torch.full((vocabulary_size,), -1), persistent=False)

    def spell(self, answers: Sequence[int], *, nowhere: bool = False) -> None:
        """Tell of each symbol which answer it spells, -1: none. ``nowhere``: a span may be none: both pointers then say
        the END of the document (as Levy et al. 2017, arXiv:1706.04115, §5, do by a symbol of its own)."""
        self.points_nowhere = nowhere
        self.spelled = torch.as_tensor(answers, dtype=torch.int64, device=self.spelled.device)

    @abstractmethod
    def say(self, asked: Asked, shown: Asked, drawn: Tensor | None) -> Read:
        """``shown`` is ``asked`` with its entities drawn: entity k is called ``drawn`` [batch, slots] at k; None: k."""

    def forward(self, asked: Asked) -> Read:
        drawn = None
        shown = asked
        if self.slots and self.training:
            drawn = torch.rand(len(asked.document), self.slots, device=asked.document.device).argsort(dim=1)
            shown = asked._replace(
                document=self._drawn(asked.document, drawn), question=self._drawn(asked.question, drawn)
            )
        said = self.say(asked, shown, drawn)
        possible = self.possible(asked)
        return said._replace(logits=said.logits.masked_fill(~possible.unsqueeze(1), float("-inf")))

    def _drawn(self, ids: Tensor, drawn: Tensor) -> Tensor:
        first = self.vocabulary_size - self.slots
        return torch.where(ids >= first, first + drawn.gather(1, (ids - first).clamp(min=0)), ids)

    def possible(self, asked: Asked) -> Tensor:
        """Which answers come into question, bool [batch, answers]; of spans which positions may be in one. Of each row
        one does at least."""
        if not self.answers:
            return asked.document_mask & ((asked.document != END) | self.points_nowhere)
        given = torch.zeros(len(asked.document), self.answers + 1, dtype=torch.bool, device=asked.document.device)
        given = given.scatter(1, asked.candidates + 1, True)[:, 1:]
        given = given | ~given.any(dim=1, keepdim=True)
        if self.slots:
            number = (asked.document - (self.vocabulary_size - self.slots)).clamp(min=-1)
            there = given.new_zeros(len(given), self.answers + 1)
            there = there.scatter(1, number + 1, True)[:, 1:]
            both = given & there
            given = torch.where(both.any(dim=1, keepdim=True), both, given)
        return given

    def loss(self, logits: Tensor, targets: Tensor, smoothing: float = 0.0) -> Tensor:
        """Σ over rows of -ln p of ``targets`` int64 [batch, 1], of spans [batch, 2] for both ends; ``smoothing`` of the
        probability wanted is spread evenly over all that is possible."""
        logs = logits.float().log_softmax(dim=-1)
        right = -logs.gather(2, targets.unsqueeze(2)).sum()
        if not smoothing:
            return right
        possible = logits > float("-inf")
        even = -(logs.masked_fill(~possible, 0.0).sum(dim=-1) / possible.sum(dim=-1)).sum()
        return (1 - smoothing) * right + smoothing * even

    def probabilities(self, asked: Asked) -> Read:
        """`forward` with probabilities in the place of logits."""
        said: Read = self(asked)
        return said._replace(logits=said.logits.float().softmax(dim=-1))


@MODELS.register("reader")
class Reader(AnswerModel):
    """A reader with attention (Hermann et al. 2015, arXiv:1506.03340, §3).

    g = tanh(W_r r + W_u u),  p(a) ∝ exp(W_a g + b_a)

    ``reading`` finds r: ``attentive`` or ``impatient``. ``answer``: ``output`` is the line above; ``attention_sum``
    points: p(a) ∝ Σ of the last step's weights on the places where a stands (Kadlec et al. 2016, arXiv:1603.01547,
    eq. 3), for answers that are single symbols. A span is two pointers, ``pointer`` asked with [u, r] for its first
    symbol, then with what that read for its last (Wang & Jiang 2017, arXiv:1608.07905, §2.3, "boundary").

    ``question_encoder`` null: as ``encoder``, with weights of its own. ``exact_match``: each position is also told
    whether its symbol stands in the question (Chen et al. 2017, arXiv:1704.00051, §3.2). ``size`` of g. ``dropout`` of
    g, ``input_dropout`` (null: the same) of embedded symbols, ``word_dropout`` the rate at which single symbols are
    read as the unknown one.
    """

    def __init__(
        self,
        vocabulary_size: int,
        answers: int,
        slots: int = 0,
        /,
        *,
        embedding_size: Count = 64,
        encoder: Annotated[Part, ENCODERS] = "rnn",
        question_encoder: Annotated[Part | None, ENCODERS] = None,
        reading: Annotated[Part, READINGS] = "attentive",
        answer: Literal["output", "attention_sum"] = "output",
        pointer: Annotated[Part, ATTENTIONS] = "additive",
        exact_match: bool = False,
        size: Count = 128,
        dropout: Share = 0.1,
        input_dropout: Share | None = None,
        word_dropout: Share = 0.0,
    ) -> None:
        rate = dropout if input_dropout is None else input_dropout
        embedding = Embedding(vocabulary_size, size=embedding_size, dropout=rate, word_dropout=word_dropout)
        super().__init__(vocabulary_size, answers, slots, embedding)
        self.matched = nn.Parameter(torch.zeros(embedding_size)) if exact_match else None
        self.encoder = ENCODERS.build(encoder, embedding_size, where="encoder")
        asking = encoder if question_encoder is None else question_encoder
        self.question_encoder = ENCODERS.build(asking, embedding_size, where="question_encoder")
        if self.encoder.reduction > 1:
            raise SettingsError("[encoder] it makes fewer positions of the words, and each word is to be found.")
        read, ask = self.encoder.output_size, self.question_encoder.output_size
        self.reading = READINGS.build(reading, read, ask, where="reading")
        self.by_word = self.reading.by_word
        self.summed = answer == "attention_sum"
        self.dropout = DROPOUTS.build({"kind": "plain", "rate": dropout}, where="dropout")
        self.of_read, self.of_asked, self.output, self.pointers = None, None, None, nn.ModuleList()
        if not answers:
            if self.summed:
                raise SettingsError("[answer] attention_sum is for entities, and spans have two pointers. Take output.")
            first = ATTENTIONS.build(pointer, ask + read, read, where="pointer")
            self.pointers.append(first)
            self.pointers.append(ATTENTIONS.build(pointer, ask + read + read, read, where="pointer"))
        elif not self.summed:
            self.of_read = nn.Linear(read, size)
            self.of_asked = nn.Linear(ask, size, bias=False)
            self.output = nn.Linear(size, answers)

    def say(self, asked: Asked, shown: Asked, drawn: Tensor | None) -> Read:
        document, question = self._encoded(shown)
        found = self.reading(document, question)
        if self.output is not None:
            logits = self.output(self.dropout(self._joined(found)))
            logits = logits if drawn is None else logits.gather(1, drawn)
        elif self.summed:
            logits = self._summed(found, asked)
        else:
            return Read(self._pointed(found, document), found.weights, found.taken)
        return Read(logits.unsqueeze(1), found.weights, found.taken)

    def _encoded(self, shown: Asked) -> tuple[Encoded, Encoded]:
        embedded, asking = self.embedding(shown.document), self.embedding(shown.question)
        if self.matched is not None:
            same = (
                shown.document.unsqueeze(2) == shown.question.masked_fill(~shown.question_mask, -1).unsqueeze(1)
            ).any(2)
            same = same & (shown.document != END)
            embedded = embedded + same.unsqueeze(2).to(embedded.dtype) * self.matched
        return self.encoder(embedded, shown.document_mask), self.question_encoder(asking, shown.question_mask)

    def _joined(self, found: Found) -> Tensor:
        of_read, of_asked = cast("nn.Linear", self.of_read), cast("nn.Linear", self.of_asked)
        return (of_read(found.read) + of_asked(found.asked)).tanh()

    def _summed(self, found: Found, asked: Asked) -> Tensor:
        """ln Σ of the weights on the places of each answer."""
        last = (found.taken.sum(dim=1) - 1).view(-1, 1, 1).expand(-1, 1, found.weights.shape[2])
        weights = found.weights.gather(1, last).squeeze(1).float()
        number = self.spelled[asked.document].masked_fill(~asked.document_mask, -1)
        sums = weights.new_zeros(len(weights), self.answers + 1).scatter_add(1, number + 1, weights)[:, 1:]
        return sums.clamp_min(torch.finfo(sums.dtype).tiny).log()

    def _pointed(self, found: Found, document: Encoded) -> Tensor:
        first, last = cast("list[Attention]", self.pointers)
        query = self.dropout(torch.cat([found.asked, found.read], dim=1))
        begun = first(query, first.remember(document.output, document.mask))
        query = torch.cat([query, begun.context], dim=1)
        ended = last(query, last.remember(document.output, document.mask))
        weights = torch.stack([begun.weights, ended.weights], dim=1).float()
        return weights.clamp_min(torch.finfo(weights.dtype).tiny).log()


@MODELS.register("deep_reader")
class DeepReader(AnswerModel):
    """The deep LSTM reader (Hermann et al. 2015, arXiv:1506.03340, §3.1): document and question are one text, END
    between, read by one stack of layers; there is no attention.

    x'(t,k) = x(t) ⊕ y'(t,k-1),  y(t) = y'(t,1) ⊕ … ⊕ y'(t,K),  p(a) ∝ exp(W_a y(n) + b_a) at the last symbol n

    ``first``: which of the two is read first.
    """

    def __init__(
        self,
        vocabulary_size: int,
        answers: int,
        slots: int = 0,
        /,
        *,
        embedding_size: Count = 64,
        cell: Annotated[Part, CELLS] = "lstm",
        layers: Count = 2,
        first: Literal["document", "question"] = "document",
        dropout: Share = 0.1,
        input_dropout: Share | None = None,
        word_dropout: Share = 0.0,
    ) -> None:
        if not answers:
            raise SettingsError(
                "[model] the deep reader says one answer and points at no place: it cannot give spans. Take the model "
                "'reader'."
            )
        rate = dropout if input_dropout is None else input_dropout
        embedding = Embedding(vocabulary_size, size=embedding_size, dropout=rate, word_dropout=word_dropout)
        super().__init__(vocabulary_size, answers, slots, embedding)
        self.first = first
        stacks: list[Recurrent] = []
        for _ in range(layers):
            below = stacks[-1].output_size if stacks else 0
            stacks.append(Recurrent(embedding_size + below, cell=cell))
        self.stacks = nn.ModuleList(stacks)
        self.dropout = DROPOUTS.build({"kind": "plain", "rate": dropout}, where="dropout")
        self.output = nn.Linear(sum(stack.output_size for stack in stacks), answers)

    def say(self, asked: Asked, shown: Asked, drawn: Tensor | None) -> Read:  # noqa: ARG002
        sides = [(shown.document, shown.document_mask), (shown.question, shown.question_mask)]
        ids, mask = end_to_end(*(sides if self.first == "document" else sides[::-1]))
        embedded = self.embedding(ids)
        below, ends = embedded, []
        last = (mask.sum(dim=1) - 1).view(-1, 1, 1)
        for stack in cast("list[Recurrent]", self.stacks):
            output, _ = stack(below, mask)
            ends.append(output.gather(1, last.expand(-1, 1, output.shape[2])).squeeze(1))
            below = torch.cat([embedded, self.dropout(output)], dim=2)
        logits = self.output(self.dropout(torch.cat(ends, dim=1)))
        logits = logits if drawn is None else logits.gather(1, drawn)
        return Read(logits.unsqueeze(1), None, None)


def end_to_end(one: tuple[Tensor, Tensor], other: tuple[Tensor, Tensor]) -> tuple[Tensor, Tensor]:
    """Two padded rows of symbols, each with its mask, as one: the second begins where the first one's real ones end."""
    (ids, mask), (more, more_mask) = one, other
    begin, count = mask.sum(dim=1, keepdim=True), more_mask.sum(dim=1, keepdim=True)
    place = torch.arange(ids.shape[1] + more.shape[1], device=ids.device).expand(len(ids), -1)
    left = functional.pad(ids, (0, more.shape[1]))
    right = more.gather(1, (place - begin).clamp(min=0, max=more.shape[1] - 1))
    real = place < begin + count
    return torch.where(place < begin, left, right).masked_fill(~real, 0), real
