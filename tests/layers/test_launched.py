"""Loops in Triton, on a GPU or by Triton's interpreter: what torch's calls and torch.nn make of the same layer."""

import os
import subprocess
import sys
import textwrap

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from unrolled.base.errors import UsageError
from unrolled.layers import CELLS, GRU, LSTM, Recurrent
from unrolled.layers.kernels import choose, launched
from unrolled.layers.kernels.choose import run
from unrolled.layers.kernels.order import Order

pytest.importorskip("triton", minversion="3.7", reason="Triton is not installed: pip install 'unrolled[test]'")

DEVICE = torch.device("cuda" if torch.cuda.is_available() else "cpu")
KINDS = [
    {"kind": "lstm"},
    {"kind": "lstm", "coupled": True},
    {"kind": "lstm", "peephole": "diagonal"},
    {"kind": "lstm", "peephole": "diagonal", "coupled": True, "zoneout": 0.3},
    {"kind": "lstm", "zoneout": 0.3, "recurrent_dropout": 0.4},
    {"kind": "gru"},
    {"kind": "gru", "reset": "after"},
    {"kind": "gru", "reset": "after", "outer_bias": True, "zoneout": 0.3},
    {"kind": "gru", "zoneout": 0.3, "recurrent_dropout": 0.4},
    {"kind": "gru", "reset": "after", "recurrent_dropout": 0.4},
]


@pytest.fixture(scope="module", autouse=True)
def runnable():
    if DEVICE.type == "cpu" and not launched.interpreted():
        pytest.skip("no GPU, and Triton's interpreter is turned off: TRITON_INTERPRET=1")


def built(kind, size=5, hidden=7):
    cell = CELLS.build({**kind, "hidden_size": hidden}, size)
    for parameter in cell.parameters():
        torch.nn.init.normal_(parameter, std=0.4)
    return cell.to(DEVICE)


def results(cell, x, order, state, path):
    """Output, last state and all gradients, with the same noise on every path."""
    torch.manual_seed(3)
    x = x.clone().requires_grad_()
    state = None if state is None else tuple(part.clone().requires_grad_() for part in state)
    output, ends = run(cell, x, order, state, path)
    wanted = [x, *cell.parameters(), *(state or ())]
    draw = torch.Generator().manual_seed(5)
    factors = [torch.randn(part.shape, generator=draw).to(DEVICE) for part in (output, *ends)]
    total = sum((part * factor).sum() for part, factor in zip((output, *ends), factors, strict=True))
    return [output, *ends, *torch.autograd.grad(total, wanted)]


def close(ours, theirs, tolerance):
    for one, other in zip(ours, theirs, strict=True):
        one, other = one.detach().float(), other.detach().float()
        assert float((one - other).abs().max()) <= tolerance * max(float(other.abs().max()), 1)


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: "-".join(map(str, kind.values())))
@given(
    lengths=st.lists(st.integers(1, 4), min_size=1, max_size=18),
    hidden=st.sampled_from([1, 7, 16, 33]),
    first=st.booleans(),
    seed=st.integers(0, 99),
)
@settings(deadline=None, max_examples=4)
def test_a_loop_is_that_of_torchs_calls(kind, lengths, hidden, first, seed):
    torch.manual_seed(seed)
    cell = built(kind, hidden=hidden)
    order = Order(len(lengths), max(lengths), lengths, DEVICE)
    x = torch.randn(order.size, 5, device=DEVICE)
    state = tuple(torch.randn(len(lengths), hidden, device=DEVICE) for _ in cell.state_names) if first else None
    close(*(results(cell, x, order, state, path) for path in ("launched", "whole")), 1e-5)
    close(*(results(cell, x, order, state, path) for path in ("launched", "plain")), 1e-5)


@pytest.mark.parametrize(("ours", "theirs"), [(LSTM, torch.nn.LSTM), (GRU, torch.nn.GRU)])
def test_a_layer_is_torchs(ours, theirs):
    oracle = theirs(5, 20, bidirectional=True, batch_first=True).to(DEVICE)
    layer = ours(5, 20, bidirectional=True, batch_first=True).to(DEVICE)
    layer.load_state_dict(oracle.state_dict())
    layer.recurrent.path = "launched"
    x = torch.randn(3, 4, 5, device=DEVICE)
    found, wanted = (net(x)[0] for net in (layer, oracle))
    close([found], [wanted], 1e-5)


def test_under_autocast_products_are_in_its_type():
    cell = built({"kind": "lstm", "peephole": "diagonal"}, size=8, hidden=24)
    lengths = [3] * 20
    order = Order(20, 3, lengths, DEVICE)
    x = torch.randn(order.size, 8, device=DEVICE)
    exact = results(cell, x, order, None, "whole")
    with torch.autocast(DEVICE.type, torch.bfloat16):
        ours = results(cell, x, order, None, "launched")
    assert ours[0].dtype is torch.bfloat16
    close(ours, exact, 0.05)


def test_a_layer_of_two_directions_with_lengths():
    net = Recurrent(4, cell={"kind": "gru", "hidden_size": 6}, layers=2, bidirectional=True).to(DEVICE)
    x, mask = torch.randn(3, 5, 4, device=DEVICE), (torch.arange(5) < torch.tensor([[5], [2], [4]])).to(DEVICE)
    net.path = "plain"
    wanted = net(x, mask).output
    net.path = "launched"
    close([net(x, mask).output], [wanted], 1e-5)


@pytest.mark.parametrize(
    "kind",
    [
        {"kind": "lstm", "layer_norm": True},
        {"kind": "lstm", "peephole": "full"},
        {"kind": "lstm", "projection_size": 3},
        {"kind": "elman"},
    ],
    ids=lambda kind: "-".join(map(str, kind.values())),
)
def test_other_cells_have_none_and_say_so(kind):
    cell = built(kind)
    assert not launched.possible(cell)
    with pytest.raises(UsageError, match="cannot run by the path 'launched'"):
        run(cell, torch.randn(3, 5, device=DEVICE), Order(3, 1, [1] * 3, DEVICE), None, "launched")


def test_the_look_at_a_device_finds_nothing_wrong_here():
    launched.trusted.cache_clear()
    assert launched.trusted(DEVICE)
    with torch.inference_mode():
        launched.trusted.cache_clear()
        assert launched.trusted(DEVICE)


@pytest.mark.parametrize("wrong", ["another number", "an error"])
def test_where_a_kernel_is_wrong_a_warning_says_so(wrong, monkeypatch):
    from unrolled.layers.kernels.launched import gru

    def broken(kernel):
        if wrong == "an error":
            raise RuntimeError("ptxas fatal: no such target\nmore")
        loop = made(kernel)
        kernel.output += 1
        return loop

    made = gru.forward
    monkeypatch.setattr(gru, "forward", broken)
    launched.trusted.cache_clear()
    said = "the results of the GRU in" if wrong == "another number" else "RuntimeError: ptxas fatal: no such target"
    with pytest.warns(UserWarning, match=said):
        assert not launched.trusted(DEVICE)
    launched.trusted.cache_clear()


def test_the_look_is_at_the_kernels_whatever_torch_is_set_to():
    precision, kind = torch.get_float32_matmul_precision(), torch.get_default_dtype()
    try:
        torch.set_float32_matmul_precision("medium")
        torch.set_default_dtype(torch.float64)
        launched.trusted.cache_clear()
        assert launched.trusted(DEVICE) and torch.get_float32_matmul_precision() == "medium"
    finally:
        torch.set_float32_matmul_precision(precision)
        torch.set_default_dtype(kind)
        launched.trusted.cache_clear()


def test_a_triton_that_cannot_be_loaded_is_none(monkeypatch, tmp_path):
    (tmp_path / "triton.py").write_text("raise RuntimeError('libcuda.so cannot be found')")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "triton", raising=False)
    launched.found.cache_clear()
    with pytest.warns(UserWarning, match=r"RuntimeError: libcuda.so cannot be found"):
        assert not launched.found()
    launched.found.cache_clear()


def test_it_is_chosen_on_a_gpu_alone_and_for_layers_that_are_not_wide(monkeypatch):
    narrow, wide = built({"kind": "gru"}), built({"kind": "gru"}, hidden=launched.WIDEST + 1)
    assert launched.worthwhile(narrow, torch.bfloat16)
    assert not launched.worthwhile(wide, torch.bfloat16) and not launched.worthwhile(narrow, torch.float64)
    x, order = torch.randn(6, 5), Order(3, 2, [2] * 3, torch.device("cpu"))
    assert choose.choose(built({"kind": "gru"}).cpu(), x, order) != "launched"


def test_without_triton_there_is_no_launch(monkeypatch):
    monkeypatch.setattr(launched, "found", lambda: False)
    assert not launched.possible(built({"kind": "gru"}))
    assert "launched" not in choose.possible(built({"kind": "gru"}))


MAKE = """
    from triton.backends.compiler import GPUTarget
    from triton.compiler import ASTSource, compile
    from unrolled.layers.kernels.launched import gru, lstm, parts

    SIZES = {"ROWS": parts.ROWS, "WIDE": parts.WIDE, "DEEP": parts.DEEP}
    NONE = {"diagonal", "seen", "kept_hidden", "kept_memory", "kept"}
    for loop, own in ((lstm, {"GATES": 4}), (lstm, {"GATES": 3}), (gru, {"AFTER": False}), (gru, {"AFTER": True})):
        for half, options in (("*bf16", True), ("*fp32", False)):
            types = dict.fromkeys(("weight", "output", "grad", "grad_output"), half)
            types |= dict.fromkeys(("counts", "starts", "before"), "*i64")
            types |= dict.fromkeys(("number", "batch", "n"), "i32")
            types["past"] = "*fp32" if own.get("AFTER") else half
            for kernel in (loop._forward, loop._backward):
                names = kernel.arg_names
                fixed = SIZES | own | ({} if options else {name: None for name in names if name in NONE})
                signature = {name: "constexpr" if name in fixed else types.get(name, "*fp32") for name in names}
                constants = {(names.index(name),): value for name, value in fixed.items()}
                made = compile(ASTSource(kernel, signature, constants), target=GPUTarget("cuda", 90, 32))
                assert len(made.asm["cubin"]) > 1000
                print("made", kernel.__name__)
"""


def test_they_become_machine_code_of_a_gpu(tmp_path):
    environment = {**os.environ, "TRITON_INTERPRET": "0", "TRITON_CACHE_DIR": str(tmp_path)}
    ran = subprocess.run([sys.executable, "-c", textwrap.dedent(MAKE)], capture_output=True, text=True, env=environment)
    assert ran.returncode == 0, ran.stderr
    assert ran.stdout.count("made") == 16
