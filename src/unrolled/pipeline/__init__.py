"""Trained models: one facade a task, whose methods are the verbs that the task has."""

from unrolled.pipeline import translator  # noqa: F401  (it registers itself)
from unrolled.pipeline.model import TRAINED, Model, Shown, Tested, load
from unrolled.pipeline.translator import Translator

__all__ = ["TRAINED", "Model", "Shown", "Tested", "Translator", "load"]
