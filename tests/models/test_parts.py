"""Every part's formula gives the parameters that torch counts."""

from __future__ import annotations

import re

import pytest
import torch
from small_parts import DECODERS as SMALL_DECODERS
from small_parts import ENCODERS as SMALL_ENCODERS
from torch import nn

from unrolled.layers import ATTENTIONS
from unrolled.models import Piece, Seq2Seq, parts
from unrolled.tasks import TASKS
from unrolled.workshop.plan import layers_of, plan, preset_names

CELLS = ("elman", "lstm", "gru")


def value(piece: Piece) -> int:
    """The formula of a piece with its sizes put in."""
    text = piece.formula.replace("²", "**2").replace("·", "*")
    text = re.sub(r"(?<=[a-z\d)])(?=[a-z(])", "*", text)
    return eval(text, {"__builtins__": {}}, dict(piece.sizes)) if text else 0


def check(piece: Piece) -> None:
    assert piece.total == value(piece) + sum(part.total for part in piece.parts), piece
    for part in piece.parts:
        check(part)


def leaves(piece: Piece) -> list[Piece]:
    """The parts that hold parameters themselves."""
    own = [piece] if piece.formula else []
    return own + [leaf for part in piece.parts for leaf in leaves(part)]


def find(piece: Piece, name: str) -> Piece:
    return next(part for part in piece.parts if part.name == name)


def whole(model: nn.Module) -> Piece:
    """The tree of a model, checked: every formula is right, and together they give what torch counts."""
    tree = parts(model)
    check(tree)
    assert tree.total == sum(weight.numel() for weight in model.parameters())
    return tree


@pytest.mark.parametrize("decoder", list(SMALL_DECODERS))
@pytest.mark.parametrize("encoder", list(SMALL_ENCODERS))
def test_every_encoder_and_decoder_has_its_formulas(encoder: str, decoder: str) -> None:
    tree = whole(Seq2Seq(11, 13, embedding_size=5, encoder=SMALL_ENCODERS[encoder], decoder=SMALL_DECODERS[decoder]))
    assert not [piece for piece in leaves(tree) if not any(map(str.isalpha, piece.formula))]


@pytest.mark.parametrize("preset", preset_names())
def test_a_preset_is_counted_by_formula(preset: str) -> None:
    with torch.device("meta"):
        settings = plan(layers_of(preset)).settings
        whole(TASKS.build(settings["task"]).sketch(settings, 8000, 8000)[0])


def test_copying_has_a_formula() -> None:
    tree = whole(Seq2Seq(11, 13, embedding_size=5, copy=True))
    assert find(tree, "pointer").total == 128 + 1


@pytest.mark.parametrize("tie", ["none", "decoder", "all"])
@pytest.mark.parametrize("decoder", ["fixed", "gnmt", "query_after", "query_before"])
@pytest.mark.parametrize("cell", CELLS)
def test_formulas_give_the_counted_parameters(cell: str, decoder: str, tie: str) -> None:
    settings = {"kind": decoder, "cell": {"kind": cell, "hidden_size": 3}, "layers": 2}
    model = Seq2Seq(13, 13, embedding_size=5, decoder=settings, encoder={"kind": "rnn", "layers": 2}, tie=tie)
    tree = whole(model)
    assert {"source_embedding", "encoder", "bridge", "decoder", "output"} <= {part.name for part in tree.parts}


VARIANTS = (
    {"kind": "additive", "normalised": True},
    {"kind": "bilinear", "reach": "local_p"},
    {"kind": "bilinear", "coverage": "sum"},
    {"kind": "bilinear", "coverage": {"kind": "sum", "fertility": 2.0}},
    {"kind": "dot", "coverage": "neural"},
)


@pytest.mark.parametrize("attention", [*ATTENTIONS, *VARIANTS], ids=str)
def test_every_attention_has_a_formula(attention: str | dict) -> None:
    attention = {"kind": "multi_head", "heads": 3} if attention == "multi_head" else attention
    assert not [piece for piece in leaves(whole(ATTENTIONS.build(attention, 3, 3))) if piece.formula.isdigit()]


@pytest.mark.parametrize("cell, gates", [("elman", 1), ("gru", 3), ("lstm", 4)])
def test_a_cell_shows_the_formula_of_its_paper(cell: str, gates: int) -> None:
    encoder = {"kind": "rnn", "cell": {"kind": cell, "hidden_size": 1000}, "bidirectional": False}
    model = Seq2Seq(11, 13, embedding_size=620, encoder=encoder)
    piece = find(find(find(parts(model), "encoder"), "recurrent"), "cells.0")
    assert piece.formula == ("" if gates == 1 else f"{gates}") + ("(mn + n² + n)" if gates > 1 else "mn + n² + n")
    assert piece.sizes == {"m": 620, "n": 1000}
    assert piece.total == gates * (620 * 1000 + 1000**2 + 1000)


def test_tied_weights_are_counted_once() -> None:
    tree = parts(
        Seq2Seq(13, 13, embedding_size=5, tie="all", decoder={"kind": "fixed", "readout": "tanh", "readout_size": 5})
    )
    assert find(tree, "source_embedding").total == 65
    assert find(tree, "output").total == 13
    assert "target_embedding" not in {part.name for part in tree.parts}


def test_a_part_without_a_formula_shows_its_weights_sizes() -> None:
    tree = parts(nn.Bilinear(2, 3, 5), name="mine")
    assert (tree.name, tree.kind, tree.formula, tree.total) == ("mine", "Bilinear", "5·2·3 + 5", 35)
