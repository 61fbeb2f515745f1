"""The loop of a decoder whose attention waits for its state: plain, and by hand where that is faster."""

from unrolled.models.kernels.attentive import attend_and_advance

__all__ = ["attend_and_advance"]
