"""The folder of a run: what stands in it already, the record that --resume starts from, and who may write there."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
from collections.abc import Sequence
from itertools import count
from pathlib import Path
from typing import Any, TextIO

from unrolled.base.errors import DataError, UnrolledError, UsageError
from unrolled.base.files import write_beside
from unrolled.base.siblings import clear_abandoned
from unrolled.ship.folder import TRAINING

LOCK = "lock"
NEXT = "next"
"""What a run is prepared in: the folder of the run before stays as it is until there is something in its place."""


def read_record(out: Path) -> dict[str, Any]:
    """The sources and settings of the run in ``out``; UsageError where there is none, DataError for a damaged one."""
    path = out / TRAINING / "run.json"
    try:
        record = json.loads(path.read_text(encoding="utf-8"))
    except OSError:
        raise UsageError(f"{out}: there is no run to resume here. Start one without --resume.") from None
    except ValueError:
        raise DataError(f"{path}: damaged, not JSON. Start the run again without --resume.") from None
    if not isinstance(record, dict) or not isinstance(record.get("settings"), dict):
        raise DataError(f"{path}: damaged, the settings are missing. Start the run again without --resume.")
    return record


def write_record(out: Path, record: dict[str, Any]) -> None:
    """Write what ``read_record`` reads."""
    write_beside(out / TRAINING / "run.json", (json.dumps(record, indent=1) + "\n").encode())


def lock(out: Path) -> TextIO | None:
    """Keep other processes out until the file is closed or this process ends; UsageError where one is in there.

    Also removes what a killed run left half-written beside ``out``.
    """
    folder = out / TRAINING
    try:
        folder.mkdir(parents=True, exist_ok=True)
        clear_abandoned(out)
        file = (folder / LOCK).open("a+", encoding="utf-8")
    except OSError as error:
        raise UnrolledError(f"{out}: cannot be written ({error.strerror}). Give another --out.") from None
    try:
        import fcntl

        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        file.seek(0)
        owner = file.read().strip()
        file.close()
        if owner == str(os.getpid()):
            return None
        raise UsageError(
            f"{out}: process {owner} is training here. Wait until it ends, or choose another --out."
        ) from None
    except (ImportError, OSError):  # a system or a disk without locks
        return file
    file.truncate(0)
    file.write(f"{os.getpid()}\n")
    file.flush()
    return file


def refuse_finished(out: Path) -> None:
    """UsageError where ``out`` holds a trained model: training there would replace it."""
    from unrolled.ship.folder import is_model

    if is_model(out) and (_finished(out) or not has_checkpoint(out)):
        free = next(name for number in count(2) if not (name := out.with_name(f"{out.name}-{number}")).exists())
        raise UsageError(
            f"{out}: holds a trained model, which training here would replace. Choose another --out ({free} is free), "
            "go on training it by --resume, or say --replace."
        )


def refuse_stopped(out: Path) -> None:
    """UsageError where ``out`` holds a run that was stopped: it can go on."""
    if has_checkpoint(out) and not _finished(out):
        raise UsageError(
            f"{out}: holds a run that was stopped. Go on with it by --resume, choose another --out, or remove "
            f"{out / TRAINING}."
        )


def missing(out: Path) -> list[Path]:
    """The folders that a run in ``out`` makes, the innermost first."""
    folder = out / TRAINING
    return [path for path in (folder, *folder.parents) if not path.exists()]


def begin(out: Path) -> Path:
    """An empty folder in which the next run of ``out`` is prepared."""
    folder = out / TRAINING / NEXT
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    return folder


def take_over(out: Path) -> None:
    """What was prepared takes the place of the run before."""
    folder = out / TRAINING
    for path in folder.iterdir():
        if path.is_dir() and path.name != NEXT:
            shutil.rmtree(path, ignore_errors=True)
        elif path.name not in (NEXT, LOCK):
            path.unlink(missing_ok=True)
    for path in (folder / NEXT).iterdir():
        path.replace(folder / path.name)
    (folder / NEXT).rmdir()


def give_up(out: Path, made: Sequence[Path]) -> None:
    """Remove what was prepared, and the folders ``made`` for it (the innermost first) as far as nothing else is in
    them."""
    shutil.rmtree(made[0] if made else out / TRAINING / NEXT, ignore_errors=True)
    with contextlib.suppress(OSError):
        for path in made[1:]:
            path.rmdir()


def _finished(out: Path) -> bool:
    from unrolled.ship.folder import is_model

    try:
        return bool(read_record(out).get("finished", is_model(out)))
    except UnrolledError:
        return is_model(out)


def has_checkpoint(out: Path) -> bool:
    """Whether the run in ``out`` came as far as its first checkpoint."""
    return any((out / TRAINING / "checkpoints").glob("step-*"))


def refuse_strange(out: Path) -> None:
    """UsageError where ``out`` holds something else than a model or a run."""
    from unrolled.ship.folder import is_model

    if out.is_dir() and not is_model(out):
        strange = sorted(path.name for path in out.iterdir() if path.name != TRAINING)
        if strange:
            raise UsageError(f"{out}: holds other things ({', '.join(strange[:3])}). Choose a new or empty folder.")
    elif out.exists() and not out.is_dir():
        raise UsageError(f"{out}: is a file, where a folder for the model is expected. Choose another place.")
