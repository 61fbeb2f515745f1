"""What every registered cell, in every variant of its settings, must do when it is run over time."""

import re
import typing

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from unrolled.base.settings import choices
from unrolled.layers import CELLS, Recurrent
from unrolled.layers.kernels.choose import whole_kernel

ROWS, TIME, INPUT, HIDDEN = 3, 7, 2, 5


RANGES = {
    "hidden_size": (),
    "recurrent_init": (),
    "forget_bias": (),
    "projection_size": (3,),
    "recurrent_dropout": (0.4,),
    "zoneout": (0.3,),
    "outer_bias": (),
}
"""Values of the settings that are no closed choice; none where a setting changes no equation."""


def variants():
    """Each kind with its defaults, then with another value of each setting; and with all options at once."""
    for kind in CELLS:
        yield {"kind": kind}
        for name, (annotation, default) in choices(CELLS[kind]).items():
            values = (True, False) if annotation is bool else typing.get_args(annotation)
            for value in RANGES.get(name, values):
                if value != default and not (name == "peephole" and isinstance(value, bool)):
                    yield {"kind": kind, name: value}
    everything = {"layer_norm": True, "recurrent_dropout": 0.4, "zoneout": 0.3}
    yield {"kind": "gru", "reset": "after", "outer_bias": True}
    yield {"kind": "gru", "reset": "after", "outer_bias": True, **everything}
    yield {"kind": "gru", **everything}
    for peephole in ("diagonal", "full"):
        yield {"kind": "lstm", "peephole": peephole, "coupled": True, "projection_size": 3, **everything}


every_cell = pytest.mark.parametrize("cell", list(variants()), ids=lambda cell: "-".join(map(str, cell.values())))
some_lengths = st.lists(st.integers(1, TIME), min_size=ROWS, max_size=ROWS)


def build(cell, dtype=torch.float64, **options):
    torch.manual_seed(7)
    network = Recurrent(INPUT, cell={**cell, "hidden_size": HIDDEN}, **options).to(dtype)
    for weight in network.parameters():
        torch.nn.init.normal_(weight, std=0.4)
    return network.eval()


def example(lengths, dtype=torch.float64):
    torch.manual_seed(11)
    x = torch.randn(len(lengths), TIME, INPUT, dtype=dtype)
    return x, torch.arange(TIME) < torch.tensor(lengths).unsqueeze(1)


def first_state(network, rows):
    torch.manual_seed(13)
    return tuple(torch.randn_like(zeros) for zeros in network.initial(rows, torch.empty(0, dtype=torch.float64)))


def results(network, x, mask, state):
    """Output, states, and the gradients of everything, for a loss in which each number has its own part."""
    x = x.clone().requires_grad_()
    state = None if state is None else tuple(tensor.clone().requires_grad_() for tensor in state)
    network.zero_grad()
    torch.manual_seed(19)
    output, ends = network(x, mask, state)
    torch.manual_seed(17)
    parts = [torch.randn(tensor.shape, dtype=x.dtype) for tensor in (output, *ends)]
    sum((tensor * part).sum() for tensor, part in zip((output, *ends), parts, strict=True)).backward()
    grads = [tensor.grad for tensor in (x, *(state or ()), *network.parameters())]
    return [tensor.detach() for tensor in (output, *ends)], grads


every_path = pytest.mark.parametrize("path", ["whole", "compiled"])


@every_cell
@every_path
@pytest.mark.parametrize("given_state", [False, True], ids=["zeros", "given"])
@pytest.mark.parametrize("lengths", [[7, 7, 7], [7, 4, 1], [2, 5, 3], [1, 1, 1]], ids=str)
def test_each_path_equals_the_plain_loop_in_values_and_gradients(cell, path, lengths, given_state):
    network = build(cell, layers=2, bidirectional=True, residual=True)
    x, mask = example(lengths)
    state = first_state(network, ROWS) if given_state else None
    network.path = "plain"
    expected = results(network, x, mask, state)
    network.path = path
    torch.testing.assert_close(results(network, x, mask, state), expected, rtol=1e-11, atol=1e-11)


@every_cell
@every_path
def test_in_training_each_path_equals_the_plain_loop_given_the_same_draws(cell, path):
    network = build(cell, layers=2, bidirectional=True).train()
    x, mask = example([7, 4, 1])
    state = first_state(network, ROWS)
    network.path = "plain"
    expected = results(network, x, mask, state)
    network.path = path
    torch.testing.assert_close(results(network, x, mask, state), expected, rtol=1e-11, atol=1e-11)
    network.eval()
    differs = not torch.allclose(network(x, mask, state).output, expected[0][0])
    assert differs == any(name in cell for name in ("zoneout", "recurrent_dropout"))


@every_cell
@pytest.mark.parametrize("lengths", [[7, 4, 1], [2, 5, 3]], ids=str)
def test_threads_that_share_the_rows_change_nothing(cell, lengths, monkeypatch):
    threads = pytest.importorskip("unrolled.layers.kernels.compiled.threads")
    network = build(cell, layers=2, bidirectional=True).train()
    x, mask = example(lengths)
    network.path = "compiled"
    expected = results(network, x, mask, None)
    monkeypatch.setattr(threads, "LEAST", 1)
    jobs, together = [], threads.together
    monkeypatch.setattr(threads, "together", lambda given: jobs.append(len(given)) or together(given))
    for count in (2, 3):
        monkeypatch.setattr(threads, "available", lambda count=count: count)
        torch.testing.assert_close(results(network, x, mask, None), expected, rtol=1e-12, atol=1e-12)
    assert {2, 3} <= set(jobs)


@every_cell
@settings(deadline=None, max_examples=4)
@given(lengths=some_lengths, fill=st.sampled_from([0.0, 1e30, float("nan")]))
def test_a_row_in_a_batch_equals_the_row_alone_whatever_the_padding_holds(cell, lengths, fill):
    network = build(cell, layers=2, bidirectional=True)
    x, mask = example(lengths)
    x.masked_fill_(~mask.unsqueeze(2), fill).requires_grad_()
    state = first_state(network, ROWS)
    output, ends = network(x, mask, state)
    assert (output[~mask] == 0).all()
    (grad,) = torch.autograd.grad(output.sin().sum(), x)
    assert (grad[~mask] == 0).all()
    for row, length in enumerate(lengths):
        alone = x[row : row + 1, :length].detach().requires_grad_()
        one, last = network(alone, None, tuple(tensor[row : row + 1] for tensor in state))
        torch.testing.assert_close(output[row, :length], one[0], rtol=1e-11, atol=1e-11)
        torch.testing.assert_close([end[row] for end in ends], [end[0] for end in last], rtol=1e-11, atol=1e-11)
        (own,) = torch.autograd.grad(one.sin().sum(), alone)
        torch.testing.assert_close(grad[row, :length], own[0], rtol=1e-11, atol=1e-11)


@every_cell
@settings(deadline=None, max_examples=4)
@given(lengths=some_lengths, order=st.permutations(range(ROWS)))
def test_the_order_of_rows_changes_nothing(cell, lengths, order):
    network = build(cell, bidirectional=True)
    x, mask = example(lengths)
    output, ends = network(x, mask)
    moved, moved_ends = network(x[order], mask[order])
    torch.testing.assert_close(moved, output[order], rtol=1e-12, atol=1e-12)
    torch.testing.assert_close(moved_ends, tuple(end[order] for end in ends), rtol=1e-12, atol=1e-12)


@every_cell
def test_gradients_agree_with_finite_differences(cell):
    network = build(cell, layers=2)
    x, mask = example([4, 2, 3])
    x, mask = x[:, :4], mask[:, :4]

    def run(x, *state_and_weights):
        count = len(network.state_sizes)
        names = [name for name, _ in network.named_parameters()]
        weights = dict(zip(names, state_and_weights[count:], strict=True))
        output, ends = torch.func.functional_call(network, weights, (x, mask, state_and_weights[:count]))
        return output, *ends

    given_tensors = (x, *first_state(network, ROWS), *(weight.detach() for weight in network.parameters()))
    inputs = tuple(tensor.clone().requires_grad_() for tensor in given_tensors)
    assert torch.autograd.gradcheck(run, inputs, fast_mode=True)


@every_cell
@pytest.mark.parametrize("layers", [1, 2])
def test_two_steps_and_then_three_equal_five(cell, layers):
    network = build(cell, layers=layers)
    x, mask = example([5, 3, 4])
    x, mask = x[:, :5], mask[:, :5]
    whole, ends = network(x, mask)
    first, state = network(x[:, :2], mask[:, :2])
    rest, last = network(x[:, 2:], mask[:, 2:], state)
    torch.testing.assert_close(torch.cat((first, rest), 1), whole, rtol=1e-12, atol=1e-12)
    torch.testing.assert_close(last, ends, rtol=1e-12, atol=1e-12)


@every_cell
@pytest.mark.parametrize("way", ["step", "advance", "loop"])
def test_stepping_equals_the_whole_sequence_in_values_and_gradients(cell, way):
    network = build(cell, layers=2, residual=True)
    x, _ = example([TIME] * ROWS)
    state = tuple(tensor.requires_grad_() for tensor in first_state(network, ROWS))
    wanted, ends = network(x, None, state)
    everything = (*state, *network.parameters())
    expected = torch.autograd.grad(wanted.sin().sum() + ends[-1].sum(), everything)
    loop = network.loop()
    projected = network.project(x)
    outputs, moving = [], state
    for t in range(TIME):
        if way == "step":
            output, moving = network.step(x[:, t], moving)
        else:
            output, moving = (network if way == "advance" else loop).advance(projected[:, t], moving)
        outputs.append(output)
    stepped = torch.stack(outputs, 1)
    torch.testing.assert_close(stepped, wanted, rtol=1e-12, atol=1e-12)
    torch.testing.assert_close(moving, ends, rtol=1e-12, atol=1e-12)
    grads = torch.autograd.grad(stepped.sin().sum() + moving[-1].sum(), everything)
    torch.testing.assert_close(grads, expected, rtol=1e-11, atol=1e-11)


@every_cell
def test_bfloat16_autocast_stays_near_float32_and_trains_float32_weights(cell):
    network = build(cell, torch.float32, layers=2, bidirectional=True)
    x, mask = example([7, 4, 2], torch.float32)
    values, grads = results(network, x, mask, None)
    with torch.autocast("cpu", torch.bfloat16):
        near_values, near_grads = results(network, x, mask, None)
    assert near_values[0].dtype is torch.bfloat16
    assert all(end.dtype is torch.float32 for end in near_values[1:])
    assert all(grad.dtype is torch.float32 for grad in near_grads)
    for near, exact in zip((*near_values, *near_grads), (*values, *grads), strict=True):
        assert (near.float() - exact).norm() <= 0.05 * exact.norm() + 1e-3


@every_cell
def test_a_saved_state_dict_gives_the_same_numbers(cell):
    network, other = (
        build(cell, bidirectional=True),
        Recurrent(INPUT, cell={**cell, "hidden_size": HIDDEN}, bidirectional=True),
    )
    other.eval().to(torch.float64).load_state_dict(network.state_dict())
    x, mask = example([7, 4, 2])
    assert torch.equal(other(x, mask).output, network(x, mask).output)


@every_cell
def test_the_formula_counts_the_parameters(cell):
    built = CELLS.build({**cell, "hidden_size": 5}, 3)
    spelled = re.sub(r"(?<=[\dmnp)])(?=[mnp(])", "*", built.formula.replace("²", "**2"))
    assert eval(spelled, dict(built.letters)) == sum(weight.numel() for weight in built.parameters())


@every_cell
def test_a_whole_sequence_is_one_node_of_the_graph_where_the_cell_has_a_kernel(cell):
    built = CELLS.build({**cell, "hidden_size": HIDDEN}, INPUT)
    network = build(cell)
    network.path = "whole"
    output, _ = network(example([7, 4, 2])[0], example([7, 4, 2])[1])
    seen, nodes = set(), [output.grad_fn]
    while nodes:
        node = nodes.pop()
        if node is not None and node not in seen:
            seen.add(node)
            nodes.extend(source for source, _ in node.next_functions)
    assert whole_kernel(built, [1]) is not None
    assert sum(type(node).__name__ == "WholeSequenceBackward" for node in seen) == 1
    assert len(seen) < 40


@every_cell
def test_one_module_used_twice_in_a_graph_has_the_sum_of_both_gradients(cell):
    network = build(cell)
    (x, mask), (other, _) = example([7, 4, 2]), example([7, 7, 7])
    other = other.flip(0)
    weights = tuple(network.parameters())
    once = torch.autograd.grad(network(x, mask).output.sin().sum(), weights)
    again = torch.autograd.grad(network(other).output.cos().sum(), weights)
    both = torch.autograd.grad(network(x, mask).output.sin().sum() + network(other).output.cos().sum(), weights)
    torch.testing.assert_close(both, tuple(one + two for one, two in zip(once, again, strict=True)))


@every_cell
@pytest.mark.parametrize("path", ["plain", "whole", "compiled"])
def test_a_weight_that_was_changed_since_is_noticed_on_the_way_back(cell, path):
    network = build(cell)
    network.path = path
    x, mask = example([7, 4, 1])
    for name, weight in network.named_parameters():
        if "shift" in name or "bias" in name:
            continue  # a sum's way back does not read what was added
        output = network(x.clone().requires_grad_(), mask).output
        with torch.no_grad():
            weight.mul_(2)
        with pytest.raises(RuntimeError, match="modified"):
            output.sum().backward()


@every_cell
@pytest.mark.parametrize("path", ["plain", "whole", "compiled"])
@pytest.mark.parametrize("lengths", [[7, 4, 1], [1, 1, 1]], ids=str)
def test_a_state_that_was_changed_since_is_noticed_on_the_way_back(cell, path, lengths):
    """Where it was not copied, and the way back reads it: then its gradients are right."""
    network = build(cell)
    network.path = path
    x, mask = example(lengths)
    expected = results(network, x, mask, first_state(network, ROWS))[1]
    for place in range(len(network.state_sizes)):
        for last in (False, True):
            state = tuple(tensor.clone().requires_grad_() for tensor in first_state(network, ROWS))
            given = x.clone().requires_grad_()
            network.zero_grad()
            output, ends = network(given, mask, state)
            torch.manual_seed(17)
            parts = [torch.randn(tensor.shape, dtype=x.dtype) for tensor in (output, *ends)]
            loss = sum((tensor * part).sum() for tensor, part in zip((output, *ends), parts, strict=True))
            with torch.no_grad():
                (ends if last else state)[place].mul_(3)
            try:
                loss.backward()
            except RuntimeError as error:
                assert "modified" in str(error)
            else:
                found = [tensor.grad for tensor in (given, *state, *network.parameters())]
                torch.testing.assert_close(found, expected, rtol=1e-9, atol=1e-9)


@every_cell
@pytest.mark.parametrize("path", ["whole", "compiled"])
def test_gradients_that_were_handed_out_are_not_changed_by_the_next(cell, path):
    network = build(cell, bidirectional=True).train()
    network.path = path
    output = network(*example([7, 4, 1])).output
    weights = list(network.parameters())
    found = [torch.autograd.grad(output[row].sum(), weights, retain_graph=True) for row in (0, 1)]
    kept = [[gradient.clone() for gradient in row] for row in found]
    output[0].sum().backward(retain_graph=True)
    output[1].sum().backward()
    torch.testing.assert_close(found, [tuple(row) for row in kept], rtol=0, atol=0)
    for weight, one, other in zip(weights, *kept, strict=True):
        torch.testing.assert_close(weight.grad, one + other, rtol=1e-9, atol=1e-9)


@every_cell
@pytest.mark.parametrize("path", ["whole", "compiled"])
def test_a_graph_is_gone_through_again_where_it_is_kept_and_only_there(cell, path):
    network = build(cell, bidirectional=True).train()
    network.path = path
    x, mask = example([7, 4, 1])
    output = network(x, mask).output
    loss = output.square().sum()
    first = torch.autograd.grad(loss, list(network.parameters()), retain_graph=True)
    torch.testing.assert_close(torch.autograd.grad(loss, list(network.parameters())), first, rtol=0, atol=0)
    with pytest.raises(RuntimeError, match="second time"):
        torch.autograd.grad(loss, list(network.parameters()))


@every_cell
def test_an_exported_network_gives_the_same_numbers(cell):
    network = build(cell, bidirectional=True, initial="learned")
    x, mask = example([2, 1, 2])
    x, mask = x[:, :2], mask[:, :2]
    exported = torch.export.export(network, (x, mask)).module()
    for rows in ([0, 1, 2], [1, 0, 2]):
        torch.testing.assert_close(exported(x, mask[rows]), network(x, mask[rows]), rtol=1e-12, atol=1e-12)


@every_cell
@pytest.mark.parametrize("autocast", [False, True], ids=["float32", "bfloat16"])
def test_two_training_steps_move_every_weight(cell, autocast):
    torch.manual_seed(7)
    network = Recurrent(INPUT, cell={**cell, "hidden_size": HIDDEN}, layers=2, initial="learned", dropout=0.1)
    before = {name: weight.detach().clone() for name, weight in network.named_parameters()}
    optimizer = torch.optim.SGD(network.parameters(), 0.1)
    x, mask = example([7, 4, 2], torch.float32)
    losses = []
    for _ in range(2):
        with torch.autocast("cpu", torch.bfloat16, enabled=autocast):
            loss = (network(x, mask).output.float() - 1).square().sum()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    assert [name for name, weight in network.named_parameters() if torch.equal(weight, before[name])] == []
    assert all(weight.isfinite().all() for weight in network.parameters())
    assert losses[0] != losses[1]
