"""The folder of a run: what stands in it already, the record that --resume starts from, and who may write there."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path
from typing import Any, TextIO

from unrolled.base.errors import DataError, UnrolledError, UsageError
from unrolled.base.files import write_beside
from unrolled.base.siblings import clear_abandoned
from unrolled.ship.folder import TRAINING

LOCK = "lock"


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


def clear(out: Path) -> None:
    """Remove the run in ``out``, if it came to its end. UsageError for one that was stopped: it can go on."""
    if has_checkpoint(out) and not _finished(out):
        raise UsageError(
            f"{out}: holds a run that was stopped. Go on with it by --resume, choose another --out, or remove "
            f"{out / TRAINING}."
        )
    for path in (out / TRAINING).iterdir():
        if path.is_dir():
            shutil.rmtree(path, ignore_errors=True)
        elif path.name != LOCK:
            path.unlink(missing_ok=True)


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
