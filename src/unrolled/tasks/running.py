"""Running text as rows of a store: pieces of documents as symbols, BEGIN before a document and END after one."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import islice, tee
from pathlib import Path
from typing import TYPE_CHECKING

from unrolled.base.protocol import BEGIN, END
from unrolled.data.documents import Documents, Piece, pieces
from unrolled.data.parts import Part

if TYPE_CHECKING:
    from unrolled.data.store import Store

CHUNK = 4096
"""Pieces of text that are encoded together."""

Encode = Callable[[Sequence[str]], list[list[int]]]


def encoded_pieces(
    part: Part, documents: Documents, encode: Encode, *, ends: bool
) -> Iterator[tuple[Piece, list[int]]]:
    """Each piece of a part's text with its symbols, BEGIN before a document and, to know where it ``ends``, END after
    one."""
    stream = pieces(part, documents)
    while found := list(islice(stream, CHUNK)):
        rows = encode([piece.text for piece in found])
        for piece, row in zip(found, rows, strict=True):
            yield piece, [*[BEGIN][: piece.begins], *row, *[END][: piece.ends and ends]]


def store_pieces(folder: Path, encoded: Iterator[tuple[Piece, list[int]]], vocabulary_size: int, mark: str) -> Store:
    """Pieces as the rows of a store in ``folder``; those that are there with the same ``mark`` are kept."""
    from unrolled.data.store import Store

    places, rows = tee(encoded)
    return Store.build(
        folder,
        {"text": (row for _, row in rows)},
        places=(piece.place for piece, _ in places),
        vocabulary_sizes={"text": vocabulary_size},
        fingerprint=mark,
    )
