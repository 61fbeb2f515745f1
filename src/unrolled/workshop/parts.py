"""The parts of a network as rows of a table: path, sizes, parameters and the formula that gives them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple


class PartRow(NamedTuple):
    """One part. ``parameters`` counts what it holds with everything below it, ``own`` what it holds itself."""

    path: str
    note: str  # class and sizes, e.g. "GRU m=620 n=1000"
    parameters: int
    formula: str
    depth: int
    own: int


def flat_parts(network: Any) -> list[PartRow]:
    """Every part that holds parameters, from the whole down."""
    from unrolled.models.parts import parts

    return list(_rows(parts(network), "", 0))


def _rows(piece: Any, above: str, depth: int) -> Iterator[PartRow]:
    path = f"{above}.{piece.name}" if above else piece.name
    sizes = " ".join(f"{letter}={size}" for letter, size in piece.sizes.items())
    own = piece.total - sum(part.total for part in piece.parts)
    yield PartRow(path, f"{piece.kind} {sizes}".strip(), piece.total, piece.formula, depth, own)
    for part in piece.parts:
        yield from _rows(part, "" if depth == 0 else path, depth + 1)
