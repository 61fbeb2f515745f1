"""One file an order of looking and moving; the decoders register themselves here."""

from unrolled.models.decoders.base import DECODERS, Decoded, Decoder, Unrolled
from unrolled.models.decoders.feedforward import WindowDecoder
from unrolled.models.decoders.fixed import Fixed
from unrolled.models.decoders.gnmt import Gnmt
from unrolled.models.decoders.query_after import QueryAfter
from unrolled.models.decoders.query_before import QueryBefore
from unrolled.models.decoders.transformer import TransformerDecoder

__all__ = [
    "DECODERS",
    "Decoded",
    "Decoder",
    "Fixed",
    "Gnmt",
    "QueryAfter",
    "QueryBefore",
    "TransformerDecoder",
    "Unrolled",
    "WindowDecoder",
]
