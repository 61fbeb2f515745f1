"""A search's whole step with Luong's decoder in one compiled call, where weights and tensors are of the plain kind.

Between two products Python and torch find nothing of theirs in a near cache any more: a step of sixty calls spends a
tenth of its time between them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import torch
from torch import Tensor

from unrolled.layers.kernels.steps import plain
from unrolled.layers.kernels.tiled import TiledWeight

if TYPE_CHECKING:
    from unrolled.layers.kernels.compiled.vectors import Panels


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
    panels = [weight.laid_out() for weight in (own.input, own.hidden, own.mix, own.output)]
    return _said(own, panels, last, state, k) if _whole(own, panels) else None


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


def _whole(own: Luong, found: list[Any]) -> bool:
    """Whether weights are in panels, filled up with nothing but for the output's."""
    from unrolled.layers.kernels.compiled.vectors import Panels

    of_one_kind = all(type(one) is Panels and one.kind == found[0].kind for one in found)
    return of_one_kind and [one.width for one in found[:3]] == [own.input.width, own.hidden.width, own.mix.width]


def _said(own: Luong, panels: list[Panels], last: Tensor, state: Before, k: int) -> Said | None:
    """`say` of what fits."""
    from unrolled.layers.kernels.compiled import luong
    from unrolled.layers.kernels.compiled.threads import available

    (rows, n), (places, width), fed, hidden = state.hidden.shape, state.values.shape[1:], state.fed, state.hidden
    into, _, mix, output = panels
    made = Said(
        hidden.new_empty(rows, k),
        last.new_empty(rows, k),
        hidden.new_empty(rows, places),
        hidden.new_empty(rows, mix.width),
        torch.empty_like(hidden),
        torch.empty_like(hidden),
    )
    biases = (
        own.input.filled(own.input_bias, into.width),
        own.mix.filled(own.mix_bias, mix.width),
        own.output.filled(own.output_bias, output.width),
    )
    sizes = own.table.width, own.table.depth, own.input.depth - own.table.depth, n, places, width, mix.width
    given = (*state[:3], hidden if fed is None else fed, *state[4:])
    done = luong.step(
        available(), into.kind, rows, *sizes, own.output.width, output.width, k, *(one.at for one in panels),
        *(tensor.data_ptr() for tensor in (own.table.whole, *biases, last, *given, *made)),
    )  # fmt: skip
    return made if done else None
