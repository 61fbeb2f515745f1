"""A saved model is a folder that any device opens and no unpickler touches; it appears whole or not at all.

settings.yaml      format, version, sizes and checksums of the other files, and the settings tree
model.safetensors  the weights
text/              what the tokenizers saved
scores.json        scores with their protocol
README.md          the model card, free to be edited
"""

from __future__ import annotations

import contextlib
import glob
import json
import math
import os
import shlex
import shutil
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from unrolled.base.errors import DataError, UnrolledError, UsageError
from unrolled.base.settings import Tree
from unrolled.base.siblings import clear_abandoned, sibling
from unrolled.ship.manifest import Manifest
from unrolled.ship.weights import read_weights, write_weights

if TYPE_CHECKING:
    from torch import Tensor

SETTINGS, WEIGHTS, SCORES, CARD, TEXT = "settings.yaml", "model.safetensors", "scores.json", "README.md", "text"
TRAINING = "training"
"""Folder beside the model's files that holds what a resumed run needs; alone, it is of a run that has not finished."""

_OURS = frozenset((SETTINGS, WEIGHTS, SCORES, CARD, TEXT))


@dataclass(frozen=True)
class Saved:
    """An opened model folder. Text and scores were compared with their checksums; weights are when they are read."""

    folder: Path
    settings: Tree
    scores: dict[str, Any]
    version: str  # of the package that wrote it
    manifest: Manifest

    @property
    def text(self) -> Path:
        """The folder that the tokenizers load from."""
        return self.folder / TEXT

    def tensors(self, device: str = "cpu") -> dict[str, Tensor]:
        """The state dict on ``device``; DataError for damaged weights."""
        self.manifest.verify(self.folder, WEIGHTS)
        return read_weights(self.folder / WEIGHTS, device)


def is_model(folder: str | Path) -> bool:
    """Whether ``folder`` looks like a saved model (it may still be damaged)."""
    folder = Path(folder)
    return (folder / SETTINGS).is_file() and (folder / WEIGHTS).is_file()


def write(
    folder: str | Path,
    *,
    settings: Mapping[str, Any],
    tensors: Mapping[str, Tensor],
    text: Callable[[Path], object],
    scores: Mapping[str, Any],
    card: str,
    keep: Collection[str] = (),
) -> Path:
    """Save a model into ``folder``: written beside it, then renamed.

    A saved model that is there already is replaced, and what else lies in its folder stays. A folder that holds
    anything but a model and the names in ``keep`` is refused (UsageError) and left as it is. UnrolledError where the
    place cannot be written or is full; no half folder is left, and one that a killed process left is removed.
    """
    folder = Path(folder)
    _refuse_strange(folder, keep)
    part = sibling(folder)
    try:
        try:
            folder.parent.mkdir(parents=True, exist_ok=True)
            clear_abandoned(folder)
            (part / TEXT).mkdir(parents=True)
            text(part / TEXT)
            write_weights(part / WEIGHTS, tensors)
            (part / SCORES).write_text(json.dumps(known(dict(scores)), indent=1) + "\n", encoding="utf-8")
            (part / CARD).write_bytes(card.encode("utf-8", "replace"))
            files = [WEIGHTS, SCORES, *(path.relative_to(part).as_posix() for path in _files(part / TEXT))]
            shutil.copymode(part / SCORES, part / WEIGHTS)  # safetensors writes for the owner's eyes only
            manifest = Manifest.of(part, files)
            (part / SETTINGS).write_bytes(manifest.with_settings(settings))
            _flush(part)
            _exchange(part, folder)
        finally:
            shutil.rmtree(part, ignore_errors=True)
    except OSError as error:
        raise UnrolledError(
            f"{folder}: the model cannot be saved ({error.strerror or error}). Free some space or choose another place."
        ) from None
    return folder


def read(folder: str | Path) -> Saved:
    """Open a saved model; DataError that names the missing, damaged or too new file and says what to do."""
    folder = Path(folder)
    if not os.path.lexists(folder):
        with contextlib.suppress(OSError):
            _recover(folder)
    if not folder.is_dir():
        given = "is a file" if folder.exists() else "does not exist"
        raise DataError(
            f"{folder}: {given}, where the folder of a saved model is expected. Train one with: unrolled train"
        )
    if not (folder / SETTINGS).exists():
        if (folder / TRAINING).is_dir():
            raise DataError(
                f"{folder}: its training has not finished, so there is no model yet. Go on with: unrolled train "
                f"--resume --out {shlex.quote(str(folder))}"
            )
        raise DataError(f"{folder}: no saved model, {SETTINGS} is missing. Give the folder that unrolled train wrote.")
    manifest, settings = Manifest.read(folder / SETTINGS)
    for name in manifest.files:
        manifest.verify(folder, name, contents=name != WEIGHTS)
    for name in (WEIGHTS, SCORES):
        if name not in manifest.files:
            raise DataError(
                f"{folder / SETTINGS}: lists no {name}. Copy the whole folder again from where it was saved."
            )
    return Saved(folder, settings, _scores(folder / SCORES), manifest.version, manifest)


def _scores(path: Path) -> dict[str, Any]:
    try:
        scores = json.loads(path.read_bytes())
    except (OSError, ValueError, RecursionError) as error:
        raise DataError(
            f"{path}: cannot be read as JSON ({error}). Copy the folder again from where it was saved."
        ) from None
    if not isinstance(scores, dict):
        raise DataError(f"{path}: holds no mapping of scores. Copy the folder again from where it was saved.")
    return scores


def known(tree: Any) -> Any:
    """The tree with null where a number is not finite: JSON has no other word for it."""
    if isinstance(tree, Mapping):
        return {name: known(value) for name, value in tree.items()}
    if isinstance(tree, list | tuple):
        return [known(value) for value in tree]
    return None if isinstance(tree, float) and not math.isfinite(tree) else tree


def _files(folder: Path) -> list[Path]:
    return sorted(path for path in folder.rglob("*") if path.is_file())


def _refuse_strange(folder: Path, keep: Collection[str]) -> None:
    try:
        _recover(folder)
        if not os.path.lexists(folder) or is_model(folder):
            return
        if not folder.is_dir():
            raise UsageError(f"{folder}: is a file, where a folder for the model is expected. Choose another place.")
        strange = sorted(path.name for path in folder.iterdir() if path.name not in keep)
    except OSError as error:
        raise UnrolledError(f"{folder}: cannot be read ({error.strerror}). Choose another place.") from None
    if strange:
        raise UsageError(
            f"{folder}: holds something else than a saved model ({', '.join(strange[:3])}). "
            "Nothing was written; choose a new or empty folder."
        )


def _flush(folder: Path) -> None:
    for path in _files(folder):
        with path.open("rb") as file:
            os.fsync(file.fileno())


def _exchange(new: Path, folder: Path) -> None:
    """Put ``new`` in the place of ``folder``; what is no part of a model moves over; the old one is back on failure."""
    if not os.path.lexists(folder):
        new.rename(folder)
        return
    old = new.with_suffix(".old")
    folder.rename(old)
    try:
        new.rename(folder)
    except BaseException:
        old.rename(folder)
        raise
    _bring_over(old, folder)


def _bring_over(old: Path, folder: Path) -> None:
    for path in old.iterdir():
        if path.name not in _OURS and not os.path.lexists(folder / path.name):
            path.rename(folder / path.name)
    shutil.rmtree(old, ignore_errors=True)


def _recover(folder: Path) -> None:
    """Finish an exchange that was killed between its renames: the old model, or what lay beside it, comes back."""
    for old in sorted(folder.parent.glob(f".{glob.escape(folder.resolve().name[:100])}.*.old")):
        if os.path.lexists(folder):
            _bring_over(old, folder)
        else:
            old.rename(folder)
