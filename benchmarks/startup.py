"""How long ``unrolled --help`` takes, beside Python alone."""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
import time


def seconds(*words: str) -> float:
    """The median of seven runs, after one that warms the disk."""
    times = []
    for _ in range(8):
        start = time.perf_counter()
        subprocess.run([sys.executable, *words], capture_output=True, check=True)
        times.append(time.perf_counter() - start)
    return statistics.median(times[1:])


if __name__ == "__main__":
    python, help_ = seconds("-c", "pass"), seconds("-m", "unrolled", "--help")
    print(json.dumps({"python_seconds": round(python, 3), "help_seconds": round(help_, 3), "wanted": "help < 0.3"}))
