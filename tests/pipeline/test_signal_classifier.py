"""Signals end to end: a label of a sequence or of each frame, streaming, explaining, and what is refused."""

import json

import numpy as np
import pytest
import typer

import unrolled
from unrolled.base.errors import DataError, UsageError
from unrolled.cli.check import check
from unrolled.text.frames import written
from unrolled.workshop.sources import Sources, part_of

FEW = {
    "train": {"epochs": 12, "learning_rate": 0.01},
    "model": {"front": {"size": 16}, "encoder": {"cell": {"hidden_size": 16}}},
}
WAVES = ("sine", "square")


def wave(kind, length, phase):
    sine = np.sin(np.arange(length) * 0.7 + phase)
    first = sine if kind == "sine" else np.sign(sine)
    return np.stack([first, np.full(length, 0.5)], axis=1).astype(np.float32)


def waves(count, seed):
    draw = np.random.default_rng(seed)
    kinds = [WAVES[place % 2] for place in range(count)]
    return [wave(kind, int(draw.integers(12, 30)), draw.uniform(0, 6)) for kind in kinds], kinds


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    folder = tmp_path_factory.mktemp("signals")
    frames, kinds = waves(120, 1)
    lines = [f"{written(one)}:{kind}" for one, kind in zip(frames, kinds, strict=True)]
    path = folder / "waves.ts"
    path.write_text("@classLabel true sine square\n@data\n" + "\n".join(lines) + "\n")
    return unrolled.train(path, out=folder / "model", settings=FEW, quiet=True)


@pytest.fixture(scope="module")
def by_frame(tmp_path_factory):
    """Whether the sum of all frames so far is positive: a model must carry it on."""
    folder = tmp_path_factory.mktemp("frames")
    draw = np.random.default_rng(3)
    rows = ["sequence,x,label"]
    for sequence in range(150):
        steps = draw.choice([-1.0, 1.0], size=int(draw.integers(3, 12)))
        rows += [
            f"{sequence},{x},{'over' if total > 0 else 'under'}" for x, total in zip(steps, steps.cumsum(), strict=True)
        ]
    path = folder / "sums.csv"
    path.write_text("\n".join(rows) + "\n")
    settings = {
        "model": {
            "front": {"size": 8, "noise": 0.0},
            "dropout": 0.0,
            "encoder": {"bidirectional": False, "cell": {"hidden_size": 16}},
        },
        "train": {"epochs": 25, "learning_rate": 0.02},
    }
    return unrolled.train(path, out=folder / "model", settings=settings, quiet=True)


def test_it_learns_which_wave_it_is(model):
    frames, kinds = waves(60, 2)
    assert np.mean([one == kind for one, kind in zip(model.predict(frames), kinds, strict=True)]) >= 0.95
    scores = {score.name: score.value for score in model.evaluate(frames, kinds)}
    assert scores["accuracy"] >= 0.95


def test_every_promise_holds(model, by_frame):
    for one in (model, by_frame):
        assert [promise.name for promise in one.promises(None, 20) if not promise.holds] == []


def test_a_label_of_each_frame_is_learnt(by_frame):
    draw = np.random.default_rng(4)
    steps = [draw.choice([-1.0, 1.0], size=9) for _ in range(40)]
    wanted = [["over" if total > 0 else "under" for total in one.cumsum()] for one in steps]
    found = by_frame.predict(steps)
    assert np.mean(np.array(found) == np.array(wanted)) >= 0.95
    assert {score.name for score in by_frame.evaluate(steps, wanted)} >= {"accuracy", "macro_f1"}


@pytest.mark.parametrize("pieces", [[9], [1] * 9, [2, 3, 4]])
def test_a_stream_equals_the_whole_sequence(by_frame, pieces):
    frames = np.random.default_rng(5).choice([-1.0, 1.0], size=(9, 1))
    (whole,) = by_frame.probabilities([frames])
    stream = by_frame.stream()
    read = [stream.read(piece) for piece in np.split(frames, np.cumsum(pieces)[:-1])]
    np.testing.assert_allclose(np.concatenate(read), whole, atol=1e-5)


def test_a_model_that_needs_the_end_cannot_stream(model):
    with pytest.raises(UsageError, match=r"stream: the encoder of this model reads the end before it answers"):
        model.stream()


def test_the_picture_says_on_what_the_answer_rests(model, tmp_path):
    frames, kinds = waves(2, 6)
    seen = model.explain(frames[0])
    assert seen.answer == kinds[0]
    assert seen.weights.shape == (len(frames[0]),)
    assert seen.attention.sum() == pytest.approx(1, abs=1e-4)
    for kind in ("svg", "png", "html", "json"):
        assert seen.to(tmp_path / f"seen.{kind}").stat().st_size > 200
    assert json.loads((tmp_path / "seen.json").read_text())["answer"] == kinds[0]
    assert "rests on" in seen.text(60)
    with pytest.raises(UsageError, match=r"no label is called 'sinus'. Did you mean 'sine'"):
        model.explain(frames[0], "sinus")


@pytest.mark.parametrize(
    "given, error, message",
    [
        ([np.zeros((3, 5))], DataError, r"sequence 0: frames of shape \[3, 5\]; this model reads \[time, 2\]"),
        ([np.zeros((0, 2))], DataError, r"sequence 0: frames of shape \[0, 2\]"),
        ([np.full((3, 2), np.inf)], DataError, r"sequence 0 holds a number that is not finite"),
        ([["a", "b"]], UsageError, r"sequence 0 is no array of numbers"),
        ([np.zeros((3, 2), complex)], UsageError, r"sequence 0 is no array of numbers"),
        (3, UsageError, r"a int was given; give a list of sequences of frames"),
        (np.zeros((3, 2)), UsageError, r"one array \[3, 2\] was given; give a list of sequences"),
    ],
)
def test_frames_that_do_not_fit_are_refused(model, given, error, message):
    with pytest.raises(error, match=message):
        model.predict(given)


def test_labels_unseen_in_training_count_as_wrong(model):
    frames, kinds = waves(4, 7)
    scores = {score.name: score.value for score in model.evaluate(frames, [kinds[0], "new", kinds[2], kinds[3]])}
    assert scores["accuracy"] <= 0.75


def test_a_wrong_row_is_named_by_its_line(tmp_path):
    path = tmp_path / "waves.ts"
    path.write_text("@classLabel true a b\n@data\n" + "1,2,3:a\n1,2,4:b\n" * 20 + "1,x:a\n")
    with pytest.raises(DataError, match=r"waves.ts:43: channel 1, frame 2: 'x' is no number"):
        unrolled.train(path, out=tmp_path / "model", settings=FEW, quiet=True)


def test_no_sequence_has_no_label(model):
    assert model.predict([]) == []


def test_a_gap_does_not_make_it_another_task(tmp_path):
    path = tmp_path / "waves.csv"
    rows = [f"{sequence},{step},{step * 0.5},{'ab'[sequence % 2]}" for sequence in range(20) for step in range(5)]
    rows[7] = "1,2,,b"
    path.write_text("\n".join(["sequence,time,x,label", *rows]) + "\n")
    with pytest.raises(DataError, match=r"waves.csv:7: channel 1, frame 3: '' is a missing value"):
        unrolled.train(path, out=tmp_path / "model", settings=FEW, quiet=True)


def test_a_file_with_other_channels_is_named_by_its_line(model, tmp_path):
    path = tmp_path / "other.ts"
    path.write_text("@classLabel false\n@data\n1,2:3,4\n1,2\n")
    with pytest.raises(DataError, match=r"other.ts:4: 1 channels where training rows have 2"):
        list(model.show_predict(str(path)))
    path.write_text("@classLabel false\n@data\n")
    with pytest.raises(DataError, match=r"other.ts: there is no sequence in it"):
        list(model.show_predict(str(path)))


def test_columns_in_another_order_are_read_by_their_names(tmp_path):
    draw = np.random.default_rng(8)
    rows = {"there": [], "turned": []}
    for sequence in range(60):
        label = "ab"[sequence % 2]
        for step in range(6):
            x, y = (1.0 if label == "a" else -1.0) + draw.normal(0, 0.1), draw.normal()
            rows["there"].append(f"{sequence},{step},{x:.2f},{y:.2f},{label}")
            rows["turned"].append(f"{sequence},{y:.2f},{label},{x:.2f},{step}")
    heads = {"there": "sequence,time,x,y,label", "turned": "sequence,y,label,x,time"}
    for name, lines in rows.items():
        (tmp_path / f"{name}.csv").write_text("\n".join([heads[name], *lines]) + "\n")
    model = unrolled.train(tmp_path / "there.csv", out=tmp_path / "model", settings=FEW, quiet=True)
    loaded = unrolled.load(tmp_path / "model")
    there, turned = ([one.text for one in loaded.show_predict(str(tmp_path / f"{name}.csv"))] for name in rows)
    assert there == turned
    task = model.task
    part = part_of(Sources(data=str(tmp_path / "turned.csv")), task)
    assert {score.name: score.value for score in loaded.test(part).scores}["accuracy"] == 1.0
    assert loaded.show_explain(f"{tmp_path / 'turned.csv'}#1").name(1) == "y"
    (tmp_path / "other.csv").write_text((tmp_path / "there.csv").read_text().replace("x,y", "x,z"))
    with pytest.raises(DataError, match=r"other.csv: the model reads the channels x, y; the table lacks y and has z"):
        list(loaded.show_predict(str(tmp_path / "other.csv")))


def test_the_doctor_reads_a_frame_a_row_as_training_does(tmp_path, capsys):
    path = tmp_path / "waves.csv"
    rows = [f"{sequence},{step},{step * 0.5},{'ab'[sequence % 2]}" for sequence in range(20) for step in range(5)]
    rows[7] = "1,2,,b"
    path.write_text("\n".join(["sequence,time,x,label", *rows]) + "\n")
    with pytest.raises(typer.Exit) as stopped:
        check(data=str(path))
    assert stopped.value.exit_code == 3
    assert "channel 1, frame 3: '' is a missing value" in capsys.readouterr().out
