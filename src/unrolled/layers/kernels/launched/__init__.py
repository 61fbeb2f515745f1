"""A cell's loop over time as one launch on a GPU, for the cells that cuDNN lacks: kernels in Triton.

Rows of a batch do not know each other, so a program takes sixteen of them through all steps, and no program waits for
another. Buffers are those of the compiled loops (kernels/compiled/), whose equations these are; the kernels as torch's
calls (kernels/lstm.py, kernels/gru.py) are the reference, and what runs where these do not.
"""

from __future__ import annotations

import os
import warnings
from functools import cache

import torch

from unrolled.layers.cells import GRU, LSTM, Cell

TYPES = (torch.float32, torch.bfloat16, torch.float16)

WIDEST = 512
"""Units up to which a program reads its weight from the GPU's cache in each step in less time than calls take."""


def possible(cell: Cell) -> bool:
    """Whether there is a launch for this cell, where its weights are: gates, and nothing that is normalised.

    A full peephole and a projection, which are products of their own in each step, are left to torch's calls.
    """
    if type(cell) not in (LSTM, GRU) or cell.layer_norm or cell.hidden_weight.dtype not in TYPES:
        return False
    if isinstance(cell, LSTM) and (cell.peephole == "full" or cell.projection_weight is not None):
        return False
    return (cell.hidden_weight.is_cuda or interpreted()) and found()


def worthwhile(cell: Cell, dtype: torch.dtype) -> bool:
    """Whether it is taken unasked, with products in ``dtype``."""
    return possible(cell) and cell.hidden_size <= WIDEST and dtype in TYPES


def interpreted() -> bool:
    """Whether Triton's kernels are run by its interpreter, on any device: TRITON_INTERPRET=1, which tests set."""
    return os.environ.get("TRITON_INTERPRET") == "1"


@cache
def found() -> bool:
    """Whether Triton is there: torch brings it along for a GPU."""
    try:
        import triton  # noqa: F401
    except ImportError:
        return False
    except Exception as error:  # it asks drivers and compilers, which raise what they like
        warnings.warn(f"Triton is there and cannot be loaded: {type(error).__name__}: {error}", stacklevel=2)
        return False
    return True


@cache
def trusted(device: torch.device) -> bool:
    """Whether small layers on the device come out as torch's calls make them; where not, a warning says why."""
    from unrolled.layers.kernels.launched.check import fault

    why = fault(device)
    if why is not None:
        warnings.warn(
            f"loops over time in Triton are not used on {device}: {why}. Recurrent layers without a cuDNN kernel run "
            "by calls of torch, slower and with the same results.",
            stacklevel=2,
        )
    return why is None
