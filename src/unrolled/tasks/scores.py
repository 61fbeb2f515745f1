"""How good the outputs are: a measure has a row of numbers for each, so that a corpus, a part, a resample is a sum."""

from __future__ import annotations

import unicodedata
from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from typing import Any, ClassVar, Literal, NamedTuple

import numpy as np

from unrolled.base.errors import DataError
from unrolled.base.registry import Part, Registry

References = Sequence[str | Sequence[str]]
"""For each output, one reference or several."""


class Score(NamedTuple):
    """A number with what makes it comparable. BLEU, chrF and TER are in percent, shares and rates are not."""

    name: str
    value: float
    protocol: str
    higher_is_better: bool


class Statistics(NamedTuple):
    """What a measure adds up: ``rows`` float64 [outputs, numbers], and the protocol that they follow."""

    rows: np.ndarray
    protocol: str


class Measure(ABC):
    """Sufficient statistics of each output, and the score of their sum."""

    name: ClassVar[str]
    higher_is_better: ClassVar[bool] = True

    @abstractmethod
    def statistics(self, hypotheses: Sequence[str], references: Sequence[Sequence[str]]) -> Statistics:
        """One row of numbers for each of ``hypotheses``; each has one reference or more."""

    @abstractmethod
    def combine(self, totals: np.ndarray) -> float:
        """The score of rows that sum to ``totals`` [numbers]."""


MEASURES: Registry[Measure] = Registry("score")


def score(measure: Part, hypotheses: Sequence[str], references: References) -> Score:
    """``hypotheses`` against their ``references`` by one measure, ``"bleu"`` or ``{"kind": "bleu", "tokenize": "zh"}``.

    DataError where there are no outputs, or not as many as references.
    """
    build = MEASURES.build(measure)
    rows, protocol = build.statistics(hypotheses, matched(hypotheses, references))
    return Score(build.name, build.combine(rows.sum(0)), protocol, build.higher_is_better)


def scores(measures: Iterable[Part], hypotheses: Sequence[str], references: References) -> list[Score]:
    """Several measures of the same outputs, in the order asked for."""
    return [score(measure, hypotheses, references) for measure in measures]


class Bucket(NamedTuple):
    """The outputs whose source has ``shortest`` to ``longest`` words (None: without end), and their score."""

    shortest: int
    longest: int | None
    size: int
    score: Score


def by_length(
    lengths: Sequence[int],
    hypotheses: Sequence[str],
    references: References,
    *,
    measure: Part = "bleu",
    edges: Sequence[int] = (10, 20, 30, 40, 50),
) -> list[Bucket]:
    """Scores by the length of the source: up to each of ``edges``, then beyond; empty buckets are left out.

    A translator that reads its source from one fixed vector falls with it (Cho et al. 2014, arXiv:1409.1259).
    """
    build = MEASURES.build(measure)
    rows, protocol = build.statistics(hypotheses, matched(hypotheses, references))
    if len(lengths) != len(hypotheses):
        raise DataError(f"{len(lengths)} source lengths were given for {len(hypotheses)} outputs. Give one for each.")
    places = np.searchsorted(sorted(edges), np.asarray(lengths), side="left")
    bounds = [0, *(edge + 1 for edge in sorted(edges))]
    return [
        Bucket(
            bounds[place],
            bounds[place + 1] - 1 if place + 1 < len(bounds) else None,
            int((places == place).sum()),
            Score(build.name, build.combine(rows[places == place].sum(0)), protocol, build.higher_is_better),
        )
        for place in np.unique(places)
    ]


def matched(hypotheses: Sequence[str], references: References) -> list[list[str]]:
    """The references of each output as a list; DataError where the two do not fit together."""
    if len(hypotheses) != len(references):
        raise DataError(
            f"{len(hypotheses)} outputs were given for {len(references)} references. "
            "Give one line for each, empty ones too."
        )
    if not hypotheses:
        raise DataError("there are no outputs to score. Give at least one line.")
    every = [[one] if isinstance(one, str) else list(one) for one in references]
    for row, several in enumerate(every):
        if not several:
            raise DataError(f"output {row + 1} has no reference. Give at least one, an empty text if need be.")
    return every


# -- by sacreBLEU (Post 2018, arXiv:1804.08771)


class SacreBLEU(Measure):
    """A measure of sacreBLEU's, whose signature is the protocol."""

    def __init__(self, metric: Any) -> None:
        self._metric = metric

    def statistics(self, hypotheses: Sequence[str], references: Sequence[Sequence[str]]) -> Statistics:
        most = max(map(len, references))
        streams = [[several[k] if k < len(several) else None for several in references] for k in range(most)]
        # The sums behind corpus_score, which sacreBLEU's own significance tests read in the same way.
        rows = self._metric._extract_corpus_statistics(hypotheses, streams)
        return Statistics(np.asarray(rows, np.float64), str(self._metric.get_signature()))

    def combine(self, totals: np.ndarray) -> float:
        return float(self._metric._compute_score_from_stats(totals.tolist()).score)


@MEASURES.register("bleu")
class BLEU(SacreBLEU):
    """BLEU of the corpus, 0 to 100 (Papineni et al. 2002), of detokenised text, which ``tokenize`` divides."""

    name = "BLEU"

    def __init__(
        self,
        *,
        tokenize: Literal["13a", "intl", "char", "zh", "ja-mecab", "ko-mecab", "none"] = "13a",
        lowercase: bool = False,
    ) -> None:
        from sacrebleu.metrics.bleu import BLEU as metric

        super().__init__(metric(tokenize=tokenize, lowercase=lowercase, force=True))


@MEASURES.register("chrf")
class CHRF(SacreBLEU):
    """chrF2 of the corpus, 0 to 100 (Popović 2015): F-score of character n-grams; with ``word_order=2`` chrF2++."""

    name = "chrF2"

    def __init__(self, *, word_order: int = 0) -> None:
        from sacrebleu.metrics.chrf import CHRF as metric

        super().__init__(metric(word_order=word_order))
        if word_order:
            self.name = "chrF2" + "+" * word_order


@MEASURES.register("ter")
class TER(SacreBLEU):
    """Translation edit rate of the corpus in percent (Snover et al. 2006); a shift is one edit, case is ignored."""

    name = "TER"
    higher_is_better = False

    def __init__(self) -> None:
        from sacrebleu.metrics.ter import TER as metric

        super().__init__(metric())


# -- by comparison


def comparable(text: str) -> str:
    """NFC, without white space around it: the form in which texts are compared."""
    return unicodedata.normalize("NFC", text).strip()


def reference_count(references: Sequence[Sequence[str]]) -> str:
    """How many references an output has, for a protocol: a number, or ``var``."""
    counts = set(map(len, references))
    return str(counts.pop()) if len(counts) == 1 else "var"


def _protocol(name: str, references: Sequence[Sequence[str]], by: str = "") -> str:
    return f"{name}|nrefs:{reference_count(references)}|case:mixed|norm:nfc|space:stripped{by}"


@MEASURES.register("exact_match")
class ExactMatch(Measure):
    """The share of outputs that equal a reference of theirs, 0 to 1."""

    name = "exact match"

    def statistics(self, hypotheses: Sequence[str], references: Sequence[Sequence[str]]) -> Statistics:
        rows = [
            (comparable(one) in map(comparable, several), 1)
            for one, several in zip(hypotheses, references, strict=True)
        ]
        return Statistics(np.asarray(rows, np.float64), _protocol("exact", references))

    def combine(self, totals: np.ndarray) -> float:
        return float(totals[0] / totals[1])


class ErrorRate(Measure):
    """Edits over the length of the references, both summed over the corpus; against several, the reference with least.

    An empty reference adds the output's length to the edits and nothing to the length. Where all references are empty
    the rate is 0 for empty outputs, else 1.
    """

    higher_is_better = False
    unit: ClassVar[str]

    def statistics(self, hypotheses: Sequence[str], references: Sequence[Sequence[str]]) -> Statistics:
        from importlib.metadata import version

        import jiwer

        process = jiwer.process_characters if self.unit == "cer" else jiwer.process_words
        rows = []
        for one, several in zip(hypotheses, references, strict=True):
            counts = []
            for reference in several:
                found = process(comparable(reference), comparable(one))
                edits = found.substitutions + found.deletions + found.insertions
                counts.append((edits, found.hits + found.substitutions + found.deletions))
            rows.append(min(counts, key=lambda count: (count[0] / max(count[1], 1), count[0])))
        protocol = _protocol(self.unit, references, f"|jiwer:{version('jiwer')}")
        return Statistics(np.asarray(rows, np.float64), protocol)

    def combine(self, totals: np.ndarray) -> float:
        edits, length = totals
        return float(edits / length) if length else float(edits > 0)


@MEASURES.register("cer")
class CharacterErrorRate(ErrorRate):
    """Character error rate: 0 is perfect, above 1 is possible."""

    name = "character error rate"
    unit = "cer"


@MEASURES.register("ser")
class SymbolErrorRate(ErrorRate):
    """Symbol error rate, symbols being what white space divides: of phonemes the phoneme error rate.

    What pronunciation calls its word error rate is 1 - exact match.
    """

    name = "symbol error rate"
    unit = "ser"


@MEASURES.register("wer")
class WordErrorRate(ErrorRate):
    """Word error rate, words being what white space divides."""

    name = "word error rate"
    unit = "wer"
