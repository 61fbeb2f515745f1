"""Layers as torch modules: recurrences over cells, drop-ins for torch.nn's, attention, embedding, dropout, loss."""

from unrolled.layers.attention import (
    ATTENTIONS,
    COVERAGES,
    NORMALISERS,
    REACHES,
    Attended,
    Attention,
    AttentionPooling,
    Memory,
    MultiHead,
    SelfAttention,
)
from unrolled.layers.cells import CELLS, Cell, State
from unrolled.layers.characters import CharacterEncoder
from unrolled.layers.crf import ConditionalRandomField, Legal
from unrolled.layers.dropout import DROPOUTS, Dropout, LockedDropout, PlainDropout
from unrolled.layers.embedding import Embedding
from unrolled.layers.loss import cross_entropy
from unrolled.layers.modules import GRU, LSTM, Elman
from unrolled.layers.recurrent import Recurrent, Sequence
from unrolled.layers.spelling import SpellingEncoder
from unrolled.layers.weights import OnnxLayer, load_keras, load_onnx, load_torch, to_keras, to_onnx, to_torch

__all__ = [
    "ATTENTIONS",
    "CELLS",
    "COVERAGES",
    "DROPOUTS",
    "Dropout",
    "GRU",
    "LSTM",
    "Legal",
    "NORMALISERS",
    "REACHES",
    "Attended",
    "Attention",
    "AttentionPooling",
    "Cell",
    "CharacterEncoder",
    "ConditionalRandomField",
    "Elman",
    "Embedding",
    "LockedDropout",
    "Memory",
    "MultiHead",
    "OnnxLayer",
    "PlainDropout",
    "Recurrent",
    "SelfAttention",
    "Sequence",
    "SpellingEncoder",
    "State",
    "cross_entropy",
    "load_keras",
    "load_onnx",
    "load_torch",
    "to_keras",
    "to_onnx",
    "to_torch",
]
