"""``unrolled predict``: N lines in, N lines out, in order."""

from __future__ import annotations

import re
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from typing import TYPE_CHECKING, Annotated, Any

import typer

from unrolled.base.errors import UsageError
from unrolled.cli import options

if TYPE_CHECKING:
    from unrolled.tasks.translate import Translation
    from unrolled.text.texts import TextPair

ROUND = 4096
"""Lines read, sorted by length and searched together: memory does not grow with the file."""


def predict(
    model: options.Model,
    file: Annotated[str, typer.Argument(help="Lines to read; - for standard input.")] = "-",
    kind: Annotated[str | None, typer.Option("--search", help="argmax, beam or sampling.")] = None,
    beam: Annotated[int | None, typer.Option(help="Prefixes kept a sentence.")] = None,
    nbest: Annotated[int | None, typer.Option(help="Outputs a line: index, score and text, separated by tabs.")] = None,
    length_penalty: Annotated[float | None, typer.Option(help="Exponent of the length normalisation.")] = None,
    coverage_penalty: Annotated[float | None, typer.Option(help="Weight of the coverage penalty.")] = None,
    min_length: Annotated[int | None, typer.Option(help="Symbols at least.")] = None,
    max_length: Annotated[int | None, typer.Option(help="Symbols at most.")] = None,
    no_repeat_ngram: Annotated[int | None, typer.Option(help="No n symbols in a row twice.")] = None,
    replace_unknown: Annotated[
        bool | None,
        typer.Option("--replace-unknown/--keep-unknown", help="Unknown symbols become the most attended word."),
    ] = None,
    prefix: Annotated[str | None, typer.Option(help="A file with the beginning of each output, line by line.")] = None,
    temperature: Annotated[float | None, typer.Option(help="Sampling: above 1 more varied, below 1 less.")] = None,
    top_k: Annotated[int | None, typer.Option(help="Sampling: only the k best symbols.")] = None,
    top_p: Annotated[float | None, typer.Option(help="Sampling: only the best symbols with this mass.")] = None,
    seed: Annotated[int | None, typer.Option(help="Sampling: another seed, other draws.")] = None,
    batch: Annotated[
        int, typer.Option(min=1, help="Sentences searched together; the outputs do not depend on it.")
    ] = 64,
    attention: Annotated[bool, typer.Option("--attention", help="JSON lines with words, weights and scores.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="JSON lines with texts and scores.")] = False,
    device: options.Device = "auto",
) -> None:
    """Write the model's output for each line; an empty line stays empty.

    The same tokens come out whatever the batch size, the order of the lines or the padding.
    """
    given = {
        "kind": kind, "beam": beam, "nbest": nbest, "length_penalty": length_penalty,
        "coverage_penalty": coverage_penalty, "min_length": min_length, "max_length": max_length,
        "no_repeat_ngram": no_repeat_ngram, "replace_unknown": replace_unknown, "temperature": temperature,
        "top_k": top_k, "top_p": top_p, "seed": seed,
    }  # fmt: skip
    from unrolled.pipeline import Model

    opened = Model.load(model, device=device)
    search = opened.searching(beam=beam, changes={name: value for name, value in given.items() if value is not None})
    show = Shown(opened.text, search.nbest, attention=attention, as_json=as_json)
    count, started = 0, time.monotonic()
    remarks: dict[str, list[str]] = {}
    for lines, prefixes in _rounds(file, prefix):
        for line, found in zip(lines, opened.translations(lines, search, batch=batch, prefixes=prefixes), strict=True):
            for remark in show(count, line, found):
                remarks.setdefault(re.sub(r"[\d.e-]*\d", "#", remark), []).append(remark)
            count += 1
    _sum_up(count, time.monotonic() - started, remarks)


def _rounds(file: str, prefix: str | None) -> Iterator[tuple[list[str], list[str] | None]]:
    """Lines to search together, each with its prefix if there are any."""
    from unrolled.data.lines import lines_of

    lines = iter(lines_of(file))
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


class Shown:
    """Writes the outputs of a line as text or JSON."""

    def __init__(self, text: TextPair, nbest: int, *, attention: bool, as_json: bool) -> None:
        self._text, self._nbest = text, nbest
        self._attention, self._as_json = attention, attention or as_json

    def __call__(self, number: int, line: str, found: Sequence[Translation]) -> list[str]:
        """Write line ``number`` (0-based); remarks about its first output."""
        from unrolled.cli.output import tell, tell_json
        from unrolled.search import diagnose

        if self._as_json:
            tell_json({"line": number, "source": line, "outputs": [self._output(line, one) for one in found]})
        elif self._nbest == 1:
            tell(found[0].text if found else "")
        else:
            for score, text in [(one.hypothesis.score, one.text) for one in found] or [(0.0, "")]:
                tell(f"{number}\t{score:.6f}\t{text}")
        return [remark for one in found[:1] for remark in diagnose(one.hypothesis, one.tokens)]

    def _output(self, line: str, one: Translation) -> dict[str, Any]:
        from unrolled.search import diagnose
        from unrolled.workshop.seeing import explain_translation

        output: dict[str, Any] = {
            "text": one.text,
            "score": one.hypothesis.score,
            "log_prob": one.hypothesis.log_prob,
            "finished": one.hypothesis.finished,
            "tokens": one.tokens,
            "remarks": diagnose(one.hypothesis, one.tokens),
        }
        if self._attention:
            picture = explain_translation(self._text, line, one)
            output["alignment"] = {
                "source": list(picture.source),
                "target": list(picture.target),
                "weights": [[round(float(value), 5) for value in row] for row in picture.weights],
            }
        return output


def _sum_up(count: int, seconds: float, remarks: Mapping[str, Sequence[str]]) -> None:
    """``remarks`` by what they say, numbers aside."""
    from unrolled.progress import say

    for alike in sorted(remarks.values(), key=len, reverse=True)[:5]:
        say(f"{len(alike)} of {count} outputs{', e.g.' if len(set(alike)) > 1 else ':'} {alike[0]}")
    if sys.stderr.isatty():
        say(f"{count} lines in {seconds:.1f} s, {count / max(seconds, 1e-9):.1f} lines/s")
