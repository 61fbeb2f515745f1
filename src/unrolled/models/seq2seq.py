"""An encoder, a bridge, a decoder: from a source sequence to the probability of every next target symbol."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Annotated, Literal, NamedTuple

import torch
from annotated_types import Ge
from torch import Tensor, nn

from unrolled.base.errors import SettingsError
from unrolled.base.protocol import PAD
from unrolled.base.registry import Part, Registry
from unrolled.layers import DROPOUTS, Embedding, State, cross_entropy
from unrolled.layers.attention.coverage import coverage_loss as looked_twice
from unrolled.models.bridge import BRIDGES
from unrolled.models.contextual import Contextual, look_up
from unrolled.models.decoders import DECODERS
from unrolled.models.encoders import ENCODERS, Encoded
from unrolled.models.given import check_pairs, check_rows
from unrolled.models.output import Output
from unrolled.models.pointer import Pointer, shares, shares_of, spread, spread_to
from unrolled.models.ranges import Count, Share

MODELS: Registry[nn.Module] = Registry("model")


class Forced(NamedTuple):
    """What a model says of a given target, every step seeing the gold symbols before it.

    The logits of a model that copies are log-probabilities, which are their own log-softmax.
    """

    logits: Tensor  # [symbols, vocabulary], real symbols only, in the order of target_ids[:, 1:][target_mask[:, 1:]]
    weights: Tensor | None  # [batch, time - 1, source], float32; None without attention
    penalty: Tensor | None = None  # to be added to the summed loss: the coverage loss, where the model has one


class _Seen(NamedTuple):
    """What a decoder made of a given target."""

    outputs: Tensor  # [symbols, size], real symbols only
    places: Tensor  # int64 [symbols], of each in the flattened [batch, time - 1]
    weights: Tensor | None  # [batch, time - 1, source]
    state: State  # the one before the first symbol


class Stepped(NamedTuple):
    """What a model says of the next symbol."""

    logits: Tensor  # [batch, vocabulary]
    weights: Tensor | None  # [batch, source]
    state: State


@MODELS.register("seq2seq")
class Seq2Seq(nn.Module):
    """p(y | x) = Π_i p(y_i | y_<i, x)   (Sutskever 2014, Cho 2014, Bahdanau 2015, Luong 2015, by the decoder's kind).

    ``tie``: the output layer uses the target embedding's weights (``decoder``), and so does the source embedding
    (``all``, for one joint vocabulary). ``dropout`` is that of both embeddings and of the decoder's output,
    ``word_dropout`` the probability that a symbol is read as the unknown one. ``embedding_scale``: vectors are read as
    they are, or times √embedding_size (Vaswani et al. 2017, arXiv:1706.03762, §3.4), so that they start with variance 1
    and learn faster, while weights that are tied stay small for the output layer.

    ``copy``: symbols of the source can be said as they are (`Pointer`; See et al. 2017, arXiv:1704.04368).
    ``coverage_loss``: what is added to the loss for every step that looks where steps before it have looked, times
    Σ_j min(α_ij, Σ_{k<i} α_kj) (ibid., eq. 12 and 13). Both need a decoder that attends. What is returned as weights
    is over the source's own positions, whatever the encoder made of them.

    Sources are [w_1 … w_n, END], or with features [f_1 … f_k, w_1 … w_n, END], where a feature is an id from
    ``source_vocabulary`` on, of the ``feature_vocabulary`` that follow: it is read from a table of its own, which
    word_dropout leaves alone, and stands at position 0, the text's first symbol at 1, for encoders that add positions
    (Wu et al. 2021, arXiv:2005.10213, §2.2). Attention sees both; a feature is never copied. Targets are
    [BEGIN, w_1 … w_n, END]; masks are bool, True = real, real positions first.
    The state of ``start`` and ``step`` is a flat tuple of tensors, batch first; the first says which sentence a row is.

    torch.export follows ``forward``, and ``start`` and ``step``, for any number of rows (name that axis as dynamic) and
    for the lengths it is shown: a recurrence is written out step by step.
    """

    def __init__(
        self,
        source_vocabulary: int,
        target_vocabulary: int,
        feature_vocabulary: int = 0,
        /,
        *,
        embedding_size: Count = 256,
        encoder: Annotated[Part, ENCODERS] = "rnn",
        bridge: Annotated[Part, BRIDGES] = "projection",
        decoder: Annotated[Part, DECODERS] = "query_before",
        tie: Literal["none", "decoder", "all"] = "none",
        dropout: Share = 0.2,
        dropout_kind: Literal["plain", "locked"] = "plain",
        word_dropout: Share = 0.0,
        embedding_scale: Literal["none", "root"] = "none",
        copy: bool = False,
        coverage_loss: Annotated[float, Ge(0)] = 0.0,
    ) -> None:
        super().__init__()
        if tie == "all" and source_vocabulary != target_vocabulary:
            raise SettingsError(
                f"[tie] 'all' needs one vocabulary for both sides, and they have {source_vocabulary} and "
                f"{target_vocabulary} symbols. Set text.joint to true, or tie the 'decoder' alone."
            )
        self.vocabulary_size = target_vocabulary
        self.source_embedding, self.target_embedding = (
            Embedding(size, size=embedding_size, dropout=dropout, dropout_kind=dropout_kind, word_dropout=word_dropout)
            for size in (source_vocabulary, target_vocabulary)
        )
        self.source_vocabulary = source_vocabulary
        self.feature_embedding = (
            Embedding(feature_vocabulary, size=embedding_size, dropout=dropout, dropout_kind=dropout_kind)
            if feature_vocabulary
            else None
        )
        self.embedding_factor = embedding_size**0.5 if embedding_scale == "root" else 1.0
        if tie == "all":
            self.target_embedding.weight = self.source_embedding.weight
        self.encoder = ENCODERS.build(encoder, embedding_size, where="encoder")
        self.decoder = DECODERS.build(decoder, embedding_size, self.encoder.output_size, where="decoder")
        self.bridge = BRIDGES.build(bridge, self.encoder.layout, self.decoder.layout, where="bridge")
        if not (self.bridge.carries or self.decoder.held):
            raise SettingsError(
                "[bridge] nothing of the source reaches this decoder: it has no attention, its context comes "
                "once, and the bridge is 'zeros'. Take the bridge 'projection', or set decoder.context to every_step."
            )
        self.dropout = DROPOUTS.build({"kind": dropout_kind, "rate": dropout}, where="dropout")
        tied = self.target_embedding if tie != "none" else None
        self.output = Output(self.decoder.output_size, target_vocabulary, tied=tied)
        for name, wanted in (("copy", copy), ("coverage_loss", coverage_loss > 0)):
            if wanted and not self.decoder.attends:
                raise SettingsError(
                    f"[{name}] it was asked for, and this decoder has no attention: it looks nowhere. "
                    "Take the decoder query_before, query_after, gnmt or transformer."
                )
        symbols = source_vocabulary + feature_vocabulary
        self.pointer = Pointer(self.decoder.output_size, symbols, target_vocabulary) if copy else None
        self.coverage_loss = coverage_loss

    @property
    def held(self) -> int:
        """How many tensors of a state, from the first on, never change from step to step."""
        return 1 + self._own + self.decoder.held

    @property
    def _own(self) -> int:
        """How many tensors the model itself keeps of a sentence: shares of memory positions, symbols to copy."""
        owned = 2 if isinstance(self.source_embedding, Contextual) else int(self.encoder.reduction > 1)
        return owned + (self.pointer is not None)

    def forward(
        self, source_ids: Tensor, source_mask: Tensor, target_ids: Tensor, target_mask: Tensor, sampling: float = 0.0
    ) -> Forced:
        """Logits of the symbols target_ids[:, 1:], each after the gold symbols before it (teacher forcing).

        ids int64 [batch, source] and [batch, target], masks bool of the same shapes. With ``sampling`` in (0, 1] each
        gold symbol that is fed is replaced, with that probability, by what the model itself says at that place
        (scheduled sampling, Bengio et al. 2015, arXiv:1506.03099).
        """
        seen = self._unroll(source_ids, source_mask, target_ids, target_mask, sampling)
        return Forced(self._logits(seen), seen.weights, self._penalty(seen.weights, target_mask))

    def loss(
        self,
        source_ids: Tensor,
        source_mask: Tensor,
        target_ids: Tensor,
        target_mask: Tensor,
        *,
        smoothing: float = 0.0,
        sampling: float = 0.0,
    ) -> Tensor:
        """Σ over the symbols target_ids[:, 1:] of their cross-entropy (natural log), and the penalty: what is trained.

        What `unrolled.layers.cross_entropy` says of ``forward``'s logits; they are never all held unless it copies.
        """
        seen = self._unroll(source_ids, source_mask, target_ids, target_mask, sampling)
        gold = target_ids[:, 1:][target_mask[:, 1:]]
        if self.pointer is None:
            total = self.output.loss(seen.outputs, gold, smoothing)
        else:
            total = cross_entropy(self._logits(seen), gold, smoothing)
        penalty = self._penalty(seen.weights, target_mask)
        return total if penalty is None else total + penalty

    def log_probs(self, source_ids: Tensor, source_mask: Tensor, target_ids: Tensor, target_mask: Tensor) -> Tensor:
        """Natural-log probability of each symbol target_ids[:, 1:], float32 [batch, target - 1], 0 on padding."""
        logits = self(source_ids, source_mask, target_ids, target_mask).logits.float()
        gold, real = target_ids[:, 1:], target_mask[:, 1:]
        said = logits.log_softmax(dim=-1).gather(1, gold[real].unsqueeze(1)).squeeze(1)
        return said.new_zeros(gold.shape).masked_scatter(real, said)

    def start(self, ids: Tensor, mask: Tensor) -> State:
        """Encode ``ids`` int64 [batch, source] once; the state before the first symbol."""
        encoded, owner = self._encode(ids, mask)
        sentence = torch.arange(ids.shape[0], device=ids.device)
        share: State = ()
        if owner is not None:
            owner = owner // self.encoder.reduction
            share = (shares_of(mask, owner), owner)
        elif self.encoder.reduction > 1:
            share = (shares(mask, self.encoder.reduction),)
        targets = () if self.pointer is None else (self.pointer.targets[ids],)
        return (sentence, *share, *targets, *self.decoder.start(encoded, self.bridge(encoded)))

    def vector(self, ids: Tensor, mask: Tensor) -> Tensor:
        """The mean of what the encoder makes of each source's places, [batch, memory]."""
        encoded, _ = self._encode(ids, mask)
        return encoded.output.sum(dim=1) / encoded.mask.sum(dim=1, keepdim=True)

    def step(self, last_ids: Tensor, state: State) -> Stepped:
        """What comes after ``last_ids`` int64 [batch]; BEGIN at first. UsageError for a state of other rows."""
        check_rows(last_ids, state)
        embedded = self._read(self.target_embedding, last_ids.unsqueeze(1)).squeeze(1)
        kept = state[: 1 + self._own]
        output, looked, moved = self.decoder.step(embedded, state[len(kept) :])
        weights = self._on_source(looked, state)
        output = self.dropout(output.unsqueeze(1)).squeeze(1)
        logits = self.output(output)
        if self.pointer is not None and weights is not None:
            logits = self.pointer(output, logits, weights, self._to_copy(state))
        return Stepped(logits, weights, (*kept, *moved))

    def select(self, state: State, rows: Tensor) -> State:
        """The state of ``rows`` int64 [n], repeats allowed, in that order.

        What belongs to a sentence is not copied where every row stays with its sentence, as when a beam is reordered.
        """
        sentence = state[0].index_select(0, rows)
        held = self.held if torch.equal(sentence, state[0]) else 0
        return (*state[:held], *(tensor.index_select(0, rows) for tensor in state[held:]))

    def _unroll(
        self, source_ids: Tensor, source_mask: Tensor, target_ids: Tensor, target_mask: Tensor, sampling: float
    ) -> _Seen:
        """Run over a given target, every step seeing the gold symbols before it, or in part the model's own."""
        if not 0 <= sampling <= 1:
            raise SettingsError(f"a sampling of {sampling} was given; it must be from 0 to 1.")
        check_pairs(source_ids, source_mask, target_ids, target_mask)
        state = self.start(source_ids, source_mask)
        fed = target_ids[:, :-1]
        if sampling > 0:
            fed = self._mix_in_own(fed, state, sampling)
        outputs, looked = self.decoder(self._read(self.target_embedding, fed), state[1 + self._own :])
        places = target_mask[:, 1:].flatten().nonzero().squeeze(1)
        chosen = self.dropout(outputs).flatten(0, 1).index_select(0, places)
        return _Seen(chosen, places, self._on_source(looked, state), state)

    def _logits(self, seen: _Seen) -> Tensor:
        """Of each symbol; log-probabilities where the model copies."""
        logits: Tensor = self.output(seen.outputs)
        if self.pointer is None or seen.weights is None:
            return logits
        rows = seen.places // seen.weights.shape[1]
        pointed = seen.weights.flatten(0, 1).index_select(0, seen.places)
        copied: Tensor = self.pointer(seen.outputs, logits, pointed, self._to_copy(seen.state).index_select(0, rows))
        return copied

    def _penalty(self, weights: Tensor | None, target_mask: Tensor) -> Tensor | None:
        """The coverage loss, where there is one."""
        if not self.coverage_loss or weights is None:
            return None
        twice = looked_twice(weights).masked_fill(~target_mask[:, 1:], 0.0)
        return self.coverage_loss * twice.sum()

    def _on_source(self, weights: Tensor | None, state: State) -> Tensor | None:
        """Weights over the memory's positions as weights over the source's."""
        if weights is None:
            return None
        if isinstance(self.source_embedding, Contextual):
            return spread_to(weights, state[1], state[2])
        if self.encoder.reduction == 1:
            return weights
        return spread(weights, state[1], self.encoder.reduction)

    def _to_copy(self, state: State) -> Tensor:
        """What each source position is copied as, int64 [batch, source]."""
        return state[self._own]

    def _encode(self, ids: Tensor, mask: Tensor) -> tuple[Encoded, Tensor | None]:
        """The encoded source, and which position each symbol is of, where it has none of its own."""
        if self.feature_embedding is None:
            read = look_up(self.source_embedding, ids, mask)
            encoded: Encoded = self.encoder(self._scaled(read.vectors), read.mask)
            return encoded, read.owner
        aside = ids >= self.source_vocabulary
        text, features = ids.masked_fill(aside, PAD), (ids - self.source_vocabulary).masked_fill(~aside, PAD)
        vectors = self._read(self.source_embedding, text) + self._read(self.feature_embedding, features)  # PAD is 0
        encoded = self.encoder(vectors, mask, (~aside).cumsum(dim=1))
        return encoded, None

    def _read(self, table: Embedding, ids: Tensor) -> Tensor:
        return self._scaled(table(ids))

    def _scaled(self, vectors: Tensor) -> Tensor:
        return vectors if self.embedding_factor == 1.0 else vectors * self.embedding_factor

    @torch.no_grad()
    def _mix_in_own(self, fed: Tensor, state: State, probability: float) -> Tensor:
        """The symbols to feed: gold ones [batch, time], some replaced by the best at their place without dropout."""
        fed = fed.clone()
        own = torch.rand(fed.shape, device=fed.device) < probability
        with _evaluating(self):
            for place in range(1, fed.shape[1]):
                logits, _, state = self.step(fed[:, place - 1], state)
                fed[:, place] = torch.where(own[:, place], logits.argmax(dim=-1), fed[:, place])
        return fed


@contextmanager
def _evaluating(model: nn.Module) -> Iterator[None]:
    """Every part in evaluation mode for a while, and afterwards in the one it was in."""
    modes = [(part, part.training) for part in model.modules()]
    model.eval()
    try:
        yield
    finally:
        for part, mode in modes:
            part.training = mode
