"""One file a family of scores; the attentions and their parts register themselves here."""

from unrolled.layers.attention.additive import Additive, Concat
from unrolled.layers.attention.base import ATTENTIONS, Attention
from unrolled.layers.attention.coverage import COVERAGES, Coverage, coverage_loss
from unrolled.layers.attention.gated import Gated
from unrolled.layers.attention.location import Location
from unrolled.layers.attention.memory import Attended, Memory
from unrolled.layers.attention.multi_head import MultiHead
from unrolled.layers.attention.normalisers import NORMALISERS, Normaliser
from unrolled.layers.attention.pooling import AttentionPooling
from unrolled.layers.attention.products import Bilinear, Dot, ScaledDot
from unrolled.layers.attention.reach import REACHES, Reach
from unrolled.layers.attention.self_attention import SelfAttention
from unrolled.layers.attention.sparse import entmax15, sparsemax

__all__ = [
    "ATTENTIONS",
    "COVERAGES",
    "NORMALISERS",
    "REACHES",
    "Additive",
    "Attended",
    "Attention",
    "AttentionPooling",
    "Bilinear",
    "Concat",
    "Coverage",
    "Dot",
    "Gated",
    "Location",
    "Memory",
    "MultiHead",
    "Normaliser",
    "Reach",
    "ScaledDot",
    "SelfAttention",
    "coverage_loss",
    "entmax15",
    "sparsemax",
]
