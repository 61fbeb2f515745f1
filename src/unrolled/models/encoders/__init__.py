"""One file a way of reading; the encoders register themselves here."""

from unrolled.models.encoders.base import ENCODERS, Encoded, Encoder
from unrolled.models.encoders.cnn import ConvolutionalEncoder
from unrolled.models.encoders.feedforward import WindowEncoder
from unrolled.models.encoders.ngram import NGramEncoder
from unrolled.models.encoders.plain import PlainEncoder
from unrolled.models.encoders.pyramidal import PyramidalEncoder
from unrolled.models.encoders.rnn import RecurrentEncoder, reverse
from unrolled.models.encoders.transformer import TransformerEncoder

__all__ = [
    "ENCODERS",
    "ConvolutionalEncoder",
    "Encoded",
    "Encoder",
    "NGramEncoder",
    "PlainEncoder",
    "PyramidalEncoder",
    "RecurrentEncoder",
    "TransformerEncoder",
    "WindowEncoder",
    "reverse",
]
