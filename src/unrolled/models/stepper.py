"""A torch model behind the step protocol: NumPy in and out, no gradients, in float32 or with products in bfloat16."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from copy import deepcopy
from typing import Literal

import numpy as np
import torch
from torch import Tensor

from unrolled.base.protocol import Candidates, State
from unrolled.models.writing import Writing

Precision = Literal["float32", "bfloat16"]


class TorchStepper:
    """Drives ``model`` for a search, in evaluation mode, on ``device`` (None: where the model is).

    ``precision`` is that of products. In ``bfloat16`` a copy of the model is driven whose matrices are so: about half
    the time where many rows go together, none gained where one goes alone, and what a row gives may depend on the
    others in its last bits, so that near ties can fall the other way. Log-probabilities are float32 in both.

    Implements `unrolled.base.protocol.Stepper`. States are tuples of torch tensors; a search hands them back untouched.
    """

    def __init__(
        self, model: Writing, device: torch.device | str | None = None, *, precision: Precision = "float32"
    ) -> None:
        self.model = model.eval() if device is None else model.to(device).eval()
        self.precision = precision
        if precision == "bfloat16":
            self.model = halved(self.model)
        self.device = next(model.parameters()).device
        self.vocabulary_size = model.vocabulary_size

    def start(self, ids: np.ndarray, mask: np.ndarray) -> State:
        """Encode ``ids`` int64 [rows, source], or numbers [rows, …]; ``mask`` bool [rows, source], True = real."""
        with self._plainly():
            return self.model.start(self._tensor(ids), self._tensor(mask))

    def step(self, last_ids: np.ndarray, state: State, k: int) -> Candidates:
        """The ``k`` best next symbols of each row, best first, with natural-log probabilities."""
        with self._plainly():
            logits, weights, state = self.model.step(self._tensor(last_ids), state)
            logits = logits.float()
            ids = logits.topk(min(k, self.vocabulary_size), dim=-1).indices
            scores = logits.log_softmax(dim=-1).gather(-1, ids)
            return Candidates(_array(scores), _array(ids), None if weights is None else _array(weights.float()), state)

    def select(self, state: State, rows: np.ndarray) -> State:
        """The state of ``rows`` int64 [n], repeats allowed, in that order."""
        with self._plainly():
            return self.model.select(state, self._tensor(rows))

    def _tensor(self, array: np.ndarray) -> Tensor:
        return torch.from_numpy(np.ascontiguousarray(array)).to(self.device)

    @contextmanager
    def _plainly(self) -> Iterator[None]:
        half = self.precision == "bfloat16"
        with torch.inference_mode(), torch.autocast(self.device.type, dtype=torch.bfloat16, enabled=half):
            yield


def halved(model: Writing) -> Writing:
    """A copy of ``model`` with its matrices in bfloat16; vectors (biases, norms) stay as they are."""
    found = deepcopy(model)
    for parameter in found.parameters():
        if parameter.dim() > 1:
            parameter.data = parameter.data.to(torch.bfloat16)
        parameter.requires_grad_(False)
    return found


def _array(tensor: Tensor) -> np.ndarray:
    return tensor.cpu().numpy()
