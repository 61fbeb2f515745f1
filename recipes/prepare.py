"""Data sets in forms of their own, as tables or text: ``python recipes/prepare.py scan FOLDER OUT`` (or another).

scan    ``IN: jump twice OUT: I_JUMP I_JUMP`` (Lake & Baroni 2018)  →  train.tsv, valid.tsv (5 % of train), test.tsv
shakespeare  Tiny Shakespeare (Karpathy 2015)  →  train.txt, test.txt: the first 0.9 of its characters and the others
cmudict  ``word(2) K AE1 T # comment``  →  train.tsv, valid.tsv (a sixtieth of its words, by digest), dev.tsv, test.tsv
         if it is there: spelling and phonemes without stress, a row for each pronunciation
scitldr  JSON lines of abstracts and titles (Cachola et al. 2020)  →  train.tsv, valid.tsv (5 % of train), dev.tsv,
         test.tsv if it is there
alibi   English and French sentences with sure and possible word links  →  pairs.tsv, links.txt
elmo  a folder with ud_english-ewt and lm_war_and_peace  →  text.txt, a sentence a line, words set apart by spaces;
      train-1000.conllu, dev.conllu, test.conllu: a thousand drawn sentences to learn tags from, and all others
digits  train.tar.gz and test.tar.gz of the Free Spoken Digit Dataset  →  train.tsv, valid.tsv, test.tsv and folders of
        the recordings that they name: 2 to 5 digits of one speaker with silence between, and their words
strips  images-idx3-ubyte.gz and labels-idx1-ubyte.gz of MNIST  →  train.tsv, valid.tsv, test.tsv and folders of the
        images that they name: 2 to 5 digits side by side, and their words; PART-boxes.tsv: where each digit stands
mnist, spoken  the images or clips that strips and digits are made of, one by one  →  folders train, valid and test,
        in each a folder for each digit
ett  ETTh1.csv.gz  →  ett.csv: the first twenty months, 14,400 hours, of which 8,640 are usually learnt from
"""

from __future__ import annotations

import gzip
import json
import random
import re
import sys
import tarfile
import wave
from hashlib import md5
from pathlib import Path
from typing import Any

from unrolled.text import TOKENIZERS


def lines(path: Path) -> list[str]:
    if not path.is_file():
        sys.exit(f"{path} is not there. FOLDER is the data set's own folder, the one with its files.")
    with gzip.open(path, "rt", encoding="utf-8") as file:
        return file.read().splitlines()


def scan(folder: Path, out: Path) -> None:
    """The simple split. Every twentieth training line is held out for validation."""
    out.mkdir(parents=True, exist_ok=True)
    for part in ("train", "test"):
        rows = []
        for line in lines(folder / "simple_split" / f"tasks_{part}_simple.txt.gz"):
            command, actions = line.removeprefix("IN: ").split(" OUT: ")
            rows.append(f"{command}\t{actions}\n")
        if part == "train":
            (out / "valid.tsv").write_text("".join(rows[::20]), encoding="utf-8")
            rows = [row for place, row in enumerate(rows) if place % 20]
        (out / f"{part}.tsv").write_text("".join(rows), encoding="utf-8")


def shakespeare(folder: Path, out: Path) -> None:
    """Cut by position, as usual."""
    out.mkdir(parents=True, exist_ok=True)
    with gzip.open(folder / "input.txt.gz", "rt", encoding="utf-8") as file:
        text = file.read()
    border = len(text) * 9 // 10
    (out / "train.txt").write_text(text[:border], encoding="utf-8")
    (out / "test.txt").write_text(text[border:], encoding="utf-8")


def parts(folder: Path, ending: str) -> dict[str, list[str]]:
    """The lines of train, dev and, where it is there, test."""
    names = [part for part in ("train", "dev", "test") if part != "test" or (folder / f"test.{ending}").is_file()]
    return {part: lines(folder / f"{part}.{ending}") for part in names}


def cmudict(folder: Path, out: Path) -> None:
    """39 phonemes, as pronunciations are scored: without the digits of stress and the doublets that this makes."""
    out.mkdir(parents=True, exist_ok=True)
    for part, entries in parts(folder, "dict.gz").items():
        rows: dict[str, str] = {}
        for entry in entries:
            cells = entry.partition("#")[0].split()
            if cells:
                word, phonemes = re.sub(r"\(\d+\)$", "", cells[0]), re.sub(r"\d", "", " ".join(cells[1:]))
                rows[f"{word}\t{phonemes}\n"] = word
        if part == "train":
            held = [row for row, word in rows.items() if int(md5(f"v{word}".encode()).hexdigest(), 16) % 60 == 0]
            (out / "valid.tsv").write_text("".join(held), encoding="utf-8")
            hidden = set(held)
            rows = {row: word for row, word in rows.items() if row not in hidden}
        (out / f"{part}.tsv").write_text("".join(rows), encoding="utf-8")


def scitldr(folder: Path, out: Path) -> None:
    """An abstract's sentences in one line, and the title; papers without a title are left out."""
    out.mkdir(parents=True, exist_ok=True)
    for part, papers in parts(folder, "jsonl.gz").items():
        trees = [json.loads(paper) for paper in papers]
        pairs = [
            (" ".join(" ".join(tree["source"]).split()), " ".join((tree["title"] or "").split())) for tree in trees
        ]
        rows = [f"{abstract}\t{title}\n" for abstract, title in pairs if abstract and title]
        if part == "train":
            (out / "valid.tsv").write_text("".join(rows[::20]), encoding="utf-8")
            rows = [row for place, row in enumerate(rows) if place % 20]
        (out / f"{part}.tsv").write_text("".join(rows), encoding="utf-8")


TEXTS = (
    ("ChatBotte", "MasterCat"),
    ("LaBarbeBleue", "BlueBeard"),
    ("LaDerniereClasse", "TheLastLesson"),
)


def alibi(folder: Path, out: Path) -> None:
    """Three texts; words are separated by spaces, links are French-English (sure) or FrenchpEnglish (possible).

    Both are turned round, so that English is the source.
    """
    out.mkdir(parents=True, exist_ok=True)
    pairs, links = [], []
    for french, english in TEXTS:
        left = dict(line.split("\t", 1) for line in lines(folder / f"{french}_sents.txt.gz"))
        right = dict(line.split("\t", 1) for line in lines(folder / f"{english}_sents.txt.gz"))
        for line in lines(folder / f"ali_w2w_{french}_{english}.txt.gz"):
            number, _, drawn = line.partition("\t")
            if drawn.strip() and number in left and number in right:
                pairs.append(f"{' '.join(right[number].split())}\t{' '.join(left[number].split())}\n")
                links.append(" ".join(re.sub(r"(\d+)([-p])(\d+)", r"\3\2\1", link) for link in drawn.split()) + "\n")
    (out / "pairs.tsv").write_text("".join(pairs), encoding="utf-8")
    (out / "links.txt").write_text("".join(links), encoding="utf-8")


def elmo(folder: Path, out: Path) -> None:
    """The words of EWT's training sentences as they are annotated; of the novel, sentences cut by their marks."""
    out.mkdir(parents=True, exist_ok=True)
    blocks = {part: conllu(folder / "ud_english-ewt" / f"en_ewt-ud-{part}.conllu.gz") for part in PARTS}
    drawn = sorted(random.Random(1).sample(range(len(blocks["train"])), 1000))
    tables = {"train-1000": [blocks["train"][place] for place in drawn], **{part: blocks[part] for part in PARTS[1:]}}
    for name, sentences in tables.items():
        (out / f"{name}.conllu").write_text("".join(f"{one}\n\n" for one in sentences), encoding="utf-8")
    texts = [" ".join(form.replace(" ", "_") for form in forms(block)) for block in blocks["train"]]
    novel = re.sub(r"\s+", " ", " ".join(lines(folder / "lm_war_and_peace" / "train.txt.gz")))
    for curly, straight in zip("“”‘’", "\"\"''", strict=True):  # as EWT writes them
        novel = novel.replace(curly, straight)
    words = TOKENIZERS.build("word").words
    for sentence in re.split(r"(?<=[.!?])\s+(?=[\"'A-Z])|(?<=[.!?][\"'])\s+(?=[\"'A-Z])", novel):
        texts.append(" ".join(sentence[start:stop] for start, stop in words(sentence)))
    (out / "text.txt").write_text("".join(f"{text}\n" for text in texts if text), encoding="utf-8")


DIGITS = ("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine")
STRINGS = {"train": 12_000, "valid": 500, "test": 1000}
HELD = range(5, 10)
"""Clips of the training part, by their number among those of a speaker and a digit, that validation strings are of."""
SILENCE = 0.3
"""Seconds between two digits, at most; as many before the first and behind the last."""


def clips(path: Path) -> dict[tuple[str, int, int], bytes]:
    """The samples (16 bits, one channel) of ``7_jackson_32.wav`` by speaker, digit and number."""
    found = {}
    with tarfile.open(path) as archive:
        for member in archive:
            file = archive.extractfile(member)
            if file is not None and member.name.endswith(".wav"):
                digit, speaker, number = Path(member.name).stem.split("_")
                with wave.open(file) as sound:
                    found[speaker, int(digit), int(number)] = sound.readframes(sound.getnframes())
    return found


def clips_by_part(folder: Path) -> dict[str, dict[tuple[str, int, int], bytes]]:
    """The clips of each part, as `clips` gives them."""
    held = {part: clips(folder / f"{part}.tar.gz") for part in ("train", "test")}
    held["valid"] = {clip: samples for clip, samples in held["train"].items() if clip[2] in HELD}
    held["train"] = {clip: samples for clip, samples in held["train"].items() if clip[2] not in HELD}
    return held


def spoken(folder: Path, out: Path) -> None:
    """The clips that strings are made of, one by one."""
    for part, held in clips_by_part(folder).items():
        for (speaker, digit, number), samples in held.items():
            own = out / part / DIGITS[digit]
            own.mkdir(parents=True, exist_ok=True)
            write_wav(own / f"{speaker}_{number}.wav", samples)


def write_wav(path: Path, samples: bytes) -> None:
    with wave.open(str(path), "wb") as sound:
        sound.setparams((1, 2, RATE, 0, "NONE", "not compressed"))
        sound.writeframes(samples)


def digits(folder: Path, out: Path) -> None:
    """Strings of a part are made of that part's clips alone, each of one speaker, with fixed seeds."""
    out.mkdir(parents=True, exist_ok=True)
    held = clips_by_part(folder)
    for seed, (part, count) in enumerate(STRINGS.items(), 1):
        draw, own = random.Random(seed), held[part]
        speakers = sorted({speaker for speaker, _, _ in own})
        by_digit: dict[tuple[str, int], list[tuple[str, int, int]]] = {}
        for clip in sorted(own):
            by_digit.setdefault(clip[:2], []).append(clip)
        (out / part).mkdir(exist_ok=True)
        rows = ["path\ttext\n"]
        for number in range(count):
            speaker, said = draw.choice(speakers), draw.choices(range(10), k=draw.randint(2, 5))
            pieces = [b"".join((silence(draw), own[draw.choice(by_digit[speaker, digit])])) for digit in said]
            name = f"{part}/{number:05}.wav"
            write_wav(out / name, b"".join((*pieces, silence(draw))))
            rows.append(f"{name}\t{' '.join(DIGITS[digit] for digit in said)}\n")
        (out / f"{part}.tsv").write_text("".join(rows), encoding="utf-8")


RATE = 8000
"""Samples a second."""


def silence(draw: random.Random) -> bytes:
    return bytes(2 * int(draw.uniform(0, SILENCE) * RATE))


STRIPS = {"train": (20_000, 5500), "valid": (500, 500), "test": (1000, 1000)}
"""Strips of each part, and the images that they are made of; the images are drawn once, no two parts share one."""
SIDE, HIGH, MARGIN = 28, 36, 4
"""Pixels: of an image, of a strip's height, and from an image's border to the box that its digit fills."""


def idx(path: Path) -> tuple[list[int], bytes]:
    """Sizes and bytes of an array in MNIST's own format."""
    if not path.is_file():
        sys.exit(f"{path} is not there. FOLDER is the data set's own folder, the one with its files.")
    with gzip.open(path) as file:
        whole = file.read()
    sizes = [int.from_bytes(whole[4 * place : 4 * place + 4], "big") for place in range(1, whole[3] + 1)]
    return sizes, whole[4 * (1 + whole[3]) :]


def mnist_parts(folder: Path) -> tuple[list[Any], bytes, dict[str, list[int]]]:
    """The images, their labels, and which of them are of each part."""
    from PIL import Image

    (count, *_), pixels = idx(folder / "images-idx3-ubyte.gz")
    _, labels = idx(folder / "labels-idx1-ubyte.gz")
    size = SIDE * SIDE
    images = [Image.frombytes("L", (SIDE, SIDE), pixels[place * size : (place + 1) * size]) for place in range(count)]
    order, parts = random.Random(0).sample(range(count), count), {}
    for part, (_, own) in STRIPS.items():
        parts[part], order = order[:own], order[own:]
    return images, labels, parts


def mnist(folder: Path, out: Path) -> None:
    """The images that strips are made of, one by one."""
    images, labels, parts = mnist_parts(folder)
    for part, pool in parts.items():
        for place in pool:
            own = out / part / DIGITS[labels[place]]
            own.mkdir(parents=True, exist_ok=True)
            images[place].save(own / f"{place:05}.png")


def strips(folder: Path, out: Path) -> None:
    """Digits with gaps of -4 to 6 pixels between their images, up to 4 pixels up or down, and varying ends."""
    from PIL import Image, ImageChops

    images, labels, pools = mnist_parts(folder)
    out.mkdir(parents=True, exist_ok=True)
    for seed, (part, pool) in enumerate(pools.items(), 1):
        draw, number = random.Random(seed), STRIPS[part][0]
        (out / part).mkdir(exist_ok=True)
        rows, boxes = ["image\tcaption\n"], ["image\tboxes\n"]
        for strip in range(number):
            chosen = draw.choices(pool, k=draw.randint(2, 5))
            lefts, end = [], draw.randint(0, 8)
            for _ in chosen:
                lefts.append(end)
                end += SIDE + draw.randint(-4, 6)
            width = lefts[-1] + SIDE + draw.randint(0, 8)
            drawn, where = Image.new("L", (width, HIGH)), []
            for place, left in zip(chosen, lefts, strict=True):
                top = draw.randint(0, HIGH - SIDE)
                layer = Image.new("L", (width, HIGH))
                layer.paste(images[place], (left, top))
                drawn = ImageChops.lighter(drawn, layer)
                edges = (left + MARGIN, top + MARGIN, left + SIDE - MARGIN, top + SIDE - MARGIN)
                where.append(",".join(map(str, edges)))
            name = f"{part}/{strip:05}.png"
            drawn.save(out / name)
            rows.append(f"{name}\t{' '.join(DIGITS[labels[place]] for place in chosen)}\n")
            boxes.append(f"{name}\t{' '.join(where)}\n")
        (out / f"{part}.tsv").write_text("".join(rows), encoding="utf-8")
        (out / f"{part}-boxes.tsv").write_text("".join(boxes), encoding="utf-8")


PARTS = ("train", "dev", "test")


def conllu(path: Path) -> list[str]:
    """The sentences of a file, each as its lines."""
    return [block.strip("\n") for block in "\n".join(lines(path)).split("\n\n") if block.strip()]


def forms(block: str) -> list[str]:
    """The words of a sentence: what syntax sees, neither multiword tokens nor empty nodes."""
    rows = [line.split("\t") for line in block.split("\n") if not line.startswith("#")]
    return [row[1] for row in rows if row[0].isdigit()]


def ett(folder: Path, out: Path) -> None:
    """Zhou et al. 2021 (arXiv:2012.07436): twelve months to learn from, four each for validation and test."""
    out.mkdir(parents=True, exist_ok=True)
    rows = lines(folder / "ETTh1.csv.gz")[: 1 + 20 * 30 * 24]
    (out / "ett.csv").write_text("".join(f"{row}\n" for row in rows), encoding="utf-8")


if __name__ == "__main__":
    kinds = {"scan": scan, "shakespeare": shakespeare, "alibi": alibi, "elmo": elmo}
    kinds |= {"cmudict": cmudict, "scitldr": scitldr, "digits": digits, "strips": strips}
    kinds |= {"ett": ett, "mnist": mnist, "spoken": spoken}
    if len(sys.argv) != 4 or sys.argv[1] not in kinds:
        sys.exit(__doc__)
    kinds[sys.argv[1]](Path(sys.argv[2]), Path(sys.argv[3]))
