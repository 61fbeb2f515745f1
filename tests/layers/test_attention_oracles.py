"""Attentions against Keras's layers, values and gradients; torch.nn.MultiheadAttention is in test_attention_heads."""

import pytest
import torch
from torch.nn import functional

from unrolled.layers import ATTENTIONS

ROWS, STEPS, SOURCE, QUERY, MEMORY, HIDDEN = 2, 3, 5, 6, 7, 4
LENGTHS = torch.tensor([5, 3])
MASK = torch.arange(SOURCE) < LENGTHS.unsqueeze(1)


def built(kind, query=QUERY, memory=MEMORY, **options):
    torch.manual_seed(3)
    attention = ATTENTIONS.build({"kind": kind, **options}, query, memory).double()
    for weight in attention.parameters():
        torch.nn.init.normal_(weight, std=0.5)
    return attention


def example(attention):
    torch.manual_seed(5)
    sizes = ((ROWS, STEPS, attention.query_size), (ROWS, SOURCE, attention.memory_size))
    return [torch.randn(size, dtype=torch.float64, requires_grad=True) for size in sizes]


def through_keras(layer, query, value, key):
    """Context and weights of Keras's layer of three inputs."""
    return layer([query, value, key], mask=[None, MASK], return_attention_scores=True)


def compare(attention, oracle, weights=()):
    """Equal contexts, weights, and gradients of query, memory and the attention's own ``weights``."""
    query, encoded = example(attention)
    seen = attention(query, attention.remember(encoded, MASK))
    context, scores = oracle(query, encoded)
    close(seen.context, context)
    close(seen.weights, scores)
    part = torch.randn(context.shape, dtype=torch.float64)
    given = (query, encoded, *weights)
    own, wanted = (torch.autograd.grad((one * part).sum(), given) for one in (seen.context, context))
    close(own, wanted)


def close(one, other):
    torch.testing.assert_close(one, other, rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("kind", ["dot", "scaled_dot"])
def test_products_equal_keras_attention(keras, kind):
    attention = built(kind, MEMORY, MEMORY)
    layer = keras.layers.Attention(use_scale=True, dtype="float64")
    layer.build([(ROWS, STEPS, MEMORY), (ROWS, SOURCE, MEMORY)])
    layer.set_weights([torch.tensor(1.0 if kind == "dot" else MEMORY**-0.5).numpy()])
    if kind == "scaled_dot":
        layer.scale.value.data.copy_(torch.tensor(MEMORY, dtype=torch.float64) ** -0.5)
    compare(attention, lambda query, encoded: through_keras(layer, query, encoded, encoded))


def test_bilinear_equals_keras_attention_over_multiplied_keys(keras):
    attention = built("bilinear")
    layer = keras.layers.Attention(dtype="float64")
    compare(
        attention,
        lambda query, encoded: through_keras(layer, query, encoded, functional.linear(encoded, attention.weight)),
        [attention.weight],
    )


@pytest.mark.parametrize("kind", ["additive", "concat"])
def test_additive_scores_equal_keras_additive_attention_over_its_two_products(keras, kind):
    attention = built(kind, hidden_size=HIDDEN)
    if kind == "additive":
        matrices = (attention.query_weight, attention.key_weight)
    else:
        matrices = (attention.weight[:, :QUERY], attention.weight[:, QUERY:])
    layer = keras.layers.AdditiveAttention(use_scale=True, dtype="float64")
    layer.build([(ROWS, STEPS, HIDDEN), (ROWS, SOURCE, MEMORY), (ROWS, SOURCE, HIDDEN)])
    layer.scale.value.data.copy_(attention.vector.data)

    def oracle(query, encoded):
        return through_keras(
            layer, functional.linear(query, matrices[0]), encoded, functional.linear(encoded, matrices[1])
        )

    compare(attention, oracle, [attention.query_weight] if kind == "additive" else [attention.weight])


@pytest.mark.parametrize("heads", [1, 2])
def test_multi_head_equals_keras_multi_head_attention(keras, heads):
    attention = built("multi_head", heads=heads, size=HIDDEN)
    size = HIDDEN // heads
    layer = keras.layers.MultiHeadAttention(heads, size, output_shape=MEMORY, dtype="float64", flash_attention=False)
    layer.build((ROWS, STEPS, QUERY), (ROWS, SOURCE, MEMORY))
    arrays = []
    for linear in (attention.query, attention.key, attention.value):
        arrays += [linear.weight.t().unflatten(1, (heads, size)), linear.bias.unflatten(0, (heads, size))]
    arrays += [attention.output.weight.t().unflatten(0, (heads, size)), attention.output.bias]
    for variable, array in zip(layer.trainable_variables, arrays, strict=True):
        variable.value.data.copy_(array.data)
    query, encoded = example(attention)
    seen = attention(query, attention.remember(encoded, MASK))
    context, scores = layer(query, encoded, attention_mask=MASK.unsqueeze(1), return_attention_scores=True)
    close(seen.context, context)
    close(seen.heads, scores.transpose(1, 2))
    part = torch.randn(context.shape, dtype=torch.float64)
    own = [attention.query.weight, attention.key.weight, attention.value.weight, attention.output.weight]
    theirs = [variable.value for variable in layer.trainable_variables[::2]]
    given = torch.autograd.grad((seen.context * part).sum(), (query, encoded, *own))
    wanted = torch.autograd.grad((context * part).sum(), (query, encoded, *theirs))
    close(given[:2], wanted[:2])
    for index, (one, other) in enumerate(zip(given[2:], wanted[2:], strict=True)):
        close(one.t(), other.flatten(1) if index < 3 else other.flatten(0, 1))
