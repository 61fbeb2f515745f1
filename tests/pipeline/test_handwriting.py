"""Drawings end to end: learnt, scored, drawn, gone on from, of a label, explained; and what is refused."""

import json
import re

import numpy as np
import pytest
from typer.testing import CliRunner

import unrolled
from unrolled.base.errors import DataError, UsageError
from unrolled.cli.main import app
from unrolled.pipeline import HandwritingModel
from unrolled.workshop.sources import Sources, part_of

FEW = {
    "model": {
        "components": 4,
        "label_size": 4,
        "history": {"cell": {"hidden_size": 24}, "dropout": 0.0},
        "dropout": 0.0,
        "stretch": 0.0,
    },
    "train": {"epochs": 16, "batch_sentences": 8, "learning_rate": 0.02},
}


def drawing(kind, draw):
    """A zigzag to the right of five points, or a cross of two strokes."""
    if kind == "zigzag":
        strokes = [np.stack([np.arange(5) * 6.0, 8.0 * (-1.0) ** np.arange(5)], axis=1)]
    else:
        strokes = [np.array([[0.0, 0], [20, 20]]), np.array([[20.0, 0], [0, 20]])]
    return [np.round(stroke + draw.normal(0, 0.5, stroke.shape), 1) for stroke in strokes]


def many(count, seed):
    draw = np.random.default_rng(seed)
    kinds = ["zigzag" if place % 2 else "cross" for place in range(count)]
    return [drawing(kind, draw) for kind in kinds], kinds


def written(path, drawings, kinds):
    rows = zip(drawings, kinds, strict=True)
    path.write_text(
        "".join(json.dumps({"strokes": [s.tolist() for s in one], "label": kind}) + "\n" for one, kind in rows)
    )
    return path


@pytest.fixture(scope="module")
def file(tmp_path_factory):
    return written(tmp_path_factory.mktemp("drawings") / "drawings.jsonl", *many(160, 1))


@pytest.fixture(scope="module")
def model(file):
    return unrolled.train(file, out=file.parent / "model", settings=FEW, quiet=True)


@pytest.fixture(scope="module")
def window(file):
    settings = {**FEW, "model": {"components": 4, "history": {"kind": "feedforward", "window": 2, "hidden_size": 24}}}
    return unrolled.train(file, out=file.parent / "window", settings=settings, quiet=True)


def loss(model, drawings, kinds=None):
    return next(score.value for score in model.evaluate(drawings, kinds) if score.name == "loss")


def test_it_learns_more_than_a_window_does_and_a_label_helps(model, window):
    drawings, kinds = many(60, 2)
    assert isinstance(model, unrolled.HandwritingModel)
    assert loss(model, drawings, kinds) < loss(window, drawings, kinds) - 0.1
    assert loss(model, drawings, kinds) < loss(model, drawings) < 5.2
    swapped = ["cross" if kind == "zigzag" else "zigzag" for kind in kinds]
    assert loss(model, drawings, swapped) > loss(model, drawings, kinds) + 1


def test_every_promise_holds(model, window):
    for one in (model, window):
        assert [promise for promise in one.promises(None, 12) if promise.holds is False] == []


def test_a_score_is_of_every_point_and_does_not_depend_on_how_a_drawing_is_given(model):
    strokes = [np.array([[0.0, 1], [5, -6]]), np.array([[9.0, 9]])]
    steps = np.array([[0.0, 1, 0], [5, -7, 1], [4, 15, 1]])
    one, other = model.score([strokes, steps], ["cross", "cross"])
    assert one.log_probs.shape == (3,)
    np.testing.assert_allclose(one.log_probs, other.log_probs, atol=1e-5)
    assert one.log_prob == pytest.approx(one.log_probs.sum())


def test_what_is_drawn_is_of_its_label(model):
    drawn = model.generate(30, label="cross", bias=0.5, seed=3)
    assert np.mean([len(one.strokes) == 2 and len(one.points) == 4 for one in drawn]) >= 0.8
    zigzags = model.generate(30, label="zigzag", bias=0.5, seed=3)
    assert np.mean([len(one.strokes) == 1 and one.finished for one in zigzags]) >= 0.8
    assert {one.label for one in model.generate(20, seed=1)} == {"cross", "zigzag"}


def test_a_sample_depends_on_the_seed_and_its_number(model):
    three, five = model.generate(3, seed=7), model.generate(5, seed=7)
    for one, other in zip(three, five, strict=False):
        np.testing.assert_allclose(one.points, other.points, atol=1e-3)
    assert not np.array_equal(model.generate(1, seed=8)[0].points, three[0].points)


def test_it_goes_on_from_a_beginning(model):
    begin = np.array([[0.0, 8, 0], [6, -16, 0], [6, 16, 0]])
    drawn = model.generate(5, label="zigzag", prompt=begin, bias=2.0)
    assert np.median([len(one.points) for one in drawn]) in (4, 5, 6)
    for one in drawn:
        np.testing.assert_allclose(one.points[:3], begin, atol=1e-4)
        assert abs(one.points[3, 0] - 6) < 3
        assert abs(one.points[3, 1] + 16) < 4


def test_a_bias_draws_what_is_more_probable(model):
    plain, neat = (
        np.mean([one.log_prob / len(one.points) for one in model.generate(40, bias=bias, seed=1)]) for bias in (0, 2)
    )
    assert neat > plain + 0.5


def test_generation_stops_at_the_length(model):
    one = model.generate(1, length=2, label="zigzag")[0]
    assert (len(one.points), one.finished) == (2, False)


@pytest.mark.parametrize("name", ["page.svg", "page.png", "lines.jsonl", "arrays.npz", "folder"])
def test_what_is_drawn_is_written_and_data_are_read_again(model, tmp_path, name):
    result = CliRunner().invoke(
        app, ["generate", str(folder_of(model)), "--samples", "5", "--to", str(tmp_path / name), "--bias", "1"]
    )
    assert result.exit_code == 0, result.output
    place = tmp_path / name
    if name == "folder":
        assert [one.name for one in sorted(place.iterdir())] == [f"{number}.svg" for number in range(1, 6)]
        place = place / "1.svg"
    if place.suffix == ".svg":
        text = place.read_text()
        assert re.search(r'viewBox="0 0 [\d.]+ [\d.]+"', text)
        assert 'stroke-linecap="round"' in text
        assert "nan" not in text
    if place.suffix in (".jsonl", ".npz"):
        part = part_of(Sources(data=str(place)), model.task)
        assert model.test(part).rows == 5


def folder_of(model):
    return model.folder


@pytest.fixture(scope="module", autouse=True)
def _saved(model, file):
    model.folder = file.parent / "model"


def run(*words):
    return CliRunner().invoke(app, list(map(str, words)))


def test_the_command_line(model, window, file, tmp_path):
    shown = run("generate", model.folder, "--samples", 2, "--label", "cross", "--prompt", f"{file}#2", "--json")
    rows = [json.loads(line) for line in shown.stdout.splitlines()]
    assert [row["label"] for row in rows] == ["cross", "cross"]
    scored = [json.loads(line) for line in run("score", model.folder, file, "--tokens", "--json").stdout.splitlines()]
    assert len(scored) == 161
    assert len(scored[0]["log_probs"]) == scored[0]["points"]
    assert scored[-1]["log_prob"] == pytest.approx(sum(row["log_prob"] for row in scored[:-1]))
    found = json.loads(run("evaluate", model.folder, file, "--compare", file.parent / "window", "--json").stdout)
    assert found["difference"][0]["loss"] == pytest.approx(found["compare"][0]["loss"] - found["compare"][1]["loss"])
    assert found["difference"][0]["low"] <= found["difference"][0]["loss"] <= found["difference"][0]["high"] < 0
    assert run("embed", model.folder, file, "--to", tmp_path / "v.npz").exit_code == 0
    assert np.load(tmp_path / "v.npz")["vectors"].shape == (160, model.network.history.output_size)
    assert run("describe", model.folder).exit_code == 0


def test_the_picture_shows_where_the_pen_was_expected(model, file, tmp_path):
    seen = model.show_explain(f"{file}#1")
    assert seen.label == "cross"
    assert len(seen.log_probs) == len(seen.points) == len(seen.ranks)
    for kind in ("svg", "png", "html", "json"):
        assert seen.to(tmp_path / f"seen.{kind}").stat().st_size > 200
    left, right, top, bottom = seen.edges
    square = (right - left) * (bottom - top) / seen.field.size
    assert float(seen.field.sum()) * square == pytest.approx(len(seen.points), rel=0.35)
    assert "densest half" in seen.text(40)


def test_where_densities_are_right_half_of_the_points_are_in_the_densest_half(model):
    drawn = model.generate(60, seed=5)
    shares = np.concatenate([model.explain(one.points, one.label).ranks for one in drawn if one.finished])
    assert 0.42 < np.mean(shares <= 0.5) < 0.58


@pytest.mark.parametrize(
    "call, error, message",
    [
        (lambda m: m.generate(1, label="circle"), UsageError, r"no label is called 'circle'. Known: cross, zigzag"),
        (lambda m: m.generate(1, temperature=0), UsageError, r"temperature 0 and bias 0 were given"),
        (lambda m: m.generate(1, bias=-1), UsageError, r"a bias at least 0"),
        (lambda m: m.generate(0), UsageError, r"generate: samples is 0; a whole number of at least 1"),
        (lambda m: m.score([]), UsageError, r"score: give a list of drawings"),
        (lambda m: m.score([[[[0, 0]]]], ["a", "b"]), UsageError, r"score: 1 drawings and 2 labels"),
        (lambda m: m.score([np.array([[0, 1, 0], [1, 1, 0]])]), DataError, r"score: drawing 0: no point lifts the pen"),
        (
            lambda m: m.score([np.array([[0, 1e9, 1]])]),
            DataError,
            r"score: drawing 0: point 1: the pen moves by 1e\+09",
        ),
        (
            lambda m: m.score([[[[0, np.nan]]]]),
            DataError,
            r"^score: drawing 0: stroke 1, point 1: a number is not finite",
        ),
        (lambda m: m.generate(1, prompt="x"), UsageError, r"^generate: prompt: it is neither an array"),
        (lambda m: m.predict([]), UsageError, r"predict: .* does not predict \(it goes on from a drawing: generate"),
        (lambda m: next(m.show_generate("", to="x.pdf")), UsageError, r"x.pdf: ends in '.pdf'.*Known: .svg, .png"),
        (lambda m: m.show_explain("a.jsonl#0"), UsageError, r"after # the number of a drawing is expected, from 1"),
    ],
)
def test_what_does_not_fit_is_refused(model, call, error, message):
    with pytest.raises(error, match=message):
        call(model)


def test_a_prompt_of_another_format_is_named(model, tmp_path):
    path = tmp_path / "text.txt"
    path.write_text("one line\nand another\n")
    with pytest.raises(
        DataError, match=r"text.txt: no drawings: a table of points lacks the column drawing, x, y, pen"
    ):
        next(model.show_generate(str(path)))


def test_a_label_that_training_did_not_have_is_named_with_its_line(model, tmp_path):
    drawings, _ = many(3, 4)
    path = written(tmp_path / "new.jsonl", drawings, ["cross", "zigzag", "crosss"])
    with pytest.raises(DataError, match=r"new.jsonl:3: the label 'crosss' is none of the 2 .*Did you mean 'cross'"):
        model.test(part_of(Sources(data=str(path)), model.task))


def test_without_labels_it_draws_too(tmp_path):
    drawings, _ = many(24, 5)
    rows = [json.dumps({"strokes": [s.tolist() for s in one]}) + "\n" for one in drawings]
    path = tmp_path / "plain.jsonl"
    path.write_text("".join(rows))
    few = {**FEW, "train": {"epochs": 1, "batch_sentences": 8}}
    plain = unrolled.train(path, out=tmp_path / "model", settings=few, quiet=True)
    assert plain.labels == ()
    assert len(plain.generate(2, length=5)) == 2
    again = HandwritingModel.load(tmp_path / "model")
    np.testing.assert_allclose(again.embed(drawings[:2]), plain.embed(drawings[:2]), atol=1e-6)
    with pytest.raises(UsageError, match=r"no label is called 'cross'. Training rows had none"):
        plain.generate(1, label="cross")
