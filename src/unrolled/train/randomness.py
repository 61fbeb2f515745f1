"""The state of every random generator that training may touch: taken, set back, and as bytes in tensors."""

from __future__ import annotations

import contextlib
import json
import os
import random
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from unrolled.base.errors import UnrolledError


def seed(value: int) -> None:
    """Seed Python's, NumPy's and torch's generators (torch's on every device)."""
    random.seed(value)
    np.random.seed(value % 2**32)
    torch.manual_seed(value)


class Randomness(NamedTuple):
    """Where the generators stand; cheap to take (some microseconds), so that every batch can."""

    torch: Tensor  # uint8
    numpy: tuple[Any, ...]
    python: tuple[Any, ...]
    device: Tensor | None  # uint8; a GPU's


def capture(device: torch.device) -> Randomness:
    """The state now, of the CPU and of ``device``."""
    own = torch.cuda.get_rng_state(device) if device.type == "cuda" else None
    return Randomness(torch.get_rng_state(), np.random.get_state(), random.getstate(), own)  # type: ignore[arg-type]


def restore(state: Randomness, device: torch.device) -> None:
    """Set the generators to a captured state."""
    torch.set_rng_state(state.torch)
    np.random.set_state(state.numpy)
    random.setstate(state.python)
    if state.device is not None and device.type == "cuda":
        torch.cuda.set_rng_state(state.device, device)


def pack(state: Randomness) -> dict[str, Tensor]:
    """The state as uint8 tensors, for a file."""
    kind, keys, *rest = state.numpy
    tensors = {"torch": state.torch, "python": _bytes(state.python), "numpy": _bytes([kind, keys.tolist(), *rest])}
    return tensors if state.device is None else {**tensors, "device": state.device}


def unpack(tensors: Mapping[str, Tensor]) -> Randomness:
    """What ``pack`` made, as a state; KeyError or ValueError where it is something else."""
    version, words, following = _value(tensors["python"])
    kind, keys, *rest = _value(tensors["numpy"])
    numpy_state = (kind, np.array(keys, dtype=np.uint32), *rest)
    return Randomness(tensors["torch"], numpy_state, (version, tuple(words), following), tensors.get("device"))


@contextlib.contextmanager
def kept(device: torch.device) -> Iterator[None]:
    """What runs inside may draw as it likes; afterwards the generators stand where they stood."""
    state = capture(device)
    try:
        yield
    finally:
        restore(state, device)


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


def _bytes(value: Any) -> Tensor:
    return torch.frombuffer(bytearray(json.dumps(value).encode()), dtype=torch.uint8)


def _value(tensor: Tensor) -> Any:
    return json.loads(tensor.numpy().tobytes())
