"""Small models and batches that all tests of this room share."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import pytest
import torch
from torch import Tensor

from unrolled.base.protocol import BEGIN, END, PAD
from unrolled.models import Seq2Seq

sys.path.insert(0, str(Path(__file__).parent))  # for `small_parts`

SOURCE_VOCABULARY, TARGET_VOCABULARY = 11, 13


class Pairs(NamedTuple):
    source_ids: Tensor
    source_mask: Tensor
    target_ids: Tensor
    target_mask: Tensor


@pytest.fixture(scope="session")
def pairs() -> Callable[..., Pairs]:
    """Random pairs of the given lengths, BEGIN and END put in, padded as far as asked."""

    def make(source: list[int], target: list[int], seed: int = 0, padding: tuple[int, int] = (0, 0)) -> Pairs:
        draw = torch.Generator().manual_seed(seed)
        sides = []
        for lengths, vocabulary, more, begin in (
            (source, SOURCE_VOCABULARY, padding[0], []),
            (target, TARGET_VOCABULARY, padding[1], [BEGIN]),
        ):
            rows = [
                [*begin, *torch.randint(4, vocabulary, (length,), generator=draw).tolist(), END] for length in lengths
            ]
            longest = max(map(len, rows)) + more
            sides.append(torch.tensor([row + [PAD] * (longest - len(row)) for row in rows]))
            sides.append(torch.tensor([[place < len(row) for place in range(longest)] for row in rows]))
        return Pairs(*sides)

    return make


@pytest.fixture(scope="session")
def small() -> Callable[..., Seq2Seq]:
    """A model with sizes 2, 3, 5, 7 in evaluation mode, its weights larger than at the start so that steps differ."""

    def make(seed: int = 0, double: bool = True, **settings: object) -> Seq2Seq:
        torch.manual_seed(seed)
        model = Seq2Seq(SOURCE_VOCABULARY, TARGET_VOCABULARY, **{"embedding_size": 5, "dropout": 0.0, **settings})
        with torch.no_grad():
            for weight in model.parameters():
                weight.copy_(torch.randn_like(weight) * 0.7)
            for table in (model.source_embedding, model.target_embedding):
                table.weight[PAD] = 0
        return (model.double() if double else model).eval()

    return make
