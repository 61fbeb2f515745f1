"""A text classifier as a scikit-learn estimator: texts and labels in, the same training as from a file."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from sklearn.base import ClassifierMixin
from sklearn.exceptions import NotFittedError

from unrolled.base.errors import DataError, UsageError
from unrolled.runs.fitting import Estimator
from unrolled.workshop import arguments

if TYPE_CHECKING:
    from unrolled.pipeline import TextClassifier


class Classifier(ClassifierMixin, Estimator):
    """Learns labels of texts; for `cross_val_score`, `GridSearchCV`, `Pipeline` and all that takes an estimator.

    ``preset`` is that of the task ``classify``, else its usual one; ``settings`` a tree over it, e.g.
    ``{"train": {"epochs": 5}}``; ``minutes``, ``seed`` and ``pooling`` are laid over both where they are given, so that
    a grid can search them. ``out`` is where the model is saved; None: nowhere. ``quiet``: no progress on stderr.

    After ``fit``: ``classes_``, the labels in sorted order; ``model_``, the trained `TextClassifier`.
    """

    def __init__(
        self,
        preset: str | None = None,
        *,
        settings: Mapping[str, Any] | None = None,
        pooling: str | None = None,
        minutes: float | None = None,
        seed: int | None = None,
        out: str | Path | None = None,
        quiet: bool = True,
    ) -> None:
        self.preset = preset
        self.settings = settings
        self.pooling = pooling
        self.minutes = minutes
        self.seed = seed
        self.out = out
        self.quiet = quiet

    def fit(self, X: Sequence[str], y: Sequence[Any]) -> Self:
        """Train on texts ``X`` [n] and their labels ``y`` [n], of any one kind that can be sorted.

        Some texts are held out to choose the best weights (``data.valid_share``). UsageError for unequal lengths,
        DataError for labels of one kind only.
        """
        texts = arguments.texts("fit", "X", X)
        labels = np.asarray(y)
        if labels.ndim != 1 or len(labels) != len(texts):
            raise UsageError(f"fit: {len(texts)} texts and labels of shape {list(labels.shape)}; give a label a text.")
        classes = np.unique(labels)
        names = [str(name) for name in classes]
        if len(set(names)) < len(names) or not all(name.strip() == name and name for name in names):
            raise DataError("fit: two labels are written alike, or one is empty or begins or ends with a space.")
        rows = ({"text": text, "label": str(label)} for text, label in zip(texts, labels.tolist(), strict=True))
        model: Any = self.trained(rows, "classify", {"pooling": self.pooling and {"kind": self.pooling}})
        self.model_: TextClassifier = model
        self.classes_ = classes
        self._places = [model.labels.index(name) for name in names]
        return self

    def predict_proba(self, X: Sequence[str]) -> np.ndarray:
        """Float64 [texts, classes], columns as ``classes_``; each row sums to 1."""
        if not hasattr(self, "model_"):
            raise NotFittedError("this Classifier is not fitted yet: call fit(texts, labels) first.")
        found = self.model_.probabilities(X)[:, self._places].astype(np.float64)
        return found / found.sum(axis=1, keepdims=True)

    def predict(self, X: Sequence[str]) -> np.ndarray:
        """The likeliest class of each text, of the kind that ``fit`` was given."""
        found = self.predict_proba(X)
        return self.classes_[found.argmax(axis=1)]
