"""Frames to text end to end: poses spelled letter by letter, all verbs, and what is refused, with its line."""

import numpy as np
import pytest

import unrolled
from unrolled.base.errors import DataError, SettingsError
from unrolled.text.frames import written
from unrolled.workshop.sources import Sources, part_of

POSES = {"a": (1.0, 0.0), "b": (0.0, 1.0), "c": (-1.0, -1.0)}
SETTINGS = {
    "model": {
        "embedding_size": 8, "dropout": 0.0,
        "front": {"size": 12, "noise": 0.0, "dropout": 0.0},
        "encoder": {"cell": {"hidden_size": 24}},
        "decoder": {"cell": {"hidden_size": 24}, "attention": {"hidden_size": 24}},
    },
    "train": {
        "epochs": 20, "stop_on": "loss", "learning_rate": 0.01, "batch_sentences": 16, "label_smoothing": 0.0,
        "precision": "float32",
        "seed": 1,
    },
    "search": {"kind": "argmax", "beam": 1},
}  # fmt: skip


def signed(text, draw):
    """Each letter a pose of 2 to 4 frames, a frame of rest before it: [time, 2]."""
    rows = []
    for letter in text:
        rows += [(0.0, 0.0)] + [POSES[letter]] * int(draw.integers(2, 5))
    return np.array(rows) + draw.normal(0, 0.05, size=(len(rows), 2))


def signs(count, seed):
    draw = np.random.default_rng(seed)
    texts = ["".join(draw.choice(list(POSES), size=draw.integers(1, 4))) for _ in range(count)]
    return [signed(text, draw) for text in texts], texts


def save(path, frames, texts):
    longest = max(map(len, frames))
    padded = np.stack([np.pad(one, ((0, longest - len(one)), (0, 0))) for one in frames])
    np.savez(path, frames=padded, lengths=[len(one) for one in frames], labels=np.array(texts))
    return path


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    folder = tmp_path_factory.mktemp("signs")
    path = save(folder / "signs.npz", *signs(320, 1))
    return unrolled.train(path, preset="frames-to-text", out=folder / "model", settings=SETTINGS, quiet=True)


def test_signs_are_spelled(model, tmp_path):
    frames, texts = signs(40, 2)
    assert np.mean([one == two for one, two in zip(model.predict(frames), texts, strict=True)]) >= 0.9
    path = save(tmp_path / "test.npz", frames, texts)
    scores = {one.name: one.value for one in model.test(part_of(Sources(data=str(path)), model.task)).scores}
    assert scores["cer"] <= 0.1
    shown = list(model.show_predict(str(path)))
    assert [one.text for one in shown] == model.predict(frames)
    forced = model.score(frames[:3], texts[:3])
    assert [len(one.log_probs) for one in forced] == [len(text) + 1 for text in texts[:3]]
    assert model.embed(frames[:3]).shape[0] == 3


def test_every_promise_holds_and_what_is_saved_is_loaded(model, tmp_path):
    assert [one.name for one in model.promises(None, 12) if one.holds is False] == []
    frames, _ = signs(6, 3)
    model.save(tmp_path / "copy")
    assert unrolled.load(tmp_path / "copy").predict(frames) == model.predict(frames)


def test_the_picture_counts_frames_and_channels(model, tmp_path):
    frames = signed("ab", np.random.default_rng(4))
    seen = model.explain(frames, "ab")
    assert seen.weights.shape == (2, len(frames)) and seen.bands.shape == frames.shape
    assert "nan" not in model.explain(frames[:3], "a").text()  # shorter than a line
    first, second = seen.centres()
    assert first < second
    assert "seconds_a_frame" not in seen.to_dict() and " s " not in seen.text()
    assert seen.to(tmp_path / "seen.svg").stat().st_size > 200
    path = save(tmp_path / "one.npz", [frames], ["ab"])
    assert model.show_explain(f"{path}#1", target="ab", untrusted=True).symbols == ("a", "b")


def test_a_ts_file_and_a_table_with_a_frame_a_row_are_read_too(tmp_path):
    frames, texts = signs(40, 5)
    few = SETTINGS | {"train": SETTINGS["train"] | {"epochs": 1}}
    lines = [f"{written(one)}:{text}" for one, text in zip(frames, texts, strict=True)]
    (tmp_path / "signs.ts").write_text("@classLabel true\n@data\n" + "\n".join(lines) + "\n")
    rows = ["sequence,x,y,text"]
    for number, (one, text) in enumerate(zip(frames, texts, strict=True)):
        rows += [f"{number},{x},{y},{text}" for x, y in one]
    (tmp_path / "signs.csv").write_text("\n".join(rows) + "\n")
    turned = ["sequence,y,x,text"] + [",".join((n, y, x, t)) for n, x, y, t in (row.split(",") for row in rows[1:])]
    (tmp_path / "turned.csv").write_text("\n".join(turned) + "\n")
    for name in ("signs.ts", "signs.csv"):
        out = tmp_path / name.replace(".", "-")
        one = unrolled.train(tmp_path / name, preset="frames-to-text", out=out, settings=few, quiet=True)
        assert len(list(one.show_predict(str(tmp_path / name)))) == 40
    assert [row.text for row in one.show_predict(str(tmp_path / "signs.csv"))] == [
        row.text for row in one.show_predict(str(tmp_path / "turned.csv"))
    ]


def rows(count):
    return "".join(f"1,{number}:3,4:ab\n" for number in range(count))


def test_what_cannot_be_read_is_named(model, tmp_path):
    path = tmp_path / "signs.ts"
    path.write_text("@classLabel true\n@data\n" + rows(8) + "1,x:3,4:b\n")
    with pytest.raises(DataError, match=r"signs.ts:11: channel 1, frame 2: 'x' is no number"):
        unrolled.train(path, preset="frames-to-text", out=tmp_path / "model", settings=SETTINGS, quiet=True)
    path.write_text("@classLabel true\n@data\n" + rows(8))
    with pytest.raises(SettingsError, match=r"'audio' was given, and the rows of .*signs.ts are sequences of frames"):
        unrolled.train(path, task="speech", out=tmp_path / "model", settings={}, quiet=True)
    path.write_text("@classLabel true\n@data\n1,2,3:ab\n")
    with pytest.raises(DataError, match=r"signs.ts:3: 1 channels where training rows have 2"):
        list(model.show_predict(str(path)))
    with pytest.raises(DataError, match=r"frames of shape \[3, 5\]; this model reads \[time, 2\]"):
        model.predict([np.zeros((3, 5))])
