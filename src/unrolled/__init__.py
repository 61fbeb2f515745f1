"""unrolled: train, see through and ship recurrent and attention sequence models, from your own file.

model = unrolled.train("pairs.tsv", preset="bahdanau")
model.predict(["…"]); model.explain("…"); model.save("runs/x"); unrolled.load("runs/x")
"""

from __future__ import annotations

import sys
from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from unrolled.explain.explanation import Explanation
    from unrolled.pipeline import (
        Captioner,
        HandwritingModel,
        ImageClassifier,
        LanguageModel,
        Model,
        QuestionAnswerer,
        SeriesModel,
        SoundClassifier,
        TextClassifier,
        TextTagger,
        Transcriber,
        Translator,
        WordVectors,
    )
    from unrolled.runs import train
    from unrolled.runs.estimator import Classifier
    from unrolled.runs.forecast_estimator import Forecaster
    from unrolled.runs.tag_estimator import Tagger

_PLACES = {
    "train": ("unrolled.runs", "train"),
    "Captioner": ("unrolled.pipeline", "Captioner"),
    "Classifier": ("unrolled.runs.estimator", "Classifier"),
    "Forecaster": ("unrolled.runs.forecast_estimator", "Forecaster"),
    "Model": ("unrolled.pipeline", "Model"),
    "ImageClassifier": ("unrolled.pipeline", "ImageClassifier"),
    "HandwritingModel": ("unrolled.pipeline", "HandwritingModel"),
    "LanguageModel": ("unrolled.pipeline", "LanguageModel"),
    "QuestionAnswerer": ("unrolled.pipeline", "QuestionAnswerer"),
    "SoundClassifier": ("unrolled.pipeline", "SoundClassifier"),
    "SeriesModel": ("unrolled.pipeline", "SeriesModel"),
    "Tagger": ("unrolled.runs.tag_estimator", "Tagger"),
    "TextClassifier": ("unrolled.pipeline", "TextClassifier"),
    "TextTagger": ("unrolled.pipeline", "TextTagger"),
    "Transcriber": ("unrolled.pipeline", "Transcriber"),
    "Translator": ("unrolled.pipeline", "Translator"),
    "WordVectors": ("unrolled.pipeline", "WordVectors"),
    "Explanation": ("unrolled.explain.explanation", "Explanation"),
    "layers": ("unrolled.layers", None),
}

__all__ = [
    "Captioner",
    "Classifier",
    "Explanation",
    "Forecaster",
    "HandwritingModel",
    "ImageClassifier",
    "LanguageModel",
    "Model",
    "QuestionAnswerer",
    "SeriesModel",
    "SoundClassifier",
    "Tagger",
    "TextClassifier",
    "TextTagger",
    "Transcriber",
    "Translator",
    "WordVectors",
    "layers",
    "load",
    "train",
]


def load(folder: str, *, device: str = "auto") -> Model:
    """A saved model, on any device (``auto``: a GPU where there is one)."""
    from unrolled.pipeline import load as opened

    return opened(folder, device=device)


class _Front(ModuleType):
    """This module: a room that is opened does not take the name of a function (``unrolled.train``)."""

    def __setattr__(self, name: str, value: Any) -> None:
        if not (isinstance(value, ModuleType) and _PLACES.get(name, ("", None))[1] is not None):
            super().__setattr__(name, value)


sys.modules[__name__].__class__ = _Front


def __getattr__(name: str) -> Any:
    """Rooms are opened when they are asked for: ``import unrolled`` alone imports no torch."""
    if name not in _PLACES:
        raise AttributeError(f"module 'unrolled' has no attribute '{name}'")
    place, attribute = _PLACES[name]
    module = import_module(place)
    return module if attribute is None else getattr(module, attribute)
