"""Multi-head and self-attention against torch.nn.MultiheadAttention; pooling and location against their formulas."""

import numpy as np
import pytest
import torch

from unrolled.base.errors import SettingsError, UsageError
from unrolled.layers import ATTENTIONS
from unrolled.layers.attention import AttentionPooling, MultiHead, SelfAttention, tanh_score

ROWS, STEPS, SOURCE, QUERY, MEMORY = 2, 3, 5, 6, 7
MASK = torch.tensor([[1, 1, 1, 1, 1], [1, 1, 1, 0, 0]]).bool()


def torch_twin(ours):
    """torch.nn's, with our weights; its output has the query's size, so does ours in these tests."""
    theirs = torch.nn.MultiheadAttention(
        ours.query_size, ours.heads, kdim=ours.memory_size, vdim=ours.memory_size, batch_first=True
    ).to(ours.output.weight.dtype)
    same_size = theirs.in_proj_weight is not None
    with torch.no_grad():
        if same_size:
            theirs.in_proj_weight.copy_(torch.cat((ours.query.weight, ours.key.weight, ours.value.weight)))
        else:
            theirs.q_proj_weight.copy_(ours.query.weight)
            theirs.k_proj_weight.copy_(ours.key.weight)
            theirs.v_proj_weight.copy_(ours.value.weight)
        theirs.in_proj_bias.copy_(torch.cat((ours.query.bias, ours.key.bias, ours.value.bias)))
        theirs.out_proj.weight.copy_(ours.output.weight)
        theirs.out_proj.bias.copy_(ours.output.bias)
    return theirs


def shaken(module):
    for weight in module.parameters():
        torch.nn.init.normal_(weight, std=0.5)
    return module


@pytest.mark.parametrize("dtype, tolerance", [(torch.float64, 1e-10), (torch.float32, 2e-6)])
@pytest.mark.parametrize("heads", [1, 2, 3])
def test_multi_head_equals_torch_values_and_gradients(dtype, tolerance, heads):
    torch.manual_seed(1)
    ours = shaken(MultiHead(QUERY, QUERY, heads=heads).to(dtype))
    theirs = torch_twin(ours)
    query, encoded = torch.randn(ROWS, STEPS, QUERY, dtype=dtype), torch.randn(ROWS, SOURCE, QUERY, dtype=dtype)
    query.requires_grad_()
    encoded.requires_grad_()
    seen = ours(query, ours.remember(encoded, MASK))
    context, by_head = theirs(query, encoded, encoded, key_padding_mask=~MASK, average_attn_weights=False)
    fused = ours.context(query, ours.remember(encoded, MASK))
    for one in (seen.context, fused):
        torch.testing.assert_close(one, context, rtol=tolerance, atol=tolerance)
    torch.testing.assert_close(seen.heads, by_head.transpose(1, 2), rtol=tolerance, atol=tolerance)
    torch.testing.assert_close(seen.weights, by_head.mean(1), rtol=tolerance, atol=tolerance)
    part = torch.randn_like(context)
    given = (query, encoded)
    wanted = torch.autograd.grad((context * part).sum(), (*given, theirs.in_proj_weight, theirs.out_proj.weight))
    own = (ours.query.weight, ours.key.weight, ours.value.weight, ours.output.weight)
    for one in (seen.context, fused):
        got = torch.autograd.grad((one * part).sum(), (*given, *own))
        got = (*got[:2], torch.cat(got[2:5]), got[5])
        torch.testing.assert_close(got, wanted, rtol=5 * tolerance, atol=5 * tolerance)


def test_multi_head_of_other_sizes_equals_torch_up_to_its_last_product():
    torch.manual_seed(2)
    ours = shaken(MultiHead(QUERY, MEMORY, heads=2).double())
    theirs = torch.nn.MultiheadAttention(QUERY, 2, kdim=MEMORY, vdim=MEMORY, batch_first=True).double()
    with torch.no_grad():
        for name, layer in (("q", ours.query), ("k", ours.key), ("v", ours.value)):
            getattr(theirs, f"{name}_proj_weight").copy_(layer.weight)
        theirs.in_proj_bias.copy_(torch.cat((ours.query.bias, ours.key.bias, ours.value.bias)))
        theirs.out_proj.weight.copy_(torch.eye(QUERY))
        theirs.out_proj.bias.zero_()
        query, encoded = torch.randn(ROWS, STEPS, QUERY).double(), torch.randn(ROWS, SOURCE, MEMORY).double()
        joined, _ = theirs(query, encoded, encoded, key_padding_mask=~MASK)
        seen = ours(query, ours.remember(encoded, MASK))
    assert seen.context.shape == (ROWS, STEPS, MEMORY)
    torch.testing.assert_close(seen.context, ours.output(joined), rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("causal", [False, True])
def test_self_attention_equals_torch(causal):
    torch.manual_seed(3)
    ours = shaken(SelfAttention(QUERY, heads=2, causal=causal).double())
    theirs = torch_twin(ours.attention)
    x = torch.randn(ROWS, SOURCE, QUERY).double()
    later = torch.ones(SOURCE, SOURCE, dtype=torch.bool).triu(1) if causal else None
    for mask in (None, MASK):
        padding = None if mask is None else ~mask
        wanted, by_head = theirs(x, x, x, key_padding_mask=padding, attn_mask=later, average_attn_weights=False)
        seen = ours.look(x, mask)
        real = torch.ones_like(MASK) if mask is None else mask
        torch.testing.assert_close(ours(x, mask)[real], wanted[real], rtol=1e-10, atol=1e-10)
        torch.testing.assert_close(seen.context, wanted, rtol=1e-10, atol=1e-10)
        torch.testing.assert_close(seen.heads, by_head.transpose(1, 2), rtol=1e-10, atol=1e-10)


def test_causal_steps_with_kept_keys_equal_the_whole():
    torch.manual_seed(4)
    ours = shaken(SelfAttention(QUERY, heads=3, causal=True).double())
    x = torch.randn(ROWS, SOURCE, QUERY).double()
    whole, state = ours(x), ours.initial(x)
    for step in range(SOURCE):
        assert [tensor.shape for tensor in state] == [(ROWS, step, QUERY)] * 2
        output, state = ours.step(x[:, step], state)
        torch.testing.assert_close(output, whole[:, step], rtol=1e-10, atol=1e-10)


def test_padding_before_a_real_position_is_refused_where_steps_are_counted():
    ours, mask = SelfAttention(QUERY, heads=2, causal=True), torch.tensor([[1, 1, 1, 1, 1], [0, 1, 1, 1, 0]]).bool()
    with pytest.raises(UsageError, match=r"mask of SelfAttention has padding before a real position in row 1; with"):
        ours(torch.zeros(ROWS, SOURCE, QUERY), mask)


def test_steps_need_a_causal_attention():
    ours = SelfAttention(QUERY, heads=2)
    with pytest.raises(UsageError, match="takes single steps only with causal=True; without"):
        ours.step(torch.zeros(ROWS, QUERY), ours.initial(torch.zeros(ROWS, QUERY)))


def test_dropout_leaves_weights_whole_and_stops_at_evaluation():
    torch.manual_seed(5)
    ours = MultiHead(QUERY, QUERY, heads=2, dropout=0.5)
    query, encoded = torch.randn(ROWS, STEPS, QUERY), torch.randn(ROWS, SOURCE, QUERY)
    memory = ours.remember(encoded, MASK)
    trained, again = ours(query, memory), ours(query, memory)
    assert not torch.equal(trained.context, again.context)
    torch.testing.assert_close(trained.weights, again.weights)
    torch.testing.assert_close(trained.weights.sum(2), torch.ones(ROWS, STEPS))
    ours.eval()
    assert torch.equal(ours(query, memory).context, ours(query, memory).context)


@pytest.mark.parametrize("reach", ["causal", {"kind": "local_m", "window": 1}])
@pytest.mark.parametrize("normaliser", ["softmax", "entmax15"])
def test_context_alone_equals_the_context_with_weights(reach, normaliser):
    torch.manual_seed(6)
    ours = shaken(MultiHead(QUERY, MEMORY, heads=2, reach=reach, normaliser=normaliser).double())
    query, encoded = torch.randn(ROWS, STEPS, QUERY).double(), torch.randn(ROWS, SOURCE, MEMORY).double()
    memory = ours.remember(encoded, MASK)
    torch.testing.assert_close(ours.context(query, memory), ours(query, memory).context, rtol=1e-10, atol=1e-10)


def test_multi_head_refuses_what_does_not_go_up():
    with pytest.raises(SettingsError, match="'multi_head' cannot share 6 numbers among 4 heads evenly"):
        MultiHead(QUERY, MEMORY, heads=4)
    with pytest.raises(SettingsError, match=r"dropout of the attention 'multi_head' is 1.0; it must be in \[0, 1\)"):
        MultiHead(QUERY, MEMORY, heads=2, dropout=1.0)


def test_location_refuses_a_longer_memory():
    attention = ATTENTIONS.build({"kind": "location", "positions": 4}, QUERY, MEMORY)
    with pytest.raises(
        UsageError, match=r"encoded of the attention Location has 5 positions; it knows 4\. Raise its set"
    ):
        attention.remember(torch.zeros(ROWS, SOURCE, MEMORY))


def test_pooling_equals_the_formula():
    torch.manual_seed(7)
    pooling = shaken(AttentionPooling(MEMORY, attention={"kind": "additive", "hidden_size": 3}).double())
    encoded = torch.randn(ROWS, SOURCE, MEMORY).double()
    with torch.no_grad():
        context, weights, *_ = pooling(encoded, MASK)
    w = {name: weight.detach().numpy() for name, weight in pooling.named_parameters()}
    bias = w["attention.query_weight"] @ w["query"]
    for row, length in enumerate((5, 3)):
        h = encoded[row, :length].numpy()
        powers = np.exp(np.tanh(h @ w["attention.key_weight"].T + bias) @ w["attention.vector"])
        np.testing.assert_allclose(weights[row, :length], powers / powers.sum(), rtol=1e-11)
        np.testing.assert_allclose(context[row], powers / powers.sum() @ h, rtol=1e-11)
    assert (weights[1, 3:] == 0).all()


@pytest.mark.parametrize("kind", list(ATTENTIONS))
def test_pooling_by_every_attention_learns_its_query(kind):
    pooling = AttentionPooling(4, attention=kind)
    encoded = torch.randn(ROWS, SOURCE, 4)
    context, weights, *_ = pooling(encoded, MASK)
    assert context.shape == (ROWS, pooling.output_size) and weights.shape == (ROWS, SOURCE)
    (context * torch.randn(ROWS, 4)).sum().backward()
    assert pooling.query.grad.abs().sum() > 0


@pytest.mark.parametrize("block", [1, 40, 10**6])
def test_tanh_score_equals_the_formula_in_blocks_of_any_size(block, monkeypatch):
    monkeypatch.setattr(tanh_score, "BLOCK", block)
    torch.manual_seed(8)
    asked, keys = torch.randn(2, 7, 3, dtype=torch.float64), torch.randn(2, 5, 3, dtype=torch.float64)
    given = [tensor.requires_grad_() for tensor in (asked, keys, torch.randn(3, dtype=torch.float64))]
    ours = tanh_score.tanh_score(*given)
    theirs = torch.einsum("btsh,h->bts", (asked.unsqueeze(2) + keys.unsqueeze(1)).tanh(), given[2])
    part = torch.randn_like(ours)
    torch.testing.assert_close(ours, theirs, rtol=1e-12, atol=1e-12)
    grads = [torch.autograd.grad((score * part).sum(), given) for score in (ours, theirs)]
    torch.testing.assert_close(*grads, rtol=1e-11, atol=1e-12)
    assert torch.autograd.gradcheck(tanh_score.tanh_score, given, fast_mode=True)


def test_tanh_score_keeps_nothing_of_its_hidden_layer():
    given = [torch.randn(2, 7, 3, requires_grad=True), torch.randn(2, 5, 3), torch.randn(3)]
    kept = []
    with torch.autograd.graph.saved_tensors_hooks(lambda tensor: kept.append(tensor.numel()) or tensor, lambda x: x):
        tanh_score.tanh_score(*given)
    assert sum(kept) == sum(tensor.numel() for tensor in given)


def test_tanh_score_is_float32_under_autocast_and_takes_bfloat16():
    asked, keys, vector = torch.randn(2, 3, 4), torch.randn(2, 5, 4).bfloat16(), torch.randn(4)
    asked.requires_grad_()
    with torch.autocast("cpu", torch.bfloat16):
        score = tanh_score.tanh_score(asked, keys, vector)
    score.sum().backward()
    assert score.dtype is torch.float32 and asked.grad.dtype is torch.float32
    wanted = (asked.unsqueeze(2) + keys.float().unsqueeze(1)).tanh() @ vector
    torch.testing.assert_close(score, wanted)


@pytest.mark.parametrize("autocast", [True, False])
@pytest.mark.parametrize("grad", [True, False])
def test_the_fused_operation_in_bfloat16_is_near_float32(autocast, grad):
    torch.manual_seed(9)
    exact = MultiHead(8, 8, heads=2)
    query, encoded = torch.randn(ROWS, STEPS, 8), torch.randn(ROWS, SOURCE, 8)
    wanted = exact.context(query, exact.remember(encoded, MASK))
    if not autocast:
        exact, query, encoded = exact.bfloat16(), query.bfloat16(), encoded.bfloat16()
    with torch.autocast("cpu", torch.bfloat16, enabled=autocast), torch.set_grad_enabled(grad):
        near = exact.context(query, exact.remember(encoded, MASK))
    assert near.dtype is torch.bfloat16
    torch.testing.assert_close(near.float(), wanted, rtol=0.05, atol=0.05)
