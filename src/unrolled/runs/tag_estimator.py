"""A tagger as a scikit-learn estimator: sentences and tags in, the same training as from a file."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from sklearn.exceptions import NotFittedError

from unrolled.runs.fitting import Estimator
from unrolled.workshop import arguments

if TYPE_CHECKING:
    from unrolled.pipeline import TextTagger

Sentences = Sequence[Sequence[str]]


class Tagger(Estimator):
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
        rows = ({"tokens": words, "tags": row} for words, row in zip(sentences, tags, strict=True) if words)
        places = [place for place, words in enumerate(sentences) if words]
        model: Any = self.trained(rows, "tag", {"characters": self.characters, "crf": self.crf}, places=places)
        self.model_: TextTagger = model
        self.kinds_ = model.kinds
        return self

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
