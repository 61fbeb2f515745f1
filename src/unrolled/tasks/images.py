"""Images: an image in, its label out, or several labels of it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from unrolled.data.parts import Part
from unrolled.tasks.base import TASKS, Manual, Sized
from unrolled.tasks.pictures import acquaint, channels_of, check_images, sized_images
from unrolled.tasks.read_labels import FileLabelTask

if TYPE_CHECKING:
    from torch import nn

    from unrolled.text.readers import ReadLabels


@TASKS.register("images")
class Images(FileLabelTask):
    """One label an image, or any number of them (``text.separator``).

    A folder for each label holds the images that have it; or a table names images in one column and has their labels in
    another. ``label`` is that column, by name or 1-based number; null: the one that is called label, class, category,
    …, else the one with few short values that come again and again.
    """

    files = "image"
    columns = ("image", "label")
    noun = "image"
    unit = "images"
    preset = "images"
    instead = ", or give a folder of images with a folder for each label"
    manual = Manual(
        commands=("unrolled predict {} image.png", "unrolled evaluate {} images.tsv"),
        attending=("unrolled explain {} image.png --to picture.svg",),
        python="predict(['image.png'])",
        tags=("image-classification", "rnn"),
        pipeline="image-classification",
    )

    def check(self, settings: Mapping[str, Any]) -> None:
        super().check(settings)
        check_images(settings)

    def size(self, part: Part) -> Sized:
        return sized_images(part, super().size(part))

    def network(self, settings: Mapping[str, Any], text: ReadLabels) -> nn.Module:
        network = super().network(settings, text)
        acquaint(network, text.source)
        return network

    def sketch(self, settings: Mapping[str, Any], source: int, target: int) -> tuple[nn.Module, str]:
        self.sketched = channels_of(settings)
        return super().sketch(settings, source, target)
