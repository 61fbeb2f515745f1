"""Every recipe is a whole tree of settings; data in forms of their own become tables."""

import gzip
import io
import json
import subprocess
import sys
import tarfile
import wave
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


def test_ett_is_cut_after_twenty_months(tmp_path: Path) -> None:
    found = prepared("ett", {"ETTh1.csv.gz": "date,OT\n" + "".join(f"{n},{n}\n" for n in range(14_500))}, tmp_path)
    rows = found["ett.csv"].splitlines()
    assert rows[0] == "date,OT" and len(rows) == 14_401 and rows[-1] == "14399,14399"


def test_digits_become_strings_of_one_speaker_made_of_a_part_s_own_clips(tmp_path: Path) -> None:
    given, out = tmp_path / "given", tmp_path / "out"
    given.mkdir()
    for part, numbers in (("train", range(5, 12)), ("test", range(2))):
        with tarfile.open(given / f"{part}.tar.gz", "w:gz") as archive:
            for speaker in (1, 2):
                for digit in range(10):
                    for number in numbers:
                        sound = io.BytesIO()
                        with wave.open(sound, "wb") as file:
                            file.setparams((1, 2, 8000, 0, "NONE", "not compressed"))
                            file.writeframes(bytes([100 * speaker + digit, 1 + number]) * 3)
                        entry = tarfile.TarInfo(f"{digit}_s{speaker}_{number}.wav")
                        entry.size = sound.tell()
                        archive.addfile(entry, io.BytesIO(sound.getvalue()))
    script = (
        (RECIPES / "prepare.py")
        .read_text()
        .replace("12_000", "60")
        .replace('"valid": 500, "test": 1000', '"valid": 30, "test": 20')
    )
    (tmp_path / "prepare.py").write_text(script)
    subprocess.run([sys.executable, tmp_path / "prepare.py", "digits", given, out], check=True)
    subprocess.run([sys.executable, tmp_path / "prepare.py", "spoken", given, tmp_path / "single"], check=True)
    words = ["zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine"]
    allowed = {"train": {11, 12}, "valid": {6, 7, 8, 9, 10}, "test": {1, 2}}
    for part, count in (("train", 60), ("valid", 30), ("test", 20)):
        header, *rows = (out / f"{part}.tsv").read_text().splitlines()
        assert header == "path\ttext" and len(rows) == count
        for row in rows:
            path, text = row.split("\t")
            with wave.open(str(out / path)) as file:
                samples = file.readframes(file.getnframes())
            pieces = [samples[place : place + 2] for place in range(0, len(samples), 2)]
            heard = [piece for piece in pieces if piece != b"\0\0"][::3]
            assert [words[piece[0] % 100] for piece in heard] == text.split() and 2 <= len(heard) <= 5
            assert len({piece[0] // 100 for piece in heard}) == 1 and {piece[1] for piece in heard} <= allowed[part]
        files = list((tmp_path / "single" / part).glob("*/*.wav"))
        assert len(files) == 20 * len(allowed[part])
        for file in files:
            with wave.open(str(file)) as sound:
                first, number = sound.readframes(1)
            assert words[first % 100] == file.parent.name and number in allowed[part]


def test_images_of_digits_become_strips_and_no_two_parts_share_one(tmp_path: Path) -> None:
    from PIL import Image

    given, out, count = tmp_path / "given", tmp_path / "out", 40
    given.mkdir()
    head = bytes([0, 0, 8, 3]) + b"".join(number.to_bytes(4, "big") for number in (count, 28, 28))
    pixels = b"".join(bytes([100 + place]) * 784 for place in range(count))  # each image is one shade of its own
    (given / "images-idx3-ubyte.gz").write_bytes(gzip.compress(head + pixels))
    labels = bytes(place % 10 for place in range(count))
    (given / "labels-idx1-ubyte.gz").write_bytes(gzip.compress(bytes([0, 0, 8, 1]) + count.to_bytes(4, "big") + labels))
    sizes = 'STRIPS = {"train": (20_000, 5500), "valid": (500, 500), "test": (1000, 1000)}'
    script = (RECIPES / "prepare.py").read_text()
    assert sizes in script
    small = 'STRIPS = {"train": (30, 20), "valid": (10, 10), "test": (10, 10)}'
    (tmp_path / "prepare.py").write_text(script.replace(sizes, small))
    subprocess.run([sys.executable, tmp_path / "prepare.py", "strips", given, out], check=True)
    subprocess.run([sys.executable, tmp_path / "prepare.py", "mnist", given, tmp_path / "single"], check=True)
    words = ["zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine"]
    shades: dict[str, set[int]] = {}
    for part, number in (("train", 30), ("valid", 10), ("test", 10)):
        rows, boxes = ((out / f"{name}.tsv").read_text().splitlines()[1:] for name in (part, f"{part}-boxes"))
        assert len(rows) == len(boxes) == number
        for row, where in zip(rows, boxes, strict=True):
            path, caption = row.split("\t")
            strip = Image.open(out / path)
            assert strip.height == 36 and 2 <= len(caption.split()) <= 5 and where.startswith(path)
            for word, box in zip(caption.split(), where.split("\t")[1].split(), strict=True):
                left, top, right, bottom = map(int, box.split(","))
                assert (right - left, bottom - top) == (20, 20) and top >= 0 and bottom <= 36
                shade = strip.getpixel(((left + right) // 2, (top + bottom) // 2))
                assert words[(shade - 100) % 10] == word
                shades.setdefault(part, set()).add(shade)
    assert not any(shades[one] & shades[two] for one, two in (("train", "valid"), ("train", "test"), ("valid", "test")))
    for part, held in (("train", 20), ("valid", 10), ("test", 10)):
        files = list((tmp_path / "single" / part).glob("*/*.png"))
        own = {Image.open(file).getpixel((0, 0)) for file in files}
        assert len(files) == len(own) == held and shades[part] <= own
        assert all(words[(Image.open(file).getpixel((0, 0)) - 100) % 10] == file.parent.name for file in files)
