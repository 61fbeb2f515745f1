"""What a text side of series says of networks, windows and numbers: sizes, and series as a network reads them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

import numpy as np

from unrolled.base.errors import DataError
from unrolled.base.settings import Tree
from unrolled.text.forecasting import SeriesText
from unrolled.text.series import Series

if TYPE_CHECKING:
    from unrolled.data.windows import Cutting
    from unrolled.models.forecaster import Extent

UPDATES = 1500
"""Updates that a run has where nobody says how long it is."""

LEAST, MOST = 3, 12
"""Epochs that it has at least and at most: few windows are soon learnt by heart."""

VALIDATIONS = 30
"""How often such a run is validated."""

FEW, MANY = 500, 3000
"""Windows up to which a batch holds 16, and 32 of them; above, 64."""


def sized(windows: int) -> Tree:
    """Settings for so many windows to learn from: enough updates, of batches that suit them."""
    size = 16 if windows <= FEW else 32 if windows <= MANY else 64
    updates = max(1, windows // size)
    epochs = int(np.clip(round(UPDATES / updates), LEAST, MOST))
    every = max(1, updates * epochs // VALIDATIONS)
    return {"train": {"batch_sentences": size, "epochs": epochs, "validate_every": every}}


def extent_of(text: SeriesText) -> Extent:
    """The sizes of a network that reads what ``text`` encodes."""
    from unrolled.models.forecaster import Extent

    channels = text.numbers + text.ahead - len(text.roles.known)
    window, missing = text.window, cast("Any", text.missing)
    targets = len(text.roles.target)
    return Extent(targets, channels, text.numbers, text.ahead, window.context, window.horizon, window.season, missing)


def cutting_of(text: SeriesText) -> Cutting:
    """How windows are cut out of series that ``text`` has encoded."""
    from unrolled.data.windows import Cutting

    window = text.window
    return Cutting(
        context=window.context,
        horizon=window.horizon,
        least=window.least,
        targets=len(text.roles.target),
        numbers=text.numbers,
        ahead=text.ahead,
        forward=int(text.missing == "forward"),
    )


def encoded(one: Series, text: SeriesText, name: str) -> np.ndarray:
    """Float32 [time, channels] of a series; DataError names the file."""
    try:
        return text.encoded(one)
    except DataError as error:
        raise DataError(f"{name}: {error}") from None
