"""``python -m benchmarks [NAME …]``: benchmarks, each in a process of its own; ``--write`` puts tables into RESULTS.md.

Numbers are ratios within one run: both sides are measured in turn, on the same machine, one thread each but where the
name ends in a number of threads.
"""

from __future__ import annotations

import json
import platform
import subprocess
import sys
from pathlib import Path
from typing import Any

NAMES = (
    *(
        "recurrent",
        "recurrent-2",
        "products",
        "steps",
        "training",
        "loss",
        "floor",
        "decoding",
        "word2vec",
        "peers",
        "memory",
        "linear",
    ),
    "startup",
)
RESULTS = Path(__file__).parent / "RESULTS.md"
PLOTS = ("linear",)
"""Those that also draw; the picture stands beside RESULTS.md."""


def machine() -> str:
    """What the numbers belong to."""
    import torch

    model = platform.processor() or platform.machine()
    for line in Path("/proc/cpuinfo").read_text().splitlines() if Path("/proc/cpuinfo").exists() else []:
        if line.startswith("model name"):
            model = line.split(":", 1)[1].strip()
            break
    from llvmlite import binding

    return f"{model} ({binding.get_host_cpu_name()}), Python {platform.python_version()}, torch {torch.__version__}"


def main() -> int:
    names = [word for word in sys.argv[1:] if not word.startswith("-")]
    unknown = [name for name in names if name not in NAMES]
    if unknown:
        print(f"no benchmark is called {unknown[0]}. Known: {', '.join(NAMES)}.", file=sys.stderr)
        return 2
    failed = []
    pages = sections(RESULTS.read_text(encoding="utf-8")) if RESULTS.exists() else {}
    for name in names or NAMES:
        print(f"== {name}", flush=True)
        module, _, threads = name.partition("-")
        asked = [f"benchmarks.{module}", "--json", *(["--threads", threads] if threads else [])]
        if name in PLOTS and "--write" in sys.argv:
            asked += ["--plot", f"benchmarks/{name}.svg"]
        ran = subprocess.run([sys.executable, "-m", *asked], capture_output=True, text=True)
        if ran.returncode:
            failed.append(name)
            print(ran.stderr[-2000:], flush=True)
            continue
        found = json.loads(ran.stdout.strip().splitlines()[-1])
        text = json.dumps(found, indent=1)
        print(text, flush=True)
        pages[name] = f"## {name}\n\n`python -m {' '.join(asked)}`\n\n{page(found)}"
        if "--write" in sys.argv:
            where = f"{machine()}; one thread each unless said"
            head = f"# Benchmarks\n\nMeasured by `python -m benchmarks --write` on {where}.\n"
            RESULTS.write_text("\n".join([head, *(pages[one] for one in NAMES if one in pages)]), encoding="utf-8")
    return int(bool(failed))


def sections(text: str) -> dict[str, str]:
    """The tables of a page that was written before, by the benchmark's name."""
    parts = text.split("\n## ")[1:]
    return {part.split("\n", 1)[0]: f"## {part.rstrip()}\n" for part in parts}


def page(found: dict[str, Any]) -> str:
    """A result as Markdown: groups of numbers and rows as tables, everything else as a list."""
    groups = {name: value for name, value in found.items() if isinstance(value, dict)}
    rows = [{"": name, **value} for name, value in groups.items()]
    rows += [row for value in found.values() if isinstance(value, list) for row in value]
    plain = {name: value for name, value in found.items() if not isinstance(value, dict | list)}
    picture = plain.pop("plot", None)
    text = "".join(f"- {name}: {value}\n" for name, value in plain.items())
    for columns in dict.fromkeys(tuple(row) for row in rows):
        text += "\n| " + " | ".join(columns) + " |\n|" + "---|" * len(columns) + "\n"
        text += "".join(
            "| " + " | ".join(str(value) for value in row.values()) + " |\n" for row in rows if tuple(row) == columns
        )
    return text if picture is None else f"{text}\n![{found['benchmark']}]({picture})\n"


if __name__ == "__main__":
    sys.exit(main())
