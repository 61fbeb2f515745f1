"""The state of every random generator that training may touch, as bytes in tensors."""

from __future__ import annotations

import contextlib
import json
import os
import random
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import torch
from torch import Tensor

from unrolled.base.errors import UnrolledError


def seed(value: int) -> None:
    """Seed Python's, NumPy's and torch's generators (torch's on every device)."""
    random.seed(value)
    np.random.seed(value % 2**32)
    torch.manual_seed(value)


def capture(device: torch.device) -> dict[str, Tensor]:
    """The state now: ``torch``, ``numpy``, ``python`` and, on a GPU, ``device``; all uint8."""
    name, keys, place, has_gauss, gauss = np.random.get_state(legacy=True)
    state = {
        "torch": torch.get_rng_state(),
        "numpy": _pack([name, [int(key) for key in keys], place, has_gauss, gauss]),
        "python": _pack(random.getstate()),
    }
    if device.type == "cuda":
        state["device"] = torch.cuda.get_rng_state(device)
    return state


def restore(state: Mapping[str, Tensor], device: torch.device) -> None:
    """Set the generators to a captured state."""
    torch.set_rng_state(state["torch"].cpu())
    name, keys, place, has_gauss, gauss = _unpack(state["numpy"])
    np.random.set_state((name, np.array(keys, dtype=np.uint32), place, has_gauss, gauss))
    version, words, following = _unpack(state["python"])
    random.setstate((version, tuple(words), following))
    if device.type == "cuda" and "device" in state:
        torch.cuda.set_rng_state(state["device"].cpu(), device)


@contextlib.contextmanager
def kept(device: torch.device) -> Iterator[None]:
    """What runs inside may draw as it likes; afterwards the generators stand where they stood."""
    state = capture(device)
    try:
        yield
    finally:
        restore(state, device)


def _pack(value: Any) -> Tensor:
    return torch.frombuffer(bytearray(json.dumps(value).encode()), dtype=torch.uint8)


def _unpack(tensor: Tensor) -> Any:
    return json.loads(bytes(tensor.cpu().numpy()))


@contextlib.contextmanager
def deterministic(wanted: bool) -> Iterator[None]:
    """Inside, torch uses repeatable kernels only; UnrolledError that names an operation which has none."""
    if not wanted:
        yield
        return
    before = torch.are_deterministic_algorithms_enabled(), torch.backends.cudnn.benchmark
    os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")  # asked for by cuBLAS, read when it starts
    torch.use_deterministic_algorithms(True)
    torch.backends.cudnn.benchmark = False
    try:
        yield
    except RuntimeError as error:
        if "deterministic" not in str(error):
            raise
        raise UnrolledError(
            f"train.deterministic was asked for, but torch has no repeatable form of an operation here: "
            f"{str(error).split('.')[0]}. Train without it, or on the CPU."
        ) from None
    finally:
        torch.use_deterministic_algorithms(before[0])
        torch.backends.cudnn.benchmark = before[1]
