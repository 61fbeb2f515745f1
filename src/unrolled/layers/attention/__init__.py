"""One file a family of scores; the attentions and their parts register themselves here."""

from unrolled.layers.attention.additive import Additive
from unrolled.layers.attention.base import ATTENTIONS, Attention
from unrolled.layers.attention.coverage import COVERAGES, Coverage
from unrolled.layers.attention.memory import Attended, Memory
from unrolled.layers.attention.normalisers import NORMALISERS, Normaliser
from unrolled.layers.attention.products import Bilinear, Dot, ScaledDot
from unrolled.layers.attention.reach import REACHES, Reach

__all__ = [
    "ATTENTIONS",
    "COVERAGES",
    "NORMALISERS",
    "REACHES",
    "Additive",
    "Attended",
    "Attention",
    "Bilinear",
    "Coverage",
    "Dot",
    "Memory",
    "Normaliser",
    "Reach",
    "ScaledDot",
]
