"""Vectors out of a trained model: of its words, and one of each line; in memory and in files."""

from __future__ import annotations

import io
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from unrolled.base.errors import UsageError, known
from unrolled.base.files import write_beside
from unrolled.base.protocol import SPECIALS
from unrolled.data.grouping import by_length
from unrolled.data.vectors import Vectors
from unrolled.tasks import Task
from unrolled.tasks.vectors import sides
from unrolled.text.padding import pad

if TYPE_CHECKING:
    from unrolled.tasks.vectors import Side

Kind = Literal["word2vec", "binary", "glove"]

WORDS: dict[str, Kind] = {".txt": "word2vec", ".vec": "word2vec", ".bin": "binary", ".glove": "glove"}
"""The format of words' vectors by the ending of a file, before .gz."""

LINES = (".npz", ".tsv")
"""Endings of files of one vector a line."""

TOGETHER = 4096
"""Padded symbols that go through a network at once."""


def word_vectors(task: Task[Any], text: Any, network: Any, column: str | None) -> Vectors:
    """The vectors of the words of ``column`` (None: the first that has any), special symbols left out.

    Where words after a space are other symbols than words without, the former are taken. Subwords and letters go by
    the names of their symbols. UsageError where the task has no embedding, or none of this column.
    """
    from unrolled.layers import Embedding

    found = {side.column: side for side in sides(task, text) if isinstance(side.embedding(network), Embedding)}
    if not found:
        raise UsageError(
            "embed: this model has no vectors of words by themselves. Give it lines to read: embed MODEL FILE."
        )
    if column is not None and column not in found:
        raise UsageError(f"embed: no side is called '{column}'. {known(column, found)}")
    side = found[column] if column is not None else next(iter(found.values()))
    rows = _rows(side)
    table = side.embedding(network).table().float().cpu().numpy()
    return Vectors(list(rows), table[text.network_ids(list(rows.values()))])


def _rows(side: Side) -> dict[str, int]:
    """The symbol of each word."""
    tokenizer, rows = side.tokenizer, dict[str, int]()
    words = "vectors" in tokenizer.settings
    for symbol, name in enumerate(tokenizer.vocabulary):
        word = tokenizer.surface(name) if words else name
        if symbol >= len(SPECIALS) and word.strip() and (word not in rows or name != word):
            rows[word] = symbol
    return rows


def kind_of(path: Path, chosen: str | None) -> Kind:
    """The format of a file of words' vectors, as ``chosen`` or by its ending."""
    formats: list[Kind] = sorted(set(WORDS.values()))
    if chosen is not None:
        for kind in formats:
            if kind == chosen:
                return kind
        raise UsageError(f"embed: no kind of file is called '{chosen}'. {known(chosen, formats)}")
    ending = Path(path.stem).suffix if path.suffix == ".gz" else path.suffix
    if ending not in WORDS:
        raise UsageError(
            f"{path}: ends in '{ending}', which is no file of words' vectors. Known: {', '.join(WORDS)} (also .gz); or "
            f"say --kind {', '.join(formats)}."
        )
    return WORDS[ending]


def check_ending(path: Path) -> None:
    """UsageError for a file that one vector a line is not written as."""
    if path.suffix not in LINES:
        raise UsageError(f"{path}: ends in '{path.suffix}'; one vector a line is written as {' or '.join(LINES)}.")


def write_lines(path: Path, blocks: Iterable[np.ndarray]) -> tuple[int, int]:
    """One vector a line, as text with tabs or as the array ``vectors`` [lines, size] of an .npz; (lines, size)."""
    found = [np.zeros((0, 0), np.float32), *blocks]
    vectors = np.concatenate(found[1:]) if len(found) > 1 else found[0]
    if path.suffix == ".npz":
        file = io.BytesIO()
        np.savez_compressed(file, vectors=vectors)
        write_beside(path, file.getvalue())
    else:
        write_beside(path, "".join(tabbed(row) + "\n" for row in vectors).encode())
    return vectors.shape[0], vectors.shape[1]


def tabbed(row: np.ndarray) -> str:
    """A vector as text that gives it back bit for bit."""
    return "\t".join(str(number) for number in row.astype(np.float32))


def line_vectors(
    network: Any,
    rows: Sequence[Any],
    *,
    device: Any,
    padded: Callable[[Sequence[Any]], tuple[np.ndarray, np.ndarray]] = pad,
    positions: Callable[[Any], int] = len,
) -> np.ndarray:
    """Float32 [rows, size]: ``network.vector`` of each row, whatever the order of the rows.

    A row is symbols, one at least; or what ``padded`` puts side by side, each of so many ``positions``.
    """
    import torch

    found: list[Any] = [None] * len(rows)
    for group in by_length([positions(row) for row in rows], TOGETHER):
        given, mask = padded([rows[row] for row in group])
        with torch.inference_mode():
            said = network.vector(torch.from_numpy(given).to(device), torch.from_numpy(mask).to(device))
        for row, vector in zip(group, said.float().cpu().numpy(), strict=True):
            found[row] = vector
    return np.stack(found) if found else np.zeros((0, 0), np.float32)
