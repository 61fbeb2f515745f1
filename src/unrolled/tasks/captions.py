"""Captions: an image in, a text out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from unrolled.base.errors import DataError
from unrolled.data.endings import KINDS
from unrolled.data.parts import Part
from unrolled.data.referenced import column_of, resolved
from unrolled.data.table import Table, arranged
from unrolled.tasks.base import TASKS, Manual, Sized
from unrolled.tasks.describing import DescribeTask
from unrolled.tasks.judging import RUNNING, Grouping, Judged, judged
from unrolled.tasks.named_files import full, labels_beside
from unrolled.tasks.pictures import acquaint, channels_of, check_images, sized_images

if TYPE_CHECKING:
    from torch import nn

    from unrolled.tasks.scores import References
    from unrolled.text.readers import ReadText

COLUMNS = ("image", "caption")

CAPTIONS = ("caption", "captions", "text", "description", "sentence", "target")
"""Names of a column of captions."""


@TASKS.register("captions")
class Captions(DescribeTask):
    """A text of an image: what is on it, or what is written there (Xu et al. 2015, arXiv:1502.03044).

    A table names images in one column and has their captions in another; several rows with one image are its captions,
    which are kept together and count as references of each other (``references: grouped``, the default; ``each``: every
    row by itself). Or a folder holds images with a text of the same name beside each. ``scores`` are measures of the
    outputs (null: BLEU, chrF, TER, exact match, character error rate).
    """

    columns = COLUMNS
    noun = "image"
    preset = "captions"
    stop_on = "chrf"
    instead = ", or give a folder of images with a text beside each"
    manual = Manual(
        commands=("unrolled predict {} image.png", "unrolled evaluate {} captions.tsv"),
        attending=("unrolled explain {} image.png --to picture.svg",),
        python="predict(['image.png'])",
        tags=("image-to-text", "image-captioning", "rnn"),
        pipeline="image-to-text",
    )

    def __init__(self, *, scores: list[str | dict[str, Any]] | None = None, references: Grouping | None = None) -> None:
        super().__init__(scores, references)

    # --- settings and data ----------------------------------------------------------------------------------------

    @classmethod
    def recognises(cls, table: Table) -> str | None:
        place = column_of(table, "image")
        if place is None or len(table.columns) < 2 or labels_beside(table, "image") is not None:
            return None
        return f"{table.path}: the column '{table.columns[place]}' names images."

    def adapt(self, table: Table) -> Table:
        return paired(table)

    def check(self, settings: Mapping[str, Any]) -> None:
        super().check(settings)
        check_images(settings)

    def size(self, part: Part) -> Sized:
        return sized_images(part, super().size(part))

    # --- the model ------------------------------------------------------------------------------------------------

    def network(self, settings: Mapping[str, Any], text: ReadText) -> nn.Module:
        network = super().network(settings, text)
        acquaint(network, text.source)
        return network

    def sketch(self, settings: Mapping[str, Any], source: int, target: int) -> tuple[nn.Module, str]:  # noqa: ARG002
        from unrolled.models import MODELS

        channels = channels_of(settings)
        model = MODELS.build(settings["model"], channels, target, where="model")
        return model, f"images of {channels} channel{'s' if channels > 1 else ''} and {target:,} target symbols"

    # --- scores ---------------------------------------------------------------------------------------------------

    def judged(
        self, text: ReadText, sources: Sequence[Any], references: References, grouping: Grouping | None = None
    ) -> Judged:
        if all(isinstance(source, str) for source in sources):
            return super().judged(text, sources, references, grouping or self.references or "grouped")
        return judged(sources, references, grouped=False)  # arrays are not compared

    def suiting(self, text: ReadText, references: References) -> Sequence[str | Mapping[str, Any]]:  # noqa: ARG002
        return RUNNING if self.scores is None else self.scores


def paired(table: Table) -> Table:
    """The table with the paths of its images first, as seen from here, and their captions second; DataError where no
    column names images."""
    if table.columns == COLUMNS and table.root:
        return table
    image = column_of(table, "image")
    if image is None:
        raise DataError(
            f"{table.path}: no column names images ({', '.join(KINDS['image'][:3])}, …) in every row. Name the file of "
            f"each image in one of its columns ({', '.join(table.columns)})."
        )
    found = table if table.root else resolved(table, image)
    others = [place for place in range(len(table.columns)) if place != image]
    if not others:
        return arranged(found, [image], "The column names images.", COLUMNS[:1])
    lower = [name.strip().casefold() for name in table.columns]
    caption = next((lower.index(name) for name in CAPTIONS if name in lower and lower.index(name) != image), others[0])
    said = f"Images are named in '{table.columns[image]}', captions stand in '{table.columns[caption]}'."
    return full(arranged(found, [image, caption], said, COLUMNS), "caption")
