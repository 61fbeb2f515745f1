"""Labels of recordings end to end: tones anywhere are told apart, where that rests, what is refused and where."""

import json
import shutil
import wave

import numpy as np
import pytest
import typer

import unrolled
from unrolled.base.errors import DataError, SettingsError, UsageError
from unrolled.cli.check import check
from unrolled.workshop.sources import Sources, part_of

pytest.importorskip("soundfile", reason="soundfile is not installed: pip install 'unrolled[audio]'")

RATE = 4000
PITCHES = {"high": 1200, "low": 400, "none": 0}
LABELS = tuple(PITCHES)
SETTINGS = {
    "text": {"source": {"mels": 8, "window": 50.0, "hop": 25.0}},
    "model": {
        "dropout": 0.0,
        "front": {"size": 12, "dropout": 0.0, "augment": None},
        "encoder": {"cell": {"hidden_size": 8}, "layers": 1, "dropout": 0.0},
    },
    "train": {"epochs": 8, "learning_rate": 0.02, "batch_sentences": 20, "precision": "float32", "seed": 1},
}


def beep(label, draw):
    """Noise of 0.5 to 0.9 seconds with a tone of 0.2 seconds in it, or none, and when that begins."""
    samples = draw.normal(0, 600, size=int(RATE * draw.uniform(0.5, 0.9)))
    start = int(draw.integers(0, len(samples) - 800))
    samples[start : start + 800] += 6000 * np.sin(2 * np.pi * PITCHES[label] * np.arange(800) / RATE)
    return samples.astype("<i2"), start / RATE


def write(path, samples, rate=RATE, channels=1):
    path.parent.mkdir(parents=True, exist_ok=True)
    with wave.open(str(path), "wb") as file:
        file.setparams((channels, 2, rate, 0, "NONE", "not compressed"))
        file.writeframes(np.asarray(samples, "<i2").tobytes())


def read(path):
    with wave.open(path) as file:
        return np.frombuffer(file.readframes(file.getnframes()), "<i2")


def folders(folder, count, seed):
    """A folder for each label; when the tone begins, by path."""
    draw, starts = np.random.default_rng(seed), {}
    for number in range(count):
        label = LABELS[number % 3]
        path = folder / label / f"{number}.wav"
        samples, starts[str(path)] = beep(label, draw)
        write(path, samples)
    return starts


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    folder = tmp_path_factory.mktemp("beeps")
    folders(folder / "train", 105, 1)
    return folder, folders(folder / "test", 30, 2)


@pytest.fixture(scope="module")
def model(data):
    return unrolled.train(data[0], out=data[0].parent / "beeps-model", settings=SETTINGS, quiet=True)


def test_tones_anywhere_in_recordings_of_any_length_are_told_apart(model, data):
    assert type(model) is unrolled.SoundClassifier and model.labels == LABELS
    part = part_of(Sources(data=str(data[0])), model.task)
    assert {one.name: one.value for one in model.test(part).scores}["accuracy"] >= 0.95
    shown = model.show_evaluate(part)
    assert {row["label"] for row in shown.tables["labels"][1]} == set(LABELS) and shown.rows == 30


def test_a_path_and_its_samples_give_the_same_whatever_stands_beside(model, data):
    paths = list(data[1])[:6]
    together = np.array(model.probabilities(paths))
    samples = [read(path) for path in paths]
    np.testing.assert_allclose(model.probabilities(samples), together, atol=1e-5)
    np.testing.assert_allclose([model.probabilities([path])[0] for path in paths], together, atol=1e-5)
    assert model.embed(paths).shape == (6, model.network.pooling.output_size)


def test_the_picture_lies_on_the_tone(model, data, tmp_path):
    hits = []
    for path, start in data[1].items():
        seen = model.explain(path, trusted=False)
        assert seen.symbols == ("attention", "rests on")
        if "none" not in path:
            hits.append(start - 0.1 <= seen.centres()[1] <= start + 0.3)
    assert np.mean(hits) >= 0.8
    seen = model.explain(path, "high")
    assert seen.said == "high" and "moments" in seen.faithfulness["deletion"].sentence
    for kind in ("svg", "png", "html", "json"):
        assert seen.to(tmp_path / f"seen.{kind}").stat().st_size > 200
    written = json.loads((tmp_path / "seen.json").read_text())
    assert written["target"]["text"] == "high" and written["labels"] == ["high"]
    assert written["answer"] == model.predict([path])[0]
    with pytest.raises(UsageError, match=r"no label is called 'hihg'. Did you mean 'high'"):
        model.explain(path, "hihg")
    found = model.record["faithfulness"]["deletion"]
    assert found["value"] > found["chance"] + 0.1


def test_every_promise_holds_on_made_up_recordings_and_on_a_file(model, data):
    for promises in (model.promises(None, 12), model.promises(str(data[0] / "test"), 8)):
        assert [one.name for one in promises if not one.holds] == []


def test_predict_reads_a_file_a_folder_folders_of_labels_and_a_table(model, data, tmp_path):
    folder, paths = data[0] / "test", sorted(data[1])
    assert len(list(model.show_predict(str(folder / "low")))) == 10
    assert [one.tree["recording"] for one in model.show_predict(str(folder))] == paths
    (single,) = model.show_predict(paths[0], nbest=3)
    assert single.tree["probabilities"].keys() == set(LABELS)
    (tmp_path / "table.csv").write_text("path\n" + "\n".join(paths[:3]) + "\n")
    found = [one.tree["label"] for one in model.show_predict(str(tmp_path / "table.csv"))]
    assert found == unrolled.load(data[0].parent / "beeps-model").predict(paths[:3])
    assert model.show_explain(f"{folder}#3", untrusted=True).said in LABELS
    with pytest.raises(UsageError, match=r"recordings are read more than once, and standard input cannot be"):
        list(model.show_predict("-"))


def table(folder, count=40, label="label"):
    draw, rows = np.random.default_rng(4), [f"path,{label}"]
    for number in range(count):
        write(folder / f"{number}.wav", beep(LABELS[number % 2], draw)[0])
        rows.append(f"{number}.wav,{LABELS[number % 2]}")
    (folder / "sounds.csv").write_text("\n".join(rows) + "\n")
    return folder / "sounds.csv"


def test_a_table_of_paths_and_few_short_values_is_recognised_and_texts_are_not(tmp_path):
    from unrolled.data.readers import open_table
    from unrolled.tasks import recognise

    for label, task in (("label", "sounds"), ("kind", "sounds"), ("text", "speech")):
        found, said = recognise({"train": open_table(table(tmp_path, label=label))}, "translate")
        assert found == task and f"The task is {task} (another: --task)." in said


@pytest.mark.parametrize(
    "change, message",
    [
        (lambda f: (f / "3.wav").write_bytes(b"no sound"), r"sounds.csv:5: .*3.wav: no recording that can be read"),
        (lambda f: (f / "3.wav").unlink(), r"sounds.csv:5: .*3.wav: this recording is not there"),
        (lambda f: write(f / "3.wav", []), r"sounds.csv:5: .*3.wav: there is no sample in it"),
        (lambda f: write(f / "3.wav", [1, 2] * 900, 8000), r"sounds.csv:5: .*3.wav: 8,000 samples a second, and 4,000"),
        (lambda f: write(f / "3.wav", [1, 2] * 900, channels=2), r"sounds.csv:5: .*3.wav: 2 channels, and one is read"),
        (lambda f: rewrite(f, "3.wav,low", "3.wav,"), r"sounds.csv:5: the label of .*3.wav is empty"),
        (lambda f: rewrite(f, ",low", ",high"), r"sounds.csv: all 40 rows have the label 'high'"),
    ],
    ids=["no wav", "missing", "no sample", "rate", "stereo", "empty label", "one label"],
)
def test_what_cannot_be_used_is_named_by_its_line(tmp_path, change, message):
    path = table(tmp_path)
    change(tmp_path)
    settings = SETTINGS | {"train": SETTINGS["train"] | {"epochs": 1}}
    with pytest.raises(DataError, match=message):
        unrolled.train(path, task="sounds", out=tmp_path / "model", settings=settings, quiet=True)


def rewrite(folder, old, new):
    file = folder / "sounds.csv"
    file.write_text(file.read_text().replace(old, new))


def test_settings_that_do_not_fit_are_refused(tmp_path):
    path = table(tmp_path, 4)
    for settings, message in (
        ({"text": {"source": {"kind": "frames"}}}, r"\[text.source\] 'frames' was given, and recordings are read by"),
        ({"model": {"front": {"kind": "image"}}}, r"\[model.front\] 'image' was given, and recordings are read by"),
        ({"text": {"source": {"mels": 500}}}, r"\[text.source\] 500 mels of windows of 25 ms"),
    ):
        with pytest.raises(SettingsError, match=message):
            unrolled.train(path, task="sounds", out=tmp_path / "model", settings=settings, quiet=True)


def test_the_doctor_hears_recordings_and_reads_their_labels(tmp_path, capsys):
    path = table(tmp_path)
    shutil.copy(tmp_path / "0.wav", tmp_path / "1.wav")  # of the other label
    write(tmp_path / "2.wav", [0] * 2000)
    write(tmp_path / "4.wav", [1, 2] * 900, channels=2)
    rewrite(tmp_path, "15.wav,low", "15.wav,")
    with pytest.raises(typer.Exit) as stopped:
        check(data=str(path))
    said = capsys.readouterr().out
    assert stopped.value.exit_code == 3
    assert "without a sound" in said and "sounds.csv:4" in said
    assert "with several channels" in said and "sounds.csv:6" in said
    assert "is empty. Write one" in said and "sounds.csv:17" in said
    assert "another label: one of the two is wrong" in said and "sounds.csv:3" in said
    rewrite(tmp_path, ",low", ",high")
    with pytest.raises(typer.Exit):
        check(data=str(path))
    assert "one label: all rows have 'high'" in capsys.readouterr().out
