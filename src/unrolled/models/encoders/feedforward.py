"""A fixed window of words and one hidden layer: the baseline that recurrent networks replaced."""

from __future__ import annotations

from torch import Tensor, nn

from unrolled.layers.draws import dropout
from unrolled.models.encoders.base import ENCODERS, Encoded, Encoder, averaged
from unrolled.models.ranges import Count, Share
from unrolled.models.windows import windows


@ENCODERS.register("feedforward")
class WindowEncoder(Encoder):
    """h_j = tanh(W [x_{j-r} … x_{j+r}] + b), with ``reach`` r words to each side.

    The window of Bengio et al. 2003 (JMLR 3) around each position; Rush et al. 2015 (arXiv:1509.00685, §3.2) smooth
    their source over such a window. What lies outside it is not seen. The mean vector is state and summary.
    """

    def __init__(
        self, embedding_size: int, /, *, reach: Count = 2, hidden_size: Count = 256, dropout: Share = 0.0
    ) -> None:
        super().__init__(embedding_size)
        self.reach, self.dropout = reach, dropout
        self.hidden = nn.Linear((2 * reach + 1) * embedding_size, hidden_size)
        self.output_size = hidden_size
        self.layout = ((hidden_size,),)

    def encode(self, embedded: Tensor, mask: Tensor) -> Encoded:
        given = windows(embedded.masked_fill(~mask.unsqueeze(2), 0.0), self.reach, self.reach)
        output = self.hidden(dropout(given, self.dropout, self.training)).tanh()
        return averaged(output, mask)
