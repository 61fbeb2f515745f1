"""An encoder, a bridge, a decoder: from a source sequence to the probability of every next target symbol."""

from __future__ import annotations

from typing import Annotated, Literal

from annotated_types import Ge
from torch import Tensor, nn

from unrolled.base.errors import SettingsError
from unrolled.base.protocol import PAD, UNKNOWN
from unrolled.base.registry import Part, Registry
from unrolled.layers import DROPOUTS, Embedding, State
from unrolled.models.alignments import ALIGNMENTS
from unrolled.models.bridge import BRIDGES
from unrolled.models.contextual import Contextual, Looked, look_up
from unrolled.models.decoders import DECODERS
from unrolled.models.encoders import ENCODERS
from unrolled.models.pointer import Pointer
from unrolled.models.ranges import Count, Share
from unrolled.models.writing import Writing

MODELS: Registry[nn.Module] = Registry("model")


@MODELS.register("seq2seq")
class Seq2Seq(Writing):
    """p(y | x) = Π_i p(y_i | y_<i, x)   (Sutskever 2014, Cho 2014, Bahdanau 2015, Luong 2015, by the decoder's kind).

    ``tie``: the output layer uses the target embedding's weights (``decoder``), and so does the source embedding
    (``all``, for one joint vocabulary). ``dropout`` is that of both embeddings and of the decoder's output,
    ``word_dropout`` the probability that a symbol is read as the unknown one. ``embedding_scale``: vectors are read as
    they are, or times √embedding_size (Vaswani et al. 2017, arXiv:1706.03762, §3.4), so that they start with variance 1
    and learn faster, while weights that are tied stay small for the output layer.

    ``copy``: symbols of the source can be said as they are (`Pointer`; See et al. 2017, arXiv:1704.04368).
    ``coverage_loss``: what is added to the loss for every step that looks where steps before it have looked, times
    Σ_j min(α_ij, Σ_{k<i} α_kj) (ibid., eq. 12 and 13). Both need a decoder that attends, or an ``alignment``: each
    symbol is said from one position, over which the model sums (`Alignment`), and the decoder may be one that looks
    nowhere. What is returned as weights is over the source's own positions, whatever the encoder made of them; with an
    alignment it is that of the alignment, and a decoder's own attention is only read with.

    Sources are [w_1 … w_n, END], or with features [f_1 … f_k, w_1 … w_n, END], where a feature is an id from
    ``source_vocabulary`` on, of the ``feature_vocabulary`` that follow: it is read from a table of its own, which
    word_dropout leaves alone, and stands at position 0, the text's first symbol at 1, for encoders that add positions
    (Wu et al. 2021, arXiv:2005.10213, §2.2). Attention sees both; a feature is never copied. After them come ``lent``
    symbols, and as many after the target's: words of one source that have no symbol. They are read as UNKNOWN, and said
    by being copied (See et al. 2017, §2.2), so they need ``copy``. Targets are
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
        lent: int = 0,
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
        alignment: Annotated[Part | None, ALIGNMENTS] = None,
    ) -> None:
        if tie == "all" and source_vocabulary != target_vocabulary:
            raise SettingsError(
                f"[tie] 'all' needs one vocabulary for both sides, and they have {source_vocabulary} and "
                f"{target_vocabulary} symbols. Set text.joint to true, or tie the 'decoder' alone."
            )
        super().__init__()
        self.source_embedding, target_embedding = (
            Embedding(size, size=embedding_size, dropout=dropout, dropout_kind=dropout_kind, word_dropout=word_dropout)
            for size in (source_vocabulary, target_vocabulary)
        )
        self.source_vocabulary = source_vocabulary
        self.lent = lent if copy else 0
        self.feature_embedding = (
            Embedding(feature_vocabulary, size=embedding_size, dropout=dropout, dropout_kind=dropout_kind)
            if feature_vocabulary
            else None
        )
        if tie == "all":
            target_embedding.weight = self.source_embedding.weight
        self.embedding_factor = embedding_size**0.5 if embedding_scale == "root" else 1.0
        self.wire(
            target_embedding,
            ENCODERS.build(encoder, embedding_size, where="encoder"),
            decoder,
            bridge,
            dropout=DROPOUTS.build({"kind": dropout_kind, "rate": dropout}, where="dropout"),
            tie=tie != "none",
            coverage_loss=coverage_loss,
            alignment=alignment,
        )
        self.pointer: Pointer | None = None
        if copy:
            self.needs_attention("copy")
            if self.alignment is not None and (self.encoder.reduction > 1 or self.regroups):
                raise SettingsError(
                    "[copy] it was asked for with an alignment, which copies the symbol of one position, and here "
                    "several symbols make one position. Take another encoder or tokenizer, or leave copying out."
                )
            self.pointer = Pointer(self.output.size, self.first_lent, target_vocabulary, lent)
            self.vocabulary_size = self.pointer.vocabulary_size

    @property
    def regroups(self) -> bool:
        """Whether symbols are read as words."""
        return isinstance(self.source_embedding, Contextual)

    @property
    def first_lent(self) -> int:
        """The first symbol of a source that is lent."""
        features = self.feature_embedding
        return self.source_vocabulary + (0 if features is None else features.vocabulary_size)

    @property
    def keeps(self) -> int:
        """What each source position is copied as, where there is a pointer."""
        return int(self.pointer is not None)

    def read(self, source: Tensor, mask: Tensor) -> Looked:
        """Vectors of the symbols ``source`` int64 [batch, source], and of the features among them."""
        source = self._known(source, self.first_lent)
        if self.feature_embedding is None:
            read = look_up(self.source_embedding, source, mask)
            return read._replace(vectors=self._scaled(read.vectors))
        aside = source >= self.source_vocabulary
        text, features = source.masked_fill(aside, PAD), (source - self.source_vocabulary).masked_fill(~aside, PAD)
        symbols, beside = self.source_embedding(text), self.feature_embedding(features)  # PAD is 0
        return Looked(self._scaled(symbols) + self._scaled(beside), mask, None, (~aside).cumsum(dim=1))

    def read_target(self, ids: Tensor) -> Tensor:
        return self._scaled(self.target_embedding(self._known(ids, self.target_embedding.vocabulary_size)))

    @property
    def reads_symbols(self) -> bool:
        return self.target_embedding.frozen is None and not self.lent and self.embedding_factor == 1.0

    def kept(self, source: Tensor) -> State:
        return () if self.pointer is None else (self.pointer.targets[source],)

    def say(self, outputs: Tensor, weights: Tensor | None, kept: State) -> Tensor:
        logits = super().say(outputs, weights, kept)
        if self.pointer is None or weights is None:
            return logits
        copied: Tensor = self.pointer(outputs, logits, weights, *kept)
        return copied

    def price(self, logits: Tensor, gold: Tensor, smoothing: float) -> Tensor:
        """What is smoothed is spread over the vocabulary: symbols that are lent stand for no word in most sentences."""
        if not (self.lent and smoothing):
            return super().price(logits, gold, smoothing)
        words = logits[:, : -self.lent]  # log-probabilities, since a model that lends copies
        return (1 - smoothing) * super().price(logits, gold, 0.0) - smoothing * words.mean(dim=1).sum()

    def _known(self, ids: Tensor, first_lent: int) -> Tensor:
        """``ids`` with UNKNOWN in the place of symbols that are lent, from ``first_lent`` on."""
        return ids.masked_fill(ids >= first_lent, UNKNOWN) if self.lent else ids

    def _scaled(self, vectors: Tensor) -> Tensor:
        return vectors if self.embedding_factor == 1.0 else vectors * self.embedding_factor
