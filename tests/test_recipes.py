"""Every recipe is a whole tree of settings; data in forms of their own become tables."""

import gzip
import json
import subprocess
import sys
from pathlib import Path

import pytest

from unrolled.workshop.plan import layers_of, plan

RECIPES = Path(__file__).parents[1] / "recipes"


@pytest.mark.parametrize("path", sorted(RECIPES.glob("*.yaml")), ids=lambda path: path.stem)
def test_a_recipe_is_complete(path: Path) -> None:
    settings = plan(layers_of(None, str(path))).settings
    assert settings["task"]["kind"] and settings["model"]["kind"]


def prepared(kind: str, files: dict[str, str], folder: Path) -> dict[str, str]:
    given, out = folder / "given", folder / "out"
    given.mkdir()
    for name, text in files.items():
        (given / name).write_bytes(gzip.compress(text.encode()))
    subprocess.run([sys.executable, RECIPES / "prepare.py", kind, given, out], check=True)
    return {path.name: path.read_text() for path in sorted(out.iterdir())}


def test_cmudict_becomes_rows_of_spelling_and_phonemes(tmp_path: Path) -> None:
    words = "".join(f"w{n} W AH{n % 3}\n" for n in range(300))
    dev = "live L IH1 V\nlive(2) L AY1 V # as in live music\nlive(3) L AY0 V\n"
    found = prepared("cmudict", {"train.dict.gz": words, "dev.dict.gz": dev}, tmp_path)
    assert found["dev.tsv"] == "live\tL IH V\nlive\tL AY V\n"
    assert list(found) == ["dev.tsv", "train.tsv", "valid.tsv"]
    train, valid = found["train.tsv"].splitlines(), found["valid.tsv"].splitlines()
    assert len(train) + len(valid) == 300 and 1 <= len(valid) <= 15
    assert not set(train) & set(valid) and all(row.endswith("\tW AH") for row in train)


def test_scitldr_becomes_rows_of_abstract_and_title(tmp_path: Path) -> None:
    papers = [{"source": [f"One {n}.", "Two\n."], "title": f"Title {n}" if n != 3 else None} for n in range(40)]
    lines = "".join(json.dumps(paper) + "\n" for paper in papers)
    found = prepared("scitldr", {f"{part}.jsonl.gz": lines for part in ("train", "dev", "test")}, tmp_path)
    assert found["test.tsv"] == found["dev.tsv"] == "".join(f"One {n}. Two .\tTitle {n}\n" for n in range(40) if n != 3)
    assert len(found["valid.tsv"].splitlines()) == 2 and len(found["train.tsv"].splitlines()) == 37
