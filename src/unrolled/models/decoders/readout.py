"""A readout joins what a decoder has at one step into the vector that the vocabulary is read from."""

from __future__ import annotations

from typing import Literal

import torch
from torch import Tensor, nn

from unrolled.base.errors import SettingsError
from unrolled.layers.kernels import steps
from unrolled.layers.kernels.choose import product_type
from unrolled.layers.kernels.deferred import Deferred

ReadoutKind = Literal["state", "tanh", "maxout"]


class Readout(nn.Module):
    """The state, and what else there is (context, embedding of the last symbol) → output.

    state   the cell's output alone
    tanh    t = tanh(W [parts] + b)                                     (Luong et al. 2015, arXiv:1508.04025, eq. 5)
    maxout  t_k = max(t~_2k, t~_2k+1),  t~ = W [parts] + b   (Bahdanau et al. 2015, A.2.2; Cho et al. 2014, A.1.2)

    ``size`` is that of the output; None takes the state's.
    """

    def __init__(self, sizes: tuple[int, ...], /, *, kind: ReadoutKind = "tanh", size: int | None = None) -> None:
        super().__init__()
        if size is not None and (kind == "state" or size < 1):
            raise SettingsError(
                f"[readout_size] {size} was given; "
                + (
                    "the readout 'state' has the cell's own size. Leave it out."
                    if kind == "state"
                    else "give at least 1."
                )
            )
        self.kind = kind
        self.output_size = size or sizes[0]
        if kind != "state":
            self.mix = nn.Linear(sum(sizes), self.output_size * (2 if kind == "maxout" else 1))

    def forward(self, parts: tuple[Tensor, ...], held: Deferred | None = None) -> Tensor:
        """``parts`` [..., size] each, in the order of the sizes; ``held`` is W where a loop holds it for its steps."""
        if self.kind == "state":
            return parts[0]
        if held is None:
            made = steps.product(parts, self.mix.weight, self.mix.bias, squashed=self.kind == "tanh")
            if made is not None:
                return made if self.kind == "tanh" else self._largest(made)
        product = product_type(self.mix.weight)
        joined = torch.cat([part.to(product) for part in parts], dim=-1)
        mixed = self.mix(joined) if held is None else held.product(joined) + self.mix.bias
        if self.kind == "tanh":
            return steps.tanh(mixed)
        return self._largest(mixed)

    def _largest(self, mixed: Tensor) -> Tensor:
        """Of each two."""
        return mixed.unflatten(-1, (self.output_size, 2)).amax(dim=-1)
