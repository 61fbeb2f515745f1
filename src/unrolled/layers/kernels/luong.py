"""A search's whole step with Luong's decoder in one compiled call, where weights and tensors are of the plain kind.

Between two products Python and torch find nothing of theirs in a near cache any more: a step of many calls spends a
tenth of its time on them.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from unrolled.layers.kernels.steps import plain
from unrolled.layers.kernels.tiled import TiledWeight


class Luong(NamedTuple):
    """Weights, laid out, of a model that embeds, moves an LSTM, looks by q · k, joins both and says a symbol.

    h, C = lstm([E y, s~], h, C);  α = softmax_j(h · k_j);  s~' = tanh(W_c [h, Σ_j α_j v_j] + b_c);  W s~' + b
    """

    table: TiledWeight  # E [symbols, embedding]
    input: TiledWeight  # [4n, embedding, or that and the size of s~ where it is fed]
    input_bias: Tensor
    hidden: TiledWeight  # [4n, n]
    mix: TiledWeight  # W_c [size, n + values]
    mix_bias: Tensor
    output: TiledWeight  # W [vocabulary, size]
    output_bias: Tensor


class Before(NamedTuple):
    """What a step starts from; every row of the mask has a real place."""

    keys: Tensor  # [rows, places, n]
    values: Tensor  # [rows, places, width]
    mask: Tensor  # bool [rows, places]
    fed: Tensor | None  # s~ [rows, size], where it is fed
    hidden: Tensor  # h and C, [rows, n]
    memory: Tensor


class Said(NamedTuple):
    """What a step made."""

    scores: Tensor  # [rows, k], natural-log probabilities of the likeliest symbols
    ids: Tensor  # int64 [rows, k]
    weights: Tensor  # α [rows, places]
    output: Tensor  # s~' [rows, size]
    hidden: Tensor  # h and C, [rows, n]
    memory: Tensor


def say(own: Luong, last: Tensor, state: Before, k: int) -> Said | None:
    """The ``k`` likeliest symbols after ``last`` int64 [rows], and where the decoder is then.

    The numbers are those of `steps.product`, `steps.lstm_step`, `steps.look` and `steps.likeliest`. None where one of
    these would not do it, where a last symbol is none, or where the new state holds what is no number: the caller has
    the parts themselves, which say what is wrong.
    """
    keys, values, mask, fed, hidden, memory = state
    state = Before(keys, values, mask.contiguous(), fed, hidden.contiguous(), memory.contiguous())
    if not _fit(own, last, state) or not 0 < k <= own.output.width:
        return None
    return _said(own, last, state, k)


def _fit(own: Luong, last: Tensor, state: Before) -> bool:
    """Whether compiled code may work on these, and sizes are those of the weights."""
    keys, values, mask, fed, hidden, memory = state
    rows, n = len(last), own.hidden.depth
    given = (keys, values, hidden, memory) if fed is None else (keys, values, hidden, memory, fed)
    if not plain(own.table.whole, *given) or last.dtype is not torch.int64 or mask.dtype is not torch.bool:
        return False
    if rows > own.hidden.way.most_rows or torch.is_autocast_enabled("cpu"):
        return False
    places, size, embedding = mask.shape[-1], own.mix.width, own.table.depth
    width, feeding = own.mix.depth - n, own.input.depth - embedding
    shapes = (
        (last, (rows,)),
        (keys, (rows, places, n)),
        (values, (rows, places, width)),
        (mask, (rows, places)),
        (hidden, (rows, n)),
        (memory, (rows, n)),
    )
    fits = all(tensor.shape == shape for tensor, shape in shapes) and last.is_contiguous()
    return fits and (feeding == 0 if fed is None else fed.shape == (rows, feeding) and feeding == size)


def _said(own: Luong, last: Tensor, state: Before, k: int) -> Said | None:
    """`say` of what fits."""
    from unrolled.layers.kernels.compiled import luong

    panels = [weight.laid_out() for weight in (own.input, own.hidden, own.mix, own.output)]
    into, hidden, mix, output = (one.width for one in panels)
    if (into, hidden, mix) != (own.input.width, own.hidden.width, own.mix.width):
        return None  # of these the function wants none that is filled up
    biases = (
        own.input.filled(own.input_bias, into),
        own.mix.filled(own.mix_bias, mix),
        own.output.filled(own.output_bias, output),
    )
    like, fed, (symbols, embedding) = state.hidden, state.fed, (own.table.width, own.table.depth)
    (rows, n), (places, width) = like.shape, state.values.shape[1:]
    made = Said(
        like.new_empty(rows, k),
        last.new_empty(rows, k),
        like.new_empty(rows, places),
        like.new_empty(rows, mix),
        like.new_empty(rows, n),
        like.new_empty(rows, n),
    )
    feeding = own.input.depth - embedding
    sizes = rows, symbols, embedding, feeding, n, places, width, mix, own.output.width, output, k
    given = (*state[:3], like if fed is None else fed, *state[4:])
    return made if luong.step(sizes, panels, (own.table.whole, *biases, last, *given, *made)) else None
