"""What every method of seeing returns: on which source words each target word rests, and how far to trust it."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np

from unrolled.base.errors import UsageError
from unrolled.base.files import write_beside


class Measure(NamedTuple):
    """One honest number: what it is, what mere chance gives, over how many cases, and what that means."""

    value: float | None  # None: nothing to measure, the sentence says why
    chance: float | None
    cases: int
    sentence: str
    unit: Literal["", "%", "nats"] = ""

    def shown(self, value: float | None) -> str:
        """``value`` as people read it: a share in per cent, other numbers with two places."""
        if value is None:
            return "–"
        if self.unit == "%":
            return f"{100 * value:z.0f} %"
        return f"{value:z.2f} {self.unit}".rstrip()


class Tokens(NamedTuple):
    """The same picture before it was merged into words: the model's own symbols, end symbol included."""

    source: tuple[str, ...]
    target: tuple[str, ...]
    weights: np.ndarray  # float32 [target, source]; each row sums to 1
    log_probs: tuple[float, ...] | None = None  # natural log, one a target symbol


@dataclass(frozen=True, eq=False, kw_only=True)
class Explanation:
    """Weights between the words of a source and the words of a target, drawn by ``text`` and ``to``.

    source, target  words as the user wrote them
    weights         float32 [target, source] in [0, 1]; an attention's row sums to 1 less what lies on the end symbol
    scale           what a weight is, in words
    end_column      float32 [target], what each target word puts on the source's end symbol, or None
    end_row         float32 [source], where the model looked when it ended the target, or None
    log_probs       natural log-probability of each target word, or None
    gold            known links (source word, target word), 0-based, outlined in pictures, or None
    faithfulness    name → Measure: how far the weights can be trusted, or None where it was not measured
    aside           how many of the first source words are no text but features of it, drawn apart
    """

    source: Sequence[str]
    target: Sequence[str]
    weights: np.ndarray
    method: str = "attention"
    scale: str = "share of attention"
    source_text: str = ""
    target_text: str = ""
    end_column: np.ndarray | None = None
    end_row: np.ndarray | None = None
    log_probs: Sequence[float] | None = None
    gold: Sequence[tuple[int, int]] | None = None
    tokens: Tokens | None = None
    faithfulness: Mapping[str, Measure] | None = None
    aside: int = 0

    def __post_init__(self) -> None:
        rows, columns = len(self.target), len(self.source)
        object.__setattr__(self, "source", tuple(self.source))
        object.__setattr__(self, "target", tuple(self.target))
        object.__setattr__(self, "source_text", self.source_text or " ".join(self.source))
        object.__setattr__(self, "target_text", self.target_text or " ".join(self.target))
        object.__setattr__(self, "weights", _checked("weights", self.weights, (rows, columns)))
        if self.end_column is not None:
            object.__setattr__(self, "end_column", _checked("end_column", self.end_column, (rows,)))
        if self.end_row is not None:
            object.__setattr__(self, "end_row", _checked("end_row", self.end_row, (columns,)))
        if self.log_probs is not None:
            object.__setattr__(self, "log_probs", tuple(float(value) for value in self.log_probs))
            if len(self.log_probs) != rows:
                raise UsageError(f"explanation: {len(self.log_probs)} log-probabilities for {rows} target words.")
        if not 0 <= self.aside <= columns:
            raise UsageError(f"explanation: {self.aside} of {columns} source words are said to be features.")
        for link in self.gold or ():
            if not (0 <= link[0] < columns and 0 <= link[1] < rows):
                raise UsageError(f"explanation: the gold link {link} is outside {columns} × {rows} words.")

    def to(self, path: str | Path) -> Path:
        """Write the picture (.svg, .png), the page (.html) or the numbers (.json), whole or not at all."""
        path = Path(path)
        return write_beside(path, _WRITERS[check_suffix(path)](self))

    def text(self, width: int = 80, color: Literal["none", "256", "24bit"] = "none") -> str:
        """A heatmap for a terminal of ``width`` columns; shades carry the weight, colour is an extra."""
        from unrolled.explain.terminal import draw, paint

        return paint(draw(self, width), color)

    def svg(self) -> str:
        """The picture as one self-contained SVG element."""
        from unrolled.explain.svg import svg

        return svg(self)

    def to_dict(self) -> dict[str, Any]:
        """Everything, as JSON knows it; weights are rounded to six places."""
        return {
            "method": self.method,
            "source": {"text": self.source_text, "words": list(self.source), "features": self.aside},
            "target": {"text": self.target_text, "words": list(self.target), "log_probs": _numbers(self.log_probs)},
            "weights": _numbers(self.weights),
            "end_column": _numbers(self.end_column),
            "end_row": _numbers(self.end_row),
            "gold": None if self.gold is None else [list(link) for link in self.gold],
            "tokens": self.tokens
            and {
                "source": list(self.tokens.source),
                "target": list(self.tokens.target),
                "weights": _numbers(self.tokens.weights),
                "log_probs": _numbers(self.tokens.log_probs),
            },
            "faithfulness": self.faithfulness and {name: one._asdict() for name, one in self.faithfulness.items()},
        }

    def strongest(self) -> Iterator[tuple[int, int, float]]:
        """For every target word (target, source, weight): where it looked most."""
        if self.source:
            for row, column in enumerate(self.weights.argmax(1)):
                yield row, int(column), float(self.weights[row, column])

    def __str__(self) -> str:
        return self.text()

    def _repr_html_(self) -> str:
        return self.svg()

    def __rich_console__(self, console: Any, options: Any) -> Iterator[Any]:
        from unrolled.explain.terminal import draw, to_rich

        yield to_rich(draw(self, options.max_width))


def _checked(name: str, values: Any, shape: tuple[int, ...]) -> np.ndarray:
    array = np.array(values, dtype=np.float32)
    if array.size == 0 and 0 in shape:
        array = array.reshape(shape)
    if array.shape != shape:
        raise UsageError(f"explanation: {name} have the shape {array.shape} where the words give {shape}.")
    if array.size and not (np.isfinite(array).all() and array.min() >= -1e-4 and array.max() <= 1 + 1e-3):
        raise UsageError(f"explanation: {name} must lie in [0, 1]; {array.min():g} to {array.max():g} were given.")
    array.setflags(write=False)
    return array


def _numbers(values: Any) -> Any:
    return None if values is None else np.round(np.asarray(values, dtype=np.float64), 6).tolist()


def check_suffix(path: str | Path) -> str:
    """The ending of ``path`` in small letters, or UsageError where it is none that an explanation is written as."""
    path = Path(path)
    suffix = path.suffix.lower()
    if suffix not in _WRITERS:
        given = f"ends in '{path.suffix}'" if suffix else "has no ending"
        raise UsageError(f"{path}: {given}, which is no kind of picture. Known: {', '.join(_WRITERS)}.")
    return suffix


def _svg(one: Explanation) -> bytes:
    return one.svg().encode("utf-8", "replace")


def _png(one: Explanation) -> bytes:
    from unrolled.explain.png import png

    return png(one)


def _json(one: Explanation) -> bytes:
    return (json.dumps(one.to_dict(), ensure_ascii=False, indent=1) + "\n").encode("utf-8", "replace")


def _html(one: Explanation) -> bytes:
    from unrolled.explain.page import report

    return report([one], title=one.target_text).encode("utf-8", "replace")


_WRITERS: dict[str, Callable[[Explanation], bytes]] = {".svg": _svg, ".png": _png, ".json": _json, ".html": _html}
