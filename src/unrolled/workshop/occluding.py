"""What a text loses where parts of its source are covered, one at a time: of recordings and of images."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from unrolled.base.protocol import BEGIN, END
from unrolled.text.padding import pad
from unrolled.text.writing import Sides

TOGETHER = 32
"""Sources that go through a network at once."""


def lost(
    network: Any, text: Sides, whole: Any, covered: Sequence[Any], ids: Sequence[int], *, device: Any
) -> np.ndarray:
    """What each symbol of the target ``ids`` loses in log-probability with each of the ``covered`` sources in the place
    of the ``whole`` one: float64 [symbols, covered] (occlusion, Zeiler & Fergus 2014, arXiv:1311.2901).
    """
    import torch

    sources = [whole, *covered]
    target, target_mask = (torch.from_numpy(array).to(device) for array in pad([[BEGIN, *ids, END]]))
    said = []
    for start in range(0, len(sources), TOGETHER):
        given, mask = (torch.from_numpy(array).to(device) for array in text.padded(sources[start : start + TOGETHER]))
        rows = len(given)
        with torch.inference_mode():
            values = network.log_probs(given, mask, target.expand(rows, -1), target_mask.expand(rows, -1))
        said.append(values[:, : len(ids)].float().cpu().numpy().astype(np.float64))
    every = np.concatenate(said)
    effects: np.ndarray = (every[:1] - every[1:]).T
    return effects
