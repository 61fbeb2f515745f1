"""What is in a file, by the ending of its name."""

from __future__ import annotations

from pathlib import Path

KINDS: dict[str, tuple[str, ...]] = {
    "image": (
        ".png", ".jpg", ".jpeg", ".gif", ".bmp", ".tif", ".tiff", ".webp", ".pgm", ".ppm", ".pbm", ".pnm",
    ),
    "sound": (".wav", ".flac", ".ogg", ".oga", ".opus", ".mp3", ".aif", ".aiff", ".aifc", ".au", ".w64", ".caf"),
}  # fmt: skip
"""Endings of files, by what is in them."""


def kind_of(path: str | Path) -> str | None:
    """What is in a file, by the ending of its name; None: it is none of KINDS."""
    ending = Path(path).suffix.strip().lower()
    return next((kind for kind, endings in KINDS.items() if ending in endings), None)
