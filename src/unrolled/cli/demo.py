"""``unrolled demo``: train, score and explain on built-in data, in a few minutes, to see what the whole does."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from unrolled.base.errors import GateError, UsageError, known
from unrolled.cli import options

if TYPE_CHECKING:
    from unrolled.data.builtin import Built, Example
    from unrolled.explain.explanation import Explanation
    from unrolled.pipeline import Model
    from unrolled.runs import Run

SETTINGS: dict[str, dict[str, Any]] = {
    "phrases": {
        "text": {"source": {"kind": "word", "min_count": 1}, "target": {"kind": "word", "min_count": 1}},
        "model": {
            "embedding_scale": "none",
            "embedding_size": 192,
            "dropout": 0.1,
            "encoder": {"cell": {"hidden_size": 128}},
            "decoder": {"cell": {"hidden_size": 256}, "attention": {"hidden_size": 256}},
        },
        "train": {"epochs": 4, "batch_tokens": 1200, "learning_rate": 0.003},
    },
    "dates": {
        "text": {"source": "character", "target": "character"},
        "model": {
            "embedding_scale": "none",
            "embedding_size": 96,
            "dropout": 0.1,
            "encoder": {"cell": {"hidden_size": 96}},
            "decoder": {"cell": {"hidden_size": 192}, "attention": {"hidden_size": 192}},
        },
        "train": {"epochs": 4, "batch_tokens": 1500, "learning_rate": 0.004, "label_smoothing": 0.0},
    },
    "g2p": {
        "text": {"source": "character", "target": "whitespace"},
        "model": {
            "embedding_size": 128,
            "dropout": 0.2,
            "encoder": {"cell": {"hidden_size": 192}},
            "decoder": {"cell": {"hidden_size": 256}, "attention": {"hidden_size": 256}},
        },
        "train": {"epochs": 4, "batch_tokens": 3000, "learning_rate": 0.003},
    },
}
"""What differs from the default preset, by data set; chosen by measurement, see recipes/RESULTS.md."""

GATES: dict[str, dict[str, float]] = {"phrases": {"exact_match": 0.98, "aer": 0.20}, "dates": {"exact_match": 0.99}}
"""What a demo must reach: the least exact match, the highest alignment error rate."""

SIZES = {"g2p": 40_000}
"""Training examples, where all that there are would take long."""

SHOWN = 3

FAMOUS = "the agreement on the European economic area was signed in August 1992."
"""The phrase whose picture made attention famous (Bahdanau et al. 2015, figure 3): a diagonal with one block turned."""


def demo(
    name: Annotated[
        str, typer.Argument(help="phrases (English → French), dates (any language → ISO), g2p (spelling → sounds).")
    ] = "phrases",
    out: Annotated[str, typer.Option(help="Where the data, the model and the report go.")] = "runs/demo",
    seed: Annotated[int, typer.Option(min=0, help="Another seed: other phrases, another model.")] = 1,
    size: Annotated[int | None, typer.Option(min=100, help="Training examples.")] = None,
    set_: options.Settings = None,
    gate: Annotated[
        bool, typer.Option("--gate/--no-gate", help="Exit with 4 where the demo's own marks are missed.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="The result as one last line of JSON.")] = False,
) -> None:
    """Train a small attention model on built-in data, score it on unseen examples, and show where it looked."""
    if name not in SETTINGS:
        raise UsageError(f"no demo is called '{name}'. {known(name, SETTINGS)}")
    from unrolled.data.builtin import make
    from unrolled.progress import say

    built = make(name, seed=seed, size=size or SIZES.get(name))
    say(f"{name}: {len(built.train):,} examples to learn from, {len(built.test):,} unseen ones to test on, e.g.")
    for example in built.train[:3]:
        say(f"  {example.source}  →  {example.target}")
    folder = Path(out) / name
    _write(folder / "data", built)
    run = _train(folder, name, seed, set_ or [], quiet=False)
    model = run.finish()
    result = _result(model, run, name, built, folder)
    if as_json:
        from unrolled.cli.output import tell_json

        tell_json(result)
    if gate:
        _gate(name, result)


def _write(folder: Path, built: Built) -> None:
    from unrolled.base.files import write_beside

    for part in ("train", "valid", "test"):
        rows = "".join(f"{example.source}\t{example.target}\n" for example in getattr(built, part))
        write_beside(folder / f"{part}.tsv", rows.encode())


def _train(folder: Path, name: str, seed: int, assignments: Sequence[str], *, quiet: bool) -> Run:
    from unrolled.progress import Progress, say
    from unrolled.runs import Run
    from unrolled.workshop.sources import Sources

    shutil.rmtree(folder / "model" / "training", ignore_errors=True)
    sources = Sources(
        data=str(folder / "data" / "train.tsv"),
        valid=str(folder / "data" / "valid.tsv"),
        test=str(folder / "data" / "test.tsv"),
    )
    flags = SETTINGS[name] | {"train": SETTINGS[name]["train"] | {"seed": seed, "stop_on": "exact_match"}}
    run = Run(sources, folder / "model", preset="default", flags=flags, assignments=assignments)
    run.prepare()
    parameters = sum(tensor.numel() for tensor in run.network.parameters())
    say(f"{parameters:,} parameters; training …")
    progress = Progress(quiet=quiet)
    for report in run.fit():
        progress.show(report)
    if run.stopped.reason == "interrupted":
        say(f"Saved. Go on with: unrolled train --resume --out {folder / 'model'}")
        raise typer.Exit(130)
    return run


def _result(model: Model, run: Run, name: str, built: Built, folder: Path) -> dict[str, Any]:
    """Print the scores, the heatmaps and the paths; the same as a mapping."""
    from unrolled.cli.output import draw, number, table, tell
    from unrolled.progress import duration

    scores = {score.name: score.value for score in model.scores}
    aer = _alignment(model, built.test)
    rows = [(score.name, number(score.value), score.protocol) for score in model.scores]
    for key, meaning in (
        ("aer", "read at step t"),
        ("aer_next", "read at step t+1"),
        ("aer_diagonal", "of the plain diagonal"),
    ):
        if key in aer:
            rows.append((key, number(aer[key]), f"alignment error rate against the grammar's links, {meaning}"))
    table(("score", "value", "protocol"), rows, title=f"{len(built.test)} unseen examples", right=(1,))
    pictures = [_picture(model, example) for example in _telling(built.test)]
    if name == "phrases" and all(example.source != FAMOUS for example in built.train):
        pictures = [model.explain(FAMOUS), *pictures[:-1]]
    for picture in pictures:
        tell(f"{picture.source_text}  →  {picture.target_text}")
        draw(picture)
        tell()
    report = _report(folder, pictures, scores | aer, name)
    tell(f"Trained in {duration(run.seconds)}. Model: {folder / 'model'}")
    tell(f"Report: {report}   Pictures: {folder / 'alignment.svg'} {folder / 'alignment.png'}")
    tell(f"Next: echo {built.test[0].source!r} | unrolled predict {folder / 'model'}")
    return {
        "task": name,
        "model": str(folder / "model"),
        "exact_match": scores["exact_match"],
        **{key: round(value, 4) for key, value in aer.items()},
        "train_seconds": round(run.seconds, 1),
        "report": str(report),
        "scores": scores,
    }


def _alignment(model: Model, examples: Sequence[Example]) -> dict[str, float]:
    """Alignment error rate of the attention on the test pairs, where the data has gold links."""
    from unrolled.explain.links import Gold, alignment_error_rate, diagonal_links, links_from_weights

    linked = [example for example in examples if example.links is not None]
    if not linked:
        return {}
    gold = [Gold(frozenset(example.links or ()), frozenset(example.links or ())) for example in linked]
    sides = [example.source for example in linked], [example.target for example in linked]
    spans = [example.source_spans for example in linked], [example.target_spans for example in linked]
    found = {}
    for read_at, name in ((0, "aer"), (1, "aer_next")):
        pictures = model.align(*sides, *spans, read_at=read_at)
        found[name] = alignment_error_rate([links_from_weights(one.weights) for one in pictures], gold).aer
    plain = [diagonal_links(len(left), len(right)) for left, right in zip(*spans, strict=True)]
    return found | {"aer_diagonal": alignment_error_rate(plain, gold).aer}


def _telling(examples: Sequence[Example]) -> list[Example]:
    """Examples whose links cross most: where attention shows that it found the word order by itself."""

    def crossings(example: Example) -> int:
        links = example.links or ()
        return sum(left[0] < right[0] and left[1] > right[1] for left in links for right in links)

    fitting = [example for example in examples if 5 <= len(example.source.split()) <= 11] or list(examples)
    return sorted(fitting, key=crossings, reverse=True)[:SHOWN]


def _picture(model: Model, example: Example) -> Explanation:
    """Where the model looked, writing its own output; the given one where it writes nothing."""
    written = model.predict([example.source])[0]
    picture = model.explain(example.source, None if written.strip() else example.target)
    known = written == example.target and len(picture.source) == len(example.source_spans)
    return (
        replace(picture, gold=example.links) if known and len(picture.target) == len(example.target_spans) else picture
    )


def _report(folder: Path, pictures: Sequence[Explanation], scores: dict[str, float], name: str) -> Path:
    from unrolled.base.files import write_beside
    from unrolled.explain.page import report

    pictures[0].to(folder / "alignment.svg")
    pictures[0].to(folder / "alignment.png")
    page = report(pictures, {key: round(value, 3) for key, value in scores.items()}, f"unrolled demo: {name}")
    return write_beside(folder / "report.html", page.encode("utf-8", "replace"))


def _gate(name: str, result: dict[str, Any]) -> None:
    missed = []
    for key, mark in GATES.get(name, {}).items():
        reached = result[key] >= mark if key == "exact_match" else result[key] <= mark
        if not reached:
            missed.append(f"{key} is {result[key]:.3f}, the mark is {mark}")
    if missed:
        raise GateError(f"demo {name}: {'; '.join(missed)}.")
