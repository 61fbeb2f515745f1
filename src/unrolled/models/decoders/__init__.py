"""One file an order of looking and moving; the decoders register themselves here."""

from unrolled.models.decoders.base import DECODERS, Decoded, Decoder, Unrolled
from unrolled.models.decoders.fixed import Fixed
from unrolled.models.decoders.query_after import QueryAfter
from unrolled.models.decoders.query_before import QueryBefore

__all__ = ["DECODERS", "Decoded", "Decoder", "Fixed", "QueryAfter", "QueryBefore", "Unrolled"]
