"""Two language models, one reading on and one reading back, over words that are read by their characters."""

from __future__ import annotations

from typing import Annotated, Literal, NamedTuple, cast

import torch
from torch import Tensor, nn

from unrolled.base.registry import Part
from unrolled.layers import CELLS, DROPOUTS, Recurrent, SpellingEncoder
from unrolled.models.encoders.rnn import reverse
from unrolled.models.ranges import Count, Share
from unrolled.models.seq2seq import MODELS
from unrolled.models.softmaxes import SOFTMAXES


class TwoWays(NamedTuple):
    """Texts read in both directions."""

    words: Tensor  # [batch, time, size]: of the characters alone
    forward: tuple[Tensor, ...]  # of each layer [batch, time, size]: what was read up to a place, itself included
    backward: tuple[Tensor, ...]  # of each layer [batch, time, size]: what was read from the end back to it

    def layers(self) -> tuple[Tensor, ...]:
        """Each layer's vectors, both directions side by side, that of the characters alone first: [batch, time,
        2 · size]."""
        pairs = zip((self.words, *self.forward), (self.words, *self.backward), strict=True)
        return tuple(torch.cat(pair, dim=2) for pair in pairs)


@MODELS.register("elmo")
class Elmo(nn.Module):
    """Σ_t log p(w_t | w_1 … w_{t-1}) + log p(w_t | w_{t+1} … w_n)   (Peters et al. 2018, arXiv:1802.05365, §3.1)

    x_t = spelling of w_t (`SpellingEncoder`);   h_t^k = cell_k(h_{t-1}^k, h_t^{k-1}),  h^0 = x,  in each direction its
    own cells;   p(· | …) = softmax(W h^K + b), the spelling and the softmax shared by both.

    A text is [begin, w_1 … w_n, end]; the forward direction predicts each next word from begin on, the backward one
    each word before from end on. ``residual`` adds a layer's input to its output from the second layer on. With a
    cell of ``projection_size`` the network is that of the paper (cell {kind: lstm, hidden_size: 4096,
    projection_size: 512}, layers 2). ``dropout`` is that of the layers' inputs and of what the softmax reads;
    ``input_dropout`` (null: the same) that of the spellings.

    Masks are bool, True = real, real places first; every text is read from the first state on.
    """

    def __init__(
        self,
        characters: int,
        vocabulary_size: int,
        /,
        *,
        character_size: Count = 16,
        filters: tuple[int, ...] = (32, 32, 64, 128),
        highways: int = 1,
        cell: Annotated[Part, CELLS] = "lstm",
        layers: Count = 2,
        residual: bool = True,
        softmax: Annotated[Part, SOFTMAXES] = "full",
        dropout: Share = 0.1,
        input_dropout: Share | None = None,
        dropout_kind: Literal["plain", "locked"] = "plain",
    ) -> None:
        super().__init__()
        self.vocabulary_size, self.residual = vocabulary_size, residual
        size = CELLS.build(cell, 1, where="cell").output_size
        self.spelling = SpellingEncoder(characters, size, size=character_size, filters=filters, highways=highways)
        self.ahead = nn.ModuleList(Recurrent(size, cell=cell) for _ in range(layers))
        self.back = nn.ModuleList(Recurrent(size, cell=cell) for _ in range(layers))
        rates = (dropout if input_dropout is None else input_dropout, dropout)
        self.input_dropout, self.dropout = (DROPOUTS.build({"kind": dropout_kind, "rate": rate}) for rate in rates)
        self.softmax = SOFTMAXES.build(softmax, size, vocabulary_size, None, where="softmax")
        self.output_size, self.count = 2 * size, layers + 1
        """Numbers of a contextual vector, and how many layers have one: that of the characters alone counts."""

    def forward(self, characters: Tensor, mask: Tensor) -> TwoWays:
        """Read ``characters`` int64 [batch, time, length], PAD behind each word, as ``mask`` [batch, time] has it."""
        words = self.spell(characters, mask)
        given = self.input_dropout(words)
        ahead = self._read(self.ahead, given, mask)
        back = self._read(self.back, reverse(given, mask), mask)
        return TwoWays(words, ahead, tuple(reverse(layer, mask) for layer in back))

    def spell(self, characters: Tensor, mask: Tensor) -> Tensor:
        """The words' vectors [batch, time, size], 0 at padding; each different word is looked at once."""
        different, places = torch.unique(characters[mask], dim=0, return_inverse=True)
        read = self.spelling(different)
        return read.new_zeros(*mask.shape, read.shape[1]).masked_scatter(mask.unsqueeze(2), read[places])

    def _read(self, stack: nn.ModuleList, x: Tensor, mask: Tensor) -> tuple[Tensor, ...]:
        found: list[Tensor] = []
        for layer in cast("list[Recurrent]", list(stack)):
            output = layer(self.dropout(x) if found else x, mask).output
            x = output + x if found and self.residual else output
            found.append(x)
        return tuple(found)

    def loss(self, characters: Tensor, mask: Tensor, targets: Tensor, smoothing: float = 0.0) -> Tensor:
        """Σ of both directions' cross-entropies (natural log); ``targets`` int64 [batch, time] are the words' numbers,
        BEGIN and END at the ends. 2 (time - 1) words of a text are predicted."""
        read = self(characters, mask)
        hidden, wanted = zip(*_both(read, mask, targets), strict=True)
        return self.softmax.loss(self.dropout(torch.cat(hidden)), torch.cat(wanted), smoothing)

    def log_probs(self, characters: Tensor, mask: Tensor, targets: Tensor) -> tuple[Tensor, Tensor]:
        """Natural-log probability of each word, float32 [batch, time], given those before it (0 at the first place) and
        given those behind it (0 at the last); 0 at padding."""
        read = self(characters, mask)
        found = []
        for (hidden, wanted), there in zip(_both(read, mask, targets), _predicted(mask), strict=True):
            said = self.softmax(hidden).float().log_softmax(dim=1).gather(1, wanted.unsqueeze(1)).squeeze(1)
            found.append(said.new_zeros(mask.shape).masked_scatter(there, said))
        return found[0], found[1]


def _predicted(mask: Tensor) -> tuple[Tensor, Tensor]:
    """The places that each direction predicts, bool [batch, time]: all but the first, all but the last."""
    ahead, back = mask.clone(), torch.zeros_like(mask)
    ahead[:, 0] = False
    back[:, :-1] = mask[:, 1:]
    return ahead, back


def _both(read: TwoWays, mask: Tensor, targets: Tensor) -> tuple[tuple[Tensor, Tensor], tuple[Tensor, Tensor]]:
    """Of each direction the vectors [n, size] that predict, and what they predict [n], in row order."""
    ahead, back = _predicted(mask)  # what one predicts, the other reads to predict its neighbour
    return (read.forward[-1][back], targets[ahead]), (read.backward[-1][ahead], targets[back])
