from typing import NamedTuple

import pytest
import torch

from unrolled.train.memory import Peak, cut, does_not_fit, move, rows


class Inner(NamedTuple):
    ids: torch.Tensor
    mask: torch.Tensor | None


def batch():
    ids = torch.arange(15).reshape(5, 3)
    return Inner(ids, None), {"mask": ids > 7, "name": "x"}, [ids[:, 0], torch.tensor(2.5)]


def test_a_tree_is_cut_by_rows():
    inner, named, listed = cut(batch(), 1, 3)
    assert isinstance(inner, Inner)
    assert inner.ids.tolist() == [[3, 4, 5], [6, 7, 8]]
    assert inner.mask is None
    assert named["mask"].tolist() == [[False] * 3, [False, False, True]]
    assert named["name"] == "x"
    assert listed[0].tolist() == [3, 6]
    assert listed[1].item() == 2.5
    assert rows(batch()) == 5
    assert rows((None, "x")) == 0


def test_a_tree_is_moved():
    moved = move(batch(), torch.device("meta"))
    assert moved[0].ids.device.type == moved[1]["mask"].device.type == "meta"


def test_what_says_that_memory_ran_out():
    with pytest.raises(RuntimeError) as caught:
        torch.empty(1 << 55)
    assert does_not_fit(caught.value)
    assert does_not_fit(torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2.00 GiB"))
    assert does_not_fit(MemoryError())
    assert not does_not_fit(RuntimeError("mat1 and mat2 shapes cannot be multiplied"))
    assert not does_not_fit(ValueError("out of memory"))


def test_the_peak_is_seen_while_it_lasts():
    with Peak(torch.device("cpu")) as before:
        pass
    with Peak(torch.device("cpu")) as peak:
        block = torch.ones(40_000_000)
        block.mul_(2)
        del block
    assert peak.bytes - before.bytes > 100_000_000
