"""A decoder that writes what an encoder has read, whatever that was: the probability of every next target symbol."""

from __future__ import annotations

from abc import ABC, abstractmethod

import torch
from torch import Tensor, nn

from unrolled.base.errors import SettingsError
from unrolled.base.registry import Part
from unrolled.layers import Dropout, Embedding, Memory, State, cross_entropy
from unrolled.layers.attention.coverage import coverage_loss as looked_twice
from unrolled.layers.likeliest import likeliest
from unrolled.layers.surroundings import real_places
from unrolled.models.alignments import ALIGNMENTS, Alignment, Say
from unrolled.models.bridge import BRIDGES
from unrolled.models.contextual import Looked
from unrolled.models.decoders import DECODERS
from unrolled.models.encoders import Encoded, Encoder
from unrolled.models.given import check_pairs, check_rows
from unrolled.models.output import Output
from unrolled.models.pointer import shares, shares_of, spread, spread_to
from unrolled.models.said import Forced, Offered, Seen, Stepped, evaluating


class Writing(nn.Module, ABC):
    """p(y | x) = Π_i p(y_i | y_<i, x) of a target y, x read in any way: what a subclass gives is `read`.

    ``embedding`` is that of the target's symbols, ``dropout`` what the decoder's output goes through, and with an
    alignment what is said from each position too; ``tie``: the
    output layer uses the embedding's weights. ``coverage_loss`` is what is added to the loss for every step that looks
    where steps before it have looked, times Σ_j min(α_ij, Σ_{k<i} α_kj) (See et al. 2017, arXiv:1704.04368, eq. 12 and
    13). ``alignment``: a symbol is said from one position, over which the model sums (`Alignment`), whatever the
    decoder itself attends to. What is returned as weights is over the source's own positions, whatever the encoder made
    of them.

    Targets are [BEGIN, w_1 … w_n, END]; masks are bool, True = real, real positions first. The state of ``start`` and
    ``step`` is a flat tuple of tensors, batch first; the first says which sentence a row is.
    """

    def wire(
        self,
        embedding: Embedding,
        encoder: Encoder,
        decoder: Part,
        bridge: Part,
        *,
        dropout: Dropout,
        tie: bool = False,
        coverage_loss: float = 0.0,
        alignment: Part | None = None,
    ) -> None:
        """Take or build what writes: for a subclass's constructor, after the parts that read."""
        self.vocabulary_size, size = embedding.vocabulary_size, embedding.size
        self.target_embedding = embedding
        self.encoder = encoder
        self.decoder = DECODERS.build(decoder, size, encoder.output_size, where="decoder")
        self.bridge = BRIDGES.build(bridge, encoder.layout, self.decoder.layout, where="bridge")
        self.alignment: Alignment | None = None
        if alignment is not None:
            sizes = self.decoder.output_size, encoder.output_size
            self.alignment = ALIGNMENTS.build(alignment, *sizes, where="alignment")
        if not (self.bridge.carries or self.decoder.held or self.alignment):
            raise SettingsError(
                "[bridge] nothing of the source reaches this decoder: it has no attention, its context comes "
                "once, and the bridge is 'zeros'. Take the bridge 'projection', or set decoder.context to every_step."
            )
        self.dropout = dropout
        said_from = self.decoder if self.alignment is None else self.alignment
        self.output = Output(said_from.output_size, self.vocabulary_size, tied=embedding if tie else None)
        self.coverage_loss = coverage_loss
        if coverage_loss > 0:
            self.needs_attention("coverage_loss")

    # --- what a subclass gives ------------------------------------------------------------------------------------

    @abstractmethod
    def read(self, source: Tensor, mask: Tensor) -> Looked:
        """What the encoder reads of ``source`` [batch, positions, …]."""

    def read_target(self, ids: Tensor) -> Tensor:
        """Vectors [batch, target, size] of target symbols."""
        return self.target_embedding(ids)

    @property
    def reads_symbols(self) -> bool:
        """Whether `read_target` is the embedding's own rows, one for each symbol that there is."""
        return type(self).read_target is Writing.read_target and self.target_embedding.frozen is None

    def kept(self, source: Tensor) -> State:  # noqa: ARG002
        """What of the source ``say`` reads beside the decoder's output, tensors [batch, …]: nothing."""
        return ()

    @property
    def keeps(self) -> int:
        """How many tensors ``kept`` gives."""
        return 0

    @property
    def regroups(self) -> bool:
        """Whether what is read has other positions than the source that is given: `read` says which is whose."""
        return False

    def say(self, outputs: Tensor, weights: Tensor | None, kept: State) -> Tensor:  # noqa: ARG002
        """Logits [rows, vocabulary] from the decoder's ``outputs`` [rows, size], their ``weights`` [rows, source] and
        what is ``kept`` of each row's source."""
        logits: Tensor = self.output(outputs)
        return logits

    def price(self, logits: Tensor, gold: Tensor, smoothing: float) -> Tensor:
        """Σ over rows of the cross-entropy of ``gold`` [n] under ``logits`` [n, vocabulary]."""
        return cross_entropy(logits, gold, smoothing)

    def penalty(self, weights: Tensor | None, target_mask: Tensor) -> Tensor | None:
        """What is added to the summed loss of a batch for where it looked, ``weights`` [batch, target - 1, source]."""
        if not self.coverage_loss or weights is None:
            return None
        twice = looked_twice(weights).masked_fill(~target_mask[:, 1:], 0.0)
        return self.coverage_loss * twice.sum()

    def needs_attention(self, name: str) -> None:
        """SettingsError where the decoder looks nowhere: the setting ``name`` needs one that does."""
        if not (self.decoder.attends or self.alignment):
            raise SettingsError(
                f"[{name}] it was asked for, and this decoder has no attention: it looks nowhere. "
                "Take the decoder query_before, query_after, gnmt or transformer, or an alignment."
            )

    # --- what all share -------------------------------------------------------------------------------------------

    @property
    def held(self) -> int:
        """How many tensors of a state, from the first on, never change from step to step."""
        return self._before + self.decoder.held

    @property
    def _shares(self) -> int:
        """How many tensors say which share of a memory position each source position has."""
        return 2 if self.regroups else int(self.encoder.reduction > 1)

    @property
    def _own(self) -> int:
        """How many tensors the model itself keeps of a sentence."""
        return self._shares + self.keeps

    @property
    def _before(self) -> int:
        """How many tensors stand before the decoder's: the sentence, the model's own, and the alignment's memory."""
        return 1 + self._own + (0 if self.alignment is None else len(Memory._fields))

    def forward(
        self, source: Tensor, source_mask: Tensor, target_ids: Tensor, target_mask: Tensor, sampling: float = 0.0
    ) -> Forced:
        """Logits of the symbols target_ids[:, 1:], each after the gold symbols before it (teacher forcing).

        source as `read` takes it, target_ids int64 [batch, target], masks bool. With ``sampling`` in (0, 1] each
        gold symbol that is fed is replaced, with that probability, by what the model itself says at that place
        (scheduled sampling, Bengio et al. 2015, arXiv:1506.03099).
        """
        seen = self._unroll(source, source_mask, target_ids, target_mask, sampling)
        return Forced(self._logits(seen), seen.weights, self.penalty(seen.weights, target_mask))

    def loss(
        self,
        source: Tensor,
        source_mask: Tensor,
        target_ids: Tensor,
        target_mask: Tensor,
        *,
        smoothing: float = 0.0,
        sampling: float = 0.0,
    ) -> Tensor:
        """Σ over the symbols target_ids[:, 1:] of their cross-entropy (natural log), and the penalty: what is trained.

        What `unrolled.layers.cross_entropy` says of ``forward``'s logits; they are never all held where the output
        layer alone says them.
        """
        seen = self._unroll(source, source_mask, target_ids, target_mask, sampling)
        gold = target_ids[:, 1:][target_mask[:, 1:]]
        if not self.keeps and self.alignment is None:
            total = self.output.loss(seen.outputs, gold, smoothing)
        else:
            total = self.price(self._logits(seen), gold, smoothing)
        penalty = self.penalty(seen.weights, target_mask)
        return total if penalty is None else total + penalty

    def log_probs(self, source: Tensor, source_mask: Tensor, target_ids: Tensor, target_mask: Tensor) -> Tensor:
        """Natural-log probability of each symbol target_ids[:, 1:], float32 [batch, target - 1], 0 on padding."""
        logits = self(source, source_mask, target_ids, target_mask).logits.float()
        gold, real = target_ids[:, 1:], target_mask[:, 1:]
        said = logits.log_softmax(dim=-1).gather(1, gold[real].unsqueeze(1)).squeeze(1)
        return said.new_zeros(gold.shape).masked_scatter(real, said)

    def start(self, source: Tensor, mask: Tensor) -> State:
        """Encode ``source`` once; the state before the first symbol."""
        read = self.read(source, mask)
        encoded: Encoded = self.encoder(read.vectors, read.mask, read.places)
        sentence = torch.arange(source.shape[0], device=source.device)
        share: State = ()
        if read.owner is not None:
            owner = read.owner // self.encoder.reduction
            share = (shares_of(mask, owner), owner)
        elif self.encoder.reduction > 1:
            share = (shares(read.mask, self.encoder.reduction),)
        own = sentence, *share, *self.kept(source)
        moving = self.decoder.start(encoded, self.bridge(encoded))
        if self.alignment is None:
            return (*own, *moving)
        memory = self.alignment.remember(encoded.output, encoded.mask)
        return (*own, *memory, *moving, *self.alignment.initial(memory, self.vocabulary_size))

    def vector(self, source: Tensor, mask: Tensor) -> Tensor:
        """The mean of what the encoder makes of each source's places, [batch, memory]."""
        read = self.read(source, mask)
        encoded: Encoded = self.encoder(read.vectors, read.mask, read.places)
        return encoded.output.sum(dim=1) / encoded.mask.sum(dim=1, keepdim=True)

    def step(self, last_ids: Tensor, state: State) -> Stepped:
        """What comes after ``last_ids`` int64 [batch]; BEGIN at first. UsageError for a state of other rows."""
        output, looked, before, moved, aligned = self._move(last_ids, state)
        if self.alignment is None:
            weights = self.on_source(looked, state)
            return Stepped(self.say(output, weights, self._kept(state)), weights, (*before, *moved))
        memory = Memory(*before[1 + self._own :])
        said, looked, aligned = self.alignment.step(output, last_ids, memory, aligned, self._sayer(state))
        return Stepped(said, self.on_source(looked, state), (*before, *moved, *aligned))

    def offer(self, last_ids: Tensor, state: State, k: int) -> Offered:
        """The ``k`` likeliest symbols after ``last_ids``: those of `step`'s logits.

        Which are never all held where the output layer alone says them, to a compiled search.
        """
        if self.keeps or self.alignment is not None:
            logits, weights, state = self.step(last_ids, state)
            return Offered(*likeliest(logits.float(), k), weights, state)
        output, looked, before, moved, _ = self._move(last_ids, state)
        return Offered(*self.output.likeliest(output, k), self.on_source(looked, state), (*before, *moved))

    def _move(self, last_ids: Tensor, state: State) -> tuple[Tensor, Tensor | None, State, State, State]:
        """The decoder one symbol on: its output and where it looked, and what `_split` gives of the state after."""
        check_rows(last_ids, state)
        embedded = self.read_target(last_ids.unsqueeze(1)).squeeze(1)
        before, moving, aligned = self._split(state)
        output, looked, moved = self.decoder.step(embedded, moving)
        if self.dropout.active:
            output = self.dropout(output.unsqueeze(1)).squeeze(1)
        return output, looked, before, moved, aligned

    def select(self, state: State, rows: Tensor) -> State:
        """The state of ``rows`` int64 [n], repeats allowed, in that order.

        What belongs to a sentence is not copied where every row stays with its sentence, as when a beam is reordered.
        """
        sentence = state[0].index_select(0, rows)
        held = self.held if torch.equal(sentence, state[0]) else 0
        return (*state[:held], *(tensor.index_select(0, rows) for tensor in state[held:]))

    def _unroll(
        self, source: Tensor, source_mask: Tensor, target_ids: Tensor, target_mask: Tensor, sampling: float
    ) -> Seen:
        """Run over a given target, every step seeing the gold symbols before it, or in part the model's own."""
        if not 0 <= sampling <= 1:
            raise SettingsError(f"a sampling of {sampling} was given; it must be from 0 to 1.")
        check_pairs(source, source_mask, target_ids, target_mask)
        state = self.start(source, source_mask)
        fed = target_ids[:, :-1]
        if sampling > 0:
            fed = self._mix_in_own(fed, state, sampling)
        _, moving, _ = self._split(state)
        outputs, looked = self.decoder(self.read_target(fed), moving)
        outputs, places = self.dropout(outputs), real_places(target_mask[:, 1:])
        if self.alignment is None:
            chosen = outputs.flatten(0, 1).index_select(0, places)
            return Seen(chosen, places, self.on_source(looked, state), state)
        read = torch.cat((fed[:, 1:], target_ids[:, -1:]), dim=1)
        return self._unroll_aligned(self.alignment, outputs, read, places, state)

    def _logits(self, seen: Seen) -> Tensor:
        """Of each symbol; log-probabilities where the model copies or sums over positions."""
        if self.alignment is not None:
            return seen.outputs
        if not self.keeps or seen.weights is None:
            return self.say(seen.outputs, None, ())
        rows = seen.places // seen.weights.shape[1]
        pointed = seen.weights.flatten(0, 1).index_select(0, seen.places)
        return self.say(seen.outputs, pointed, tuple(one.index_select(0, rows) for one in self._kept(seen.state)))

    def _sayer(self, state: State, dropped: Tensor | None = None) -> Say:
        """What an alignment says by: each position of a row by itself, which copies its own symbol.

        ``dropped`` [rows, size] is what dropout makes of ones, the same at all positions, so that these compare.
        """

        def say(vectors: Tensor, rows: Tensor | None) -> Tensor:
            kept = self._kept(state) if rows is None else tuple(one.index_select(0, rows) for one in self._kept(state))
            flat = (vectors if dropped is None else vectors * dropped.unsqueeze(1)).flatten(0, 1)
            alone = flat.new_ones(flat.shape[0], 1) if kept else None
            logits = self.say(flat, alone, tuple(one.flatten().unsqueeze(1) for one in kept))
            exact = torch.promote_types(logits.dtype, torch.float32)
            return logits.log_softmax(-1, dtype=exact).unflatten(0, vectors.shape[:2])

        return say

    def _unroll_aligned(
        self, alignment: Alignment, outputs: Tensor, read: Tensor, places: Tensor, state: State
    ) -> Seen:
        """What is said from no known position after the decoder's ``outputs``; ``read`` [batch, time] are the symbols
        that its steps know to have been said: the gold ones, or those that were fed in their place."""
        dropped = None
        if self.dropout.active:
            ones = outputs.new_ones(*outputs.shape[:2], alignment.output_size)
            dropped = self.dropout(ones).flatten(0, 1).index_select(0, places)
        memory = Memory(*state[1 + self._own : self._before])
        said, looked = alignment(outputs, read, places, memory, self._sayer(state, dropped))
        return Seen(said, places, self.on_source(looked, state), state)

    def _split(self, state: State) -> tuple[State, State, State]:
        """What stands before the decoder's state, the decoder's, and the alignment's."""
        last = len(state) - (0 if self.alignment is None else self.alignment.moves)
        return state[: self._before], state[self._before : last], state[last:]

    def _kept(self, state: State) -> State:
        """What ``kept`` gave."""
        return state[1 + self._shares : 1 + self._own]

    def on_source(self, weights: Tensor | None, state: State) -> Tensor | None:
        """Weights over the memory's positions as weights over the source's."""
        if weights is None:
            return None
        if self.regroups:
            return spread_to(weights, state[1], state[2])
        if self.encoder.reduction == 1:
            return weights
        return spread(weights, state[1], self.encoder.reduction)

    @torch.no_grad()
    def _mix_in_own(self, fed: Tensor, state: State, probability: float) -> Tensor:
        """The symbols to feed: gold ones [batch, time], some replaced by the best at their place without dropout."""
        fed = fed.clone()
        own = torch.rand(fed.shape, device=fed.device) < probability
        with evaluating(self):
            for place in range(1, fed.shape[1]):
                logits, _, state = self.step(fed[:, place - 1], state)
                fed[:, place] = torch.where(own[:, place], logits.argmax(dim=-1), fed[:, place])
        return fed
