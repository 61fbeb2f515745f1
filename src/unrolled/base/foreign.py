"""Parts of someone else: files and packages that register themselves, loaded when a name is met that nobody knows."""

from __future__ import annotations

import importlib
import importlib.util
import os
import sys
from functools import cache
from importlib.metadata import entry_points
from pathlib import Path

from unrolled.base.errors import SettingsError

VARIABLE = "UNROLLED_PARTS"
"""The environment variable that names Python files or modules, as PATH names folders."""

GROUP = "unrolled.parts"
"""The entry points of installed packages; each names a module to import."""

HINT = f"A part of your own? Name its file in the environment variable {VARIABLE}."


@cache
def load_foreign_parts() -> None:
    """Import every module that installed packages and the environment name, once a process.

    SettingsError where one cannot be imported.
    """
    for entry in entry_points(group=GROUP):
        _load(entry.value, f"the package of the entry point {entry.name}")
    for place in filter(None, os.environ.get(VARIABLE, "").split(os.pathsep)):
        _load(place, VARIABLE)


def _load(place: str, told_by: str) -> None:
    try:
        if place.endswith(".py"):
            _load_file(Path(place).resolve())
        else:
            importlib.import_module(place)
    except SettingsError:
        raise
    except Exception as error:
        raise SettingsError(
            f"{told_by} names '{place}', which cannot be imported ({type(error).__name__}: {error}). Give the path of "
            "a Python file or the name of a module."
        ) from error


def _load_file(path: Path) -> None:
    if any(getattr(module, "__file__", None) == str(path) for module in list(sys.modules.values())):
        return  # who imported it has registered its parts
    spec = importlib.util.spec_from_file_location(path.stem, path)
    if spec is None or spec.loader is None or not path.is_file():
        raise FileNotFoundError(f"no file {path}")
    module = importlib.util.module_from_spec(spec)
    sys.modules[path.stem] = module
    spec.loader.exec_module(module)
