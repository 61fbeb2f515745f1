"""A layout says which sizes the state of each layer has, so that a bridge can join layers of any two networks."""

from __future__ import annotations

from collections.abc import Sequence

Layout = tuple[tuple[int, ...], ...]
"""One tuple a layer, bottom first: the sizes of the layer's state tensors, as they lie in the flat state."""


def by_layer(sizes: Sequence[int], layers: int) -> Layout:
    """The flat ``sizes`` of a stack of ``layers`` alike as a layout.

    >>> by_layer((5, 5, 3, 3), 2)
    ((5, 5), (3, 3))
    """
    each = len(sizes) // layers
    return tuple(tuple(sizes[first : first + each]) for first in range(0, len(sizes), each))
