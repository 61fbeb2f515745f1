"""Wiring only: layers put together to encoders, decoders and whole models, which search and training drive."""

from unrolled.models.alignments import ALIGNMENTS, Alignment
from unrolled.models.bridge import BRIDGES, Bridge
from unrolled.models.classifier import Classified, Classifier, Labelling
from unrolled.models.decoders import DECODERS, Decoded, Decoder, Unrolled
from unrolled.models.elmo import Elmo
from unrolled.models.encoders import ENCODERS, Encoded, Encoder
from unrolled.models.forecaster import Extent, Forecasted, Forecaster
from unrolled.models.fronts import FRONTS, Front
from unrolled.models.grids import GRIDS, Grid
from unrolled.models.handwriting import Handwriting
from unrolled.models.histories import HISTORIES, History
from unrolled.models.jitters import JITTERS, Jitter
from unrolled.models.language_model import LanguageModel
from unrolled.models.numbers_to_label import NumbersToLabel
from unrolled.models.numbers_to_text import NumbersToText
from unrolled.models.parts import Piece, parts
from unrolled.models.pooling import POOLINGS, Pooling
from unrolled.models.positions import POSITIONS
from unrolled.models.reader import AnswerModel, Asked, DeepReader, Read, Reader
from unrolled.models.readings import READINGS
from unrolled.models.regions import ImageFront
from unrolled.models.said import Forced, Stepped
from unrolled.models.seq2seq import MODELS, Seq2Seq
from unrolled.models.softmaxes import SOFTMAXES
from unrolled.models.stepper import TorchStepper
from unrolled.models.tagger import Tagger
from unrolled.models.word_vectors import WordVectors
from unrolled.models.writing import Writing

__all__ = [
    "ALIGNMENTS",
    "Alignment",
    "AnswerModel",
    "Asked",
    "BRIDGES",
    "Bridge",
    "Classified",
    "Classifier",
    "DECODERS",
    "DeepReader",
    "Decoded",
    "Decoder",
    "ENCODERS",
    "Elmo",
    "Encoded",
    "Encoder",
    "FRONTS",
    "Forced",
    "GRIDS",
    "Grid",
    "Front",
    "Extent",
    "Forecasted",
    "Forecaster",
    "HISTORIES",
    "Handwriting",
    "History",
    "ImageFront",
    "JITTERS",
    "Jitter",
    "Labelling",
    "LanguageModel",
    "MODELS",
    "NumbersToLabel",
    "NumbersToText",
    "POOLINGS",
    "POSITIONS",
    "READINGS",
    "Read",
    "Reader",
    "Piece",
    "Pooling",
    "SOFTMAXES",
    "Seq2Seq",
    "Stepped",
    "Tagger",
    "TorchStepper",
    "Unrolled",
    "WordVectors",
    "Writing",
    "parts",
]
