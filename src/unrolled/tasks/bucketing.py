"""The batches of a task whose rows are of different lengths, as the settings of a run have them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np

    from unrolled.data.batching import Batches, Columns, Rows


def bucketed(
    rows: Rows,
    settings: Mapping[str, Any],
    *,
    train: bool,
    name: str,
    specials: Sequence[int],
    collate: Callable[[Columns, np.ndarray], Any],
) -> Batches:
    """`unrolled.data.batching.Batches` of ``rows`` by the sections ``train`` and ``data`` of a run's ``settings``.

    ``train``, ``name``: as in `Task.batches`; ``specials``, ``collate``: what is the task's own.
    """
    from unrolled.data.batching import Batches

    training, data = settings["train"], settings["data"]
    sentences = training["batch_sentences"]
    return Batches(
        rows,
        tokens=None if sentences else training["batch_tokens"],
        sentences=sentences,
        seed=training["seed"],
        shuffle=train,
        max_length=data["max_length"],
        too_long=data["too_long"],
        name=name,
        specials=specials,
        collate=collate,
    )
