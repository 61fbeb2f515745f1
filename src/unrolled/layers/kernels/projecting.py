"""The input products of a layer of compiled loops: for all steps at once, plain or normalised."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor

from unrolled.layers.kernels import compiled
from unrolled.layers.kernels.tiled import TiledWeight

if TYPE_CHECKING:
    from unrolled.layers.kernels.compiled.norms import Normed


class Projection:
    """W x + b of one direction, or gain · LN(W x) + b over each of ``widths`` gates; an object serves one call.

    ``weight`` [gates * hidden, input] is in the type of products; ``bias`` and ``gain`` [gates * hidden].
    """

    def __init__(
        self, weight: Tensor, bias: Tensor, gain: Tensor | None, widths: tuple[int, ...], work: torch.dtype
    ) -> None:
        self.weight, self.bias, self.work = weight, bias.detach().to(work), work
        self.gain = None if gain is None else gain.detach().to(work)
        self.widths = np.array(widths, np.int64)

    def ahead(self, x: Tensor) -> tuple[Tensor | None, int]:
        """What `forward` wants laid out, [input, gates * hidden], and of how many products; None where it wants torch.

        ``x`` [Σ counts, input] is in the type of products.
        """
        rows, turned = x.shape[0], self.weight.t()
        own = type(self.weight) is not TiledWeight and compiled.once_pays(turned.shape, x.dtype, rows)
        if self.gain is None and x.dtype is self.work and not own:
            return None, 0
        return turned, compiled.PRODUCTS if own else rows // compiled.STEP

    def forward(self, x: Tensor, weight: Any, total: Tensor) -> None:
        """Into ``total``, packed [Σ counts, gates * hidden], in the type of sums; ``weight``: `ahead`, laid out."""
        from unrolled.layers.kernels.compiled import projection as loops
        from unrolled.layers.kernels.compiled.arrays import array

        self.x = x
        if weight is None and type(self.weight) is TiledWeight:
            total.copy_(torch.addmm(self.bias, x, self.weight.t()))
            return
        if weight is None:
            torch.addmm(self.bias, x, self.weight.t(), out=total)
            return
        told = array(x), weight, array(self.bias)
        if self.gain is None:
            loops.project(*told, array(total))
        else:
            self.given = torch.empty_like(total)
            self.moments = total.new_empty(2, x.shape[0], len(self.widths))
            loops.project_normed(*told, self.norm(None), self.widths, array(total))

    def backward(self, grad: Tensor) -> tuple[Tensor, Tensor | None]:
        """The gradients of the product, in its type, and of the gain, from that of `forward`'s result.

        With a gain the one that is given is overwritten, where it has the product's type.
        """
        if self.gain is None:
            return grad.to(self.weight.dtype), None
        from unrolled.layers.kernels.compiled import projection as loops
        from unrolled.layers.kernels.compiled.arrays import array

        gain, grad = torch.empty_like(self.gain), grad.contiguous()
        dtype = self.weight.dtype
        own = grad if grad.dtype is dtype else grad.new_empty(grad.shape, dtype=dtype)
        loops.project_normed_back(array(grad), self.norm(own), self.widths, array(gain))
        return own, gain

    def norm(self, grad: Tensor | None) -> Normed:
        """The normalisation, whose product's gradient goes into ``grad``."""
        from unrolled.layers.kernels.compiled.arrays import array, some
        from unrolled.layers.kernels.compiled.norms import Normed

        mean, spread = array(self.moments)
        return Normed(some(self.gain), None, array(self.given), mean, spread, some(grad), 0, None, None)


def sum_of_rows(grad: Tensor, work: torch.dtype) -> Tensor:
    """The sum over the rows of ``grad``, in the type of sums: of a total's gradient, that of its bias."""
    if grad.dtype is not torch.bfloat16:
        return grad.sum(0, dtype=work)
    from unrolled.layers.kernels.compiled.arrays import array
    from unrolled.layers.kernels.compiled.projection import sum_rows

    total = grad.new_empty(grad.shape[1], dtype=work)
    sum_rows(array(grad), array(total))
    return total
