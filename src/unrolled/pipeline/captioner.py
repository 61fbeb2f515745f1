"""A trained model that writes of images: captions, where it looked for each word, and how far to trust that."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from unrolled.base.errors import UsageError
from unrolled.data.parts import Part
from unrolled.pipeline.captioner_tables import boxes_of, inside_boxes
from unrolled.pipeline.describing import Describer
from unrolled.pipeline.given_files import images_in, larger, noise
from unrolled.pipeline.model import TRAINED, Evaluated, Model
from unrolled.pipeline.numbered import Named, nth
from unrolled.tasks.captions import Captions, paired
from unrolled.tasks.judging import Grouping
from unrolled.tasks.writing import Written
from unrolled.workshop import arguments
from unrolled.workshop.looking import overlay, overlays, trust
from unrolled.workshop.seeing import check_line

if TYPE_CHECKING:
    from unrolled.explain.overlay import Overlay
    from unrolled.text.pixels import Pixels

TRUSTED = 30
"""Validation rows over which the faithfulness of attention is measured after training."""


@TRAINED.register("captions")
class Captioner(Describer):
    """A trained model of captions: ``predict``, ``explain``, ``evaluate``, ``score``, ``embed``, ``align`` of images.

    An image is the path of a file, or an array [height, width] or [height, width, 1, 3 or 4] of whole numbers from 0 to
    255 or fractions from 0 to 1.
    """

    task: Captions
    lacks = {"generate": "it writes what an image shows: predict, with --search sampling for draws"}
    noun = "image"

    def sources_in(self, file: str) -> Iterator[str]:
        """Of an image itself, of a folder its images by name, of a table the images that it names, of a text file (or
        ``-``) the path in each line."""
        return images_in(file, paired)

    def made_up(self, count: int) -> list[np.ndarray]:
        """Images of noise, as large as the training images where they were alike, seed 1."""
        return noise(self.text.source, count)

    def longer(self, source: Any) -> np.ndarray:
        """The image twice as high and twice as wide, where any size is read; else another of its size."""
        return larger(self.text.source, source)

    # --- seeing ---------------------------------------------------------------------------------------------------

    def explain(self, image: Any, target: str | None = None, *, trusted: bool = True) -> Overlay:
        """Where the model looked for each word: of its own output, or of a given ``target``.

        ``trusted`` erases regions one by one to say how far the picture can be trusted. UsageError for a model without
        attention.
        """
        (given,) = self.sources("explain", "image", [image])
        pixels = self._read([given])[0]
        name = given if isinstance(given, str) else ""
        if target is None:
            one = self._own(pixels, name)
        else:
            check_line(arguments.text("explain", "target", target), "target")
            one = replace(self.align([pixels], [target])[0], source_text=name)
        return (
            replace(one, faithfulness=trust(self.network, self.text, [one], device=self.device))
            if trusted and one.words
            else one
        )

    def align(self, images: Sequence[Any], captions: Sequence[str], *, by_space: bool = False) -> list[Overlay]:
        """Where the model looks while it reads given captions (forced decoding); ``by_space``: words are what spaces
        set apart, else the tokenizer's."""
        pixels = self._read(self.sources("align", "images", images))
        texts = arguments.texts("align", "captions", captions)
        if len(pixels) != len(texts):
            raise UsageError(f"align: {len(pixels)} images and {len(texts)} captions; give as many of both.")
        return overlays(self.network, self.text, pixels, texts, device=self.device, by_space=by_space)

    def looked(self, source: Any, one: Written) -> dict[str, Any]:  # noqa: ARG002
        found = overlay(
            self.network, self.text, one.source, one.hypothesis.ids, one.hypothesis.weights, _own_log_probs(one)
        ).to_dict()
        return {name: found[name] for name in ("size", "stride", "words")}

    def _own(self, pixels: Pixels, name: str) -> Overlay:
        found = self.translations([pixels], replace(self.search, nbest=1))[0]
        hypothesis = found[0].hypothesis
        return overlay(
            self.network, self.text, pixels, hypothesis.ids, hypothesis.weights, _own_log_probs(found[0]), name=name
        )

    def _read(self, images: Sequence[Any]) -> list[Pixels]:
        found: list[Pixels] = self.text.read(images)
        return found

    # --- after training -------------------------------------------------------------------------------------------

    def measured(self, valid: Part) -> dict[str, Any]:
        """How far the attention can be trusted, where there is attention."""
        sources, targets = self.task.pairs(valid, TRUSTED)
        try:
            pictures = self.align(sources, targets)
        except UsageError:
            return {"faithfulness": None}
        found = trust(self.network, self.text, pictures, device=self.device)
        return {"faithfulness": {name: one._asdict() for name, one in found.items()}}

    # --- on the command line --------------------------------------------------------------------------------------

    def show_explain(self, line: str, *, target: str | None = None, untrusted: bool = False) -> Overlay:
        """``line`` is the path of an image, or a table or folder and after a # the number of the image in it:
        ``captions.tsv#3``; ``untrusted`` leaves out how far to trust the picture."""
        image = nth("explain", line, Named("image", "captions.tsv"), self.sources_in, self.asides)
        found = self.explain(image, target, trusted=not untrusted)
        self.say_if_empty(found.target_text)
        return found

    def show_evaluate(
        self,
        part: Part,
        *,
        beam: int | None = None,
        compare: Model | None = None,
        score: list[str] | None = None,
        references: Grouping | None = None,
        ensemble: Sequence[Model] | None = None,
        precision: str = "float32",
        boxes: str | None = None,
    ) -> Evaluated:
        """Scores of the outputs; against another model; of the attention against ``boxes``, a table that says where in
        each image the things are that the words of its caption mean."""
        known = None if boxes is None else boxes_of(boxes, *self.pairs(part))
        found = super().show_evaluate(
            part,
            beam=beam,
            compare=compare,
            score=score,
            references=references,
            ensemble=ensemble,
            precision=precision,
        )
        if known is None:
            return found
        sources, targets = self.pairs(part)
        return found._replace(scores=[*found.scores, inside_boxes(self.align(sources, targets, by_space=True), known)])


def _own_log_probs(one: Written) -> Sequence[float]:
    return one.hypothesis.token_log_probs
