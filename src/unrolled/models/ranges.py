"""Ranges of settings, checked where a settings file is read."""

from __future__ import annotations

from typing import Annotated

from annotated_types import Ge, Interval
from pydantic import StrictBool

from unrolled.base.errors import SettingsError

Count = Annotated[int, Ge(1)]
Share = Annotated[float, Interval(ge=0, lt=1)]
ResidualFrom = StrictBool | Annotated[int, Ge(2)]
"""Residual connections: true (from the first layer that can have one), false, or the layer they start at."""


def residual_from(residual: bool | int, earliest: int, layers: int) -> int:
    """The first layer with a residual connection, counted from 1; past the last layer where there is none."""
    if residual is False:
        return layers + 1
    first = earliest if residual is True else residual
    if residual is not True and first > layers:
        raise SettingsError(
            f"[residual] {first} was given, and there are {layers} layers: none would have a residual "
            "connection. Give at most the number of layers, or false."
        )
    return first
