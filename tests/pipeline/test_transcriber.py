"""Speech end to end: tones spelled letter by letter, seen over the spectrogram; and what is refused, with its line."""

import json
import wave

import numpy as np
import pytest
import torch

import unrolled
from unrolled.base.errors import DataError, MissingPartError, UsageError
from unrolled.base.protocol import END
from unrolled.pipeline import Transcriber

pytest.importorskip("soundfile", reason="soundfile is not installed: pip install 'unrolled[audio]'")

RATE = 4000
PITCHES = {"a": 300, "b": 600, "c": 1200}
SETTINGS = {
    "text": {"source": {"mels": 8, "window": 50.0, "hop": 50.0}, "target": {"kind": "character"}},
    "model": {
        "embedding_size": 8, "dropout": 0.0,
        "front": {"size": 12, "dropout": 0.0, "augment": None},
        "encoder": {"cell": {"hidden_size": 16}, "layers": 1, "dropout": 0.0},
        "decoder": {"cell": {"hidden_size": 24}, "attention": {"hidden_size": 16}},
    },
    "train": {
        "epochs": 25, "learning_rate": 0.01, "batch_sentences": 20, "label_smoothing": 0.0, "precision": "float32",
    },
    "search": {"kind": "argmax", "beam": 1},
}  # fmt: skip


def spoken(text, draw):
    """Samples of 16 bits: each letter a tone of 0.1 to 0.2 seconds, a pause before it."""
    pieces = []
    for letter in text:
        pieces.append(np.zeros(int(RATE * draw.uniform(0.05, 0.1))))
        time = np.arange(int(RATE * draw.uniform(0.1, 0.2))) / RATE
        pieces.append(8000 * np.sin(2 * np.pi * PITCHES[letter] * time))
    return np.concatenate(pieces).astype("<i2")


def texts(count, draw):
    return ["".join(draw.choice(list(PITCHES), size=draw.integers(1, 4))) for _ in range(count)]


def write(path, samples, rate=RATE, channels=1):
    path.parent.mkdir(parents=True, exist_ok=True)
    with wave.open(str(path), "wb") as file:
        file.setparams((channels, 2, rate, 0, "NONE", "not compressed"))
        file.writeframes(np.asarray(samples, "<i2").tobytes())
    return path


def manifest(folder, count, seed):
    draw = np.random.default_rng(seed)
    rows = ["path\ttext"]
    for number, text in enumerate(texts(count, draw)):
        write(folder / f"clips/{number}.wav", spoken(text, draw))
        rows.append(f"clips/{number}.wav\t{text}")
    (folder / "clips.tsv").write_text("\n".join(rows) + "\n")
    return folder / "clips.tsv"


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    return manifest(tmp_path_factory.mktemp("tones"), 160, 1)


@pytest.fixture(scope="module")
def model(data):
    return unrolled.train(data, out=data.parent / "model", settings=SETTINGS, quiet=True)


@pytest.fixture(scope="module")
def others():
    draw = np.random.default_rng(2)
    said = texts(60, draw)
    return [spoken(text, draw) for text in said], said


def test_it_learns_to_spell_tones(model, others):
    assert isinstance(model, Transcriber)
    scores = {score.name: score.value for score in model.evaluate(*others)}
    assert list(scores) == ["wer", "cer", "exact_match"]
    assert scores["exact_match"] >= 0.9 and scores["cer"] <= 0.05
    assert sum(one == text for one, text in zip(model.predict(others[0]), others[1], strict=True)) >= 54


def test_paths_arrays_and_a_loaded_model_say_the_same(model, data):
    paths = [data.parent / f"clips/{number}.wav" for number in range(20)]
    with wave.open(str(paths[0])) as file:
        samples = np.frombuffer(file.readframes(file.getnframes()), "<i2")
    said = model.predict(paths)
    assert model.predict([samples, samples.astype(np.float64) / 32768]) == [said[0]] * 2
    again = Transcriber.load(data.parent / "model")
    assert again.predict(list(map(str, paths))) == said
    assert again.embed(paths).shape[0] == 20 and np.allclose(again.embed(paths[:1]), model.embed(paths)[:1], atol=1e-5)


def test_every_promise_holds(model, data):
    for file in (None, str(data)):
        assert [promise.name for promise in model.promises(file, 12) if not promise.holds] == []


def test_letters_are_heard_one_after_the_other(model, data, tmp_path):
    draw = np.random.default_rng(5)
    samples = spoken("abc", draw)
    one = model.explain(samples, "abc")
    assert one.symbols == ("a", "b", "c") and one.target_text == "abc"
    assert one.weights.shape == (3, len(one.bands)) and np.allclose(one.weights.sum(axis=1), 1, atol=1e-4)
    assert (np.diff(one.centres()) > 0).all()
    assert one.faithfulness is not None and one.faithfulness["top_agreement"].cases == 3
    assert "moment" in one.faithfulness["rank_correlation"].sentence
    own = model.explain(data.parent / "clips/0.wav", trusted=False)
    assert own.faithfulness is None and own.target_text == model.predict([data.parent / "clips/0.wav"])[0]
    scored = model.score([samples], ["abc"])[0]
    assert np.allclose(one.log_probs, scored.log_probs[:3], atol=1e-5)
    with pytest.raises(DataError, match="explain: the target is empty"):
        model.explain(samples, "")


def test_a_recording_in_which_nothing_is_said_is_shown_without_rows(model, data, run, tmp_path):
    silent = unrolled.load(data.parent / "model")
    with torch.no_grad():
        silent.network.output.bias[END] += 100
    silent.save(tmp_path / "silent")
    result = run("explain", tmp_path / "silent", data.parent / "clips/0.wav", "--to", tmp_path / "picture.png")
    assert result.code == 0 and (tmp_path / "picture.png").stat().st_size > 500
    assert "the model writes nothing here" in result.err


def test_the_number_about_the_picture_is_what_taking_out_costs(model, monkeypatch):
    from unrolled.workshop.hearing import stretches, without

    samples = spoken("ca", np.random.default_rng(6))
    frames, ids = model.text.source.scaled(samples), model.text.target.encode("ca").ids
    borders = stretches(len(frames), model.text.source.step)
    assert borders[0] == 0 and borders[-1] == len(frames) and (np.diff(borders) > 0).all()
    found = without(model.network, model.text, frames, ids, "cpu")
    assert found.shape == (2, len(borders) - 1)
    gone = frames.copy()
    gone[borders[1] : borders[2]] = 0

    said = []
    for rows in (frames, gone):
        monkeypatch.setattr(model.text.source, "scaled", lambda _, rows=rows: rows)
        said.append(model.score([samples], ["ca"])[0].log_probs[:2])
    assert np.allclose(found[:, 1], said[0] - said[1], atol=1e-5)


# --- on the command line ----------------------------------------------------------------------------------------------


def test_verbs_take_a_table_a_folder_a_recording(model, data, run, tmp_path):
    folder = data.parent / "model"
    said = model.predict([data.parent / f"clips/{number}.wav" for number in range(160)])
    assert run("predict", folder, data).out.splitlines() == said
    assert run("predict", folder, data.parent / "clips/7.wav").out.strip() == said[7]
    bare = tmp_path / "bare"
    bare.mkdir()
    for number in (0, 1):
        (bare / f"{number}.wav").write_bytes((data.parent / f"clips/{number}.wav").read_bytes())
    assert run("predict", folder, bare).out.splitlines() == said[:2]
    tree = json.loads(run("predict", folder, bare, "--json").out.splitlines()[1])
    assert tree["outputs"][0]["text"] == said[1] and tree["source"].endswith("1.wav")
    assert run("explain", folder, f"{data}#3", "--to", tmp_path / "a.svg").code == 0
    assert (tmp_path / "a.svg").read_text().startswith("<svg")
    result = run("evaluate", folder, data, "--json")
    assert result.code == 0 and {"wer", "cer"} <= {one["name"] for one in json.loads(result.out)["scores"]}
    assert run("score", folder, data).code == 0
    assert run("embed", folder, bare).out.count("\n") == 2
    result = run("explain", folder, f"{data}#999")
    assert result.code == 3 and "there is no recording 999 in it, it has " in result.err
    assert run("predict", folder, "-").code == 2


def test_a_folder_with_a_text_beside_each(data, run, tmp_path):
    draw = np.random.default_rng(7)
    for number in range(6):
        write(tmp_path / f"said/{number}.wav", spoken("ab", draw))
        (tmp_path / f"said/{number}.txt").write_text("ab\n")
    once = SETTINGS | {"train": SETTINGS["train"] | {"epochs": 1}}
    model = unrolled.train(tmp_path / "said", out=tmp_path / "model", settings=once, quiet=True)
    assert model.kind == "speech" and len(model.predict([tmp_path / "said/0.wav"])) == 1
    (tmp_path / "said/3.txt").write_text("\n")
    result = run("train", tmp_path / "said", "--out", tmp_path / "other")
    assert result.code == 3 and "3.txt" in result.err and "there is no text in it" in result.err


# --- what cannot be read ----------------------------------------------------------------------------------------------


def bad(folder, kind):
    """A table whose third line names a recording that cannot be used, and what is said of it."""
    draw = np.random.default_rng(8)
    for number in range(4):
        write(folder / f"{number}.wav", spoken("ab", draw))
    path, text = folder / "1.wav", "ab"
    whole = path.read_bytes()
    message = {
        "rate": "8,000 samples a second, and 4,000 are read",
        "stereo": "2 channels, and one is read",
        "zero": "there is no sample in it",
        "text": "no recording that can be read",
        "missing": "this recording is not there",
        "cut": "Was the copy cut off?",
        "nan": "is no finite number",
        "silence": "it is silent from beginning to end",
        "empty": "is empty. Write one",
    }[kind]
    if kind == "rate":
        write(path, spoken("ab", draw), rate=8000)
    elif kind == "stereo":
        write(path, np.repeat(spoken("ab", draw), 2), channels=2)
    elif kind == "zero":
        write(path, [])
    elif kind == "text":
        path.write_text("one two three\n")
    elif kind == "missing":
        path.unlink()
    elif kind == "cut":
        path.write_bytes(whole[:500])
    elif kind == "nan":
        import soundfile

        samples = spoken("ab", draw) / 32768
        samples[10] = np.nan
        soundfile.write(path, samples, RATE, subtype="FLOAT")
    elif kind == "silence":
        write(path, np.zeros(900))
    else:
        text = " "
    rows = "".join(f"{number}.wav\t{text if number == 1 else 'ab'}\n" for number in range(4))
    (folder / "t.tsv").write_text("path\ttext\n" + rows)
    return folder / "t.tsv", message


KINDS = ("rate", "stereo", "zero", "text", "missing", "cut", "nan", "silence", "empty")


@pytest.mark.parametrize("kind", KINDS)
def test_train_names_file_and_line_and_writes_no_model(run, tmp_path, kind):
    table, message = bad(tmp_path, kind)
    result = run(
        "train", table, "--task", "speech", "--valid", table, "--out", tmp_path / "model", "--set", "train.epochs=1"
    )
    assert result.code == 3 and "Traceback" not in result.err
    last = result.err.strip().splitlines()[-1]
    assert "t.tsv:3: " in last and "1.wav" in last and message in last
    assert last.count("t.tsv") == 1
    assert not (tmp_path / "model/settings.yaml").exists()


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind not in ("nan", "silence", "empty")])
@pytest.mark.parametrize("verb", ["predict", "evaluate", "score"])
def test_verbs_name_file_and_line(run, model, data, tmp_path, kind, verb):
    table, message = bad(tmp_path, kind)
    result = run(verb, data.parent / "model", table)
    assert result.code == 3 and "t.tsv:3: " in result.err and message in result.err and "Traceback" not in result.err


@pytest.mark.parametrize("kind", ["zero", "text", "missing", "cut", "empty"])
def test_rows_that_cannot_be_read_are_left_out_where_told(run, tmp_path, kind):
    table, _ = bad(tmp_path, kind)
    words = ["train", table, "--task", "speech", "--out", tmp_path / "model", "--dry-run"]
    result = run(*words, "--set", "data.wrong_lines=skip")
    assert result.code == 0 and "1 wrong line left out" in result.err


@pytest.mark.parametrize("kind", KINDS)
def test_the_doctor_finds_them(run, tmp_path, kind):
    table, message = bad(tmp_path, kind)
    result = run("check", table)
    found = {"rate": "not at the 4,000 Hz of most", "stereo": "with several channels", "silence": "without a sound"}
    expected = found.get(kind, "text of 'text'" if kind == "empty" else message)
    assert expected in result.out and "t.tsv:3" in result.out
    assert result.code == 3


def test_the_doctor_tells_the_same_sound_twice_and_in_two_splits(run, tmp_path):
    draw = np.random.default_rng(9)
    for number, text in enumerate(("a", "b", "c", "ab")):
        write(tmp_path / f"{number}.wav", spoken(text, draw))
    (tmp_path / "copy.wav").write_bytes((tmp_path / "0.wav").read_bytes())
    (tmp_path / "train.tsv").write_text("path\ttext\n0.wav\ta\n1.wav\tb\ncopy.wav\ta\n1.wav\tx\n2.wav\tc\n")
    (tmp_path / "test.tsv").write_text("path\ttext\n3.wav\tab\n2.wav\tc\n")
    out = run("check", tmp_path / "train.tsv", "--test", tmp_path / "test.tsv").out
    assert "1 recording with the samples and the text of an earlier row" in out and "train.tsv:4" in out
    assert "another text: one of the two is wrong" in out and "train.tsv:5" in out
    assert "1 recording of 2 that train holds too" in out and "test.tsv:3" in out
    assert "at 4,000 Hz" in out and "of 'sound'" not in out


def test_a_changed_recording_is_encoded_anew(data, tmp_path):
    from unrolled.data.parts import Part
    from unrolled.data.readers import open_table
    from unrolled.tasks.speech import Speech

    table = manifest(tmp_path, 3, 1)
    task = Speech()
    part = Part(task.adapt(open_table(table)), (0, 1))
    text = task.learn({"source": {"kind": "audio", "mels": 5}, "target": {"kind": "character"}}, part)
    first = task.store(tmp_path / "store", part, text, "mark").fingerprint
    assert task.store(tmp_path / "store", part, text, "mark").fingerprint == first
    write(tmp_path / "clips/1.wav", spoken("cc", np.random.default_rng(1)))
    assert task.store(tmp_path / "store", part, text, "mark").fingerprint != first


def test_wrong_arguments(model):
    with pytest.raises(UsageError, match="a list of recordings is wanted"):
        model.predict("a.wav")
    with pytest.raises(DataError, match=r"gone\.wav: this recording is not there"):
        model.predict(["gone.wav"])
    with pytest.raises(UsageError, match="does not generate"):
        model.generate()


def test_without_the_library_it_says_what_to_install(data, monkeypatch, tmp_path):
    monkeypatch.setattr("importlib.util.find_spec", lambda _: None)
    with pytest.raises(MissingPartError, match=r"pip install 'unrolled\[audio\]'"):
        unrolled.train(data, out=tmp_path / "model", quiet=True)
