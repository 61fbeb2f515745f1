"""Files appear whole or not at all: written beside their place, then renamed."""

from __future__ import annotations

import os
import secrets
from pathlib import Path

from unrolled.base.errors import UnrolledError


def write_beside(path: str | Path, content: bytes) -> Path:
    """Write ``content`` to ``path`` through a sibling file that is renamed; folders above are made.

    Raises UnrolledError where the place cannot be written or is full; nothing half-written is left.
    """
    path = Path(path)
    sibling = path.with_name(f".{path.name[:100]}.{secrets.token_hex(4)}.writing")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        try:
            with sibling.open("wb") as file:
                file.write(content)
                file.flush()
                os.fsync(file.fileno())
            sibling.replace(path)
        finally:
            sibling.unlink(missing_ok=True)
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise UnrolledError(f"{path}: cannot be written ({reason}). Free some space or choose another place.") from None
    return path
