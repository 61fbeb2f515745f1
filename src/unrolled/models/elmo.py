"""Two language models, one reading on and one reading back, over words that are read by their characters."""

from __future__ import annotations

from typing import Annotated, Literal

import torch
from torch import Tensor, nn

from unrolled.base.registry import Part
from unrolled.layers import CELLS
from unrolled.models.ranges import Count, Share
from unrolled.models.seq2seq import MODELS
from unrolled.models.softmaxes import SOFTMAXES
from unrolled.models.two_ways import TwoWayReader, TwoWays


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
        self.vocabulary_size = vocabulary_size
        self.reader = TwoWayReader(
            characters,
            character_size=character_size,
            filters=filters,
            highways=highways,
            cell=cell,
            layers=layers,
            residual=residual,
            dropout=dropout,
            input_dropout=input_dropout,
            dropout_kind=dropout_kind,
        )
        self.softmax = SOFTMAXES.build(softmax, self.reader.size, vocabulary_size, None, where="softmax")

    @property
    def output_size(self) -> int:
        """Numbers of a contextual vector."""
        return 2 * self.reader.size

    @property
    def count(self) -> int:
        """Layers that give a vector; that of the characters alone is one."""
        return self.reader.count

    def forward(self, characters: Tensor, mask: Tensor) -> TwoWays:
        """See `TwoWayReader`."""
        read: TwoWays = self.reader(characters, mask)
        return read

    def loss(self, characters: Tensor, mask: Tensor, targets: Tensor, smoothing: float = 0.0) -> Tensor:
        """Σ of both directions' cross-entropies (natural log); ``targets`` int64 [batch, time] are the words' numbers,
        BEGIN and END at the ends. 2 (time - 1) words of a text are predicted."""
        read = self(characters, mask)
        hidden, wanted = zip(*_both(read, mask, targets), strict=True)
        return self.softmax.loss(self.reader.dropout(torch.cat(hidden)), torch.cat(wanted), smoothing)

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
