"""Lines to symbols and back: tokenizers of every kind, and the pair of them that a translator needs."""

from unrolled.text import kinds as _kinds  # registers every kind
from unrolled.text.texts import TextPair, TextSettings
from unrolled.text.tokenizer import TOKENIZERS, Encoded, Tokenizer, unknown_share

del _kinds

__all__ = ["TOKENIZERS", "Encoded", "TextPair", "TextSettings", "Tokenizer", "unknown_share"]
