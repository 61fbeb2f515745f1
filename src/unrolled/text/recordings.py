"""Files of recordings: their samples as they stand there, and what is wrong with one that cannot be read."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from unrolled.base.errors import DataError, require

Samples = NDArray[np.float32]
"""[samples], from -1 to 1."""

UNSAID = 0x7FFFFF00
"""A RIFF header that says this many bytes or more was written before its writer knew how many."""


class Head(NamedTuple):
    """What the beginning of a file says."""

    rate: int  # samples a second
    channels: int
    length: int  # samples


class Recording(NamedTuple):
    """What a file holds."""

    samples: NDArray[np.float32]  # [samples, channels]
    rate: int  # samples a second


def read_recording(path: str | Path) -> Recording:
    """The samples of a wav, flac, ogg, mp3, … file, by libsndfile.

    DataError that names the file for one that is missing, no recording, cut off, without a sample, or with one that is
    no finite number; MissingPartError without soundfile.
    """
    with _opened(path) as file:
        rate, samples = int(file.samplerate), file.read(dtype="float32", always_2d=True)
    finite = np.isfinite(samples).all(axis=1)
    if not finite.all():
        place = int(np.argmin(finite))
        raise DataError(
            f"{path}: sample {place + 1:,} (second {place / rate:.2f}) is no finite number. Write the file again, or "
            "leave the row out."
        )
    return Recording(samples, rate)


def check_recording(path: str | Path) -> Head:
    """What the beginning of a file says; what `read_recording` refuses but for the samples themselves."""
    with _opened(path) as file:
        return Head(file.samplerate, file.channels, file.frames)


@contextmanager
def _opened(path: str | Path) -> Iterator[Any]:
    """A file of libsndfile's with a sample at least; DataError for any other."""
    require("soundfile", "audio")
    import soundfile

    place = Path(path)
    try:
        if not place.is_file():
            what = "a folder" if place.is_dir() else "not there"
            raise DataError(f"{path}: this recording is {what}. A path stands relative to the table that names it.")
        _refuse_cut(place)
        with soundfile.SoundFile(str(path)) as file:
            if file.frames < 1:
                raise DataError(f"{path}: there is no sample in it. Record it again, or leave the row out.")
            yield file
    except (soundfile.SoundFileError, RuntimeError, OSError, ValueError) as error:
        raise DataError(f"{path}: {_no_recording(error)}") from None


def _refuse_cut(path: Path) -> None:
    """libsndfile reads what is left of a wav that was cut off without a word."""
    with path.open("rb") as file:
        head = file.read(8)
    if head[:4] != b"RIFF" or len(head) < 8:
        return
    promised, held = int.from_bytes(head[4:8], "little") + 8, path.stat().st_size
    if held < promised < UNSAID:
        raise DataError(
            f"{path}: its header promises {promised:,} bytes and it holds {held:,}. Was the copy cut off? Fetch it "
            "again."
        )


def _no_recording(error: Exception) -> str:
    cause = str(error).rpartition(": ")[2].strip().rstrip(".") or type(error).__name__
    return f"no recording that can be read ({cause}). Convert it to one: wav, flac, ogg or mp3."


def silent(samples: Samples) -> bool:
    """Whether nothing moves from the first sample to the last."""
    return bool((samples == samples[0]).all())
