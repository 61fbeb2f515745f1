"""Words a second of word2vec beside gensim's: the same text, the same settings, the same number of threads.

    python -m benchmarks.word2vec --json --peer PYTHON

PYTHON is an interpreter that has gensim; without one, that of `.peers/gensim`, which `make bench-peers` makes. A
million words drawn by Zipf's law from 20,000, in sentences of 20; vectors of 100 numbers, windows to 5, 5 noise words,
frequent words from 10⁻³ on left out now and then. Ours is what training does, batches and trainer included; gensim's
is its ``train`` over sentences that lie in memory. Rates are in seconds of the processor; both take turns, the best
round of each counts.
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

import numpy as np

from benchmarks.peers import environments

WORDS, KINDS, SENTENCE = 1_000_000, 20_000, 20
DEMANDED = 1 / 3
PEER = """
import json, sys, time
from gensim.models import Word2Vec
path, kind, threads = sys.argv[1:]
sentences = [line.split() for line in open(path)]
model = Word2Vec(vector_size=100, window=5, min_count=5, negative=5, sample=1e-3, sg=int(kind == "skip_gram"),
                 workers=int(threads), seed=1)
model.build_vocab(sentences)
start = time.process_time()
_, words = model.train(sentences, total_examples=model.corpus_count, epochs=1)
print(json.dumps(words / (time.process_time() - start)))
"""


def write(path: Path) -> None:
    """Sentences of words w0, w1, …, the first ones most often."""
    draw = np.random.default_rng(1)
    chances = 1 / np.arange(1, KINDS + 1)
    words = draw.choice(KINDS, WORDS, p=chances / chances.sum()).reshape(-1, SENTENCE)
    path.write_text("".join(" ".join(f"w{word}" for word in row) + "\n" for row in words))


def ours(path: Path, kind: str, threads: int) -> float:
    """Words a second, of one epoch after a block that compiles."""
    import torch

    from unrolled.runs import Run
    from unrolled.workshop.sources import Sources

    torch.set_num_threads(threads)
    with tempfile.TemporaryDirectory() as out:
        flags = {"model": {"algorithm": kind}, "data": {"valid_rows": 1}}
        run = Run(Sources(data=str(path)), out, preset="skip-gram", flags=flags)
        run.prepare()
        batches, trainer = run.corpus.batches(), run.trainer()
        trainer.update(batches.load(batches.plan(0)[0]))
        start = time.process_time()
        for rows in batches.plan(1):
            trainer.update(batches.load(rows))
        seconds = time.process_time() - start
        words = len(batches) - len(batches.documents)  # type: ignore[attr-defined, arg-type]
    return float(words / seconds)


def measure(rounds: int, peer: str | None) -> dict[str, Any]:
    found = environments.find("gensim")
    python = peer or (str(found.python) if found.python else None)
    result: dict[str, Any] = {
        "benchmark": "word2vec",
        "unit": "words a second of the processor, all threads together",
        "demanded": f"ratio {DEMANDED:.2f}",
    }
    if python is None:
        return result | {"skipped": found.reason}
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "text.txt"
        write(path)
        for kind in ("skip_gram", "cbow"):
            for threads in (1, 2):
                result[f"{kind}, {threads} thread{'s' if threads > 1 else ''}"] = _both(
                    path, kind, threads, rounds, python
                )
    return result


def _both(path: Path, kind: str, threads: int, rounds: int, python: str) -> dict[str, float]:
    own = [sys.executable, "-m", "benchmarks.word2vec", "--one", str(path), kind, str(threads)]
    other = [python, "-c", PEER, str(path), kind, str(threads)]
    best = {"unrolled": 0.0, "gensim": 0.0}
    for _ in range(rounds):
        for name, words in (("unrolled", own), ("gensim", other)):
            ran = subprocess.run(words, capture_output=True, text=True, check=True)
            best[name] = max(best[name], float(ran.stdout.strip().splitlines()[-1]))
    rounded = {name: round(rate, -3) for name, rate in best.items()}
    return rounded | {"ratio": round(best["unrolled"] / best["gensim"], 2)}


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--json", action="store_true", help="one JSON object on stdout")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--peer", help="an interpreter that has gensim")
    parser.add_argument("--one", nargs=3, metavar=("TEXT", "KIND", "THREADS"), help="ours alone, once")
    options = parser.parse_args()
    if options.one:
        print(ours(Path(options.one[0]), options.one[1], int(options.one[2])))
        return
    result = measure(options.rounds, options.peer)
    if options.json:
        print(json.dumps(result))
        return
    for name, value in result.items():
        print(f"{name:24}{value}")


if __name__ == "__main__":
    main()
