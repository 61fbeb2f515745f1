"""Attention against a loop in NumPy, written from the papers, and against PyTorch's own."""

import numpy as np
import pytest
import torch
from torch.nn import functional

from unrolled.base.errors import SettingsError, UsageError
from unrolled.layers import ATTENTIONS

ROWS, QUERIES, SOURCE, QUERY, MEMORY = 2, 3, 5, 4, 7


def scores(kind, attention, q, h, j):
    """e for one query and position j, by the formula."""
    weights = {name: weight.detach().numpy() for name, weight in attention.named_parameters()}
    match kind:
        case "dot":
            return q @ h
        case "scaled_dot":
            return q @ h / np.sqrt(len(q))
        case "bilinear":
            return q @ weights["weight"] @ h
        case "additive":
            return weights["vector"] @ np.tanh(weights["query_weight"] @ q + weights["key_weight"] @ h)
        case "normalised":
            vector = weights["scale"] * weights["vector"] / np.linalg.norm(weights["vector"])
            return vector @ np.tanh(weights["query_weight"] @ q + weights["key_weight"] @ h + weights["bias"])
        case "concat":
            return weights["vector"] @ np.tanh(weights["weight"] @ np.concatenate((q, h)))
        case "location":
            return weights["weight"][j] @ q


@pytest.mark.parametrize("kind", ["dot", "scaled_dot", "bilinear", "additive", "normalised", "concat", "location"])
def test_equals_the_formula_in_a_loop(kind):
    memory_size = QUERY if "dot" in kind else MEMORY
    part = {"kind": "additive", "normalised": True, "hidden_size": 6} if kind == "normalised" else {"kind": kind}
    torch.manual_seed(1)
    attention = ATTENTIONS.build(part, QUERY, memory_size).double()
    for weight in attention.parameters():
        torch.nn.init.normal_(weight)
    query = torch.randn(ROWS, QUERIES, QUERY, dtype=torch.float64)
    encoded = torch.randn(ROWS, SOURCE, memory_size, dtype=torch.float64)
    lengths = [5, 3]
    mask = torch.arange(SOURCE) < torch.tensor(lengths).unsqueeze(1)
    with torch.no_grad():
        context, weights, *_ = attention(query, attention.remember(encoded, mask))
    for row in range(ROWS):
        for step in range(QUERIES):
            e = [
                scores(kind, attention, query[row, step].numpy(), encoded[row, j].numpy(), j)
                for j in range(lengths[row])
            ]
            alpha = np.exp(e) / np.exp(e).sum()
            c = sum(a * encoded[row, j].numpy() for j, a in enumerate(alpha))
            np.testing.assert_allclose(weights[row, step, : lengths[row]], alpha, rtol=1e-12)
            np.testing.assert_allclose(context[row, step], c, rtol=1e-11, atol=1e-12)


@pytest.mark.parametrize("kind, scale", [("dot", 1.0), ("scaled_dot", None)])
def test_products_equal_scaled_dot_product_attention(kind, scale):
    torch.manual_seed(2)
    attention = ATTENTIONS.build(kind, QUERY, QUERY)
    query = torch.randn(ROWS, QUERIES, QUERY, requires_grad=True)
    encoded = torch.randn(ROWS, SOURCE, QUERY, requires_grad=True)
    mask = torch.tensor([[1, 1, 1, 1, 1], [1, 1, 0, 0, 0]]).bool()
    ours = attention(query, attention.remember(encoded, mask)).context
    theirs = functional.scaled_dot_product_attention(query, encoded, encoded, mask.unsqueeze(1), scale=scale)
    torch.testing.assert_close(ours, theirs, rtol=1e-6, atol=1e-6)
    part = torch.randn_like(ours)
    grads = torch.autograd.grad((ours * part).sum(), (query, encoded))
    torch.testing.assert_close(
        grads, torch.autograd.grad((theirs * part).sum(), (query, encoded)), rtol=2e-6, atol=2e-6
    )


@pytest.mark.parametrize("kind", ["dot", "scaled_dot"])
def test_products_need_equal_sizes(kind):
    wanted = rf"the attention '{kind}' needs equal sizes; the query has 4, the memory 7. Use 'bilinear' or 'additive'"
    with pytest.raises(SettingsError, match=wanted):
        ATTENTIONS.build(kind, QUERY, MEMORY)


def test_sizes_below_one_are_refused():
    with pytest.raises(SettingsError, match="query_size of an attention is 0; give a whole number of at least 1"):
        ATTENTIONS.build("bilinear", 0, MEMORY)
    with pytest.raises(SettingsError, match="hidden_size of the attention 'additive' is -3; give at least 1"):
        ATTENTIONS.build({"kind": "additive", "hidden_size": -3}, QUERY, MEMORY)


def test_softmax_is_float32_where_scores_are_bfloat16():
    attention = ATTENTIONS.build("dot", QUERY, QUERY)
    encoded = torch.zeros(1, 300, QUERY, dtype=torch.bfloat16)
    weights = attention(torch.zeros(1, QUERY, dtype=torch.bfloat16), attention.remember(encoded)).weights
    torch.testing.assert_close(weights, torch.full((1, 300), 1 / 300), rtol=1e-6, atol=0)


@pytest.mark.parametrize("kind", ["additive", "bilinear"])
def test_a_query_that_is_no_number_is_refused(kind):
    attention = ATTENTIONS.build(kind, QUERY, MEMORY)
    memory = attention.remember(torch.zeros(ROWS, SOURCE, MEMORY))
    query = torch.zeros(ROWS, QUERIES, QUERY)
    query[1, 2, 3] = float("nan")
    with pytest.raises(UsageError, match=r"query of the attention \w+ holds nan at row 1, position 2; its numbers"):
        attention(query, memory)
    with pytest.raises(UsageError, match=r"mask of the attention \w+ must be a tensor of torch.bool, not a list"):
        attention.remember(torch.zeros(ROWS, SOURCE, MEMORY), [[True]])
