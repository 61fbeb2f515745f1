"""Wiring only: layers put together to encoders, decoders and whole models, which search and training drive."""

from unrolled.models.bridge import BRIDGES, Bridge
from unrolled.models.decoders import DECODERS, Decoded, Decoder, Unrolled
from unrolled.models.encoders import ENCODERS, Encoded, Encoder
from unrolled.models.histories import HISTORIES, History
from unrolled.models.language_model import LanguageModel
from unrolled.models.parts import Piece, parts
from unrolled.models.positions import POSITIONS
from unrolled.models.seq2seq import MODELS, Forced, Seq2Seq, Stepped
from unrolled.models.softmaxes import SOFTMAXES
from unrolled.models.stepper import TorchStepper

__all__ = [
    "BRIDGES",
    "Bridge",
    "DECODERS",
    "Decoded",
    "Decoder",
    "ENCODERS",
    "Encoded",
    "Encoder",
    "Forced",
    "HISTORIES",
    "History",
    "LanguageModel",
    "MODELS",
    "POSITIONS",
    "Piece",
    "SOFTMAXES",
    "Seq2Seq",
    "Stepped",
    "TorchStepper",
    "Unrolled",
    "parts",
]
