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
        with contextlib.suppress(OSError):  # one that something else is in stays
            for folder in made:
                folder.rmdir()
        reason = getattr(error, "strerror", None) or error
        raise UnrolledError(f"{path}: cannot be written ({reason}). Free some space or choose another place.") from None
    return path
