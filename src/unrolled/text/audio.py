"""Recordings as frames: the samples of a file, and how much energy each band of pitch has, window by window."""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache
from math import gcd
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple

import numpy as np
from annotated_types import Ge, Gt
from numpy.typing import NDArray

from unrolled.base.errors import DataError, SettingsError, UsageError
from unrolled.base.settings import Tree
from unrolled.text.frames import Frames, moments
from unrolled.text.reading import READERS, Reader
from unrolled.text.recordings import Samples, check_recording, read_recording, silent

FLOOR = 1e-8
"""The least energy of a band that is told from nothing: about what rounding to 16 bits leaves there."""

BLOCK = 4096
"""Windows that are transformed together."""


# --- bands of pitch ---------------------------------------------------------------------------------------------------


def mel(hertz: Any) -> Any:
    """m = 2595 log10(1 + f / 700): equal steps sound equally far apart (O'Shaughnessy 1987; HTK)."""
    return 2595.0 * np.log10(1.0 + np.asarray(hertz, np.float64) / 700.0)


def hertz_of(mels: Any) -> Any:
    """The frequency of a pitch in mel."""
    return 700.0 * (10.0 ** (np.asarray(mels, np.float64) / 2595.0) - 1.0)


@lru_cache(maxsize=8)
def mel_bank(rate: int, size: int, mels: int, lowest: float, highest: float) -> NDArray[np.float64]:
    """Float64 [size // 2 + 1, mels]: how much each frequency of a transform of ``size`` samples counts in each band.

    Bands are triangles over the mel scale, evenly spaced from ``lowest`` to ``highest`` hertz, each with its peak of 1
    where its neighbours end (Davis & Mermelstein 1980; as HTK has it).
    """
    edges = np.linspace(mel(lowest), mel(highest), mels + 2)
    pitch = mel(np.arange(size // 2 + 1) * (rate / size))[:, None]
    left, peak, right = edges[:-2], edges[1:-1], edges[2:]
    weights: NDArray[np.float64] = np.clip(
        np.minimum((pitch - left) / (peak - left), (right - pitch) / (right - peak)), 0, None
    )
    weights.setflags(write=False)
    return weights


class Windows(NamedTuple):
    """How samples are cut, in samples: a window of ``size`` every ``step``, transformed as ``points``."""

    size: int
    step: int
    points: int

    def count(self, samples: int) -> int:
        """The windows that hold all of so many samples, the last one filled up with zeros."""
        return 1 + -(-max(samples - self.size, 0) // self.step)


def windows_of(rate: int, window: float, hop: float) -> Windows:
    """``window`` and ``hop`` in milliseconds; the transform has the next power of two."""
    size, step = max(1, round(rate * window / 1000)), max(1, round(rate * hop / 1000))
    return Windows(size, step, 1 << (size - 1).bit_length())


def log_mel(samples: Samples, windows: Windows, bank: NDArray[np.float64]) -> Frames:
    """ln max(|DFT(hann · x)|² W, 1e-8), a row a window: float32 [time, mels].  W: ``bank``, as `mel_bank` makes it."""
    count = windows.count(len(samples))
    filled = np.zeros((count - 1) * windows.step + windows.size, np.float32)
    filled[: len(samples)] = samples
    cut = np.lib.stride_tricks.sliding_window_view(filled, windows.size)[:: windows.step]
    shape, weights = np.hanning(windows.size + 1)[:-1].astype(np.float32), bank.astype(np.float32)
    found = np.empty((count, bank.shape[1]), np.float32)
    for start in range(0, count, BLOCK):
        spectrum = np.fft.rfft(cut[start : start + BLOCK] * shape, windows.points)
        power = spectrum.real**2 + spectrum.imag**2
        found[start : start + BLOCK] = np.log(np.maximum(power @ weights, np.float32(FLOOR)))
    return found


# --- the reader -------------------------------------------------------------------------------------------------------


@READERS.register("audio")
class AudioReader(Reader):
    """Recordings, paths or arrays [samples], as frames of log-mel energies.

    ``rate``: samples a second of all recordings (null: as the first training recording has); one of another rate is
    refused, or ``resample``d. ``channels`` of a recording with several: ``refuse`` it, or ``mix`` them to their mean.
    A frame is of ``window`` milliseconds, one every ``hop``, and has the energy of ``mels`` bands between ``lowest``
    and ``highest`` hertz (null: half the rate). ``scale``: each band less its mean, through its standard deviation
    (both of the training frames), or as it is.
    """

    def __init__(
        self,
        *,
        rate: Annotated[int, Ge(1)] | None = None,
        resample: bool = False,
        channels: Literal["refuse", "mix"] = "refuse",
        window: Annotated[float, Gt(0)] = 25.0,
        hop: Annotated[float, Gt(0)] = 10.0,
        mels: Annotated[int, Ge(1)] = 40,
        lowest: Annotated[float, Ge(0)] = 0.0,
        highest: Annotated[float, Gt(0)] | None = None,
        scale: Literal["standard", "none"] = "standard",
    ) -> None:
        self.settings = {
            "kind": "audio", "rate": rate, "resample": resample, "channels": channels, "window": window, "hop": hop,
            "mels": mels, "lowest": lowest, "highest": highest, "scale": scale,
        }  # fmt: skip
        self.resample, self.mix = resample, channels == "mix"
        self.window, self.hop, self.lowest, self.highest = window, hop, lowest, highest
        self.channels = mels
        self.rate = 0
        self.mean, self.deviation = np.zeros(mels), np.ones(mels)
        if rate is not None:
            self._tune(rate)

    def _tune(self, rate: int) -> None:
        """What follows from the rate. SettingsError where the settings do not suit it."""
        top = rate / 2 if self.highest is None else self.highest
        if not self.lowest < top <= rate / 2:
            raise SettingsError(
                f"bands from lowest {self.lowest:g} to highest {top:g} Hz were asked for; at {rate:,} samples a second "
                f"they lie between 0 and {rate / 2:,.0f}."
            )
        windows = windows_of(rate, self.window, self.hop)
        bank = mel_bank(rate, windows.points, self.channels, self.lowest, top)
        if not (bank.max(axis=0) > 0).all():
            raise SettingsError(
                f"{self.channels} mels of windows of {self.window:g} ms at {rate:,} samples a second: some bands hold "
                "no frequency. Take fewer mels or a longer window."
            )
        self.rate, self.windows, self.bank = rate, windows, bank

    def learn(self, cells: Iterable[str]) -> None:
        """Take the rate, where none is set, and the scale from training recordings; DataError for a silent one."""

        def heard() -> Iterable[Frames]:
            for path in cells:
                if not self.rate:
                    self._tune(read_recording(path).rate)
                samples = self.samples(path)
                if silent(samples):
                    raise DataError(f"{path}: it is silent from beginning to end. Leave the row out.")
                yield self.frames(samples)

        mean, deviation = moments(heard())
        if self.settings["scale"] == "standard":
            self.mean, self.deviation = mean, deviation

    # --- reading ------------------------------------------------------------------------------------------------------

    def check(self, path: str) -> None:
        """Refuse what the head of a file says already that it cannot be read so: DataError."""
        head = check_recording(path)
        self._check(path, head.channels, head.rate)

    def _check(self, where: str, channels: int, rate: int) -> None:
        if channels > 1 and not self.mix:
            raise DataError(
                f"{where}: {channels} channels, and one is read. Mix them before, or train with "
                "--set text.source.channels=mix."
            )
        if rate != self.rate and not self.resample:
            raise DataError(
                f"{where}: {rate:,} samples a second, and {self.rate:,} are read. Convert it before, or train with "
                "--set text.source.resample=true."
            )

    def samples(self, given: Any) -> Samples:
        """One channel at the model's rate, float32 [samples], of a path, or of an array that has that rate already:
        numbers from -1 to 1, or whole ones, which are divided by their type's most.

        DataError that names the file for what cannot be read so.
        """
        if isinstance(given, str | Path):
            where, (found, rate) = str(given), read_recording(given)
        else:
            where, found, rate = "the array", _numbers(given), self.rate
        self._check(where, found.shape[1], rate)
        one: Samples = found[:, 0] if found.shape[1] == 1 else found.mean(axis=1, dtype=np.float32)
        if rate == self.rate:
            return one
        from scipy.signal import resample_poly

        most = gcd(self.rate, rate)
        moved: Samples = resample_poly(one, self.rate // most, rate // most).astype(np.float32)
        return moved

    def frames(self, samples: Samples) -> Frames:
        """The frames before they are scaled, float32 [time, mels]."""
        return log_mel(samples, self.windows, self.bank)

    def scaled(self, given: Any) -> Frames:
        """Float32 [time, mels] of whatever `samples` takes."""
        return ((self.frames(self.samples(given)) - self.mean) / self.deviation).astype(np.float32)

    @property
    def step(self) -> float:
        """Seconds from one frame to the next."""
        return self.windows.step / self.rate

    def pitches(self) -> NDArray[np.float64]:
        """The middle of each band in hertz, float64 [mels]."""
        highest = self.highest or self.rate / 2
        found: NDArray[np.float64] = hertz_of(np.linspace(mel(self.lowest), mel(highest), self.channels + 2))
        return found[1:-1]

    # --- what it learnt -----------------------------------------------------------------------------------------------

    def about(self) -> str:
        hertz = f"{self.rate:,} Hz"
        return f"recordings at {hertz}, {self.channels} mel bands, windows of {self.window:g} ms every {self.hop:g} ms"

    def learnt(self) -> Tree:
        return {"rate": self.rate, "mean": self.mean.tolist(), "deviation": self.deviation.tolist()}

    def restore(self, tree: Tree) -> None:
        self._tune(int(tree["rate"]))
        self.mean, self.deviation = (np.array(tree[name], np.float64) for name in ("mean", "deviation"))
        if self.mean.shape != (self.channels,) or self.deviation.shape != (self.channels,):
            raise ValueError("as many means and deviations as mels are wanted")


def _numbers(given: Any) -> NDArray[np.float32]:
    """An array as float32 [samples, channels]; UsageError where it is none of numbers, DataError for its content."""
    try:
        found = np.asarray(given)
    except ValueError:
        found = np.empty(0, object)
    if found.dtype.kind not in "fi" or found.ndim not in (1, 2):
        raise UsageError(
            f"a recording is a path or an array of numbers [samples] or [samples, channels], and {found.dtype} "
            f"{list(found.shape)} was given."
        )
    if not len(found):
        raise DataError("the array: there is no sample in it.")
    if found.dtype.kind == "i":
        found = found / float(np.iinfo(found.dtype).max + 1)
    samples: NDArray[np.float32] = found.astype(np.float32).reshape(len(found), -1)
    finite = np.isfinite(samples).all(axis=1)
    if not finite.all():
        raise DataError(f"the array: sample {int(np.argmin(finite)) + 1:,} is no finite number.")
    return samples
