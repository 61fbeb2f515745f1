"""A tag for every word: its vector beside its spelling, an encoder, one linear layer, and a chain over the tags."""

from __future__ import annotations

from typing import Annotated, Literal

import torch
from torch import Tensor, nn

from unrolled.base.errors import SettingsError
from unrolled.base.protocol import UNKNOWN
from unrolled.base.registry import Part
from unrolled.layers import DROPOUTS, CharacterEncoder, ConditionalRandomField, Embedding, Legal, cross_entropy
from unrolled.models.contextual import Contextual
from unrolled.models.encoders import ENCODERS
from unrolled.models.ranges import Count, Share
from unrolled.models.seq2seq import MODELS


@MODELS.register("tagger")
class Tagger(nn.Module):
    """p(tags | words) by a linear-chain CRF over W encoder([word ⊕ spelling]) + b (Lample et al. 2016,
    arXiv:1603.01360; Ma & Hovy 2016, arXiv:1603.01354), or with ``crf: false`` each tag by its own softmax.

    ``characters``: how a word is spelt is read by a ``cnn`` or an ``lstm``, or not (``none``), of ``character_size`` in
    and ``character_hidden_size`` out (a direction). ``rare_dropout`` is how often in training a word is read as the
    unknown one that training rows have once (``rare``: bool [vocabulary]), ``word_dropout`` the same of any word; its
    spelling stays. ``dropout`` is
    that before and behind the encoder, ``locked`` over time (Gal & Ghahramani 2016) or ``plain``. ``hidden_size``:
    tanh(V h + c) stands before the last layer. ``embedding_scale``: vectors are read as they are, or times √size.

    With ``text.characters: {kind: contextual, model: …}`` frozen vectors of the words in their sentence stand beside
    both (`Contextual`; Peters et al. 2018, arXiv:1802.05365).

    What the scheme of the tags forbids has probability 0 with a CRF and is never answered without one.
    Masks are bool, True = real, real places first.
    """

    def __init__(
        self,
        vocabulary_size: int,
        characters_size: int,
        tags: int,
        legal: Legal | None = None,
        rare: Tensor | None = None,
        context_size: int = 0,
        /,
        *,
        embedding_size: Count = 100,
        characters: Literal["cnn", "lstm", "none"] = "cnn",
        character_size: Count = 30,
        character_hidden_size: Count = 50,
        encoder: Annotated[Part, ENCODERS] = "rnn",
        hidden_size: Count | None = None,
        crf: bool = True,
        dropout: Share = 0.5,
        input_dropout: Share | None = None,
        dropout_kind: Literal["plain", "locked"] = "locked",
        word_dropout: Share = 0.0,
        rare_dropout: Share = 0.5,
        embedding_scale: Literal["none", "root"] = "none",
    ) -> None:
        super().__init__()
        self.rare_dropout = rare_dropout
        self.rare: Tensor
        none = torch.zeros(vocabulary_size, dtype=torch.bool)
        self.register_buffer("rare", none if rare is None else rare, persistent=False)
        self.embedding = Embedding(vocabulary_size, size=embedding_size, word_dropout=word_dropout)
        self.embedding_factor = embedding_size**0.5 if embedding_scale == "root" else 1.0
        self.characters: CharacterEncoder | None = None
        size = embedding_size
        if characters != "none":
            self.characters = CharacterEncoder(
                characters_size, reader=characters, size=character_size, hidden_size=character_hidden_size
            )
            size += self.characters.output_size
        self.context: Contextual | None = None  # put here by who builds the network, as wide as context_size
        size += context_size
        first = dropout if input_dropout is None else input_dropout
        self.input_dropout = DROPOUTS.build({"kind": dropout_kind, "rate": first}, where="input_dropout")
        self.encoder = ENCODERS.build(encoder, size, where="encoder")
        if self.encoder.reduction != 1:
            raise SettingsError(
                f"[encoder] one position of it stands for {self.encoder.reduction} words, and each needs a tag of its "
                "own. Choose an encoder that keeps them apart, e.g. rnn."
            )
        self.output_dropout = DROPOUTS.build({"kind": dropout_kind, "rate": dropout}, where="dropout")
        size = self.encoder.output_size
        self.hidden = None if hidden_size is None else nn.Linear(size, hidden_size)
        self.output = nn.Linear(hidden_size or size, tags)
        self.crf = crf
        self.chain = ConditionalRandomField(tags, legal=legal)
        if not crf:
            for parameter in self.chain.parameters():
                nn.init.zeros_(parameter)
                parameter.requires_grad_(False)

    def forward(self, ids: Tensor, mask: Tensor, characters: Tensor, which: Tensor) -> Tensor:
        """Scores [batch, words, tags] of ``ids`` int64 [batch, words].

        ``characters`` int64 [batch, different words, characters], the same in each row, are the spellings in the batch,
        PAD behind each; ``which`` int64 [batch, words] says which of them a word has.
        """
        if self.training and self.rare_dropout:
            lost = torch.rand(ids.shape, device=ids.device) < self.rare_dropout
            ids = ids.masked_fill(lost & self.rare[ids], UNKNOWN)
        vectors = self.embedding(ids) * self.embedding_factor
        if self.characters is not None:
            spelt = self.characters(characters[:1])[0]
            vectors = torch.cat([vectors, spelt[which].to(vectors.dtype)], dim=2)
        if self.context is not None:
            read = self.context(characters[0][which], mask)
            scaled = read if self.embedding_factor == 1.0 else read * self.context.size**0.5
            vectors = torch.cat([vectors, scaled.to(vectors.dtype)], dim=2)
        output = self.output_dropout(self.encoder(self.input_dropout(vectors), mask).output)
        if self.hidden is not None:
            output = self.hidden(output).tanh()
        scores: Tensor = self.output(output)
        return scores

    def loss(self, scores: Tensor, tags: Tensor, mask: Tensor, smoothing: float = 0.0) -> Tensor:
        """-log p(tags | words), summed over the rows; without a CRF the cross-entropy, which alone is ``smoothing``."""
        if self.crf:
            return -self.chain(scores, tags, mask).sum()
        return cross_entropy(scores[mask], tags[mask], smoothing)

    def decode(self, scores: Tensor, mask: Tensor) -> Tensor:
        """The likeliest legal tags, int64 [batch, words], 0 in padding."""
        return self.chain.decode(scores, mask).labels

    def marginals(self, scores: Tensor, mask: Tensor) -> Tensor:
        """The probability of each tag of each word, float32 [batch, words, tags]; 0 in padding."""
        if self.crf:
            return self.chain.marginals(scores, mask)
        return scores.float().softmax(-1) * mask.unsqueeze(2)

    def log_probability(self, scores: Tensor, tags: Tensor, mask: Tensor) -> Tensor:
        """log p(tags | words) of each row, float32 [batch]."""
        if self.crf:
            return self.chain(scores, tags, mask)
        each = scores.float().log_softmax(-1).gather(2, tags.masked_fill(~mask, 0).unsqueeze(2)).squeeze(2)
        return each.where(mask, 0.0).sum(1)
