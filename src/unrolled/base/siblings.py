"""Hidden names beside a file or folder, under which its next version is written, and what killed writers leave."""

from __future__ import annotations

import contextlib
import glob
import hashlib
import os
import platform
import re
import secrets
import shutil
import time
from pathlib import Path

DAY = 24 * 3600.0


def sibling(path: Path) -> Path:
    """A new hidden name beside ``path`` for what will take its place, with the machine and the process that writes."""
    return path.with_name(f".{_stem(path)}.{_machine()}-{os.getpid()}-{secrets.token_hex(4)}.writing")


def clear_abandoned(path: Path) -> None:
    """Remove the siblings of ``path`` whose writer was killed: its process is gone, or they are older than a day."""
    for part in path.parent.glob(f".{glob.escape(_stem(path))}.*.writing"):
        with contextlib.suppress(OSError):
            if _abandoned(part):
                if part.is_dir() and not part.is_symlink():
                    shutil.rmtree(part, ignore_errors=True)
                else:
                    part.unlink(missing_ok=True)


def _abandoned(part: Path) -> bool:
    if time.time() - part.lstat().st_mtime > DAY:
        return True
    writer = re.search(r"\.([0-9a-f]+)-(\d+)-[0-9a-f]+\.writing$", part.name)
    return writer is not None and writer[1] == _machine() and not _alive(int(writer[2]))


def _alive(process: int) -> bool:
    if os.name != "posix":  # elsewhere asking would end it
        return True
    try:
        os.kill(process, 0)
    except (ProcessLookupError, OverflowError):
        return False
    except OSError:
        return True
    return True


def _stem(path: Path) -> str:
    return path.resolve().name[:100]


def _machine() -> str:
    return hashlib.blake2b(platform.node().encode(), digest_size=3).hexdigest()
