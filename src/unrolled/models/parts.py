"""A model as a tree of parts, each with its number of parameters and the formula that gives it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple, cast

from torch import nn
from torch.nn.utils import parametrize

from unrolled.layers import Cell, Embedding
from unrolled.layers.attention import Additive, Bilinear, Concat, Location
from unrolled.layers.attention.coverage import NeuralCoverage, SumCoverage
from unrolled.layers.attention.reach import LocalPredictive
from unrolled.models.output import Output
from unrolled.models.positions import Learned


class Piece(NamedTuple):
    """A part of a model. ``formula`` with ``sizes`` put in is what it holds itself, ``total`` that and its parts'."""

    name: str  # where it stands, e.g. "encoder" or "cells.0"
    kind: str  # its class, e.g. "LSTM"
    total: int  # parameters, each counted where it is met first, so that tied ones count once
    formula: str  # e.g. "4(mn + n² + n)"; empty where the part holds none itself
    sizes: Mapping[str, int]  # the letters of the formula, e.g. {"m": 620, "n": 1000}
    parts: tuple[Piece, ...]


def parts(model: nn.Module, name: str = "model") -> Piece:
    """The tree of ``model``; parts without parameters are left out."""
    return _piece(model, name, set())


def _piece(module: nn.Module, name: str, seen: set[int]) -> Piece:
    own = [weight for weight in _weights(module) if id(weight) not in seen]
    seen.update(map(id, own))
    formula, sizes = _formula(module) if own else ("", {})
    below = tuple(_piece(child, place, seen) for place, child in _children(module))
    total = sum(weight.numel() for weight in own) + sum(piece.total for piece in below)
    kind = parametrize.type_before_parametrizations(module).__name__
    return Piece(name, kind, total, formula, sizes, tuple(piece for piece in below if piece.total))


def _weights(module: nn.Module) -> list[nn.Parameter]:
    """The module's own, among them what a weight is made of (length and direction, `weight_norm`)."""
    own = list(module.parameters(recurse=False))
    if parametrize.is_parametrized(module):
        own += cast(nn.ModuleDict, module.parametrizations).parameters()
    return own


def _children(module: nn.Module) -> list[tuple[str, nn.Module]]:
    """The children by name, a list's members as ``list.0``, ``list.1``."""
    found: list[tuple[str, nn.Module]] = []
    for name, child in module.named_children():
        if name == "parametrizations":
            continue
        members = child.named_children() if isinstance(child, nn.ModuleList) else [("", child)]
        found += [(f"{name}.{place}" if place else name, member) for place, member in members]
    return found


def _formula(module: nn.Module) -> tuple[str, Mapping[str, int]]:
    for kind, describe in FORMULAS.items():
        if isinstance(module, kind):
            return describe(module)
    shapes = [weight.shape for weight in module.parameters(recurse=False)]
    return " + ".join("·".join(map(str, shape)) or "1" for shape in shapes), {}


def _linear(module: nn.Linear) -> tuple[str, Mapping[str, int]]:
    lengths = parametrize.is_parametrized(module)
    rows = (module.bias is not None) + lengths
    formula = "mn" + ("", " + n", " + 2n")[rows]
    return formula, {"m": module.in_features, "n": module.out_features}


def _additive(module: Additive) -> tuple[str, Mapping[str, int]]:
    sizes = {"a": module.hidden_size, "q": module.query_size, "m": module.memory_size}
    return "a(q + m + 1)" + ("" if module.scale is None else " + a + 1"), sizes


def _concat(module: Concat) -> tuple[str, Mapping[str, int]]:
    hidden, _ = module.weight.shape
    return "a(q + m + 1)", {"a": hidden, "q": module.query_size, "m": module.memory_size}


def _sum_coverage(module: SumCoverage) -> tuple[str, Mapping[str, int]]:
    fertile = {} if module.words is None else {"m": module.words.shape[1]}
    return "k + m" if fertile else "k", {"k": len(module.weight), **fertile}


def _output(module: Output) -> tuple[str, Mapping[str, int]]:
    vocabulary, size = module.weight.shape
    return ("v", {"v": vocabulary}) if module.tied else ("v(n + 1)", {"v": vocabulary, "n": size})


FORMULAS: dict[type[nn.Module], Callable[[Any], tuple[str, Mapping[str, int]]]] = {
    Cell: lambda cell: (cell.formula, cell.letters),
    Embedding: lambda table: ("vn", {"v": len(table.weight), "n": table.size}),
    Additive: _additive,
    Concat: _concat,
    Location: lambda attention: ("pq", {"p": len(attention.weight), "q": attention.query_size}),
    LocalPredictive: lambda reach: ("q² + q", {"q": len(reach.vector)}),
    SumCoverage: _sum_coverage,
    NeuralCoverage: lambda coverage: ("ks", {"k": len(coverage.weight), "s": coverage.size}),
    Bilinear: lambda attention: ("qm", {"q": attention.query_size, "m": attention.memory_size}),
    Output: _output,
    Learned: lambda table: ("tn", {"t": table.weight.shape[0], "n": table.weight.shape[1]}),
    nn.LayerNorm: lambda norm: ("2n", {"n": norm.normalized_shape[0]}),
    nn.Linear: _linear,
}
"""What each kind of part holds; a kind that is not here shows the product of its weights' sizes."""
