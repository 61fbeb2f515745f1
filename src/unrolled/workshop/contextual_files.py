"""Vectors of the words of lines, in a file: arrays for programs, or a line of JSON for each line of text."""

from __future__ import annotations

import io
import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from unrolled.base.errors import UsageError
from unrolled.base.files import write_beside

ENDINGS = (".npz", ".jsonl")


class Read(Protocol):
    """A line's words and the vectors of each, of all layers."""

    @property
    def words(self) -> list[str]: ...

    @property
    def spans(self) -> list[tuple[int, int]]: ...

    @property
    def vectors(self) -> np.ndarray: ...


def check_ending(path: Path) -> None:
    """UsageError for a file that is neither kind."""
    if path.suffix not in ENDINGS:
        raise UsageError(f"{path}: ends in '{path.suffix}'; vectors of words in lines are written as .npz or .jsonl.")


def chosen(vectors: np.ndarray, layer: str) -> np.ndarray:
    """Of ``vectors`` [words, layers, size] the ``mean``, ``all``, or the layer of that number."""
    if layer == "all":
        return vectors
    if layer == "mean":
        return np.asarray(vectors.mean(axis=1))
    count = vectors.shape[1]
    if not layer.isdecimal() or int(layer) >= count:
        raise UsageError(f"embed: --layer {layer} was given; it is mean, all, or a number from 0 to {count - 1}.")
    return np.asarray(vectors[:, int(layer)])


def write(path: Path, lines: Iterable[Read], layer: str) -> tuple[int, int]:
    """(lines, words) written, whole or not at all.

    An .npz holds ``words`` [words] of all lines, one after the other, ``vectors`` [words, size] or, of all layers,
    [words, layers, size], and ``offsets`` [lines + 1]: those of a line are from its offset to the next.
    """
    check_ending(path)
    if path.suffix == ".jsonl":
        rows = [json.dumps(tree(number, one, layer), ensure_ascii=False) for number, one in enumerate(lines)]
        write_beside(path, "".join(f"{row}\n" for row in rows).encode())
        return len(rows), sum(len(json.loads(row)["words"]) for row in rows)
    words: list[str] = []
    offsets, blocks = [0], []
    for one in lines:
        words += one.words
        offsets.append(len(words))
        blocks.append(chosen(one.vectors, layer))
    file = io.BytesIO()
    vectors = np.concatenate(blocks) if blocks else np.zeros((0, 0), np.float32)
    np.savez_compressed(file, vectors=vectors, words=np.array(words, dtype=np.str_), offsets=np.array(offsets))
    write_beside(path, file.getvalue())
    return len(offsets) - 1, len(words)


def tree(number: int, one: Read, layer: str) -> Mapping[str, Any]:
    """A line as JSON knows it."""
    spans: Sequence[Sequence[int]] = [list(span) for span in one.spans]
    return {"line": number, "words": one.words, "spans": spans, "vectors": chosen(one.vectors, layer).tolist()}
