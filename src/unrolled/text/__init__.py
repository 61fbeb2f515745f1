"""Lines to symbols and back: tokenizers of every kind, and what of them each kind of task needs."""

from unrolled.text import audio as _audio  # registers its kind
from unrolled.text import features as _features  # registers its kind
from unrolled.text import images as _images  # registers its kind
from unrolled.text import kinds as _kinds  # registers every other kind
from unrolled.text import readers as _readers  # registers its kind
from unrolled.text.base import Text
from unrolled.text.contextual import Contextual  # registers itself
from unrolled.text.running import RunningSettings, RunningText
from unrolled.text.texts import TextPair, TextSettings
from unrolled.text.tokenizer import TOKENIZERS, Encoded, Tokenizer, unknown_share

del _audio, _features, _images, _kinds, _readers

__all__ = [
    "TOKENIZERS",
    "Contextual",
    "Encoded",
    "RunningSettings",
    "RunningText",
    "Text",
    "TextPair",
    "TextSettings",
    "Tokenizer",
    "unknown_share",
]
