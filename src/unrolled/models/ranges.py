"""Ranges of settings, checked where a settings file is read."""

from __future__ import annotations

from typing import Annotated

from annotated_types import Ge, Interval

Count = Annotated[int, Ge(1)]
Share = Annotated[float, Interval(ge=0, lt=1)]
