"""Running text in blocks: all of it, in every epoch in another order, each with a seed of its own."""

import numpy as np
import pytest

from unrolled.base.protocol import BEGIN
from unrolled.data.blocks import Blocks
from unrolled.data.store import Store

ROWS = [[BEGIN, 4, 5, 6], [7, 8], [BEGIN, 9], [BEGIN, 4, 4, 4, 5]]


@pytest.fixture
def store(tmp_path):
    return Store.build(
        tmp_path, {"text": iter(ROWS)}, places=iter([1, 2, 5, 9]), vocabulary_sizes={"text": 10}, fingerprint="x"
    )


@pytest.mark.parametrize("size", [1, 3, 5, 13, 100])
@pytest.mark.parametrize("shuffle", [False, True])
def test_every_symbol_comes_once_an_epoch(store, size, shuffle):
    blocks = Blocks(store, size=size, seed=7, shuffle=shuffle, name="t.txt")
    whole = [one for row in ROWS for one in row]
    for epoch in range(2):
        plan = blocks.plan(epoch)
        read = {int(rows[0]) % blocks.count: blocks.load(rows).ids.tolist() for rows in plan}
        assert [one for place in sorted(read) for one in read[place]] == whole and len(blocks) == len(whole)
        assert all(np.array_equal(one, two) for one, two in zip(plan, blocks.plan(epoch), strict=True))
    seeds = {int(blocks.load(rows).seed) for epoch in range(3) for rows in blocks.plan(epoch)}
    assert len(seeds) == 3 * blocks.count and min(seeds) >= 0
    again = Blocks(store, size=size, seed=7, shuffle=shuffle, name="t.txt")
    assert {int(again.load(rows).seed) for epoch in range(3) for rows in again.plan(epoch)} == seeds
    assert blocks.remarks() == ["3 texts, 10 words and marks."]


def test_blocks_are_named_by_the_line_where_they_begin(store):
    blocks = Blocks(store, size=5, seed=0, shuffle=False, name="t.txt")
    assert blocks.places(np.array([0, 1, 2, 3])) == ["t.txt:1", "t.txt:2", "t.txt:9", "t.txt:1"]
    assert blocks.load(blocks.longest()).ids.dtype.itemsize == 4
