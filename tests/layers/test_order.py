"""Where an order puts a batch's symbols, held to NumPy's sorting."""

import numpy as np
import pytest
import torch

from unrolled.layers.kernels.order import Order, Rows, order_of

CPU = torch.device("cpu")
LENGTHS = ([3, 1, 5, 5, 2, 3], [1], [4, 4, 4], [7, 2, 1], [1, 1, 6])


@pytest.mark.parametrize("lengths", LENGTHS)
def test_symbols_lie_step_by_step_the_longest_rows_first_and_equals_as_they_come(lengths):
    batch, time = len(lengths), max(lengths) + 2
    rows = np.argsort(-np.array(lengths), kind="stable")
    wanted = [row * time + step for step in range(max(lengths)) for row in rows if step < lengths[row]]
    turned = [
        row * time + lengths[row] - 1 - step for step in range(max(lengths)) for row in rows if step < lengths[row]
    ]
    order = order_of(torch.arange(time) < torch.tensor(lengths).unsqueeze(1), torch.zeros(batch, time, 1))
    positions = torch.arange(batch * time).view(batch, time, 1)
    assert order.pack(positions).flatten().tolist() == wanted
    assert order.turn(order.pack(positions)).flatten().tolist() == turned
    assert order.counts == [sum(length > step for length in lengths) for step in range(max(lengths))]
    assert (order.size, order.even) == (sum(lengths), len(set(lengths)) == 1)
    assert order.sort(torch.arange(batch)).tolist() == rows.tolist()
    assert order.unsort(torch.from_numpy(rows)).tolist() == list(range(batch))


@pytest.mark.parametrize("lengths", LENGTHS)
def test_a_row_finds_its_places_before_and_last(lengths):
    counts = Order(len(lengths), max(lengths), lengths, CPU).counts
    places = [(step, row) for step, count in enumerate(counts) for row in range(count)]
    rows = Rows(counts, CPU)
    assert rows.each.tolist() == [row for _, row in places]
    assert rows.before.tolist() == [places.index((step - 1, row)) for step, row in places if step]
    longest_first = sorted(lengths, reverse=True)
    assert rows.last.tolist() == [places.index((length - 1, row)) for row, length in enumerate(longest_first)]


def test_a_mask_that_lies_turned():
    mask = torch.tensor([[1, 1, 1], [1, 0, 0]], dtype=torch.bool)
    assert order_of(mask.t().contiguous().t(), torch.zeros(2, 3, 1)).counts == [2, 1, 1]
