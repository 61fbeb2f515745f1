"""Captions: an image in, a text out."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import islice
from typing import TYPE_CHECKING, Any, cast

from unrolled.base.errors import DataError, SettingsError
from unrolled.base.settings import merge
from unrolled.data.endings import KINDS
from unrolled.data.opening import Report, Wrong
from unrolled.data.parts import Part
from unrolled.data.referenced import column_of, resolved
from unrolled.data.table import Row, Table, arranged
from unrolled.tasks.base import TASKS, Manual, Sized
from unrolled.tasks.describing import DescribeTask
from unrolled.tasks.judging import RUNNING, Grouping, Judged, judged
from unrolled.tasks.numbers import check_read
from unrolled.text.images import ImageReader
from unrolled.text.pixels import size_of

if TYPE_CHECKING:
    from torch import nn

    from unrolled.models import ImageFront, NumbersToText
    from unrolled.tasks.scores import References
    from unrolled.text.readers import ReadText

COLUMNS = ("image", "caption")

CAPTIONS = ("caption", "captions", "text", "description", "sentence", "target")
"""Names of a column of captions."""

LARGE, SMALLER, HEAD = 160, 128, 200
"""Where the longer side of most of the first HEAD images is above LARGE pixels, they are made SMALLER a side."""


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
        if place is None or len(table.columns) < 2:
            return None
        return f"{table.path}: the column '{table.columns[place]}' names images."

    def adapt(self, table: Table) -> Table:
        return paired(table)

    def check(self, settings: Mapping[str, Any]) -> None:
        super().check(settings)
        check_read(settings, "images", "image", "image")
        data = settings["data"]
        if data["too_long"] == "cut":
            raise SettingsError("[data.too_long] 'cut' was given, and an image cannot be cut. Take 'drop'.")

    def size(self, part: Part) -> Sized:
        sized = super().size(part)
        sides = sorted(max(size_of(path)) for path in dict.fromkeys(_first(part)))
        if not sides or sides[len(sides) // 2] <= LARGE:
            return sized
        smaller = {"text": {"source": {"kind": "image", "height": SMALLER, "width": SMALLER}}}
        tree = merge([("", sized.tree), ("", smaller)])[0]

        def said(origins: Mapping[str, str]) -> list[str]:
            own = origins.get("text.source.height") == sized.origin
            shown = f"Images are made {SMALLER} × {SMALLER} pixels (text.source.height and text.source.width)."
            return [*sized.said(origins), *([shown] if own else [])]

        return Sized(sized.origin, tree, said)

    # --- the model ------------------------------------------------------------------------------------------------

    def network(self, settings: Mapping[str, Any], text: ReadText) -> nn.Module:
        network = cast("NumbersToText", super().network(settings, text))
        front, reader = cast("ImageFront", network.front), cast(ImageReader, text.source)
        front.scale(reader.mean.tolist(), reader.deviation.tolist())
        reader.stride = front.stride
        return network

    def sketch(self, settings: Mapping[str, Any], source: int, target: int) -> tuple[nn.Module, str]:  # noqa: ARG002
        from unrolled.models import MODELS

        channels = 1 if settings["text"]["source"]["colour"] == "grey" else 3
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
    return _captioned(arranged(found, [image, caption], said, COLUMNS))


def _captioned(table: Table) -> Table:
    """The table, in which a row without a caption is wrong."""

    def read(report: Report) -> Iterator[Row]:
        for row in table.rows(report):
            if row.fields[1].strip():
                yield row
            else:
                report(
                    Wrong(table.path, row.place, "caption", "the caption is empty. Write one, or leave the row out.")
                )

    return replace(table, read=read)


def images_first(tables: Mapping[str, Table]) -> dict[str, Table] | None:
    """The tables as images and captions; None where they name no images."""
    first = tables.get("train") or next(iter(tables.values()))
    return None if Captions.recognises(first) is None else {name: paired(table) for name, table in tables.items()}


def _first(part: Part) -> list[str]:
    return [row.fields[0] for row in islice(part.rows(), HEAD)]
