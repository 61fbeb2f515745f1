"""Streams of running text: every symbol once, in its document's order, states handed on where they should be."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from unrolled.base.errors import SettingsError
from unrolled.base.protocol import BEGIN
from unrolled.data.store import Store
from unrolled.data.streams import Streams, keep, resumed

FIRST = 10


def stored(folder, sizes, cut):
    """Documents of the symbols FIRST, FIRST + 1, …, each in two rows where it is long enough."""
    rows, symbol = [], FIRST
    for size in sizes:
        ids = [BEGIN, *range(symbol, symbol + size)]
        symbol += size
        rows += [ids[:cut], ids[cut:]] if len(ids) > cut else [ids]
    return Store.build(folder, {"text": rows}), symbol


@settings(max_examples=60)
@given(
    sizes=st.lists(st.integers(1, 13), min_size=1, max_size=6),
    cut=st.integers(1, 9),
    streams=st.integers(1, 5),
    steps=st.integers(1, 7),
    shuffle=st.booleans(),
)
def test_every_symbol_is_predicted_once_from_the_one_before(sizes, cut, streams, steps, shuffle, tmp_path_factory):
    store, end = stored(tmp_path_factory.mktemp("store"), sizes, cut)
    made = Streams(store, streams=streams, steps=steps, shuffle=shuffle)
    assert len(made) == sum(sizes)
    for epoch in range(2):
        predicted, waiting = [], {}
        for rows in made.plan(epoch):
            batch = made.load(rows)
            left = {}
            assert (batch.mask.sum(1) > 0).all() and batch.ids.shape[1] <= steps
            for piece in range(len(batch.ids)):
                real = batch.mask[piece]
                ids, targets = batch.ids[piece][real].tolist(), batch.targets[piece][real].tolist()
                assert ids[1:] == targets[:-1] and targets == list(range(targets[0], targets[0] + len(targets)))
                assert ids[0] in (BEGIN, targets[0] - 1)
                if batch.comes[piece] >= 0:
                    assert waiting.pop(int(batch.comes[piece])) == ids[0]  # goes on where the batch before ended
                if batch.goes[piece] >= 0:
                    left[int(batch.goes[piece])] = targets[-1]
                predicted += targets
            assert not waiting  # what was left is taken up in the very next batch
            waiting = left
            assert [int(row) for row in dict.fromkeys(batch.rows.tolist())] == rows.tolist()
            assert len(made.places(rows)) == len(rows)
        assert not waiting and sorted(predicted) == list(range(FIRST, end))


@settings(max_examples=20)
@given(sizes=st.lists(st.integers(1, 13), min_size=2, max_size=6), processes=st.integers(2, 3))
def test_processes_share_a_batch_and_keep_their_streams(sizes, processes, tmp_path_factory):
    store, _ = stored(tmp_path_factory.mktemp("store"), sizes, 4)
    made = Streams(store, streams=4, steps=3)
    owners = {}
    for rows in made.plan(0):
        whole = sorted(made.load(rows).targets.flatten().tolist())
        shares = [rows[rank::processes] for rank in range(processes)]
        parts = [made.load(share) for share in shares if len(share)]
        assert sorted(x for part in parts for x in part.targets.flatten().tolist() if x) == [x for x in whole if x]
        if len(rows) == made.streams:
            for rank, share in enumerate(shares):
                for row in share:
                    assert owners.setdefault(int(row) % made.streams, rank) == rank


def test_an_epoch_is_a_function_of_seed_and_number(tmp_path):
    store, _ = stored(tmp_path, [5, 3, 8, 2, 9], 4)

    def order(seed, epoch):
        made = Streams(store, streams=2, steps=4, seed=seed)
        return [made.load(rows).targets.tolist() for rows in made.plan(epoch)]

    assert order(1, 0) == order(1, 0) != order(1, 1)
    assert order(1, 0) != order(2, 0)


def test_short_text_is_read_in_fewer_streams(tmp_path):
    store, _ = stored(tmp_path, [10], 4)
    made = Streams(store, streams=64, steps=4, shuffle=False)
    assert made.streams == 2 and len(made.plan(0)) == 2
    assert len(Streams(store, streams=64, steps=400).plan(0)) == 1
    assert len(made.longest()) == 2
    with pytest.raises(SettingsError, match="steps = 0 was given"):
        Streams(store, streams=1, steps=0)


def test_a_state_is_handed_on_by_stream_and_a_batch_run_twice_finds_it_again(tmp_path):
    store, _ = stored(tmp_path, [6, 5, 9], 4)
    made = Streams(store, streams=2, steps=3, shuffle=False)
    carried = {}
    for turn, rows in enumerate(made.plan(0)):
        batch = made.load(rows)
        first = (torch.full((len(batch.ids), 1), -1.0),)
        for _ in range(2):
            state = resumed(batch, first, carried)[0]
            for piece in range(len(batch.ids)):
                wanted = -1.0 if batch.comes[piece] < 0 else float(batch.ids[piece, 0])
                assert float(state[piece, 0]) == wanted, turn
            last = batch.targets.gather(1, batch.mask.sum(1, keepdim=True) - 1).float().requires_grad_()
            keep(batch, (last,), carried)
        assert not any(tensor.requires_grad for tensor in carried.values())
    other = Streams(store, streams=3, steps=3, shuffle=False)
    batch = other.load(other.plan(0)[1])
    first = (torch.full((len(batch.ids), 1), -1.0),)
    assert torch.equal(resumed(batch, first, carried)[0], first[0])  # other streams than those that were carried


def test_where_a_row_begins_is_told_by_line(tmp_path):
    store = Store.build(tmp_path, {"text": [[BEGIN, 10, 11], [12, 13], [14, 15, 16]]}, places=[3, 7, 9])
    made = Streams(store, streams=1, steps=3, shuffle=False, name="a.txt")
    assert [made.places(rows) for rows in made.plan(0)] == [["a.txt:3"], ["a.txt:7"], ["a.txt:9"]]
    assert np.concatenate(made.plan(0)).dtype == np.int64
