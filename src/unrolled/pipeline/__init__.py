"""Trained models: one facade a task, whose methods are the verbs that the task has."""

from unrolled.pipeline.captioner import Captioner
from unrolled.pipeline.contextual_vectors import ContextualModel
from unrolled.pipeline.handwriting import HandwritingModel
from unrolled.pipeline.image_classifier import ImageClassifier
from unrolled.pipeline.language_model import LanguageModel
from unrolled.pipeline.model import TRAINED, Model, Shown, Tested, load
from unrolled.pipeline.question_answerer import QuestionAnswerer
from unrolled.pipeline.series_model import SeriesModel
from unrolled.pipeline.signal_classifier import SignalModel
from unrolled.pipeline.sound_classifier import SoundClassifier
from unrolled.pipeline.text_classifier import TextClassifier
from unrolled.pipeline.text_tagger import TextTagger
from unrolled.pipeline.transcriber import Transcriber
from unrolled.pipeline.translator import Translator
from unrolled.pipeline.word_vectors import WordVectors

__all__ = [
    "TRAINED",
    "Captioner",
    "ContextualModel",
    "HandwritingModel",
    "ImageClassifier",
    "LanguageModel",
    "Model",
    "QuestionAnswerer",
    "SeriesModel",
    "Shown",
    "SignalModel",
    "SoundClassifier",
    "Tested",
    "TextClassifier",
    "TextTagger",
    "Transcriber",
    "Translator",
    "WordVectors",
    "load",
]
