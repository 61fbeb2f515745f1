"""ROUGE, what summaries are scored by: Google's rouge-score does the work (an extra, ``unrolled[rouge]``)."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import ClassVar, Literal

import numpy as np

from unrolled.base.errors import require
from unrolled.tasks.scores import MEASURES, Measure, Statistics, reference_count

WORD = re.compile(r"\w+")


class Words:
    """Runs of letters and digits of any script, in lower case."""

    def tokenize(self, text: str) -> list[str]:
        return WORD.findall(text.lower())


class Rouge(Measure):
    """The mean over outputs of the F-score of what output and reference share, 0 to 100; of several the best.

    ``tokenize``: ``standard`` is rouge-score's own, which knows the letters a to z and digits alone, without stemming;
    ``words`` takes those of every script.
    """

    shared: ClassVar[str]

    def __init__(self, *, tokenize: Literal["standard", "words"] = "standard") -> None:
        require("rouge_score", "rouge")
        self._tokenize = tokenize

    def statistics(self, hypotheses: Sequence[str], references: Sequence[Sequence[str]]) -> Statistics:
        from importlib.metadata import version

        from rouge_score.rouge_scorer import RougeScorer
        from rouge_score.tokenizers import DefaultTokenizer

        tokenizer = DefaultTokenizer(use_stemmer=False) if self._tokenize == "standard" else Words()
        scorer = RougeScorer([self.shared], tokenizer=tokenizer)
        rows = [
            (scorer.score_multi(list(several), one)[self.shared].fmeasure, 1.0)
            for one, several in zip(hypotheses, references, strict=True)
        ]
        protocol = (
            f"{self.shared}|nrefs:{reference_count(references)}|f1|mean|case:lc|stem:no|tok:{self._tokenize}"
            f"|rouge-score:{version('rouge-score')}"
        )
        return Statistics(np.asarray(rows, np.float64), protocol)

    def combine(self, totals: np.ndarray) -> float:
        return float(100 * totals[0] / totals[1])


@MEASURES.register("rouge1")
class Rouge1(Rouge):
    """ROUGE-1 (Lin 2004): words."""

    name = "ROUGE-1"
    shared = "rouge1"


@MEASURES.register("rouge2")
class Rouge2(Rouge):
    """ROUGE-2 (Lin 2004): pairs of neighbouring words."""

    name = "ROUGE-2"
    shared = "rouge2"


@MEASURES.register("rougeL")
class RougeL(Rouge):
    """ROUGE-L (Lin 2004): the longest common subsequence of words."""

    name = "ROUGE-L"
    shared = "rougeL"
