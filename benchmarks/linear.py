"""How the cost grows: time per token with the number of sentences, time per line of their preparation, and with length.

    python -m benchmarks.linear --json --plot benchmarks/linear.svg

A corpus of 1,000 to 1,000,000 short sentences (4 to 16 words of the same 5,000) is prepared and trained on for a fixed
number of updates, each size in a process of its own, after a small one that loads what is loaded once; preparing is
reading, learning the vocabularies, encoding and planning. Lengths from 10 to 1,000 are of one model with attention and
one without (256 units, 16 sentences a batch, 2,000 symbols): attention looks at every source symbol for every target
symbol, so its own share grows with the length. One thread, in seconds of the processor; microseconds.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from benchmarks.memory import write

SIZES = (1_000, 10_000, 100_000, 1_000_000)
LENGTHS = (10, 30, 100, 300, 1000)
STEPS, SENTENCES, SYMBOLS, UNITS = 30, 16, 2000, 256
CELL = {"kind": "lstm", "hidden_size": UNITS}
ENCODER = {"kind": "rnn", "cell": CELL}
MODELS: dict[str, dict[str, Any]] = {
    "attention": {"encoder": ENCODER, "decoder": {"kind": "query_after", "cell": CELL, "input_feeding": False}},
    "no attention": {"encoder": ENCODER, "decoder": {"kind": "fixed", "cell": CELL}},
}
COLOURS = {"attention": "#1f6f8b", "no attention": "#c1666b", "training": "#1f6f8b", "preparing": "#c1666b"}
WORDS = {
    "attention": "training with attention, a target word",
    "no attention": "training without attention, a target word",
    "training": "training, a target word",
    "preparing": "preparing, a line",
}


def corpus(path: Path, out: Path, lines: int) -> dict[str, float]:
    """Microseconds a line of preparation and a token of training, in this process."""
    from unrolled.runs import Run
    from unrolled.train.reports import Step
    from unrolled.workshop.sources import Sources

    words = {"kind": "word", "size": 5000}
    flags = {
        "train": {"steps": STEPS, "precision": "auto", "batch_sentences": 64, "batch_tokens": None},
        "text": {"source": words, "target": words},
        "data": {"max_unknown": 1.0},  # a thousand lines hold many words once
    }
    few = out.with_name(f"{out.name}-few")
    write(few.with_suffix(".tsv"), 500)
    Run(Sources(data=str(few.with_suffix(".tsv"))), few, preset="luong-small", flags=flags).prepare()  # imports
    start = time.process_time()
    run = Run(Sources(data=str(path)), out, preset="luong-small", flags=flags)
    run.prepare()
    prepared, tokens, began = time.process_time() - start, 0, 0.0
    for report in run.trainer().fit(run.corpus.batches()):
        if isinstance(report, Step):
            if report.step == STEPS // 3:  # what is compiled and allocated once is done
                tokens, began = 0, time.process_time()
            else:
                tokens += report.symbols
            if report.step == STEPS:
                spent = time.process_time() - began
    return {"preparing": 1e6 * prepared / lines, "training": 1e6 * spent / tokens}


def by_size() -> list[dict[str, Any]]:
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        for size in SIZES:
            path = Path(folder) / f"{size}.tsv"
            write(path, size)
            words = [sys.executable, "-m", "benchmarks.linear", "--one", str(path), f"{folder}/out{size}", str(size)]
            ran = subprocess.run(words, capture_output=True, text=True, check=True)
            found = json.loads(ran.stdout.strip().splitlines()[-1])
            rows.append({"sentences": size, **{name: round(value, 1) for name, value in found.items()}})
            path.unlink()
    return rows


def by_length(rounds: int) -> list[dict[str, Any]]:
    """Microseconds a target symbol, the best of several updates."""
    import torch

    from unrolled.data.batching import Pairs, Tokens
    from unrolled.models import Seq2Seq
    from unrolled.tasks import TASKS
    from unrolled.train.settings import TrainSettings
    from unrolled.train.trainer import Trainer

    settings = TrainSettings(schedule="constant", steps=1_000_000, device="cpu")
    torch.manual_seed(1)
    trainers = {
        name: Trainer(Seq2Seq(SYMBOLS, SYMBOLS, embedding_size=UNITS, **model), TASKS.build("translate").loss, settings)
        for name, model in MODELS.items()
    }
    rows = []
    for length in LENGTHS:
        side = Tokens(torch.randint(4, SYMBOLS, (SENTENCES, length + 1)), torch.ones(SENTENCES, length + 1).bool())
        batch = Pairs(side, side, torch.arange(SENTENCES))
        best = dict.fromkeys(trainers, float("inf"))
        for turn in range(rounds + 1):
            for name, trainer in trainers.items():
                start = time.process_time()
                trainer.update(batch)
                if turn:
                    best[name] = min(best[name], 1e6 * (time.process_time() - start) / (SENTENCES * length))
        rows.append({"length": length, **{name: round(spent, 1) for name, spent in best.items()}})
    return rows


def plot(path: Path, sizes: list[dict[str, Any]], lengths: list[dict[str, Any]]) -> None:
    """Both tables from zero on: what costs the same for each stays level."""
    import matplotlib

    matplotlib.use("svg")
    matplotlib.rcParams.update({"svg.fonttype": "none", "svg.hashsalt": "linear", "font.size": 10})
    from matplotlib import pyplot

    figure, panels = pyplot.subplots(1, 2, figsize=(9, 3.6), layout="constrained")
    draw(panels[0], sizes, "sentences in the corpus")
    draw(panels[1], lengths, "words in a sentence, 16 sentences a batch")
    figure.savefig(path, format="svg", metadata={"Date": None})
    path.write_text("\n".join(line.rstrip() for line in path.read_text().splitlines()) + "\n")


def draw(panel: Any, rows: list[dict[str, Any]], title: str) -> None:
    """One table, a line for each of its columns."""
    across, *names = rows[0]
    places = [row[across] for row in rows]
    panel.set_xscale("log")
    panel.set_xticks(places, [f"{place:,}" for place in places])
    panel.minorticks_off()
    for name in names:
        spent = [row[name] for row in rows]
        panel.plot(places, spent, "o-", color=COLOURS[name], markersize=4, linewidth=1.8, label=WORDS[name])
    panel.set_ylim(0, 1.4 * max(row[name] for row in rows for name in names))
    panel.set_xlabel(title)
    panel.set_title("microseconds of one core", loc="left", fontsize=9, color="#666666")
    panel.legend(frameon=False, loc="upper right", labelcolor="linecolor", handlelength=1.2)
    panel.grid(axis="y", color="#e6e6e6", linewidth=0.8)
    panel.set_axisbelow(True)
    panel.spines[["top", "right", "left"]].set_visible(False)
    panel.spines["bottom"].set_color("#999999")
    panel.tick_params(color="#999999", labelcolor="#444444", left=False)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--json", action="store_true", help="one JSON object on stdout")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--plot", type=Path, help="write an SVG there")
    parser.add_argument("--one", nargs=3, metavar=("FILE", "OUT", "LINES"), help="one corpus alone")
    options = parser.parse_args()
    if options.one:
        print(json.dumps(corpus(Path(options.one[0]), Path(options.one[1]), int(options.one[2]))))
        return
    sizes, lengths = by_size(), by_length(options.rounds)
    if options.plot:
        plot(options.plot, sizes, lengths)
    if options.json:
        found = {"benchmark": "linear", "unit": "microseconds", "by size": sizes, "by length": lengths}
        print(json.dumps(found if options.plot is None else {**found, "plot": options.plot.name}))
        return
    for row in [*sizes, *lengths]:
        print("  ".join(f"{name} {value}" for name, value in row.items()))


if __name__ == "__main__":
    main()
