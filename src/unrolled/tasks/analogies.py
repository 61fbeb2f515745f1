"""What word vectors are scored by: analogies (questions-words), and how alike people find two words."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np

from unrolled.base.errors import DataError, nearest
from unrolled.data.vectors import Vectors
from unrolled.tasks.scores import Score

TOGETHER = 512
"""Questions that are answered together."""


class Question(NamedTuple):
    """``words``: a is to b as c is to d."""

    section: str
    words: tuple[str, str, str, str]


class Rated(NamedTuple):
    """Two words, and how alike they are on any scale."""

    words: tuple[str, str]
    rating: float


class Exam(NamedTuple):
    """A file of questions or of ratings; the other is empty."""

    questions: list[Question]
    rated: list[Rated]


def exam(rows: Iterable[tuple[str, str]], *, lowercase: bool) -> Exam | None:
    """What rows (place, text) ask: questions of four words, ``: name`` before each section; or two words and a number.

    ``lowercase``: the words are those of a model that knows no others. None where the first row is neither, for then it
    is text; DataError for a later row that is another kind.
    """
    found, section = Exam([], []), ""
    for place, text in rows:
        fields = (text.lower() if lowercase else text).split()
        if not fields:
            continue
        if fields[0] == ":" and not found.rated:
            section = " ".join(fields[1:])
            continue
        rating = _number(fields[2]) if len(fields) == 3 else None
        if len(fields) == 4 and section and not found.rated:
            found.questions.append(Question(section, (fields[0], fields[1], fields[2], fields[3])))
        elif rating is not None and not section:
            found.rated.append(Rated((fields[0], fields[1]), rating))
        elif found.questions or found.rated or section:
            wanted = "two words and a number" if found.rated else "four words, or ': ' and the name of a section"
            raise DataError(f"{place}: {wanted} are expected, and there is {text.strip()[:60]!r}.")
        else:
            return None
    return found if found.questions or found.rated else None


def _number(field: str) -> float | None:
    try:
        return float(field)
    except ValueError:
        return None


class Space:
    """Words by the direction of their vectors."""

    def __init__(self, vectors: Vectors) -> None:
        self.words = vectors.words
        lengths = np.linalg.norm(vectors.matrix, axis=1, keepdims=True)
        self.unit = vectors.matrix / np.maximum(lengths, 1e-12)
        self.places = {word: place for place, word in enumerate(self.words)}

    def place(self, word: str, verb: str) -> int:
        """The row of a word; DataError with the nearest spelling for an unknown one."""
        if word not in self.places:
            near = nearest(word, self.words)
            hint = f"Did you mean '{near}'?" if near else "Was it too rare in the training text?"
            raise DataError(f"{verb}: '{word[:60]}' is none of the {len(self.words):,} words. {hint}")
        return self.places[word]

    def near(self, direction: np.ndarray, count: int, without: Sequence[int] = ()) -> list[tuple[str, float]]:
        """The ``count`` words whose cosine with ``direction`` is largest, the likest first."""
        cosines = self.unit @ (direction / max(float(np.linalg.norm(direction)), 1e-12))
        cosines[list(without)] = -np.inf
        count = min(count, len(cosines) - len(set(without)))
        best = np.argpartition(-cosines, count - 1)[:count].tolist() if count > 0 else []
        order = sorted(best, key=lambda place: (-cosines[place], place))
        return [(self.words[place], float(cosines[place])) for place in order]


def analogy_scores(space: Space, questions: Sequence[Question]) -> tuple[list[Score], list[dict[str, object]]]:
    """Accuracy by 3CosAdd (Mikolov et al. 2013, arXiv:1301.3781): d is the word likest b - a + c, the three left out.

    Also a row of each section: its questions, those of known words, and the share of these that is right. DataError
    where no question has four known words.
    """
    known = [one for one in questions if all(word in space.places for word in one.words)]
    if not known:
        raise DataError(
            f"evaluate: of {len(questions):,} questions none has four known words. Is it the same language, and case?"
        )
    right: list[bool] = []
    for first in range(0, len(known), TOGETHER):
        block = known[first : first + TOGETHER]
        rows = np.array([[space.places[word] for word in one.words] for one in block])
        a, b, c = (space.unit[rows[:, place]] for place in range(3))
        cosines = (b - a + c) @ space.unit.T
        np.put_along_axis(cosines, rows[:, :3], -np.inf, axis=1)
        right += (cosines.argmax(axis=1) == rows[:, 3]).tolist()
    protocol = f"3CosAdd over {len(known):,} of {len(questions):,} questions, those of known words; all words answer"
    table: list[dict[str, object]] = []
    for section in dict.fromkeys(one.section for one in questions):
        own = [yes for one, yes in zip(known, right, strict=True) if one.section == section]
        asked = sum(one.section == section for one in questions)
        table.append({"section": section, "asked": asked, "known": len(own), "accuracy": _mean(own)})
    return [Score("analogies", float(np.mean(right)), protocol, True)], table


def _mean(values: Sequence[bool]) -> float | None:
    return float(np.mean(values)) if values else None


def likeness_scores(space: Space, rated: Sequence[Rated]) -> list[Score]:
    """Spearman's rank correlation of cosines with people's ratings; DataError for fewer than three known pairs."""
    known = [one for one in rated if all(word in space.places for word in one.words)]
    if len(known) < 3:
        raise DataError(f"evaluate: of {len(rated):,} pairs {len(known)} are of known words, and three are needed.")
    cosines = [float(np.dot(*(space.unit[space.places[word]] for word in one.words))) for one in known]
    value = float(np.corrcoef(_ranks(cosines), _ranks([one.rating for one in known]))[0, 1])
    return [Score("likeness", value, f"Spearman's ρ over {len(known):,} of {len(rated):,} pairs, of known words", True)]


def _ranks(values: Sequence[float]) -> np.ndarray:
    """The place of each number in their order; equal ones share the mean of theirs."""
    _, place, counts = np.unique(values, return_inverse=True, return_counts=True)
    ranks: np.ndarray = (np.cumsum(counts) - (counts - 1) / 2)[place]
    return ranks
