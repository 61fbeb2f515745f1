"""Checkpoints: folders of safetensors and JSON, written beside and renamed, each file's sum in ``manifest.json``."""

from __future__ import annotations

import json
import os
import re
import shutil
import tempfile
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from torch import Tensor, nn

from unrolled.base.errors import DataError, UnrolledError

FORMAT = 1
KEPT = 2
"""How many checkpoints are kept besides the best weights: the last, and one before it should the last be damaged."""

Tensors = Mapping[str, Tensor]


class Checkpoint(NamedTuple):
    state: dict[str, Any]
    tensors: dict[str, dict[str, Tensor]]  # by file: weights, optimizer, random, average


def weights_of(model: nn.Module) -> dict[str, Tensor]:
    """The tensors of ``model`` by name, those that are tied to an earlier one left out."""
    seen: set[int] = set()
    weights = {}
    for name, tensor in model.state_dict(keep_vars=True).items():
        if id(tensor) not in seen:
            seen.add(id(tensor))
            weights[name] = tensor
    return weights


def prepare(folder: Path) -> None:
    """Make ``folder`` and try to write there, before hours of training find that one cannot; UnrolledError then."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            pass
    except OSError as error:
        raise UnrolledError(f"{folder}: cannot be written ({error.strerror or error}). Give another --out.") from None


def write(folder: Path, name: str, tensors: Mapping[str, Tensors], state: Mapping[str, Any]) -> Path:
    """Write ``folder/name`` whole or not at all: beside it first, onto the disk, then renamed.

    Raises UnrolledError where the disk is full or the folder cannot be written; what was there before stays.
    """
    path, part = folder / name, folder / f"{name}.part"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        shutil.rmtree(part, ignore_errors=True)
        part.mkdir()
        for file, content in tensors.items():
            ready = {key: tensor.detach().contiguous() for key, tensor in content.items()}
            save_file(ready, part / f"{file}.safetensors")
        (part / "state.json").write_bytes(_json({"format": FORMAT, **state}))
        sums = {file.name: _sum(file) for file in sorted(part.iterdir())}
        (part / "manifest.json").write_bytes(_json(sums))
        for written in part.iterdir():
            _flush(written)
        _flush(part)
        if path.exists():  # a run that was resumed from an earlier point comes by again
            shutil.rmtree(path)
        part.rename(path)
        _flush(folder)
    except (OSError, SafetensorError) as error:
        shutil.rmtree(part, ignore_errors=True)
        raise UnrolledError(
            f"{path}: the checkpoint cannot be written ({error}). Earlier ones are whole. "
            "Make room or give another --out, then go on with --resume."
        ) from None
    return path


def read(path: Path) -> Checkpoint:
    """A checkpoint whose every byte is what was written; DataError that names the file which is not."""
    try:
        manifest = (path / "manifest.json").read_bytes()
        sums = json.loads(manifest)
        if _json(sums) != manifest:
            raise DataError(f"{path / 'manifest.json'}: damaged (it is not as it was written).")
        for file, expected in sums.items():
            if _sum(path / file) != expected:
                raise DataError(f"{path / file}: damaged (its sum is not the one that was written).")
        state = json.loads((path / "state.json").read_text(encoding="utf-8"))
        names = [Path(file) for file in sums if file.endswith(".safetensors")]
        tensors = {file.stem: load_file(path / file) for file in names}
    except (OSError, ValueError, AttributeError, SafetensorError) as error:
        raise DataError(f"{path}: the checkpoint is damaged ({error}).") from None
    if state.get("format") != FORMAT:
        raise DataError(f"{path}: checkpoint format {state.get('format')} was given; this version reads {FORMAT}.")
    return Checkpoint(state, tensors)


def steps(folder: Path) -> list[Path]:
    """The checkpoints in ``folder``, newest first."""
    return _numbered(folder, "step")


def best(folder: Path) -> Path | None:
    """The folder with the best weights so far."""
    return next(iter(_numbered(folder, "best")), None)


def read_last(folder: Path) -> tuple[Path, Checkpoint] | None:
    """The newest checkpoint; None where there is none; DataError where it is damaged, which offers the one before."""
    found = steps(folder)
    if not found:
        return None
    try:
        return found[0], read(found[0])
    except DataError as error:
        for earlier in found[1:]:
            try:
                read(earlier)
            except DataError:
                continue
            offer = f"The one before it is whole: remove {found[0]} and resume from {earlier.name}."
            raise DataError(f"{error} {offer}") from None
        raise DataError(f"{error} There is no earlier one that is whole: train anew in another folder.") from None


def prune(folder: Path, best_step: int | None) -> None:
    """Remove all but the newest checkpoints, best weights of other steps, and what a killed run left half done."""
    old = steps(folder)[KEPT:]
    old += [path for path in _numbered(folder, "best") if path.name != f"best-{best_step or 0:08d}"]
    for path in [*old, *folder.glob("*.part")]:
        shutil.rmtree(path, ignore_errors=True)


def forget_after(folder: Path, step: int) -> None:
    """Remove best weights of later steps than ``step``: a run that goes on from there has not seen them."""
    for path in _numbered(folder, "best"):
        if int(path.name.removeprefix("best-")) > step:
            shutil.rmtree(path, ignore_errors=True)


def load_weights(model: nn.Module, weights: Tensors, where: str) -> None:
    """Copy ``weights`` into the tensors of ``model``; DataError where names or shapes differ."""
    own = weights_of(model)
    for name in sorted(own.keys() ^ weights.keys()):
        what = "is not in the checkpoint" if name in own else "is in the checkpoint, but not in the model"
        raise DataError(f"{where}: '{name}' {what}. Use the settings that the run was started with.")
    for name, tensor in own.items():
        if tensor.shape != weights[name].shape:
            raise DataError(
                f"{where}: '{name}' has the shape {tuple(weights[name].shape)} in the checkpoint and "
                f"{tuple(tensor.shape)} in the model. Use the settings that the run was started with."
            )
    copy_weights(own, weights)


@torch.no_grad()
def copy_weights(own: Tensors, weights: Tensors) -> None:
    """Copy ``weights`` into the tensors ``own``, which keep their place in memory."""
    for name, tensor in own.items():
        tensor.copy_(weights[name])


def _numbered(folder: Path, kind: str) -> list[Path]:
    found = []
    for path in folder.iterdir() if folder.is_dir() else ():
        match = re.fullmatch(rf"{kind}-(\d+)", path.name)
        if match:
            found.append((int(match[1]), path))
    return [path for _, path in sorted(found, reverse=True)]


def _json(value: Mapping[str, Any]) -> bytes:
    return (json.dumps(value, indent=1) + "\n").encode()


def _sum(path: Path) -> list[int]:
    """Length and CRC-32 of a file."""
    length, crc = 0, 0
    with path.open("rb") as file:
        while block := file.read(1 << 20):
            length, crc = length + len(block), zlib.crc32(block, crc)
    return [length, crc]


def _flush(path: Path) -> None:
    """Onto the disk: a file, or a folder's list of names (where the system can)."""
    if path.is_file():
        with path.open("r+b") as file:
            os.fsync(file.fileno())
    elif os.name != "nt":
        handle = os.open(path, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
