"""settings.yaml of a saved model: its format, and a checksum for every file, so that damage is found, not loaded."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from importlib.metadata import PackageNotFoundError
from importlib.metadata import version as installed
from pathlib import Path, PurePosixPath
from typing import Any

from unrolled.base.errors import DataError, SettingsError, UsageError
from unrolled.base.settings import Tree, read_yaml

FORMAT = 2
"""The format that this version writes."""


def _without_signal_classifier(tree: Tree) -> Tree:
    """Format 2 has no ``signal_classifier``: what labels signals now has other weights and another text."""
    model = tree.get("model")
    if isinstance(model, dict) and model.get("kind") == "signal_classifier":
        raise DataError(
            "a model 'signal_classifier' of an earlier version, which is no longer read. Train it again; settings call "
            "it numbers_to_label now, with model.front for model.size and model.noise."
        )
    return tree


MIGRATIONS: dict[int, Callable[[Tree], Tree]] = {1: _without_signal_classifier}
"""Format n → how a settings tree of format n becomes one of n + 1; DataError for what there is no longer. Every later
format adds its step here."""

_AGAIN = "Copy the whole folder again from where it was saved, or train again."
_SEAL = "# sha256 of the lines below (delete this line if you change them by hand): "
_RESERVED = ("format", "unrolled", "files")


@dataclass(frozen=True)
class Manifest:
    """``files`` maps each path, relative to the folder, to its (bytes, sha256)."""

    files: dict[str, tuple[int, str]]
    format: int = FORMAT
    version: str = field(default_factory=lambda: package_version())

    @classmethod
    def of(cls, folder: Path, names: Iterable[str]) -> Manifest:
        """Measure the files ``names`` in ``folder``."""
        return cls({name: fingerprint(folder / name) for name in names})

    def with_settings(self, settings: Mapping[str, Any]) -> bytes:
        """The text of settings.yaml: a seal over what follows, the format, the settings, the files."""
        import yaml

        for name in _RESERVED:
            if name in settings:
                raise UsageError(f"settings: the name '{name}' is taken by the model folder. Call it something else.")
        listed = {name: {"bytes": size, "sha256": digest} for name, (size, digest) in self.files.items()}
        tree = {"format": self.format, "unrolled": self.version, **settings, "files": listed}
        try:
            body = yaml.safe_dump(tree, sort_keys=False, allow_unicode=True).encode()
        except (yaml.YAMLError, ValueError) as error:
            raise UsageError(f"settings: cannot be written as YAML ({str(error).splitlines()[0]}).") from None
        return f"{_SEAL}{hashlib.sha256(body).hexdigest()}\n".encode() + body

    @classmethod
    def read(cls, path: Path) -> tuple[Manifest, Tree]:
        """The manifest and the settings tree in this version's format; DataError for damage and newer formats."""
        tree = _sealed_tree(path)
        number = tree.pop("format", None)
        version = str(tree.pop("unrolled", "of unknown version"))
        if not isinstance(number, int) or isinstance(number, bool) or number < 1:
            raise DataError(f"{path}: 'format' is {number!r} where a whole number is expected. {_AGAIN}")
        if number > FORMAT:
            raise DataError(
                f"{path.parent}: saved in format {number} by unrolled {version}; this is unrolled {package_version()}, "
                f"which reads format {FORMAT} and older. Update it: pip install --upgrade unrolled"
            )
        files = _listed(path, tree.pop("files", None))
        for older in range(number, FORMAT):
            try:
                tree = MIGRATIONS[older](tree)
            except DataError as error:
                raise DataError(f"{path.parent}: {error}") from None
        return cls(files, number, version), tree

    def verify(self, folder: Path, name: str, *, contents: bool = True) -> None:
        """Compare size and, with ``contents``, checksum of one file; DataError that names it."""
        path = folder / name
        size, digest = self.files[name]
        try:
            if not path.is_file():
                raise DataError(f"{path}: is missing from the saved model. {_AGAIN}")
            found = path.stat().st_size
            if found != size:
                raise DataError(f"{path}: is damaged, {found} bytes where {size} were saved. {_AGAIN}")
            if contents and fingerprint(path)[1] != digest:
                raise DataError(f"{path}: is damaged, its checksum differs from the saved one. {_AGAIN}")
        except OSError as error:
            raise DataError(f"{path}: cannot be read ({error.strerror}). {_AGAIN}") from None


def fingerprint(path: Path) -> tuple[int, str]:
    """(bytes, sha256 in hex) of a file."""
    with path.open("rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
        return file.tell(), digest


def package_version() -> str:
    """The version of this package, as installed."""
    try:
        return installed("unrolled")
    except PackageNotFoundError:
        return "of unknown version"


def _sealed_tree(path: Path) -> Tree:
    try:
        content = path.read_bytes()
        seal = _SEAL.encode()
        if content.startswith(seal):
            digest, _, body = content[len(seal) :].partition(b"\n")
            if hashlib.sha256(body).hexdigest().encode() != digest.strip():
                raise DataError(
                    f"{path}: was changed since it was saved. If you did so on purpose, delete its first line. "
                    "If not, copy the whole folder again from where it was saved."
                )
        elif not _starts_with_format(content):
            raise DataError(f"{path}: does not start with 'format:'. {_AGAIN}")
        return read_yaml(path)
    except OSError as error:
        raise DataError(f"{path}: cannot be read ({error.strerror}). {_AGAIN}") from None
    except SettingsError as error:
        raise DataError(f"{error} {_AGAIN}") from None


def _starts_with_format(content: bytes) -> bool:
    lines = (line.strip() for line in content.removeprefix(b"\xef\xbb\xbf").splitlines())
    return next((line.startswith(b"format:") for line in lines if line and not line.startswith(b"#")), False)


def _listed(path: Path, files: Any) -> dict[str, tuple[int, str]]:
    if not isinstance(files, dict) or not files:
        raise DataError(f"{path}: 'files' is missing or no list of files. {_AGAIN}")
    listed = {}
    for name, entry in files.items():
        if not isinstance(entry, dict) or not isinstance(entry.get("bytes"), int) or not _sha256(entry.get("sha256")):
            raise DataError(f"{path}: the entry of {name!r} under 'files' is damaged. {_AGAIN}")
        if not isinstance(name, str) or not _inside(name):
            raise DataError(f"{path}: {name!r} under 'files' is no file of this folder. {_AGAIN}")
        listed[name] = (entry["bytes"], entry["sha256"])
    return listed


def _sha256(value: Any) -> bool:
    return isinstance(value, str) and len(value) == 64 and set(value) <= set("0123456789abcdef")


def _inside(name: str) -> bool:
    parts = PurePosixPath(name)
    return bool(name) and "\0" not in name and "\\" not in name and not parts.is_absolute() and ".." not in parts.parts
