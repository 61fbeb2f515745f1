"""What every model promises, checked on one model, here and on this device."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from unrolled.base.errors import DataError
from unrolled.base.protocol import BEGIN, END, SPECIALS
from unrolled.text.featured import Featured, joined

LONGEST = 40
"""Symbols of an output that are compared: what a model that loops says after them lets float32 drift, step by step."""


class Promise(NamedTuple):
    """One promise, whether it holds (None: there was nothing to see it by), and what was measured."""

    name: str
    holds: bool | None
    detail: str


def reloaded(model: Any) -> Any:
    """The model as it comes back when it is saved and loaded, on its device."""
    with tempfile.TemporaryDirectory() as folder:
        return type(model).load(model.save(Path(folder) / "model"), device=str(model.device))


def near(name: str, found: Sequence[np.ndarray], wanted: Sequence[np.ndarray], most: float, what: str) -> Promise:
    """That two ways to the same arrays lead less than ``most`` apart; ``what``: what their numbers are called."""
    gap = max((float(np.abs(one - two).max()) for one, two in zip(found, wanted, strict=True) if two.size), default=0.0)
    return Promise(name, gap < most, f"{what} differ by {gap:.1e} at most")


def check_promises(model: Any, lines: Sequence[Any]) -> list[Promise]:
    """Every promise of a ``model`` (a pipeline.Writer) on ``lines``, its sources."""
    lines = list(lines)
    if not any(model.text.positions(row) for row in model.text.read(lines)):
        raise DataError("selfcheck: no line holds a symbol. Give some text, or no file: then lines are made up.")
    together = model.translations(lines, model.searching(beam=1), batch=len(lines))
    return [
        _same_alone(model, lines, together),
        _same_in_any_order(model, lines, together),
        _same_under_padding(model, lines, together),
        _beam_of_one(model, lines, together),
        _beams_alone(model, lines),
        _step_is_whole_pass(model, together),
        _saved_is_loaded(model, lines, together),
    ]


def random_lines(model: Any, count: int) -> list[str]:
    """Lines of 1 to 20 symbols drawn from the source vocabulary, seed 1."""
    draw = np.random.default_rng(1)
    size = model.text.source.vocabulary_size
    first = len(SPECIALS) if size > len(SPECIALS) else 1
    ids = [draw.integers(first, size, size=int(draw.integers(1, 21))).tolist() for _ in range(count)]
    return [model.text.source.decode(row) or "a" for row in ids]


def longer_line(model: Any, line: str) -> str:
    """A source whose text is four times as long, with the features of ``line`` where it has some."""
    source = model.text.source
    text, *features = source.cells(line) if isinstance(source, Featured) else [line]
    return joined([" ".join([text] * 4), *features])


def _ids(found: Sequence[Any]) -> list[list[list[int]]]:
    return [[one.hypothesis.ids for one in line] for line in found]


def _compare(name: str, first: Sequence[Any], second: Sequence[Any]) -> Promise:
    same = sum(left == right for left, right in zip(_ids(first), _ids(second), strict=True))
    return Promise(name, same == len(first), f"{same} of {len(first)} lines give the same tokens")


def _same_alone(model: Any, lines: list[Any], together: list[Any]) -> Promise:
    alone = model.translations(lines, model.searching(beam=1), batch=1)
    return _compare("batch of 1 = batch of N", alone, together)


def _same_in_any_order(model: Any, lines: list[Any], together: list[Any]) -> Promise:
    order = np.random.default_rng(2).permutation(len(lines))
    found = model.translations([lines[row] for row in order], model.searching(beam=1), batch=7)
    return _compare(
        "any order of lines", [found[int(np.flatnonzero(order == row)[0])] for row in range(len(lines))], together
    )


def _same_under_padding(model: Any, lines: list[Any], together: list[Any]) -> Promise:
    """Every line beside one that is far longer, so that most of its row is padding."""
    long = model.longer(max(lines, key=len))
    found = [model.translations([line, long], model.searching(beam=1), batch=2)[0] for line in lines[:16]]
    return _compare("any padding", found, together[:16])


def _beam_of_one(model: Any, lines: list[Any], together: list[Any]) -> Promise:
    changes = {"kind": "beam", "beam": 1, "nbest": 1, "length_penalty": 0.0, "coverage_penalty": 0.0}
    found = model.translations(lines, model.searching(changes=changes))
    return _compare("beam of 1 = argmax", found, together)


def _beams_alone(model: Any, lines: list[Any]) -> Promise:
    search = model.searching(beam=4, changes={"max_length": max(LONGEST, model.search.min_length)})
    return _compare(
        "beam: batch of 1 = batch of N", model.translations(lines, search, batch=1), model.translations(lines, search)
    )


def _step_is_whole_pass(model: Any, together: list[Any]) -> Promise:
    """Log-probabilities found step by step against one pass over the whole output."""
    import torch

    from unrolled.text.padding import pad

    pairs = [(one[0].source, one[0].hypothesis) for one in together if one and one[0].hypothesis.finished]
    if not pairs:
        return Promise("step by step = whole pass", None, "no finished output to compare")
    source, mask = model.text.padded([row for row, _ in pairs])
    target, target_mask = pad([[BEGIN, *hypothesis.ids, END] for _, hypothesis in pairs])
    tensors = [torch.from_numpy(array).to(model.device) for array in (source, mask, target, target_mask)]
    with torch.inference_mode():
        whole = model.network.log_probs(*tensors).cpu().numpy()
    steps = np.zeros_like(whole)
    for row, (_, hypothesis) in enumerate(pairs):
        steps[row, : len(hypothesis.token_log_probs)] = hypothesis.token_log_probs
    gap = float(np.abs(whole - steps)[:, :LONGEST].max())
    return Promise("step by step = whole pass", gap < 1e-3, f"log-probabilities differ by {gap:.1e} at most")


def _saved_is_loaded(model: Any, lines: list[Any], together: list[Any]) -> Promise:
    found = reloaded(model)
    return _compare("saved = loaded", found.translations(lines, found.searching(beam=1), batch=len(lines)), together)
