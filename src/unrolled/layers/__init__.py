"""Layers as torch modules: cells, the recurrence over them, attention, embedding, dropout, loss."""

from unrolled.layers.attention import ATTENTIONS, Attended, Attention, Memory
from unrolled.layers.cells import CELLS, GRU, LSTM, Cell, Elman, State
from unrolled.layers.dropout import DROPOUTS, LockedDropout, PlainDropout
from unrolled.layers.embedding import Embedding
from unrolled.layers.loss import cross_entropy
from unrolled.layers.recurrent import Recurrent, Sequence

__all__ = [
    "ATTENTIONS",
    "CELLS",
    "DROPOUTS",
    "GRU",
    "LSTM",
    "Attended",
    "Attention",
    "Cell",
    "Elman",
    "Embedding",
    "LockedDropout",
    "Memory",
    "PlainDropout",
    "Recurrent",
    "Sequence",
    "State",
    "cross_entropy",
]
