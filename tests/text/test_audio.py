"""Recordings become frames as scipy and Keras would make them; what cannot be read is refused by name."""

import json
import os
import wave
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.signal import ShortTimeFFT, resample_poly
from scipy.signal.windows import hann

from unrolled.base.errors import DataError, MissingPartError, SettingsError, UsageError
from unrolled.text.audio import AudioReader, log_mel, mel_bank, windows_of
from unrolled.text.reading import READERS

RATE = 8000
soundfile = pytest.importorskip("soundfile", reason="soundfile is not installed: pip install 'unrolled[audio]'")


def tone(hertz, seconds=0.2, rate=RATE):
    return (0.5 * np.sin(2 * np.pi * hertz * np.arange(int(seconds * rate)) / rate)).astype(np.float32)


def write(path, samples, rate=RATE, channels=1):
    with wave.open(str(path), "wb") as file:
        file.setparams((channels, 2, rate, 0, "NONE", "not compressed"))
        file.writeframes((np.asarray(samples) * 32767).astype("<i2").tobytes())
    return str(path)


@pytest.fixture
def clip(tmp_path):
    return write(tmp_path / "clip.wav", tone(500))


@pytest.fixture
def reader(clip):
    found = AudioReader(mels=7, window=32.0, hop=20.0)
    found.learn([clip])
    return found


def test_the_spectrum_is_scipys():
    samples = np.random.default_rng(1).normal(size=1003).astype(np.float32)
    windows = windows_of(RATE, 32.0, 20.0)
    assert windows == (256, 160, 256)
    found = np.exp(log_mel(samples, windows, np.eye(129)))
    oracle = ShortTimeFFT(hann(256, sym=False), 160, RATE, fft_mode="onesided")
    # scipy centres its windows: with the offset its first one begins at the first sample
    whole = abs(oracle.stft(np.r_[samples, np.zeros(500)].astype(float), p0=0, k_offset=128)) ** 2
    count = windows.count(1003)
    assert count == 6 and np.allclose(found, whole.T[:count], rtol=1e-4)


def test_bands_are_those_of_keras():
    os.environ.setdefault("KERAS_BACKEND", "torch")
    keras = pytest.importorskip("keras", reason="Keras is not installed: pip install 'unrolled[test]'")
    oracle = keras.layers.MelSpectrogram()
    wanted = oracle.linear_to_mel_weight_matrix(
        num_mel_bins=23, num_spectrogram_bins=257, sampling_rate=16000, lower_edge_hertz=125.0, upper_edge_hertz=7600.0
    )
    assert np.allclose(mel_bank(16000, 512, 23, 125.0, 7600.0), np.asarray(wanted), atol=1e-5)


@settings(deadline=None, max_examples=30)
@given(length=st.integers(1, 1000), hop=st.sampled_from([5.0, 12.5, 30.0, 50.0]))
def test_every_sample_is_in_a_frame_and_silence_behind_changes_none_before(length, hop):
    reader = AudioReader(rate=RATE, mels=5, hop=hop)
    samples = np.random.default_rng(length).normal(size=length).astype(np.float32)
    frames = reader.scaled(samples)
    windows = reader.windows
    assert (len(frames) - 1) * windows.step + windows.size >= length
    assert len(frames) == 1 or (len(frames) - 2) * windows.step + windows.size < length
    longer = reader.scaled(np.r_[samples, np.zeros(700, np.float32)])
    np.testing.assert_allclose(longer[: len(frames)], frames, rtol=1e-5, atol=1e-5)


def test_a_tone_is_loudest_in_the_band_of_its_pitch():
    reader = AudioReader(rate=RATE, mels=20)
    for hertz in (300, 900, 2500):
        bands = reader.frames(tone(hertz))[3]
        assert abs(reader.pitches()[bands.argmax()] - hertz) < 0.15 * hertz + 40


def test_the_scale_is_that_of_the_training_frames(tmp_path):
    paths = [write(tmp_path / f"{n}.wav", tone(200 * n, 0.1 * n)) for n in (2, 3, 5)]
    reader = AudioReader(mels=5)
    reader.learn(iter(paths))
    frames = np.concatenate([reader.scaled(path) for path in paths])
    assert reader.rate == RATE
    assert np.allclose(frames.mean(axis=0), 0, atol=1e-4) and np.allclose(frames.std(axis=0), 1, atol=1e-4)
    plain = AudioReader(mels=5, scale="none")
    plain.learn(paths)
    assert np.array_equal(plain.scaled(paths[0]), plain.frames(plain.samples(paths[0])))


def test_a_store_gets_them_flat_and_an_array_is_read_like_its_file(reader, clip):
    (row,) = reader.encode_ids([clip])
    assert row.dtype == np.float32 and row[0] == 7
    assert np.array_equal(reader.stored(row), reader.scaled(clip))
    whole = np.round(tone(500) * 32767).astype(np.int16)
    with wave.open(clip) as file:
        whole = np.frombuffer(file.readframes(file.getnframes()), "<i2")
    assert np.allclose(reader.scaled(whole), reader.scaled(clip), atol=1e-5)


def test_what_it_learnt_is_restored(reader, clip):
    again = READERS.build({"kind": "audio", "mels": 7, "window": 32.0, "hop": 20.0})
    again.restore(json.loads(json.dumps(reader.learnt())))
    assert again.about() == reader.about() == "recordings at 8,000 Hz, 7 mel bands, windows of 32 ms every 20 ms"
    assert np.array_equal(again.scaled(clip), reader.scaled(clip))
    with pytest.raises(ValueError, match="as many means and deviations as mels"):
        again.restore({"rate": 8000, "mean": [1.0], "deviation": [1.0]})


def test_flac_is_read_too(reader, clip, tmp_path):
    samples, rate = soundfile.read(clip, dtype="int16")
    soundfile.write(tmp_path / "clip.flac", samples, rate)
    assert np.allclose(reader.scaled(tmp_path / "clip.flac"), reader.scaled(clip), atol=1e-5)


# --- what cannot be read ----------------------------------------------------------------------------------------------


def test_another_rate_is_refused_or_resampled(reader, tmp_path):
    twice = write(tmp_path / "twice.wav", tone(500, rate=16000), 16000)
    with pytest.raises(DataError, match=r"twice\.wav: 16,000 samples a second, and 8,000 are read\. Convert it"):
        reader.scaled(twice)
    told = AudioReader(rate=RATE, mels=7, resample=True)
    samples, _ = soundfile.read(twice, dtype="float32")
    assert np.allclose(told.samples(twice), resample_poly(samples, 1, 2), atol=1e-6)
    assert len(told.samples(twice)) == 1600


def test_several_channels_are_refused_or_mixed(reader, tmp_path):
    both = np.stack([tone(500), -0.5 * tone(500)], axis=1)
    path = write(tmp_path / "both.wav", both.ravel(), channels=2)
    with pytest.raises(DataError, match=r"both\.wav: 2 channels, and one is read\. Mix them"):
        reader.scaled(path)
    with pytest.raises(DataError, match=r"the array: 2 channels"):
        reader.scaled(both)
    mixed = AudioReader(rate=RATE, mels=7, channels="mix")
    assert np.allclose(mixed.samples(path), 0.25 * tone(500), atol=1e-4)


BAD = {
    "text.wav": (b"one two three\n", r"no recording that can be read \(Format not recognised\)"),
    "empty.wav": (b"", r"no recording that can be read"),
    "noise.wav": (bytes(range(256)) * 9, r"no recording that can be read"),
}


@pytest.mark.parametrize("name", BAD)
def test_what_is_no_recording(reader, tmp_path, name):
    content, message = BAD[name]
    (tmp_path / name).write_bytes(content)
    with pytest.raises(DataError, match=rf"{name}: {message}"):
        reader.scaled(tmp_path / name)


def test_a_cut_file_a_missing_one_a_folder_and_one_without_samples(reader, clip, tmp_path):
    whole = Path(clip).read_bytes()
    (tmp_path / "cut.wav").write_bytes(whole[:1000])
    with pytest.raises(DataError, match=r"cut\.wav: its header promises 3,244 bytes and it holds 1,000"):
        reader.scaled(tmp_path / "cut.wav")
    with pytest.raises(DataError, match=r"gone\.wav: this recording is not there"):
        reader.scaled(tmp_path / "gone.wav")
    (tmp_path / "folder.wav").mkdir()
    with pytest.raises(DataError, match=r"folder\.wav: this recording is a folder"):
        reader.scaled(tmp_path / "folder.wav")
    with pytest.raises(DataError, match=r"zero\.wav: there is no sample in it"):
        reader.scaled(write(tmp_path / "zero.wav", np.zeros(0)))


def test_numbers_that_are_not_finite_name_their_second(reader, tmp_path):
    samples = tone(500)
    samples[804] = np.nan
    soundfile.write(tmp_path / "nan.wav", samples, RATE, subtype="FLOAT")
    with pytest.raises(DataError, match=r"nan\.wav: sample 805 \(second 0\.10\) is no finite number"):
        reader.scaled(tmp_path / "nan.wav")
    with pytest.raises(DataError, match=r"the array: sample 805 is no finite number"):
        reader.scaled(samples)
    for wrong in ("word" * 3, {"a": 1}, [[1.0], [2.0, 3.0]], np.zeros((2, 3, 5)), np.array(["a"])):
        with pytest.raises((UsageError, DataError), match=r"a recording is a path or an array|not there"):
            reader.scaled(wrong)
    with pytest.raises(DataError, match=r"no sample in it"):
        reader.scaled(np.zeros(0))


def test_silence_cannot_be_learnt_from_but_can_be_read(reader, tmp_path):
    path = write(tmp_path / "still.wav", np.zeros(500))
    with pytest.raises(DataError, match=r"still\.wav: it is silent from beginning to end\. Leave the row out"):
        AudioReader().learn([path])
    assert np.isfinite(reader.scaled(path)).all()


def test_settings_that_do_not_fit_the_rate(clip):
    with pytest.raises(SettingsError, match=r"bands from lowest 0 to highest 5000 Hz .* they lie between 0 and 4,000"):
        AudioReader(rate=RATE, highest=5000.0)
    with pytest.raises(SettingsError, match=r"100 mels of windows of 25 ms .* some bands hold no frequency"):
        AudioReader(mels=100).learn([clip])


def test_without_the_library_it_says_what_to_install(reader, clip, monkeypatch):
    monkeypatch.setattr("importlib.util.find_spec", lambda _: None)
    with pytest.raises(MissingPartError, match=r"soundfile is not installed\. .* pip install 'unrolled\[audio\]'"):
        reader.scaled(clip)
