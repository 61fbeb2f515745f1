"""Training and decoding beside joeynmt, yoyodyne, eole and Keras: the same data, the same sizes, one thread.

    make bench-peers DATA=FOLDER            makes the peers' environments first (PyPI), then measures
    python -m benchmarks.peers --json --data FOLDER

Multi30k (Elliott et al. 2016, arXiv:1605.00459; github.com/multi30k/dataset, data/task1/raw): train.en.gz and
train.de.gz in one folder. English to German, 8,000 symbols a side, batches of 64 of like length, BiLSTM 2×256 → LSTM
512, embedding 256, dropout 0.2, Adam, clipping. Rates are in seconds of the processor, the best round counts, and all
take turns. Decoding is of 16 words into 16 symbols with untrained weights. A peer that has bfloat16 on a processor is
run in it too, and its best counts in `ratio`; `as they come` is to the fastest peer in float32, which all of them take
unless told otherwise, of ours as it comes too, in what `auto` chooses.
"""

from __future__ import annotations

import argparse
import gzip
import json
import os
import re
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any, NamedTuple

from benchmarks.peers import environments
from benchmarks.peers.work import WORDS

SCRIPTS = Path(__file__).parent
BATCH, KEPT = 64, 8000 - 4
RATES = ("tokens_per_second", "alone", "batch_64", "beam_5")
DEMANDED = {"tokens_per_second": 2.5, "alone": 1.5, "batch_64": 1.5, "beam_5": 1.5}
OURS = "unrolled"


class Contender(NamedTuple):
    """A script, the environment it runs in ('' is ours), and what it is given on the command line."""

    script: str
    environment: str
    words: tuple[str, ...] = ()
    precisions: tuple[str, ...] = ("float32", "bfloat16")


CONTENDERS = {
    OURS: Contender("with_unrolled.py", ""),
    "eole": Contender("with_eole.py", "eole"),
    "joeynmt": Contender("with_joeynmt.py", "joeynmt", precisions=("float32",)),
    "yoyodyne": Contender("with_yoyodyne.py", "yoyodyne"),
    "keras on jax": Contender("with_keras.py", "keras", ("jax",)),
    "keras on torch": Contender("with_keras.py", "keras", ("torch",)),
}


def corpus(folder: Path) -> dict[str, Any]:
    """Four batches from the short to the long, and sentences of WORDS words to decode, as numbers of words."""
    sides = []
    for name in ("train.en.gz", "train.de.gz"):
        lines = gzip.decompress((folder / name).read_bytes()).decode("utf-8").splitlines()
        sides.append([re.findall(r"\w+|[^\w\s]", line.lower()) for line in lines])
    numbers = []
    for side in sides:
        counts = Counter(word for line in side for word in line)
        known = {word: place for place, (word, _) in enumerate(counts.most_common(KEPT))}
        numbers.append([[known.get(word, 0) for word in line] for line in side])
    pairs = [pair for pair in zip(*numbers, strict=True) if all(pair)]
    long = [source[:WORDS] for source, _ in pairs if len(source) >= WORDS]
    pairs.sort(key=lambda pair: (len(pair[0]), len(pair[1])))
    batches = []
    for share in (0.125, 0.375, 0.625, 0.875):
        start = int(share * len(pairs)) - BATCH // 2
        batches.append(tuple(map(list, zip(*pairs[start : start + BATCH], strict=True))))
    return {"batches": batches, "sentences": long[:BATCH], "words": KEPT}


def ask(contender: Contender, request: dict[str, Any]) -> dict[str, Any]:
    """What one run of a script says, or why it says nothing."""
    found = environments.find(contender.environment)
    if found.python is None:
        return {"skipped": found.reason}
    command = [str(found.python), str(SCRIPTS / contender.script), *contender.words]
    single = dict.fromkeys(("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS"), "1")
    single["XLA_FLAGS"] = "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1"
    ran = subprocess.run(
        command, input=json.dumps(request), capture_output=True, text=True, env={**os.environ, **single}
    )
    lines = ran.stdout.strip().splitlines()
    if ran.returncode or not lines:
        return {"skipped": (ran.stderr.strip().splitlines() or ["it said nothing"])[-1]}
    answer: dict[str, Any] = json.loads(lines[-1])
    return answer


def best(old: dict[str, Any] | None, new: dict[str, Any]) -> dict[str, Any]:
    """The better of two answers, rate by rate, with the settings that each rate was reached with."""
    if old is None or "skipped" in old:
        return new
    if "skipped" in new:
        return old
    found = {**old, "settings": dict(old["settings"])}
    for name in RATES:
        if new.get(name, 0) > old.get(name, 0):
            found[name], found["settings"][name] = new[name], new["settings"][name]
    return found


def measure(folder: Path, seconds: float, rounds: int, only: list[str]) -> dict[str, Any]:
    given = corpus(folder)
    found: dict[tuple[str, bool], dict[str, Any]] = {}
    single: dict[tuple[str, bool], dict[str, Any]] = {}  # in float32
    turns = [
        (name, feeding, precision)
        for _ in range(rounds)
        for feeding in (False, True)
        for name, contender in CONTENDERS.items()
        for precision in contender.precisions
        if not only or name in only
    ]
    for name, feeding, precision in turns:
        request = {**given, "feeding": feeding, "precision": precision, "seconds": seconds}
        answer = ask(CONTENDERS[name], request)
        print(name, "feeding" if feeding else "not feeding", precision, answer, file=sys.stderr, flush=True)
        if "skipped" not in answer:
            answer["settings"] = {rate: answer["settings"] for rate in RATES if rate in answer}
        found[name, feeding] = best(found.get((name, feeding)), answer)
        if precision == "float32":
            single[name, feeding] = best(single.get((name, feeding)), answer)
    return {"benchmark": "peers", "rows": rows(found), "ratios": ratios(found, single)}


def rows(found: dict[tuple[str, bool], dict[str, Any]]) -> list[dict[str, Any]]:
    """A line a contender: rates, or the reason why there are none."""
    made = []
    for (name, feeding), answer in found.items():
        line = {"who": name, "feeding": "with" if feeding else "without"}
        if "skipped" in answer:
            made.append({**line, "skipped": answer["skipped"]})
        else:
            shown = {rate: answer.get(rate, "–") for rate in (*RATES, "version")}
            made.append({**line, **shown, "settings": told(answer["settings"])})
    return made


def told(settings: dict[str, str]) -> str:
    """What all rates were reached with; where they differ, what which were."""
    which: dict[str, list[str]] = {}
    for rate, one in settings.items():
        which.setdefault(one, []).append(rate)
    if len(which) == 1:
        return next(iter(which))
    return " · ".join(f"{', '.join(rates)}: {one}" for one, rates in which.items())


def ratios(
    found: dict[tuple[str, bool], dict[str, Any]], single: dict[tuple[str, bool], dict[str, Any]]
) -> list[dict[str, Any]]:
    """Ours to the fastest peer, rate by rate: to the best that it has, and to the fastest of ``single``, in float32."""
    made = []
    for feeding in (False, True):
        ours = found.get((OURS, feeding), {})
        for rate in RATES:
            fastest, plain = (_fastest(some, feeding, rate) for some in (found, single))
            if rate in ours and fastest and plain:
                made.append(
                    {
                        "rate": rate,
                        "feeding": "with" if feeding else "without",
                        "fastest peer": fastest[0],
                        "ratio": round(ours[rate] / fastest[1], 2),
                        "as they come": round(ours[rate] / plain[1], 2),
                        "demanded": DEMANDED[rate],
                    }
                )
    return made


def _fastest(found: dict[tuple[str, bool], dict[str, Any]], feeding: bool, rate: str) -> tuple[str, float] | None:
    """The peer with the highest rate, and that."""
    theirs = {
        name: answer[rate]
        for (name, fed), answer in found.items()
        if fed == feeding and name != OURS and rate in answer
    }
    return max(theirs.items(), key=lambda one: one[1]) if theirs else None


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--json", action="store_true", help="one JSON object on stdout")
    parser.add_argument("--data", type=Path, default=Path("shared/data/multi30k_en-de"), help="the folder of Multi30k")
    parser.add_argument(
        "--minutes", type=float, default=8.0, help="for all rates together, beside starting and warming up"
    )
    parser.add_argument("--rounds", type=int, default=1, help="turns of all contenders; the best of each counts")
    parser.add_argument("--only", nargs="*", default=[], choices=sorted(CONTENDERS), help="these alone")
    parser.add_argument("--make", action="store_true", help="make the environments that are missing (PyPI)")
    parser.add_argument("--pip", default="", help="further words for pip")
    options = parser.parse_args()
    if options.make:
        for name in environments.PACKAGES:
            environments.make(name, options.pip.split())
    missing = [name for name in ("train.en.gz", "train.de.gz") if not (options.data / name).exists()]
    if missing:
        reason = f"{options.data} has no {' and no '.join(missing)}: give the folder of Multi30k with --data"
        result: dict[str, Any] = {"benchmark": "peers", "skipped": reason}
    else:
        runs = 2 * options.rounds * sum(len(contender.precisions) for contender in CONTENDERS.values())
        result = measure(options.data, 60 * options.minutes / runs / len(RATES), options.rounds, options.only)
    if options.json:
        print(json.dumps(result))
        return
    for line in [*result.get("rows", []), *result.get("ratios", [])] or [result]:
        print("  ".join(f"{name} {value}" for name, value in line.items()))


if __name__ == "__main__":
    main()
