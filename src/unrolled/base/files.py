"""Files appear whole or not at all: written beside their place, then renamed."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path

from unrolled.base.errors import UnrolledError
from unrolled.base.siblings import clear_abandoned, sibling


def write_beside(path: str | Path, content: bytes) -> Path:
    """Write ``content`` to ``path`` through a sibling file that is renamed; folders above are made.

    Raises UnrolledError where the place cannot be written or is full; nothing half-written is left, nor a folder that
    was made for it.
    """
    path = Path(path)
    made: list[Path] = []
    try:
        if ".." in path.parts:  # what would be made to go through it is not made
            path = Path(os.path.realpath(path.parent)) / path.name
        part = sibling(path)
        made = [folder for folder in path.parents if not folder.exists()]
        path.parent.mkdir(parents=True, exist_ok=True)
        clear_abandoned(path)
        try:
            with part.open("wb") as file:
                file.write(content)
                file.flush()
                os.fsync(file.fileno())
            part.replace(path)
        finally:
            part.unlink(missing_ok=True)
    except (OSError, ValueError) as error:
        for folder in made:
            with contextlib.suppress(OSError):  # one that something else is in stays
                folder.rmdir()
        reason = getattr(error, "strerror", None) or error
        raise UnrolledError(f"{path}: cannot be written ({reason}). Free some space or choose another place.") from None
    return path
