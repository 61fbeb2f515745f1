"""``unrolled predict``: N lines in, N lines out, in order."""

from __future__ import annotations

import sys
import time
from collections import Counter
from typing import Annotated, Any

import typer

from unrolled.base.errors import UsageError

ROUND = 4096
"""Lines read, sorted by length and searched together: memory does not grow with the file."""


def predict(
    model: Annotated[str, typer.Argument(help="Folder of a saved model.")],
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
    device: Annotated[str, typer.Option(help="auto, cpu, cuda …")] = "auto",
) -> None:
    """Write the model's output for each line; an empty line stays empty.

    The same tokens come out whatever the batch size, the order of the lines or the padding.
    """
    given = {
        "kind": kind,
        "beam": beam,
        "nbest": nbest,
        "length_penalty": length_penalty,
        "coverage_penalty": coverage_penalty,
        "min_length": min_length,
        "max_length": max_length,
        "no_repeat_ngram": no_repeat_ngram,
        "replace_unknown": replace_unknown,
        "temperature": temperature,
        "top_k": top_k,
        "top_p": top_p,
        "seed": seed,
    }
    from unrolled.data.lines import lines_of
    from unrolled.pipeline import Model
    from unrolled.progress import say
    from unrolled.search import diagnose

    opened = Model.load(model, device=device)
    search = opened.searching(beam=beam, changes={name: value for name, value in given.items() if value is not None})
    prefixes = list(lines_of(prefix)) if prefix else None
    count, started, remarks = 0, time.monotonic(), Counter[str]()
    for lines in _rounds(lines_of(file)):
        forced = _prefixes_for(prefixes, count, len(lines), prefix)
        for line, found in zip(lines, opened.translations(lines, search, batch=batch, prefixes=forced), strict=True):
            _write(opened, line, found, nbest=search.nbest, attention=attention, as_json=as_json, number=count)
            count += 1
            remarks.update(remark for one in found[:1] for remark in diagnose(one.hypothesis))
    if prefixes is not None and len(prefixes) != count:
        raise UsageError(f"{prefix}: {len(prefixes)} prefixes for {count} lines. Give one a line, empty where none.")
    seconds = max(time.monotonic() - started, 1e-9)
    for remark, times in remarks.most_common(5):
        say(f"{times} of {count} outputs: {remark}")
    if sys.stderr.isatty():
        say(f"{count} lines in {seconds:.1f} s, {count / seconds:.1f} lines/s")


def _rounds(lines: Any) -> Any:
    held: list[str] = []
    for line in lines:
        held.append(line)
        if len(held) == ROUND:
            yield held
            held = []
    if held:
        yield held


def _prefixes_for(prefixes: list[str] | None, start: int, count: int, path: str | None) -> list[str] | None:
    if prefixes is None:
        return None
    if len(prefixes) < start + count:
        raise UsageError(f"{path}: {len(prefixes)} prefixes for more lines. Give one a line, empty where none.")
    return prefixes[start : start + count]


def _write(model: Any, line: str, found: list[Any], *, nbest: int, attention: bool, as_json: bool, number: int) -> None:
    from unrolled.cli.output import tell, tell_json
    from unrolled.search import diagnose
    from unrolled.workshop.seeing import explain_translation

    if not (attention or as_json):
        if nbest == 1:
            tell(found[0].text if found else "")
        else:
            for one in found:
                tell(f"{number}\t{one.hypothesis.score:.6f}\t{one.text}")
            if not found:
                tell(f"{number}\t0.000000\t")
        return
    outputs = []
    for one in found:
        output: dict[str, Any] = {
            "text": one.text,
            "score": one.hypothesis.score,
            "log_prob": one.hypothesis.log_prob,
            "finished": one.hypothesis.finished,
            "tokens": one.tokens,
            "remarks": diagnose(one.hypothesis, one.tokens),
        }
        if attention:
            picture = explain_translation(model.text, line, one)
            output["alignment"] = {
                "source": list(picture.source),
                "target": list(picture.target),
                "weights": [[round(float(value), 5) for value in row] for row in picture.weights],
            }
        outputs.append(output)
    tell_json({"line": number, "source": line, "outputs": outputs})
