"""A tagger as a scikit-learn estimator: sentences and tags in, the same training as from a file."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from sklearn.base import BaseEstimator
from sklearn.exceptions import NotFittedError

from unrolled.base.settings import merge
from unrolled.runs.run import train
from unrolled.workshop import arguments

if TYPE_CHECKING:
    from unrolled.pipeline import TextTagger

Sentences = Sequence[Sequence[str]]


class Tagger(BaseEstimator):
    """Learns a tag for each word of sentences; for `cross_val_score`, `GridSearchCV` and all that takes an estimator.

    ``preset`` is that of the task ``tag``, else its usual one; ``settings`` a tree over it, e.g.
    ``{"train": {"epochs": 5}}``; ``characters``, ``crf``, ``minutes`` and ``seed`` are laid over both where they are
    given, so that a grid can search them. ``out`` is where the model is saved; None: nowhere. ``quiet``: no progress on
    stderr.

    After ``fit``: ``kinds_``, what a word, or a span of words, may be called; ``model_``, the trained `TextTagger`.
    """

    def __init__(
        self,
        preset: str | None = None,
        *,
        settings: Mapping[str, Any] | None = None,
        characters: str | None = None,
        crf: bool | None = None,
        minutes: float | None = None,
        seed: int | None = None,
        out: str | Path | None = None,
        quiet: bool = True,
    ) -> None:
        self.preset = preset
        self.settings = settings
        self.characters = characters
        self.crf = crf
        self.minutes = minutes
        self.seed = seed
        self.out = out
        self.quiet = quiet

    def fit(self, X: Sentences, y: Sentences) -> Self:
        """Train on sentences ``X``, each a list of words, and their tags ``y``, one a word; a sentence without words is
        passed over.

        Some sentences are held out to choose the best weights (``data.valid_share``). UsageError for unequal lengths,
        DataError for tags that break their scheme.
        """
        sentences, tags = arguments.tagged("fit", X, y)
        with tempfile.TemporaryDirectory(prefix="unrolled-") as folder:
            path = Path(folder) / "train.jsonl"
            with path.open("w", encoding="utf-8") as file:
                for words, row in zip(sentences, tags, strict=True):
                    if words:
                        file.write(json.dumps({"tokens": words, "tags": row}) + "\n")
            out = Path(self.out) if self.out is not None else Path(folder) / "model"
            model: Any = train(path, preset=self.preset, out=out, settings=self._tree(), quiet=self.quiet)
        self.model_: TextTagger = model
        self.kinds_ = model.kinds
        return self

    def _tree(self) -> dict[str, Any]:
        training = {"minutes": self.minutes, "seed": self.seed}
        network = {"characters": self.characters, "crf": self.crf}
        given: dict[str, Any] = {"task": {"kind": "tag"}}
        for section, values in (("train", training), ("model", network)):
            given[section] = {name: value for name, value in values.items() if value is not None}
        return merge([("settings", self.settings or {}), ("parameters", given)])[0]

    def predict(self, X: Sentences) -> list[list[str]]:
        """The tags of each sentence."""
        return self._fitted().predict(X)

    def score(self, X: Sentences, y: Sentences) -> float:
        """F1 of the exact spans, or where tags are each word's own, the share of words with the right one."""
        scores = {score.name: score.value for score in self._fitted().evaluate(X, y)}
        return scores.get("f1", scores["accuracy"])

    def _fitted(self) -> TextTagger:
        if not hasattr(self, "model_"):
            raise NotFittedError("this Tagger is not fitted yet: call fit(sentences, tags) first.")
        return self.model_
