"""Weights in one safetensors file; a tensor that several names share is stored once."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from unrolled.base.errors import DataError

if TYPE_CHECKING:
    from torch import Tensor

_AGAIN = "Copy the whole folder again from where it was saved, or train again."


def write_weights(path: Path, tensors: Mapping[str, Tensor]) -> None:
    """Write a state dict; OSError where the place is full or cannot be written."""
    from safetensors import SafetensorError
    from safetensors.torch import save_file

    stored: dict[str, Tensor] = {}
    shared: dict[str, str] = {}
    owners: dict[tuple[object, ...], str] = {}
    for name, tensor in tensors.items():
        view = tensor.detach()
        identity = (view.device, view.data_ptr(), view.shape, view.stride(), view.dtype)
        if view.numel() and identity in owners:
            shared[name] = owners[identity]
            continue
        owners[identity] = name
        stored[name] = view.cpu().contiguous().clone()
    try:
        save_file(stored, path, metadata={"shared": json.dumps(shared)})
    except SafetensorError as error:
        raise OSError(0, str(error)) from None


def read_weights(path: Path, device: str) -> dict[str, Tensor]:
    """The state dict on ``device``; DataError for anything but a sound safetensors file. Nothing is unpickled."""
    from safetensors import SafetensorError, safe_open

    _refuse_pickle(path)
    try:
        with safe_open(path, framework="pt") as file:
            metadata = file.metadata() or {}
            tensors = {name: file.get_tensor(name).to(device) for name in file.keys()}  # noqa: SIM118
        for name, owner in json.loads(metadata.get("shared", "{}")).items():
            tensors[name] = tensors[owner]
    except (SafetensorError, OSError, ValueError, KeyError, AttributeError) as error:
        raise DataError(f"{path}: cannot be read as safetensors ({error}). {_AGAIN}") from None
    return tensors


def _refuse_pickle(path: Path) -> None:
    try:
        with path.open("rb") as file:
            start = file.read(9)
    except OSError as error:
        raise DataError(f"{path}: cannot be read ({error.strerror}). {_AGAIN}") from None
    if start[8:] == b"{":  # the eight bytes of a length, then JSON: a length of 896 begins like a pickle of protocol 3
        return
    if start.startswith((b"PK\x03\x04", b"\x80\x02", b"\x80\x03", b"\x80\x04", b"\x80\x05")):
        raise DataError(
            f"{path}: is a pickle, not safetensors. A pickle can run any program when opened, so it is not. "
            "Save the weights with safetensors.torch.save_file."
        )
