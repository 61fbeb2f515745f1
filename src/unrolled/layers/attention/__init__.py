"""One file a family of scores; the attentions register themselves here."""

from unrolled.layers.attention.additive import Additive
from unrolled.layers.attention.base import ATTENTIONS, Attended, Attention, Memory
from unrolled.layers.attention.products import Bilinear, Dot, ScaledDot

__all__ = ["ATTENTIONS", "Additive", "Attended", "Attention", "Bilinear", "Dot", "Memory", "ScaledDot"]
