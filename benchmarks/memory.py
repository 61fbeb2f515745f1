"""Whether memory grows with the corpus: the same model trained on ten thousand, a hundred thousand and a million lines.

Each run is a process of its own: vocabulary, encoded store, planning and some updates. What a process holds for itself
(``RssAnon``: not the pages of files that the system may drop) and its peak are compared with the smallest corpus.
"""

from __future__ import annotations

import json
import random
import subprocess
import sys
import tempfile
from pathlib import Path

SIZES = (10_000, 100_000, 1_000_000)
STEPS = 30


def write(path: Path, rows: int) -> None:
    """Lines over the same 5,000 words, so that only their number differs."""
    draw = random.Random(1)
    words = ["".join(draw.choices("abcdefghijklmnopqrstuvwxyz", k=draw.randint(2, 9))) for _ in range(5000)]
    with path.open("w", encoding="utf-8") as file:
        for _ in range(rows):
            line = " ".join(draw.choices(words, k=draw.randint(4, 16)))
            file.write(f"{line}\t{line}\n")


def train(path: Path, out: Path) -> dict[str, float]:
    """One short run in this process; megabytes."""
    import resource

    from unrolled.runs import Run
    from unrolled.workshop.sources import Sources

    flags = {"train": {"steps": STEPS, "precision": "float32", "batch_sentences": 64, "batch_tokens": None}}
    words = {"kind": "word", "size": 5000}
    run = Run(
        Sources(data=str(path)),
        out,
        preset="bahdanau-small",
        flags=flags | {"text": {"source": words, "target": words}},
    )
    run.prepare()
    trainer = run.trainer()
    for _ in trainer.fit(run.corpus.batches()):
        pass
    status = dict(line.split(":", 1) for line in Path("/proc/self/status").read_text().splitlines())
    anonymous = int(status["RssAnon"].split()[0]) / 1024
    return {"anonymous_mb": anonymous, "peak_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024}


def main() -> None:
    if len(sys.argv) == 4 and sys.argv[1] == "--one":
        print(json.dumps(train(Path(sys.argv[2]), Path(sys.argv[3]))))
        return
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        for size in SIZES:
            path = Path(folder) / f"{size}.tsv"
            write(path, size)
            words = [sys.executable, "-m", "benchmarks.memory", "--one", str(path), str(Path(folder) / f"out{size}")]
            ran = subprocess.run(words, capture_output=True, text=True, check=True)
            found = json.loads(ran.stdout.strip().splitlines()[-1])
            rows.append({"lines": size, **{name: round(value) for name, value in found.items()}})
            path.unlink()
    for row in rows:
        row["times_smallest"] = round(row["anonymous_mb"] / rows[0]["anonymous_mb"], 2)
    print(json.dumps({"rows": rows}))


if __name__ == "__main__":
    main()
