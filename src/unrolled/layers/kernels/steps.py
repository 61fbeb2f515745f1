"""The work of one step of a search beside its products, by compiled code where the tensors are of the plain kind.

A function that does not take tensors of any kind wants what `plain` says; its caller has torch's words for others.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from unrolled.layers.kernels.compiled import product_found
from unrolled.layers.kernels.tiled import TiledWeight
from unrolled.layers.surroundings import followed


def plain(*tensors: Tensor) -> bool:
    """Whether compiled code may work on them: in inference mode, float32 on a processor, their numbers side by side."""
    whole = torch.is_inference_mode_enabled() and all(map(_whole, tensors)) and product_found(torch.float32)
    return whole and not followed(tensors[0])


def _whole(tensor: Tensor) -> bool:
    return (
        type(tensor) is Tensor
        and tensor.dtype is torch.float32
        and tensor.is_cpu
        and tensor.is_contiguous()
        and tensor.numel() > 0
    )


def tanh(x: Tensor) -> Tensor:
    """tanh x, of any shape and kind."""
    return put_tanh(x, torch.empty_like(x)) if plain(x) else torch.tanh(x)


def put_tanh(x: Tensor, out: Tensor) -> Tensor:
    """out = tanh x, of any shape and kind; no graph."""
    if not (_whole(x) and _whole(out) and product_found(torch.float32)):
        return torch.tanh(x, out=out)
    from unrolled.layers.kernels.compiled import steps

    steps.squash(x.numel(), x.data_ptr(), out.data_ptr())
    return out


def panels_of(weight: Any, rows: int, inner: int, width: int) -> Any:
    """The panels of a weight [width, inner], perhaps filled up; None where a product with it is made elsewhere.

    That is, where it is not in panels, or rows are too many.
    """
    if type(weight) is not TiledWeight or weight.turned or weight.kind is not torch.float32:
        return None
    if (weight.width, weight.depth) != (width, inner):
        return None
    if rows > weight.way.most_rows or torch.is_autocast_enabled("cpu"):
        return None
    from unrolled.layers.kernels.compiled.vectors import Panels

    laid = weight.laid_out()
    return laid if type(laid) is Panels else None


def product(
    parts: tuple[Tensor, ...], weight: Tensor, bias: Tensor, *, squashed: bool = False, apart: bool = False
) -> Tensor | None:
    """W [x, y] + b [rows, width] of one or two parts [rows, size] side by side, or with ``squashed`` tanh of it.

    Rows may lie further ``apart`` than they are wide: those of a width that is filled up do, and to copy wide ones
    takes time. None where it is not made so in one call: the caller has torch's words for it.
    """
    if not torch.is_inference_mode_enabled() or len(parts) > 2 or not plain(*parts, bias.detach()):
        return None
    rows, (first, *more) = len(parts[0]), [part.shape[-1] for part in parts]
    second = more[0] if more else 0
    if any(tuple(part.shape) != (rows, size) for part, size in zip(parts, (first, second), strict=False)):
        return None
    panels = panels_of(weight, rows, first + second, len(bias))
    if panels is None or not isinstance(weight, TiledWeight):
        return None
    from unrolled.layers.kernels.compiled import stepping
    from unrolled.layers.kernels.compiled.threads import available

    filled, out = panels.width > len(bias), parts[0].new_empty(rows, panels.width)
    whole = weight.filled(bias, panels.width) if filled else bias
    at = (parts[0].data_ptr(), parts[-1].data_ptr(), whole.data_ptr(), out.data_ptr())
    stepping.join(rows, first, second, squashed, *at, available(), *panels[1:])
    found = out[:, : len(bias)] if filled else out
    return found if apart else found.contiguous()


def likeliest(hidden: Tensor, weight: Tensor, bias: Tensor, k: int) -> tuple[Tensor, Tensor] | None:
    """The ``k`` likeliest symbols under softmax(W x + b) of each row of ``hidden``: what layers/likeliest.py says.

    Their log-probabilities and ids [rows, k], of as many symbols as there are at least, in one call; no logits are
    left. None as of `product`.
    """
    if not torch.is_inference_mode_enabled() or hidden.dim() != 2 or not plain(hidden, bias.detach()):
        return None
    rows, inner = hidden.shape
    panels = panels_of(weight, rows, inner, len(bias))
    if panels is None or not isinstance(weight, TiledWeight) or not 0 < k <= len(bias):
        return None
    from unrolled.layers.kernels.compiled import stepping
    from unrolled.layers.kernels.compiled.threads import available

    scores, ids = hidden.new_empty(rows, k), torch.empty(rows, k, dtype=torch.int64, device="cpu")
    whole = weight.filled(bias, panels.width) if panels.width > len(bias) else bias
    at = (hidden.data_ptr(), whole.data_ptr(), scores.data_ptr(), ids.data_ptr())
    stepping.say(rows, inner, len(bias), k, *at, available(), *panels[1:])
    return scores, ids


def lstm_step(projected: Tensor, h: Tensor, memory: Tensor, weight: Tensor) -> tuple[Tensor, Tensor] | None:
    """h' and C' [rows, n] from the input product [rows, 4n], h, C and U, in one call; None as of `product`."""
    if not torch.is_inference_mode_enabled() or not plain(projected, h, memory):
        return None
    rows, n = memory.shape
    panels = panels_of(weight, rows, n, 4 * n)
    if panels is None or panels.width != 4 * n or h.shape != memory.shape or tuple(projected.shape) != (rows, 4 * n):
        return None
    from unrolled.layers.kernels.compiled import stepping
    from unrolled.layers.kernels.compiled.threads import available

    made, output = torch.empty_like(memory), torch.empty_like(memory)
    at = (projected.data_ptr(), h.data_ptr(), memory.data_ptr(), made.data_ptr(), output.data_ptr())
    stepping.lstm(rows, n, *at, available(), *panels[1:])
    return output, made


def lstm(total: Tensor, memory: Tensor) -> tuple[Tensor, Tensor]:
    """h and C' [rows, n] from the totals of i, f, g and o [rows, 4n], which are overwritten, and C [rows, n]."""
    from unrolled.layers.kernels.compiled import steps

    made, output = torch.empty_like(memory), torch.empty_like(memory)
    at = (total.data_ptr(), memory.data_ptr(), made.data_ptr(), output.data_ptr())
    steps.lstm(*memory.shape, *at)
    return output, made


def gru_gates(total: Tensor, h: Tensor) -> Tensor:
    """r * h [rows, n]; the totals of z and r [rows, 2n] become the gates."""
    from unrolled.layers.kernels.compiled import steps

    past = torch.empty_like(h)
    steps.gates(*h.shape, total.data_ptr(), h.data_ptr(), past.data_ptr())
    return past


def gru_update(gates: Tensor, candidate: Tensor, h: Tensor) -> Tensor:
    """h' = h + z (tanh(candidate) - h), [rows, n]."""
    from unrolled.layers.kernels.compiled import steps

    new = torch.empty_like(h)
    steps.update(*h.shape, gates.data_ptr(), candidate.data_ptr(), h.data_ptr(), new.data_ptr())
    return new


def read(weights: Tensor, values: Tensor) -> Tensor:
    """Σ_j α_j v_j, [rows, width], of weights [rows, places] and values [rows, places, width], of any kind; no graph."""
    if not (_whole(weights) and _whole(values) and product_found(torch.float32)):
        return torch.bmm(weights.unsqueeze(1), values).squeeze(1)
    from unrolled.layers.kernels.compiled import steps

    context = values.new_empty(len(values), values.shape[2])
    steps.read(*values.shape, weights.data_ptr(), values.data_ptr(), context.data_ptr())
    return context


def meet(values: Tensor, vectors: Tensor) -> Tensor:
    """v_j · x, [rows, places], of values [rows, places, width] and vectors x [rows, width], of any kind; no graph."""
    if not (_whole(values) and _whole(vectors) and product_found(torch.float32)):
        return torch.bmm(values, vectors.unsqueeze(2)).squeeze(2)
    from unrolled.layers.kernels.compiled import steps

    products = values.new_empty(values.shape[:2])
    steps.meet(*values.shape, values.data_ptr(), vectors.data_ptr(), products.data_ptr())
    return products


def additive_score(query: Tensor, keys: Tensor, vector: Tensor) -> Tensor:
    """e_j = vᵀ tanh(q + k_j), [rows, places], of one query a row [rows, size] and keys [rows, places, size].

    All float32 on a processor, numbers side by side; without a graph.
    """
    from unrolled.layers.kernels.compiled import steps

    scores = keys.new_empty(keys.shape[:2])
    steps.score(*keys.shape, query.data_ptr(), keys.data_ptr(), vector.data_ptr(), scores.data_ptr())
    return scores


def look(query: Tensor, keys: Tensor, values: Tensor, mask: Tensor, vector: Tensor | None) -> tuple[Tensor, Tensor]:
    """Weights [rows, places] and context [rows, width] of one query a row [rows, size].

    α = softmax_j(q · k_j), or with a ``vector`` v of vᵀ tanh(q + k_j), over the places where ``mask`` is true; keys
    [rows, places, size], values [rows, places, width]. Every row has a real place.
    """
    from unrolled.layers.kernels.compiled import steps

    weights, context = query.new_empty(mask.shape), query.new_empty(len(query), values.shape[2])
    hidden, last = (0, 0) if vector is None else (len(vector), vector.data_ptr())
    sizes = (*keys.shape, values.shape[2], hidden)
    inputs = (query.data_ptr(), keys.data_ptr(), values.data_ptr(), mask.data_ptr(), last)
    steps.look(*sizes, *inputs, weights.data_ptr(), context.data_ptr())
    return weights, context
