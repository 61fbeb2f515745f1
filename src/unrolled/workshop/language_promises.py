"""What every language model promises, checked on one model, here and on this device."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from unrolled.base.errors import DataError
from unrolled.base.protocol import SPECIALS
from unrolled.tasks.generation import lead_in
from unrolled.tasks.language_scores import log_probs
from unrolled.workshop.promises import Promise, reloaded

LENGTH = 20
"""Symbols by which each text is continued."""


def check_promises(model: Any, lines: Sequence[str] | None = None, count: int = 64) -> list[Promise]:
    """Every promise on ``lines`` (none: random ones of the model's own symbols). ``model`` is a language model of
    pipeline's."""
    lines = random_lines(model, count) if lines is None else [line for line in lines if line.strip()]
    if not lines:
        raise DataError("selfcheck: no line holds a symbol. Give some text, or no file: then lines are made up.")
    argmax = replace(model.search, kind="argmax", nbest=1, max_length=LENGTH)
    together = model.continuations(lines, argmax)
    return [
        _compare("batch of 1 = batch of N", [model.continuations([line], argmax)[0] for line in lines], together),
        _any_order(model, lines, argmax, together),
        _compare(
            "beam of 1 = argmax",
            model.continuations(lines, replace(argmax, kind="beam", beam=1, length_penalty=0.0)),
            together,
        ),
        _steps(model, lines, together),
        _pieces(model, lines),
        _compare("saved = loaded", reloaded(model).continuations(lines, argmax), together),
    ]


def random_lines(model: Any, count: int) -> list[str]:
    """Lines of 1 to 20 symbols drawn from the vocabulary, seed 1."""
    draw = np.random.default_rng(1)
    size = model.text.vocabulary_size
    first = len(SPECIALS) + 1 if size > len(SPECIALS) + 1 else 1
    ids = [draw.integers(first, size, size=int(draw.integers(1, 21))).tolist() for _ in range(count)]
    return [model.text.decode(row) or "a" for row in ids]


def _compare(name: str, first: Sequence[Any], second: Sequence[Any]) -> Promise:
    same = sum(
        [one.hypothesis.ids for one in left] == [one.hypothesis.ids for one in right]
        for left, right in zip(first, second, strict=True)
    )
    return Promise(name, same == len(first), f"{same} of {len(first)} lines go on with the same symbols")


def _any_order(model: Any, lines: Sequence[str], search: Any, together: Sequence[Any]) -> Promise:
    order = np.random.default_rng(2).permutation(len(lines))
    found = model.continuations([lines[row] for row in order], search)
    back = np.argsort(order)
    return _compare("any order of lines", [found[place] for place in back], together)


def _steps(model: Any, lines: Sequence[str], together: Sequence[Any]) -> Promise:
    """Log-probabilities found step by step against one pass over the whole."""
    gap, ends = 0.0, model.task.ends
    for line, found in zip(lines, together, strict=True):
        one = found[0].hypothesis
        before = lead_in(model.text, line, ends=ends)
        if not one.ids:
            continue
        whole = log_probs(model.network, [[*before, *one.ids]], device=model.device, lead=len(before))[0]
        gap = max(gap, float(np.abs(whole - one.token_log_probs[: len(one.ids)]).max()))
    return Promise("step by step = whole pass", gap < 1e-3, f"log-probabilities differ by {gap:.1e} at most")


def _pieces(model: Any, lines: Sequence[str]) -> Promise:
    """A text read in two pieces, the state carried over, against the text read at once."""
    import torch

    ids = [one for line in lines for one in model.text.encode_ids([line])[0]][:200]
    whole = torch.tensor([[*lead_in(model.text, "", ends=True), *ids]], device=model.device)
    given, targets = whole[:, :-1], whole[:, 1:]
    mask = torch.ones_like(given, dtype=torch.bool)
    with torch.inference_mode():
        first = model.network.initial(1)
        once, _ = model.network.log_probs(given, mask, targets, first)
        parts, state = [], first
        for start, stop in ((0, len(ids) // 3 or 1), (len(ids) // 3 or 1, len(ids))):
            if stop > start:
                here = slice(start, stop)
                found, state = model.network.log_probs(given[:, here], mask[:, here], targets[:, here], state)
                parts.append(found)
    gap = float((torch.cat(parts, 1) - once).abs().max())
    return Promise("pieces with the state carried = whole text", gap < 1e-3, f"they differ by {gap:.1e} at most")
