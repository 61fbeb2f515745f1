"""A trained model that writes a text of numbers: what speech, images and signals share."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from unrolled.base.errors import UsageError
from unrolled.pipeline.given_files import paths_or_arrays
from unrolled.pipeline.writing import Writer
from unrolled.search import SearchSettings
from unrolled.tasks.writing import Written
from unrolled.workshop.seeing import NO_ATTENTION


class Describer(Writer):
    """A `Writer` whose sources are paths, or arrays as its reader takes them."""

    noun = "source"
    """What a source is called in messages."""

    def sources(self, verb: str, name: str, given: Any) -> list[Any]:
        return paths_or_arrays(verb, name, self.noun, given)

    def lines_in(self, file: str) -> Iterator[Any]:
        return self.sources_in(file)

    def looked(self, source: Any, one: Written) -> dict[str, Any]:  # noqa: ARG002
        weights = one.hypothesis.weights
        if weights is None:
            raise UsageError(NO_ATTENTION)
        return {"target": one.tokens, "weights": [[round(float(value), 5) for value in row] for row in weights]}

    def searching(self, *, beam: int | None = None, changes: Mapping[str, Any] | None = None) -> SearchSettings:
        if changes and changes.get("replace_unknown"):
            raise UsageError(
                "predict: --replace-unknown was given, and the source has no words that could stand in. Leave it out."
            )
        return super().searching(beam=beam, changes=changes)
