"""What a file that is not UTF-8 probably is, and the command that converts it."""

from __future__ import annotations

import shlex
from pathlib import Path

from unrolled.base.errors import DataError

BOM = b"\xef\xbb\xbf"

_MARKS = (
    (b"\xff\xfe\x00\x00", "UTF-32"),
    (b"\x00\x00\xfe\xff", "UTF-32"),
    (b"\xff\xfe", "UTF-16"),
    (b"\xfe\xff", "UTF-16"),
)

_FORMATS = (
    (b"PK\x03\x04", "a zip archive or a spreadsheet. Unpack it, or export the sheet as TSV or CSV"),
    (b"\xd0\xcf\x11\xe0", "an old Office document. Export the table as TSV or CSV"),
    (b"%PDF-", "a PDF document. Export its text"),
    (b"\x89PNG", "a PNG image"),
    (b"\xff\xd8\xff", "a JPEG image"),
    (b"BZh91AY&SY", "packed by bzip2. Unpack it with: bunzip2"),
    (b"\xfd7zXZ", "packed by xz. Unpack it with: unxz"),
    (b"\x28\xb5\x2f\xfd", "packed by zstd. Unpack it with: unzstd"),
    (b"SQLite format 3", "an SQLite database. Export the table as CSV"),
    (b"\x7fELF", "a program"),
    (b"ARROW1\x00", "an Arrow file. Save it as Parquet"),
    (b"PAR1\x15", "a Parquet file. Name it .parquet"),
    (b"\x1f\x8b", "packed by gzip twice. Unpack it once with: gunzip"),
)


def refuse_foreign(path: Path, head: bytes) -> None:
    """DataError where the first bytes are the mark of another encoding or of a binary format."""
    for mark, name in _MARKS:
        if head.startswith(mark):
            raise DataError(f"{path}: the file is {name}, not UTF-8. Convert it with: {command(path, name)}")
    for mark, name in _FORMATS:
        if head.startswith(mark):
            raise DataError(f"{path}: this is not text but {name}.")
    sample = head[:4000]
    if sample.count(0) * 3 > len(sample):
        wide = "UTF-16LE" if sample[1::2].count(0) >= sample[0::2].count(0) else "UTF-16BE"
        text = sample[: len(sample) // 2 * 2].decode(wide, "replace")
        if text.replace("\ufffd", "").isprintable() or "\n" in text or "\t" in text:
            raise DataError(f"{path}: the file looks like {wide}, not UTF-8. Convert it with: {command(path, wide)}")


def explain(path: Path, raw: bytes, error: UnicodeDecodeError) -> str:
    """The sentence for a line that is not UTF-8: the byte, where in the line, what it may be, how to convert."""
    at = error.start
    what = f"not UTF-8 (byte 0x{raw[at]:02X} at byte {at + 1} of the line)"
    name = likely(raw)
    if name is None:
        return f"{what}. Is this a text file? If so, save it as UTF-8."
    shown = raw[max(0, at - 12) : at + 8].decode(_CODEC[name], "replace")
    shown = "".join(letter if letter.isprintable() else " " for letter in shown).strip()
    return f"{what}. As {name} it reads '{shown}'; if that is right, convert the file with: {command(path, name)}"


def command(path: Path, encoding: str) -> str:
    """A shell line that writes the file anew in UTF-8."""
    old, packed = path.name, path.suffix.lower() == ".gz"
    plain = Path(old).with_suffix("") if packed else Path(old)
    new = shlex.quote(f"{plain.stem}.utf8{plain.suffix}")
    if packed:
        return f"gunzip -c {shlex.quote(old)} | iconv -f {encoding} -t UTF-8 > {new}"
    return f"iconv -f {encoding} -t UTF-8 {shlex.quote(old)} > {new}"


_CODEC = {
    "WINDOWS-1252": "cp1252",
    "WINDOWS-1251": "cp1251",
    "KOI8-R": "koi8-r",
    "SHIFT_JIS": "cp932",
    "EUC-JP": "euc-jp",
    "EUC-KR": "cp949",
    "GB18030": "gb18030",
}
"""iconv's names and Python's. Windows-1252 holds all of Latin-1's letters."""


def likely(raw: bytes) -> str | None:
    """The encoding whose reading of ``raw`` looks most like words, or None where none does.

    >>> likely("déjà vu".encode("latin-1"))
    'WINDOWS-1252'
    """
    sample = raw[:4000]
    scores = {name: _plausible(sample, codec) for name, codec in _CODEC.items()}
    best = max(scores, key=lambda name: scores[name])
    return best if scores[best] > 0.5 else None


def _plausible(sample: bytes, codec: str) -> float:
    """How much of what is not ASCII reads as letters of the script that ``codec`` is for: 0 to 1 and a little."""
    text = sample.decode(codec, "replace")
    foreign = [c for c in text if c > "\x7f"]
    if not foreign or sum(c < " " and c not in "\t\r\n" for c in text) * 20 > len(text):
        return 0.0
    if codec == "cp1252":
        letters = sum("À" <= c <= "ÿ" or c in "ŠšŽžŒœŸ«»‘’“”–—…€°" for c in foreign)
        return letters / len(foreign) * (1.0 if len(foreign) * 2 < len(text) else 0.4)
    if codec in ("cp1251", "koi8-r"):
        return (sum("а" <= c <= "я" or c == "ё" for c in foreign) + 0.5 * sum("А" <= c <= "Я" for c in foreign)) / len(
            foreign
        )
    if codec in ("cp932", "euc-jp"):
        kana, han = sum("ぁ" <= c <= "ヿ" for c in foreign), sum("一" <= c <= "鿿" or c in "、。" for c in foreign)
        return (kana + han) / len(foreign) * (1.1 if kana else 0.5)
    if codec == "cp949":
        return 1.05 * sum("가" <= c <= "힣" for c in foreign) / len(foreign)
    return sum("一" <= c <= "鿿" or c in "，。、" for c in foreign) / len(foreign)
