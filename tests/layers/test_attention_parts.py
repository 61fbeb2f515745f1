"""Reach, normalisers and coverage against brute force in NumPy, written from the papers, and against other packages."""

import numpy as np
import pytest
import torch

from unrolled.base.errors import SettingsError
from unrolled.layers import ATTENTIONS
from unrolled.layers.attention import COVERAGES, NORMALISERS, REACHES, coverage_loss, entmax15, sparsemax
from unrolled.layers.attention.normalisers import Monotonic

ROWS, STEPS, SOURCE, SIZE = 2, 7, 5, 4
LENGTHS = (5, 3)


def build(**parts):
    torch.manual_seed(3)
    attention = ATTENTIONS.build({"kind": "bilinear", **parts}, SIZE, SIZE).double()
    for weight in attention.parameters():
        torch.nn.init.normal_(weight)
    return attention


def example():
    torch.manual_seed(5)
    mask = torch.arange(SOURCE) < torch.tensor(LENGTHS).unsqueeze(1)
    return torch.randn(ROWS, STEPS, SIZE).double(), torch.randn(ROWS, SOURCE, SIZE).double(), mask


def numbers(module):
    return {name: weight.detach().numpy() for name, weight in module.named_parameters()}


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def softmax(scores):
    powers = np.exp(scores - scores.max())
    return powers / powers.sum()


@pytest.mark.parametrize(
    "kind, window", [("local_m", 1), ("local_m", 3), ("local_p", 1), ("local_p", 2), ("causal", None)]
)
def test_reach_equals_brute_force(kind, window):
    attention = build(reach={"kind": kind, **({"window": window} if window else {})})
    query, encoded, mask = example()
    with torch.no_grad():
        weights = attention(query, attention.remember(encoded, mask)).weights.numpy()
    own, score = numbers(attention.reach), numbers(attention)["weight"]
    for row, length in enumerate(LENGTHS):
        for step in range(STEPS):
            q = query[row, step].numpy()
            e = np.full(SOURCE, -np.inf)
            if kind == "local_p":
                p = length * sigmoid(own["vector"] @ np.tanh(own["weight"] @ q))
            for j in range(length):
                value = q @ score @ encoded[row, j].numpy()
                if (kind == "causal" and j <= step) or (kind == "local_m" and abs(j - min(step, length - 1)) <= window):
                    e[j] = value
                elif kind == "local_p" and abs(j - p) <= window:
                    e[j] = value - (j - p) ** 2 / (2 * (window / 2) ** 2)
            np.testing.assert_allclose(weights[row, step], softmax(e), rtol=1e-11, atol=1e-15)


def test_local_p_is_luongs_product_divided_by_its_sum():
    attention, bare = build(reach={"kind": "local_p", "window": 2}), build()
    query, encoded, mask = example()
    memory = attention.remember(encoded, mask)
    with torch.no_grad():
        centre = attention.reach.centre(query, memory).unsqueeze(2)
        bare.weight.copy_(attention.weight)
        product = bare(query, memory).weights * torch.exp(-((torch.arange(SOURCE) - centre) ** 2) / 2)
        product *= (torch.arange(SOURCE) - centre).abs() <= 2
        torch.testing.assert_close(attention(query, memory).weights, product / product.sum(2, keepdim=True))


def by_bisection(scores, power):
    """Σ_j max(z_j - τ, 0)^power = 1, τ found by halving: no sorting, no formula for τ."""
    low, high = scores.max() - 1, scores.max()
    for _ in range(200):
        middle = (low + high) / 2
        if (np.maximum(scores - middle, 0) ** power).sum() >= 1:
            low = middle
        else:
            high = middle
    return np.maximum(scores - low, 0) ** power


@pytest.mark.parametrize("size", [1, 2, 7, 50])
@pytest.mark.parametrize("spread", [0.0, 0.3, 2.0, 30.0])
def test_sparse_weights_equal_bisection(size, spread):
    scores = torch.randn(20, size, dtype=torch.float64, generator=torch.Generator().manual_seed(size)) * spread
    for row, sparse, smooth in zip(scores.numpy(), sparsemax(scores), entmax15(scores), strict=True):
        np.testing.assert_allclose(sparse, by_bisection(row, 1), atol=1e-12)
        np.testing.assert_allclose(smooth, by_bisection(row / 2, 2), atol=1e-12)


@pytest.mark.parametrize("ours, theirs", [(sparsemax, "sparsemax"), (entmax15, "entmax15")])
def test_sparse_weights_and_gradients_equal_the_package_entmax(ours, theirs):
    entmax = pytest.importorskip("entmax")
    torch.manual_seed(1)
    scores = (torch.randn(3, 5, 11, dtype=torch.float64) * 2).requires_grad_()
    part = torch.randn(3, 5, 11, dtype=torch.float64)
    mine, other = ours(scores), getattr(entmax, theirs)(scores, dim=-1)
    torch.testing.assert_close(mine, other, rtol=1e-10, atol=1e-10)
    grads = [torch.autograd.grad((weights * part).sum(), scores)[0] for weights in (mine, other)]
    torch.testing.assert_close(*grads, rtol=1e-10, atol=1e-10)
    assert (mine == 0).any() and (mine > 0).sum(2).min() > 0


@pytest.mark.parametrize("function", [sparsemax, entmax15])
def test_sparse_gradients_agree_with_finite_differences(function):
    torch.manual_seed(2)
    assert torch.autograd.gradcheck(function, torch.randn(4, 6, dtype=torch.float64, requires_grad=True))


@pytest.mark.parametrize("function", [sparsemax, entmax15])
def test_sparse_weights_of_ties_and_of_forbidden_positions(function):
    inf = float("inf")
    scores = torch.tensor([[1e4, 1e4, -1e4, -inf], [0.0, -inf, -inf, -inf], [-1e4, -1e4, -1e4, -1e4]])
    wanted = torch.tensor([[0.5, 0.5, 0, 0], [1, 0, 0, 0], [0.25] * 4])
    torch.testing.assert_close(function(scores), wanted)
    assert (function(scores)[wanted == 0] == 0).all()


def monotonic_by_loops(stops, before):
    """Raffel et al. 2017, §2.3: the chance to come from k and to stop at j, k by k."""
    return np.array(
        [
            stops[j] * sum(before[k] * np.prod([1 - stops[m] for m in range(k, j)]) for k in range(j + 1))
            for j in range(len(stops))
        ]
    )


def test_monotonic_equals_the_papers_sums():
    attention = build(normaliser={"kind": "monotonic", "noise": 0.0}).train()
    query, encoded, mask = example()
    with torch.no_grad():
        weights = attention(query, attention.remember(encoded, mask)).weights.numpy()
    score, offset = numbers(attention)["weight"], attention.normaliser.offset.item()
    for row, length in enumerate(LENGTHS):
        before = np.eye(length)[0]
        for step in range(STEPS):
            e = np.array([query[row, step].numpy() @ score @ encoded[row, j].numpy() for j in range(length)])
            stops = sigmoid(e + offset)
            stops[-1] = 1
            before = monotonic_by_loops(stops, before)
            np.testing.assert_allclose(weights[row, step, :length], before, rtol=1e-11, atol=1e-15)


def test_monotonic_at_evaluation_stops_once_and_never_goes_back():
    attention = build(normaliser="monotonic").eval()
    query, encoded, mask = example()
    with torch.no_grad():
        weights = attention(query, attention.remember(encoded, mask)).weights
    assert ((weights == 0) | (weights == 1)).all() and (weights.sum(2) == 1).all()
    places = weights.argmax(2)
    assert (places.diff(dim=1) >= 0).all() and (places[:, -1] > 0).any()
    score, offset = attention.weight, attention.normaliser.offset
    for row, length in enumerate(LENGTHS):
        at = 0
        for step in range(STEPS):
            stops = query[row, step] @ score @ encoded[row].T + offset > 0
            at = next((j for j in range(at, length) if stops[j]), length - 1)
            assert places[row, step] == at


def test_monotonic_noise_is_for_training_alone():
    normaliser, scores = Monotonic(noise=1.0), torch.randn(2, 3, 5)
    state = normaliser.initial(torch.ones(2, 5, dtype=torch.bool))
    assert not torch.equal(normaliser.train()(scores, state)[0], normaliser(scores, state)[0])
    assert torch.equal(normaliser.eval()(scores, state)[0], normaliser(scores, state)[0])


@pytest.mark.parametrize("fertility", [None, 2.0])
def test_sum_coverage_equals_the_papers_loop(fertility):
    torch.manual_seed(3)
    part = {"kind": "additive", "hidden_size": 6, "coverage": {"kind": "sum", "fertility": fertility}}
    attention = ATTENTIONS.build(part, SIZE, SIZE).double()
    for weight in attention.parameters():
        torch.nn.init.normal_(weight)
    query, encoded, mask = example()
    with torch.no_grad():
        seen = attention(query, attention.remember(encoded, mask))
    w = numbers(attention)
    for row, length in enumerate(LENGTHS):
        covered, loss = np.zeros(length), []
        h = encoded[row, :length].numpy()
        words = fertility * sigmoid(h @ w["coverage.words"][0]) if fertility else 1.0
        for step in range(STEPS):
            hidden = w["query_weight"] @ query[row, step].numpy() + h @ w["key_weight"].T
            alpha = softmax(np.tanh(hidden + covered[:, None] * w["coverage.weight"][:, 0]) @ w["vector"])
            np.testing.assert_allclose(seen.weights[row, step, :length], alpha, rtol=1e-11)
            loss.append(np.minimum(alpha, covered).sum())
            covered = covered + alpha / words
        np.testing.assert_allclose(seen.state[0][row, :length], covered, rtol=1e-11)
        if fertility is None:
            np.testing.assert_allclose(coverage_loss(seen.weights)[row], loss, rtol=1e-11, atol=1e-15)


def test_coverage_loss_goes_on_from_earlier_steps():
    weights = torch.rand(2, 5, 3, dtype=torch.float64).softmax(2)
    later = coverage_loss(weights[:, 2:], covered=weights[:, :2].sum(1))
    torch.testing.assert_close(coverage_loss(weights)[:, 2:], later)


def test_neural_coverage_equals_the_papers_loop():
    torch.manual_seed(3)
    part = {"kind": "additive", "hidden_size": 6, "coverage": {"kind": "neural", "size": 3}}
    attention = ATTENTIONS.build(part, SIZE, SIZE).double()
    for weight in attention.parameters():
        torch.nn.init.normal_(weight)
    query, encoded, mask = example()
    with torch.no_grad():
        seen = attention(query, attention.remember(encoded, mask))
    w, cell = numbers(attention), attention.coverage.cell
    inner = {name: dict(zip("zrn", weight.chunk(3), strict=True)) for name, weight in cell.named_parameters()}
    inner = {name: {gate: part.detach().numpy() for gate, part in gates.items()} for name, gates in inner.items()}
    x_weight, h_weight, bias = inner["input_weight"], inner["hidden_weight"], inner["bias"]
    for row, length in enumerate(LENGTHS):
        covered, h = np.zeros((length, 3)), encoded[row, :length].numpy()
        for step in range(STEPS):
            q = query[row, step].numpy()
            hidden = w["query_weight"] @ q + h @ w["key_weight"].T + covered @ w["coverage.weight"].T
            alpha = softmax(np.tanh(hidden) @ w["vector"])
            np.testing.assert_allclose(seen.weights[row, step, :length], alpha, rtol=1e-10)
            for j in range(length):
                x, c = np.concatenate((h[j], q, alpha[j : j + 1])), covered[j]
                z = sigmoid(x_weight["z"] @ x + h_weight["z"] @ c + bias["z"])
                r = sigmoid(x_weight["r"] @ x + h_weight["r"] @ c + bias["r"])
                n = np.tanh(x_weight["n"] @ x + h_weight["n"] @ (r * c) + bias["n"])
                covered[j] = (1 - z) * c + z * n


@pytest.mark.parametrize(
    "registry, part, sizes, wanted",
    [
        (REACHES, {"kind": "local_m", "window": 0}, (4,), "window of the reach 'local_m' is 0; give at least 1"),
        (REACHES, {"kind": "local_p", "window": -2}, (4,), "window of the reach 'local_p' is -2; give at least 1"),
        (NORMALISERS, {"kind": "monotonic", "noise": -1.0}, (), "noise of the normaliser 'monotonic' is -1.0; give 0"),
        (COVERAGES, {"kind": "sum", "fertility": 0.0}, (4, 4, 4), "fertility of the coverage 'sum' is 0.0; give a num"),
        (COVERAGES, {"kind": "neural", "size": 0}, (4, 4, 4), "size of the coverage 'neural' is 0; give at least 1"),
    ],
)
def test_settings_out_of_range_are_refused(registry, part, sizes, wanted):
    with pytest.raises(SettingsError, match=wanted):
        registry.build(part, *sizes)
