"""What is written for the command line: rounds of sources read together, each output as text and as JSON."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice
from typing import TYPE_CHECKING, Any

from unrolled.base.errors import UsageError
from unrolled.base.protocol import UNKNOWN
from unrolled.pipeline.model import Shown
from unrolled.search import diagnose

if TYPE_CHECKING:
    from unrolled.pipeline.writing import Writer
    from unrolled.tasks.writing import Written

ROUND = 4096
"""Lines read, sorted by length and searched together: memory does not grow with the file."""


def rounds(lines: Iterator[str], prefix: str | None) -> Iterator[tuple[list[str], list[str] | None]]:
    """Lines to search together, each with its prefix if there are any."""
    from unrolled.data.lines import lines_of

    prefixes = list(lines_of(prefix)) if prefix else None
    count, held = 0, list(islice(lines, ROUND))
    while held:
        following = list(islice(lines, ROUND))
        end = count + len(held)
        if prefixes is not None and (len(prefixes) < end or (not following and len(prefixes) > end)):
            lines_said = f"{end} lines" if not following else "more lines"
            raise UsageError(f"{prefix}: {len(prefixes)} prefixes for {lines_said}. {ONE_A_LINE}")
        yield held, prefixes[count:end] if prefixes is not None else None
        count, held = end, following


ONE_A_LINE = "Give one a line, empty where none."


class Output:
    """What is shown of a line's hypotheses."""

    def __init__(self, model: Writer, nbest: int, *, attention: bool) -> None:
        self._model, self._nbest, self._attention = model, nbest, attention

    def __call__(self, number: int, line: Any, found: Sequence[Written], prefix: str | None = None) -> Shown:
        """Of line ``number`` (0-based), with remarks about its first output and the ``prefix`` that it was given."""
        if self._nbest == 1:
            shown = found[0].text if found else ""
        else:
            scored = [(one.hypothesis.score, one.text) for one in found] or [(0.0, "")]
            shown = "\n".join(f"{number}\t{score:.6f}\t{text}" for score, text in scored)
        remarks = tuple(remark for one in found[:1] for remark in diagnose(one.hypothesis, one.tokens))
        remarks += self._model.remarks(line)
        if prefix is not None:
            (read,) = self._model.text.read_targets([line], [prefix])
            if UNKNOWN in read.ids:
                remarks += (f"the prefix {prefix!r} has words that the model has no symbol for: they begin as <unk>",)
        tree = {"line": number, "source": line, "outputs": [self._output(line, one) for one in found]}
        return Shown(shown, tree, remarks)

    def _output(self, line: Any, one: Written) -> dict[str, Any]:
        output: dict[str, Any] = {
            "text": one.text,
            "score": one.hypothesis.score,
            "log_prob": one.hypothesis.log_prob,
            "finished": one.hypothesis.finished,
            "tokens": one.tokens,
            "remarks": diagnose(one.hypothesis, one.tokens),
        }
        if self._attention:
            output["alignment"] = self._model.looked(line, one)
        return output
