"""A torch model behind the step protocol: NumPy in and out, no gradients, in float32 or with products in bfloat16."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from copy import deepcopy
from typing import Any

import numpy as np
import torch
from torch import Tensor

from unrolled.base.protocol import Candidates, State
from unrolled.layers.kernels import compiled
from unrolled.layers.kernels.tiled import Precision, lay_out
from unrolled.models.at_once import AtOnce
from unrolled.models.writing import Writing


class TorchStepper:
    """Drives ``model`` for a search, in evaluation mode, on ``device`` (None: where the model is).

    ``precision`` is that of products. In ``bfloat16``, and of a model that is ``trained`` (its weights change no more,
    or by operations of torch's alone), a copy is driven that shares the weights: on a processor one whose matrices are
    laid out for products with few rows, in bfloat16 in tile registers where there are such; elsewhere one whose
    matrices are bfloat16, under autocast. What a row gives in bfloat16 may depend on the others in its last bits, so
    that near ties can fall the other way. Log-probabilities are float32 always.

    Implements `unrolled.base.protocol.Stepper`. States are tuples of torch tensors; a search hands them back untouched.
    """

    def __init__(
        self,
        model: Writing,
        device: torch.device | str | None = None,
        *,
        precision: Precision = "float32",
        trained: bool = False,
    ) -> None:
        self.model = model.eval() if device is None else model.to(device).eval()
        self.precision = precision
        self.device = next(model.parameters()).device
        half = precision == "bfloat16"
        laid_out = (half or trained) and lays_out(self.device, precision)
        self._tiled = half and laid_out and compiled.tiles_found()
        self._halved = half and not laid_out
        if laid_out:
            self.model = tiled(self.model, precision)
        elif half:
            self.model = halved(self.model)
        self._at_once = AtOnce.of(self.model) if laid_out and isinstance(self.model, Writing) else None
        self.vocabulary_size = model.vocabulary_size

    def start(self, ids: np.ndarray, mask: np.ndarray) -> State:
        """Encode ``ids`` int64 [rows, source], or numbers [rows, …]; ``mask`` bool [rows, source], True = real."""
        with self._plainly(half=self._halved or self._tiled):
            state = self.model.start(self._tensor(ids), self._tensor(mask))
            return tuple(map(_widened, state)) if self._tiled else state

    def step(self, last_ids: np.ndarray, state: State, k: int) -> Candidates:
        """The ``k`` best next symbols of each row, best first, with natural-log probabilities."""
        with self._plainly(half=self._halved):
            last, k = self._tensor(last_ids), min(k, self.vocabulary_size)
            found = None if self._at_once is None else self._at_once.offer(last, state, k)
            scores, ids, weights, state = self.model.offer(last, state, k) if found is None else found
            return Candidates(_array(scores), _array(ids), None if weights is None else _array(weights.float()), state)

    def select(self, state: State, rows: np.ndarray) -> State:
        """The state of ``rows`` int64 [n], repeats allowed, in that order."""
        with self._plainly(half=False):
            return self.model.select(state, self._tensor(rows))

    def _tensor(self, array: np.ndarray) -> Tensor:
        return torch.from_numpy(np.ascontiguousarray(array)).to(self.device)

    def _plainly(self, *, half: bool) -> AbstractContextManager[Any]:
        """Without gradients; ``half``: with torch's products in bfloat16."""
        if half or torch.is_autocast_enabled(self.device.type):
            return self._cast(half)
        return torch.inference_mode()

    @contextmanager
    def _cast(self, half: bool) -> Iterator[None]:
        with torch.inference_mode(), torch.autocast(self.device.type, dtype=torch.bfloat16, enabled=half):
            yield


def lays_out(device: torch.device, precision: Precision) -> bool:
    """Whether a search there lays weights out for its own products, of bfloat16 without instructions for it too."""
    found = compiled.panels_found() or (precision == "bfloat16" and compiled.tiles_found())
    return device.type == "cpu" and found


def halved(model: Writing) -> Writing:
    """A copy of ``model`` with its matrices in bfloat16; vectors (biases, norms) stay as they are."""
    found = deepcopy(model)
    for parameter in found.parameters():
        if parameter.dim() > 1:
            parameter.data = parameter.data.to(torch.bfloat16)
        parameter.requires_grad_(False)
    return found


def tiled(model: Writing, precision: Precision = "bfloat16") -> Writing:
    """A copy of ``model`` over the same weights, whose matrices are laid out once for products with few rows."""
    found = deepcopy(model, {id(weight): weight for weight in (*model.parameters(), *model.buffers())})
    lay_out(found, precision)
    return found


def _widened(part: Tensor) -> Tensor:
    return part.float() if part.dtype is torch.bfloat16 else part


def _array(tensor: Tensor) -> np.ndarray:
    return tensor.cpu().numpy()
