"""What every registered attention must do: alone, in every variant of its settings, and with every reach, normaliser
and coverage."""

import itertools
import typing

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from unrolled.base.errors import SettingsError, UsageError
from unrolled.base.settings import choices
from unrolled.layers import ATTENTIONS, Memory
from unrolled.layers.attention import COVERAGES, NORMALISERS, REACHES

ROWS, QUERIES, SOURCE, SIZE = 3, 2, 5, 4


def small(registry, kind):
    """A part with a window narrower than the source, and without chance."""
    narrow = {"window": 1, "noise": 0.0}
    return {"kind": kind, **{name: narrow[name] for name in choices(registry[kind]) if name in narrow}}


PARTS = {
    "reach": [small(REACHES, kind) for kind in REACHES],
    "normaliser": [small(NORMALISERS, kind) for kind in NORMALISERS],
    "coverage": [None, *({"kind": kind} for kind in COVERAGES)],
}


def variants():
    """Each kind with its defaults, then with every other value of each closed choice; then one with each part."""
    for kind in ATTENTIONS:
        yield {"kind": kind}
        for name, (annotation, default) in choices(ATTENTIONS[kind]).items():
            if name in PARTS:
                continue
            values = (True, False) if annotation is bool else ()
            if typing.get_origin(annotation) is typing.Literal:
                values = typing.get_args(annotation)
            yield from ({"kind": kind, name: value} for value in values if value != default)
    for name, parts in PARTS.items():
        yield from (
            {"kind": "additive", name: part}
            for part in parts
            if part not in (None, {"kind": "softmax"}, {"kind": "global"})
        )
    yield {"kind": "additive", "coverage": {"kind": "sum", "fertility": 2.0}}


def refused(part):
    """Compositions that cannot be: tested below to say so."""
    turned = part["normaliser"]["kind"] == "monotonic" and part["reach"]["kind"] == "local_p"
    return turned or (part["kind"] == "location" and part["coverage"] is not None)


def compositions():
    for kind, *parts in itertools.product(ATTENTIONS, *PARTS.values()):
        part = {"kind": kind, **dict(zip(PARTS, parts, strict=True))}
        if not refused(part):
            yield part


def mixtures():
    """Few compositions in which every kind and every part occurs."""
    for place, kind in enumerate(ATTENTIONS):
        part = {"kind": kind, **{name: parts[place % len(parts)] for name, parts in PARTS.items()}}
        yield {**part, "coverage": None} if kind == "location" else part


def name_of(part):
    words = [part["kind"]]
    for name, value in part.items():
        if name != "kind" and value is not None:
            words.append(value["kind"] if isinstance(value, dict) else f"{name}={value}")
            words += ["fertility"] if isinstance(value, dict) and "fertility" in value else []
    return "-".join(words)


every_attention = pytest.mark.parametrize("part", list(variants()), ids=name_of)
every_composition = pytest.mark.parametrize("part", list(compositions()), ids=name_of)
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


def same(ours, theirs, tolerance=1e-10):
    torch.testing.assert_close(ours, theirs, rtol=tolerance, atol=tolerance)


@every_composition
def test_composed_weights_are_a_distribution_step_by_step_and_with_padding_or_without(part):
    attention = build(part)
    lengths = [5, 3, 1]
    encoded, mask, query = example(lengths)
    encoded.masked_fill_(~mask.unsqueeze(2), 1e6)
    memory = attention.remember(encoded, mask)
    whole = attention(query, memory)
    assert (whole.weights >= 0).all() and (whole.weights <= 1 + 1e-12).all()
    assert (whole.weights.masked_select(~mask.unsqueeze(1)) == 0).all()
    same(whole.weights.sum(2), torch.ones(ROWS, QUERIES, dtype=torch.float64))
    if whole.heads is not None:
        same(whole.heads.mean(2), whole.weights)
    state = None
    for step in range(QUERIES):
        one = attention(query[:, step], memory, state)
        state = one.state
        same(one.context, whole.context[:, step])
        same(one.weights, whole.weights[:, step])
    for ours, theirs in zip(state, whole.state, strict=True):
        same(ours, theirs)
    alone = attention(query[1:2], attention.remember(encoded[1:2, :3]))
    same(alone.weights[0], whole.weights[1, :, :3])
    same(alone.context[0], whole.context[1])


@every_composition
def test_composed_gradients_are_finite_where_scores_are_huge(part):
    attention = build(part, torch.float32)
    encoded, mask, query = example([5, 3, 1], torch.float32)
    query, encoded = (query * 1e4).requires_grad_(), (encoded * 10).requires_grad_()
    seen = attention(query, attention.remember(encoded, mask))
    grads = torch.autograd.grad(
        seen.context.square().sum() + (seen.weights * torch.arange(SOURCE)).sum(),
        (query, encoded, *attention.parameters()),
        allow_unused=True,
    )
    assert all(bool(gradient.isfinite().all()) for gradient in grads if gradient is not None)
    assert bool(seen.weights.isfinite().all())


@every_attention
@settings(deadline=None, max_examples=6)
@given(lengths=some_lengths, fill=st.sampled_from([0.0, 1e6, -1e6]))
def test_padding_changes_nothing(part, lengths, fill):
    attention = build(part)
    encoded, mask, query = example(lengths)
    encoded.masked_fill_(~mask.unsqueeze(2), fill)
    seen = attention(query, attention.remember(encoded, mask))
    assert (seen.weights.masked_select(~mask.unsqueeze(1)) == 0).all()
    for row, length in enumerate(lengths):
        alone = attention(query[row : row + 1], attention.remember(encoded[row : row + 1, :length]))
        same(seen.weights[row, :, :length], alone.weights[0])
        same(seen.context[row], alone.context[0])


@every_attention
def test_a_mask_with_holes_leaves_them_out(part):
    attention = build(part)
    encoded, _, query = example([5, 5, 5])
    mask = torch.tensor([[1, 0, 1, 0, 1], [0, 1, 1, 1, 0], [0, 0, 0, 0, 1]]).bool()
    seen = attention(query, attention.remember(encoded, mask))
    kept = attention(query[:1], attention.remember(encoded[:1, [0, 2, 4]]))
    assert (seen.weights.masked_select(~mask.unsqueeze(1)) == 0).all()
    same(seen.context[0], kept.context[0])
    same(seen.weights[2, :, 4], torch.ones(QUERIES, dtype=torch.float64))


@every_attention
def test_steps_in_two_parts_equal_all_at_once(part):
    attention = build(part)
    encoded, mask, query = example([5, 3, 1])
    memory = attention.remember(encoded, mask)
    whole = attention(query, memory)
    first = attention(query[:, :1], memory, attention.initial(memory))
    then = attention(query[:, 1:], memory, first.state)
    same(torch.cat((first.context, then.context), 1), whole.context)
    same(torch.cat((first.weights, then.weights), 1), whole.weights)


@every_attention
@given(order=st.permutations(range(ROWS)))
@settings(deadline=None, max_examples=4)
def test_rows_of_memory_and_state_can_be_moved_and_repeated_by_index(part, order):
    attention = build(part)
    encoded, mask, query = example([5, 3, 1])
    memory = attention.remember(encoded, mask)
    first = attention(query[:, 0], memory)
    then = attention(query[:, 1], memory, first.state)
    rows = torch.tensor([*order, order[0]])
    moved = Memory(*(tensor.index_select(0, rows) for tensor in memory))
    state = tuple(tensor.index_select(0, rows) for tensor in first.state)
    seen = attention(query[rows, 1], moved, state)
    same(seen.context, then.context[rows])
    same(seen.weights, then.weights[rows])


class Whole(torch.nn.Module):
    """Remember and attend as one function of all that is differentiable."""

    def __init__(self, attention):
        super().__init__()
        self.attention = attention

    def forward(self, query, encoded, mask):
        seen = self.attention(query, self.attention.remember(encoded, mask))
        return seen.context, seen.weights


@every_attention
def test_gradients_agree_with_finite_differences(part):
    attention = build(part)
    encoded, mask, query = example([5, 3, 1])
    names = [f"attention.{name}" for name, _ in attention.named_parameters()]

    def run(query, encoded, *weights):
        named = dict(zip(names, weights, strict=True))
        return torch.func.functional_call(Whole(attention), named, (query, encoded, mask))

    given_tensors = (query, encoded, *(weight.detach() for weight in attention.parameters()))
    assert torch.autograd.gradcheck(
        run, tuple(tensor.clone().requires_grad_() for tensor in given_tensors), fast_mode=True
    )


@every_attention
def test_used_twice_in_one_graph_gradients_add_up(part):
    attention = build(part)
    encoded, mask, query = example([5, 3, 1])

    weights = [encoded.requires_grad_(), *attention.parameters()]

    def gradients(*queries):
        memory = attention.remember(encoded, mask)
        seen = [attention(query, memory) for query in queries]
        total = sum(one.context.square().sum() + one.weights.square().sum() for one in seen)
        return torch.autograd.grad(total, weights, allow_unused=True, materialize_grads=True)

    for one, other, both in zip(gradients(query), gradients(-query), gradients(query, -query), strict=True):
        same(one + other, both)


@every_attention
def test_saved_weights_give_the_same_result(part):
    attention, other = build(part), ATTENTIONS.build(part, SIZE, SIZE).double()
    other.load_state_dict(attention.state_dict())
    encoded, mask, query = example([5, 3, 1])
    for ours, theirs in zip(Whole(attention)(query, encoded, mask), Whole(other)(query, encoded, mask), strict=True):
        assert torch.equal(ours, theirs)


@pytest.mark.parametrize("part", list(mixtures()), ids=name_of)
def test_exports_with_any_number_of_rows(part):
    whole = Whole(build(part, torch.float32)).eval()
    encoded, mask, query = example([5, 3, 1], torch.float32)
    rows = {0: torch.export.Dim("rows", min=2)}
    with torch.no_grad():
        exported = torch.export.export(
            whole, (query, encoded, mask), dynamic_shapes=(rows, rows, rows), strict=False
        ).module()
        some = (query[:2], encoded[1:], mask[1:])
        for ours, theirs in zip(exported(*some), whole(*some), strict=True):
            same(ours, theirs, 1e-5)


@every_attention
def test_bfloat16_autocast_keeps_float32_weights(part):
    attention = ATTENTIONS.build(part, SIZE, SIZE)
    encoded, mask, query = example([5, 3, 1], torch.float32)
    exact = attention(query, attention.remember(encoded, mask))
    with torch.autocast("cpu", torch.bfloat16):
        near = attention(query, attention.remember(encoded, mask))
    assert near.weights.dtype is torch.float32
    same(near.weights.sum(2), torch.ones(ROWS, QUERIES), 1e-5)
    same(near.weights, exact.weights, 0.1)


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
    for wrong in (float("nan"), float("inf")):
        broken = encoded.masked_fill(torch.arange(SOURCE).unsqueeze(1) == 2, wrong)
        with pytest.raises(
            UsageError, match=rf"encoded of the attention \w+ holds {wrong} at row 0, position 2; its num"
        ):
            attention.remember(broken, mask)
    for empty, shape in ((encoded[:, :0], r"\[3, 0, 4\]"), (encoded[:0], r"\[0, 5, 4\]")):
        with pytest.raises(UsageError, match=rf"has shape {shape}; .* with at least one row and one position"):
            attention.remember(empty)
    with pytest.raises(UsageError, match=r"mask .* has no real position in row 1; every row needs at least one"):
        attention.remember(encoded, mask & torch.tensor([[True], [False], [True]]))
    with pytest.raises(
        UsageError, match=r"query of the attention \w+ has shape \[3, 2, 3\]; it must be \[3, 4\] or \[3, time, 4\]"
    ):
        attention(query[..., :3], memory)
    with pytest.raises(UsageError, match=r"query of the attention \w+ has shape \[2, 2, 4\]; it must be \[3, 4\]"):
        attention(query[:2], memory)
    with pytest.raises(
        UsageError, match=r"state of the attention \w+ has shapes .*; it must be \d tensors with 3 rows"
    ):
        attention(query, memory, (*attention.initial(memory), mask))


@every_attention
def test_another_type_or_another_attentions_memory_is_named(part):
    attention = build(part, torch.float32)
    encoded, mask, query = example([5, 3, 1], torch.float32)
    memory = attention.remember(encoded, mask)
    for other in (query.double(), query.long()):
        with pytest.raises(UsageError, match=rf"query of the attention \w+ is {other.dtype}; it must be torch.float32"):
            attention(other, memory)
    with pytest.raises(UsageError, match=r"encoded of the attention \w+ is torch.int64; it must be torch.float32"):
        attention.remember(encoded.long(), mask)
    if list(attention.parameters()):
        with pytest.raises(
            UsageError, match=r"encoded of the attention \w+ is torch.float64; it must be torch.float32"
        ):
            attention.remember(encoded.double(), mask)
    others = ATTENTIONS.build({"kind": "bilinear"}, 3, 7).remember(torch.randn(ROWS, SOURCE, 7))
    with pytest.raises(
        UsageError, match=r"has keys of size 3 and values of size 7; they must be \d+ and 4. Take it from"
    ):
        attention(query, others)


def test_a_state_of_another_batch_is_refused():
    attention = build({"kind": "dot", "normaliser": "monotonic"})
    encoded, mask, query = example([5, 3, 1])
    other = attention.initial(attention.remember(encoded[:2]))
    with pytest.raises(UsageError, match=r"has shapes \[\[2, 5\]\]; it must be 1 tensors with 3 rows each"):
        attention(query, attention.remember(encoded, mask), other)


def test_compositions_that_cannot_be_say_why():
    with pytest.raises(SettingsError, match="'location' does not look at its memory, so no coverage can enter"):
        ATTENTIONS.build({"kind": "location", "coverage": "sum"}, SIZE, SIZE)
    with pytest.raises(
        SettingsError, match="Monotonic only moves forward, and the window of the reach LocalPredictive"
    ):
        ATTENTIONS.build({"kind": "dot", "reach": "local_p", "normaliser": "monotonic"}, SIZE, SIZE)
    with pytest.raises(SettingsError, match=r"\[reach\] no reach is called 'locl_p'. Did you mean 'local_p'"):
        ATTENTIONS.build({"kind": "dot", "reach": "locl_p"}, SIZE, SIZE)


@pytest.mark.parametrize("kind", list(ATTENTIONS))
def test_plain_says_whether_a_bare_softmax_is_all(kind):
    assert ATTENTIONS.build(kind, SIZE, SIZE).plain
    for name, parts in PARTS.items():
        for part in parts:
            if (
                part is not None
                and part["kind"] not in ("global", "softmax")
                and (kind, name) != ("location", "coverage")
            ):
                assert not ATTENTIONS.build({"kind": kind, name: part}, SIZE, SIZE).plain
