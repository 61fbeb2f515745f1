"""What every registered attention, in every variant of its settings, must do."""

import typing

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from unrolled.base.errors import UsageError
from unrolled.base.settings import choices
from unrolled.layers import ATTENTIONS, Memory

ROWS, QUERIES, SOURCE, SIZE = 3, 2, 5, 4


def variants():
    """Each kind with its defaults, then with every other value of each closed choice."""
    for kind in ATTENTIONS:
        yield {"kind": kind}
        for name, (annotation, default) in choices(ATTENTIONS[kind]).items():
            if hasattr(annotation, "__metadata__"):
                continue
            values = (True, False) if annotation is bool else typing.get_args(annotation)
            yield from ({"kind": kind, name: value} for value in values if value != default)


every_attention = pytest.mark.parametrize("part", list(variants()), ids=lambda part: "-".join(map(str, part.values())))
some_lengths = st.lists(st.integers(1, SOURCE), min_size=ROWS, max_size=ROWS)


def build(part, dtype=torch.float64):
    torch.manual_seed(7)
    attention = ATTENTIONS.build(part, SIZE, SIZE).to(dtype)
    for weight in attention.parameters():
        torch.nn.init.normal_(weight, std=0.7)
    return attention


def example(lengths, dtype=torch.float64):
    torch.manual_seed(11)
    encoded, query = torch.randn(ROWS, SOURCE, SIZE, dtype=dtype), torch.randn(ROWS, QUERIES, SIZE, dtype=dtype)
    return encoded, torch.arange(SOURCE) < torch.tensor(lengths).unsqueeze(1), query


@every_attention
@settings(deadline=None, max_examples=10)
@given(lengths=some_lengths, fill=st.sampled_from([0.0, 1e6, -1e6]))
def test_weights_are_a_distribution_over_real_positions_and_padding_changes_nothing(part, lengths, fill):
    attention = build(part)
    encoded, mask, query = example(lengths)
    encoded.masked_fill_(~mask.unsqueeze(2), fill)
    context, weights, *_ = attention(query, attention.remember(encoded, mask))
    assert (weights >= 0).all()
    assert (weights.masked_select(~mask.unsqueeze(1)) == 0).all()
    torch.testing.assert_close(weights.sum(2), torch.ones(ROWS, QUERIES, dtype=torch.float64))
    for row, length in enumerate(lengths):
        alone = attention(query[row : row + 1], attention.remember(encoded[row : row + 1, :length]))
        torch.testing.assert_close(weights[row, :, :length], alone.weights[0], rtol=1e-11, atol=1e-11)
        torch.testing.assert_close(context[row], alone.context[0], rtol=1e-11, atol=1e-11)


@every_attention
def test_a_mask_with_holes_leaves_them_out(part):
    attention = build(part)
    encoded, _, query = example([5, 5, 5])
    mask = torch.tensor([[1, 0, 1, 0, 1], [0, 1, 1, 1, 0], [0, 0, 0, 0, 1]]).bool()
    context, weights, *_ = attention(query, attention.remember(encoded, mask))
    kept = attention(query[:1], attention.remember(encoded[:1, [0, 2, 4]]))
    assert (weights.masked_select(~mask.unsqueeze(1)) == 0).all()
    torch.testing.assert_close(context[0], kept.context[0], rtol=1e-11, atol=1e-11)
    torch.testing.assert_close(context[2], encoded[2, 4].expand(QUERIES, -1))


@every_attention
def test_one_query_equals_its_place_among_many(part):
    attention = build(part)
    encoded, mask, query = example([5, 3, 1])
    memory = attention.remember(encoded, mask)
    many = attention(query, memory)
    one = attention(query[:, 1], memory)
    assert one.context.shape == (ROWS, attention.context_size)
    torch.testing.assert_close(one.context, many.context[:, 1], rtol=1e-12, atol=1e-12)
    torch.testing.assert_close(one.weights, many.weights[:, 1])


@every_attention
@given(order=st.permutations(range(ROWS)))
@settings(deadline=None, max_examples=6)
def test_memory_rows_can_be_moved_and_repeated_by_index(part, order):
    attention = build(part)
    encoded, mask, query = example([5, 3, 1])
    memory = attention.remember(encoded, mask)
    rows = torch.tensor([*order, order[0]])
    moved = Memory(*(tensor.index_select(0, rows) for tensor in memory))
    torch.testing.assert_close(attention(query[rows], moved).context, attention(query, memory).context[rows])


@every_attention
def test_gradients_agree_with_finite_differences(part):
    attention = build(part)
    encoded, mask, query = example([5, 3, 1])

    def run(query, encoded, *weights):
        named = dict(zip([name for name, _ in attention.named_parameters()], weights, strict=True))
        whole = Whole(attention)
        return torch.func.functional_call(
            whole, {f"attention.{name}": w for name, w in named.items()}, (query, encoded, mask)
        )

    given_tensors = (query, encoded, *(weight.detach() for weight in attention.parameters()))
    assert torch.autograd.gradcheck(
        run, tuple(tensor.clone().requires_grad_() for tensor in given_tensors), fast_mode=True
    )


class Whole(torch.nn.Module):
    """Remember and attend as one function of all that is differentiable."""

    def __init__(self, attention):
        super().__init__()
        self.attention = attention

    def forward(self, query, encoded, mask):
        return self.attention(query, self.attention.remember(encoded, mask))[:2]


@every_attention
def test_bfloat16_autocast_keeps_float32_weights(part):
    torch.manual_seed(7)
    attention = ATTENTIONS.build(part, SIZE, SIZE)
    encoded, mask, query = example([5, 3, 1], torch.float32)
    exact = attention(query, attention.remember(encoded, mask))
    with torch.autocast("cpu", torch.bfloat16):
        near = attention(query, attention.remember(encoded, mask))
    assert near.weights.dtype is torch.float32
    torch.testing.assert_close(near.weights.sum(2), torch.ones(ROWS, QUERIES))
    torch.testing.assert_close(near.weights, exact.weights, rtol=0, atol=0.03)


@every_attention
def test_wrong_input_is_named(part):
    attention = build(part)
    encoded, mask, query = example([5, 3, 1])
    memory = attention.remember(encoded, mask)
    with pytest.raises(
        UsageError, match=r"encoded of the attention \w+ has shape \[3, 5, 3\]; it must be \[batch, source, 4\]"
    ):
        attention.remember(encoded[..., :3], mask)
    with pytest.raises(
        UsageError, match=r"mask of the attention \w+ is torch.int64 \[3, 5\]; it must be torch.bool \[3, 5\]"
    ):
        attention.remember(encoded, mask.long())
    with pytest.raises(UsageError, match=r"mask .* has no real position in row 1; every row needs at least one"):
        attention.remember(encoded, mask & torch.tensor([[True], [False], [True]]))
    with pytest.raises(
        UsageError, match=r"query of the attention \w+ has shape \[3, 2, 3\]; it must be \[3, 4\] or \[3, time, 4\]"
    ):
        attention(query[..., :3], memory)
    with pytest.raises(UsageError, match=r"query of the attention \w+ has shape \[2, 2, 4\]; it must be \[3, 4\]"):
        attention(query[:2], memory)
