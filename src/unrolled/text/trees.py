"""JSON files in which text sides keep what is no tokenizer's: written, and read with an error that names the file."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from unrolled.base.errors import DataError, UnrolledError, UsageError


def write_tree(path: Path, tree: Mapping[str, Any]) -> None:
    """Write ``path``, and its folder where there is none; UnrolledError where it cannot be."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(tree, ensure_ascii=False, indent=1) + "\n", encoding="utf-8")
    except OSError as error:
        raise UnrolledError(f"{path.parent}: cannot be written ({error.strerror}).") from None


@contextmanager
def tree_of(path: Path, holds: str) -> Iterator[Any]:
    """What ``write_tree`` wrote, to be taken apart in the block: DataError for a file that is missing, and for one that
    is no JSON or in which the block does not find what it looks for; ``holds`` says what that is, e.g. "labels"."""
    try:
        yield json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise DataError(f"{path}: the {holds} cannot be read ({error.strerror}).") from None
    except (ValueError, TypeError, KeyError, AttributeError, UsageError):
        raise DataError(
            f"{path}: damaged, it does not hold the {holds}. Take the file from where the model came from."
        ) from None
