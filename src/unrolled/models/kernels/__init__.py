"""The loops of decoders whose attention waits for their state: plain, and by hand where that is faster."""

from unrolled.models.kernels.attentive import attend_and_advance
from unrolled.models.kernels.feeding import advance_and_attend, feedable

__all__ = ["advance_and_attend", "attend_and_advance", "feedable"]
