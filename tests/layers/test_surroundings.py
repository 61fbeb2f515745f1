"""Where torch must see each operation or there are no numbers: the meta device, jit.trace, torch.func, dual numbers."""

import subprocess
import sys

import pytest
import torch
from torch.autograd import forward_ad
from torch.func import functional_call, grad, jvp, vmap
from torch.nn.utils.rnn import pack_padded_sequence

from unrolled.layers import CELLS, GRU, LSTM, Elman, Recurrent
from unrolled.layers.attention import ATTENTIONS
from unrolled.layers.likeliest import likeliest
from unrolled.layers.loss import cross_entropy, linear_cross_entropy
from unrolled.layers.surroundings import real_places

ROWS, TIME, INPUT, HIDDEN = 2, 5, 3, 4
LAYERS = {"LSTM": LSTM, "GRU": GRU, "Elman": Elman}
TOLD = {"nothing": {}, "lengths": {"lengths": torch.tensor([5, 3])}, "mask": {"mask": torch.ones(5, 2).bool().triu(-3)}}


def layer(name, **options):
    torch.manual_seed(3)
    return LAYERS[name](INPUT, HIDDEN, 2, bidirectional=True, **options).double()


def rows(seed=5):
    torch.manual_seed(seed)
    return torch.randn(TIME, ROWS, INPUT, dtype=torch.float64)


@pytest.mark.parametrize("told", TOLD)
@pytest.mark.parametrize("name", LAYERS)
def test_a_layer_on_the_meta_device_has_the_shapes_of_one_elsewhere(name, told):
    options = {"layer_norm": True} if name != "Elman" else {}
    here = layer(name, dropout=0.5, **options)
    there = layer(name, dropout=0.5, **options).to("meta")
    shapes = []
    for one, device in ((here, "cpu"), (there, "meta")):
        output, state = one(rows().to(device), **{word: tensor.to(device) for word, tensor in TOLD[told].items()})
        states = state if isinstance(state, tuple) else (state,)
        assert {tensor.device.type for tensor in (output, *states)} == {device}
        shapes.append([tensor.shape for tensor in (output, *states)])
    assert shapes[0] == shapes[1]


@pytest.mark.parametrize("kind", [*CELLS])
def test_a_cell_and_a_recurrence_run_on_the_meta_device(kind):
    with torch.device("meta"):
        cell = CELLS.build({"kind": kind, "hidden_size": HIDDEN}, INPUT)
        x = torch.empty(ROWS, TIME, INPUT)
        state = cell(x[:, 0], cell.initial(ROWS, x))
        assert [tuple(tensor.shape) for tensor in state] == [(ROWS, size) for size in cell.state_sizes]
        built = Recurrent(INPUT, cell={"kind": kind, "hidden_size": HIDDEN})
        output, _ = built(x, torch.ones(ROWS, TIME, dtype=torch.bool))
        loop = built.loop()
        stepped, _ = loop.advance(loop.project(x[:, 0]), built.initial(ROWS, x))
        assert output.shape == (ROWS, TIME, HIDDEN) and output.is_meta
        assert stepped.shape == (ROWS, HIDDEN) and stepped.is_meta


def test_of_a_mask_without_numbers_all_places_are_real():
    mask = torch.tensor([[True, False], [True, True]])
    assert real_places(mask).tolist() == [0, 2, 3]
    assert real_places(mask.to("meta")).shape == (4,)


@pytest.mark.filterwarnings("ignore::torch.jit.TracerWarning", "ignore:`torch.jit.:DeprecationWarning")
@pytest.mark.parametrize("told", TOLD)
@pytest.mark.parametrize("name", LAYERS)
def test_a_traced_layer_gives_the_layers_own_numbers(name, told):
    class Told(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.layer = layer(name)

        def forward(self, x):
            return self.layer(x, **TOLD[told])[0]

    model = Told()
    written = torch.jit.trace(model, (rows(),))
    torch.testing.assert_close(written(rows(7)), model(rows(7)))


@pytest.mark.filterwarnings("ignore::torch.jit.TracerWarning", "ignore:`torch.jit.:DeprecationWarning")
def test_a_cell_is_traced_in_inference_mode_too():
    cell = CELLS.build({"kind": "lstm", "hidden_size": HIDDEN}, INPUT)
    with torch.inference_mode():
        x, state = torch.randn(ROWS, INPUT), cell.initial(ROWS, torch.zeros(1))
        written = torch.jit.trace(cell, (x, state))
        torch.testing.assert_close(written(2 * x, state), cell(2 * x, state))


def squares(built, told, x, parameters):
    """A loss of the parameters of a layer and its input."""
    given = {} if told == "packed" else TOLD[told]
    x = pack_padded_sequence(x, torch.tensor([5, 3])) if told == "packed" else x
    output, _ = functional_call(built, parameters, (x,), given)
    return (output.data if told == "packed" else output).square().sum()


@pytest.mark.parametrize("told", [*TOLD, "packed"])
@pytest.mark.parametrize("name", LAYERS)
def test_the_gradients_of_torch_func_are_those_of_autograd(name, told):
    built = layer(name)
    parameters = dict(built.named_parameters())
    wanted = torch.autograd.grad(squares(built, told, rows(), parameters), list(parameters.values()))
    found = grad(lambda given: squares(built, told, rows(), given))(parameters)
    torch.testing.assert_close(list(found.values()), list(wanted))


@pytest.mark.parametrize("told", TOLD)
@pytest.mark.parametrize("name", LAYERS)
def test_batched_and_forward_derivatives_are_those_of_one_after_the_other(name, told):
    built = layer(name)
    parameters = dict(built.named_parameters())
    many = torch.stack([rows(5), rows(7)])
    each = [tensor.clone().requires_grad_() for tensor in many]
    values = [squares(built, told, x, parameters) for x in each]
    gradients = torch.stack(torch.autograd.grad(values, each))

    def loss(x):
        return squares(built, told, x, parameters)

    torch.testing.assert_close(vmap(loss)(many), torch.stack(values))
    torch.testing.assert_close(vmap(grad(loss))(many), gradients)
    direction = rows(11)
    along = (gradients[0] * direction).sum()
    torch.testing.assert_close(jvp(loss, (many[0],), (direction,))[1], along)
    with forward_ad.dual_level():
        dual = loss(forward_ad.make_dual(many[0], direction))
        torch.testing.assert_close(forward_ad.unpack_dual(dual).tangent, along)


@pytest.mark.parametrize("normaliser", ["softmax", "sparsemax", "entmax15"])
def test_an_attention_under_torch_func_has_the_gradient_of_autograd(normaliser):
    torch.manual_seed(3)
    attention = ATTENTIONS.build({"kind": "additive", "hidden_size": 7, "normaliser": normaliser}, 3, 5).double()
    query, encoded = torch.randn(2, 4, 3, dtype=torch.float64), torch.randn(2, 6, 5, dtype=torch.float64)

    def loss(query):
        return attention(query, attention.remember(encoded)).context.square().sum()

    asked = query.clone().requires_grad_()
    torch.testing.assert_close(grad(loss)(query), torch.autograd.grad(loss(asked), asked)[0])


@pytest.mark.parametrize("smoothing", [0.0, 0.1])
def test_losses_under_torch_func_have_the_gradient_of_autograd(smoothing):
    torch.manual_seed(3)
    hidden, weight, bias = (torch.randn(*shape, dtype=torch.float64) for shape in ((5, 3), (7, 3), (7,)))
    targets = torch.tensor([0, 6, 2, 2, 5])
    for loss in (
        lambda hidden: linear_cross_entropy(hidden, weight, bias, targets, smoothing),
        lambda hidden: cross_entropy(hidden @ weight.t() + bias, targets, smoothing),
    ):
        given = hidden.clone().requires_grad_()
        torch.testing.assert_close(grad(loss)(hidden), torch.autograd.grad(loss(given), given)[0])


def test_the_likeliest_of_rows_that_are_batched():
    torch.manual_seed(3)
    logits = torch.randn(2, 3, 7)
    scores, ids = vmap(lambda one: likeliest(one, 2))(logits)
    for found, wanted in zip((scores, ids), likeliest(logits.flatten(0, 1), 2), strict=True):
        torch.testing.assert_close(found.flatten(0, 1), wanted)


COMPILED = """
import torch
from unrolled.layers import LSTM

torch.manual_seed(1)
layer, x = LSTM(5, 8, batch_first=True), torch.randn(4, 6, 5)
found = torch.compile(layer, backend="aot_eager")(x)[0]
found.sum().backward()
gradients = [weight.grad.clone() for weight in layer.parameters()]
layer.zero_grad()
plain = layer(x)[0]
plain.sum().backward()
assert torch.equal(found, plain)
assert all(map(torch.equal, gradients, [weight.grad for weight in layer.parameters()]))
"""


def test_torch_compile_leaves_a_layer_as_it_is_in_a_process_that_has_run_none():
    ran = subprocess.run([sys.executable, "-c", COMPILED], capture_output=True, text=True)
    assert ran.returncode == 0, ran.stderr


@pytest.mark.parametrize("name", LAYERS)
def test_a_layer_is_exported_for_any_number_of_rows(name):
    module = LAYERS[name](INPUT, HIDDEN, batch_first=True)
    free = ({0: torch.export.Dim("rows", min=2, max=64)},)
    exported = torch.export.export(module, (torch.randn(4, TIME, INPUT),), dynamic_shapes=free).module()
    x = torch.randn(9, TIME, INPUT)
    torch.testing.assert_close(exported(x)[0], module(x)[0])
