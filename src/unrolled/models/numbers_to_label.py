"""The labels of numbers: frames of a signal or of a recording, an image; of the whole, or of each frame."""

from __future__ import annotations

from typing import Annotated, Literal

from torch import Tensor

from unrolled.base.errors import SettingsError
from unrolled.base.registry import Part
from unrolled.models.classifier import Labelling
from unrolled.models.contextual import Looked
from unrolled.models.encoders import ENCODERS
from unrolled.models.fronts import FRONTS
from unrolled.models.pooling import POOLINGS
from unrolled.models.ranges import Share
from unrolled.models.seq2seq import MODELS


@MODELS.register("numbers_to_label")
class NumbersToLabel(Labelling):
    """A `Labelling` of what a ``front`` reads: frames, an image.

    ``pooling`` is over the positions that come out of the front: moments of a recording, regions of an image.
    ``dropout`` is that of the pooled vector. Where each position has its own label there is no pooling.
    """

    def __init__(
        self,
        channels: int,
        labels: int,
        several: bool = False,
        each: bool = False,
        /,
        *,
        front: Annotated[Part, FRONTS] = "frames",
        encoder: Annotated[Part, ENCODERS] = "rnn",
        pooling: Annotated[Part, POOLINGS] = "attention",
        dropout: Share = 0.3,
        class_weights: Literal["none", "balanced"] = "none",
    ) -> None:
        read = FRONTS.build(front, channels, where="front")
        built = ENCODERS.build(encoder, read.output_size, where="encoder")
        if each and built.reduction > 1:
            raise SettingsError("[encoder] it makes fewer positions of the frames, and each frame is to have a label.")
        if each and not read.keeps:
            raise SettingsError(
                "[front] it does not give a position for each frame, and each frame is to have a label. Take the front "
                "frames, without augment.tempo."
            )
        super().__init__(labels, several, built, {"kind": "mean"} if each else pooling, dropout, class_weights)
        self.each = each
        self.front = read

    def read(self, given: Tensor, mask: Tensor) -> Looked:
        """The numbers ``given`` [batch, …] as the front gives them."""
        read: Looked = self.front(given, mask)
        return read
