"""Between tensors and NumPy arrays: copies, in a type that both know."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from unrolled.base.errors import UsageError


def array(tensor: Tensor) -> np.ndarray:
    """A copy as a NumPy array; types of fewer bits than float32, which NumPy lacks or others refuse, become float32."""
    wide = torch.promote_types(tensor.dtype, torch.float32)
    return tensor.detach().to("cpu", wide, copy=True).contiguous().numpy()


def tensor(array: np.ndarray) -> Tensor:
    """A copy as a tensor; UsageError for what is no array of real numbers."""
    found = np.asarray(array)
    if found.dtype.kind not in "fiu":
        raise UsageError(f"weights must be arrays of real numbers; one of type {found.dtype} was given.")
    return torch.from_numpy(found.astype(np.float64 if found.dtype == np.float64 else np.float32))
