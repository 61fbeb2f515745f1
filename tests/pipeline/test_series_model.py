"""A trained forecaster: its verbs, what it needs of a file, and that nothing of the future comes in."""

from __future__ import annotations

import json
import shutil

import numpy as np
import pytest
from typer.testing import CliRunner

import unrolled
from unrolled.base.errors import DataError, SettingsError, UsageError
from unrolled.cli.main import app
from unrolled.data.opening import refuse
from unrolled.data.series import file_of
from unrolled.data.series_columns import Wanted
from unrolled.text.series import read_series

HORIZON = 6
SMALL = {
    "task": {"known": ["price"], "static": ["kind"], "horizon": HORIZON, "test": 12, "valid": 12},
    "model": {
        "size": 8,
        "encoder": {"cell": {"kind": "gru", "hidden_size": 8}},
        "decoder": {"cell": {"kind": "gru", "hidden_size": 8}},
    },
    "train": {"steps": 80, "validate_every": 20, "seed": 3, "learning_rate": 0.01},
}


def sales(steps=84, ahead=0, change=None):
    """Two shops by month: a season, a trend, and what a price that is known ahead takes away."""
    draw = np.random.default_rng(5)
    lines = ["date,store,sales,price,kind"]
    for number, store in enumerate("ab"):
        price = draw.integers(0, 2, size=200)
        for step in range(steps + ahead):
            value = (5 + number) * (10 + np.sin(step * np.pi / 6) + 0.05 * step - 2 * price[step])
            value += 0.05 * draw.normal()
            if change is not None and step >= change:
                value = 500.0 + step
            cell = f"{value:.4f}" if step < steps else ""
            lines.append(f"{2000 + step // 12}-{step % 12 + 1:02d},{store},{cell},{price[step]},{'xy'[number]}")
    return "\n".join(lines) + "\n"


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    folder = tmp_path_factory.mktemp("series")
    (folder / "sales.csv").write_text(sales())
    (folder / "ahead.csv").write_text(sales(ahead=HORIZON))
    return folder


@pytest.fixture(scope="module")
def model(place):
    return unrolled.train(place / "sales.csv", task="forecast", out=place / "model", settings=SMALL, quiet=True)


def values_of(model):
    return {score.name: score.value for score in model.scores}


def test_it_learns_what_the_rules_cannot_know(model):
    scores = values_of(model)
    assert scores["mase"] < 0.7 * scores["mase_seasonal_naive"]
    assert scores["mase"] < scores["mase_naive"]
    assert model.record["scored_on"]["part"] == "test"


def test_what_comes_next(model, place):
    found = model.predict(place / "ahead.csv")
    assert [one.series for one in found] == ["a", "b"]
    assert found[0].times == ["2007-01", "2007-02", "2007-03", "2007-04", "2007-05", "2007-06"]
    assert found[0].quantiles.shape == (HORIZON, 1, 5)
    assert (np.diff(found[0].quantiles, axis=2) >= 0).all()
    np.testing.assert_array_equal(found[0].point, found[0].quantiles[..., 2])
    few = model.predict(place / "ahead.csv", steps=2, batch=1)
    np.testing.assert_allclose(few[1].point, found[1].point[:2], rtol=1e-5)
    # The price is read: with another one the forecast is another.
    text = (place / "ahead.csv").read_text().replace(",,1,", ",,0,")
    (place / "cheap.csv").write_text(text)
    assert model.predict(place / "cheap.csv")[0].point.sum() > found[0].point.sum()


def test_what_is_known_ahead_must_be_there(model, place):
    with pytest.raises(
        DataError, match=r"sales.csv: the model reads price ahead, and after 2006-12 the series 'a' has 0 "
    ):
        model.predict(place / "sales.csv")
    with pytest.raises(UsageError, match=r"predict: 7 steps were asked for, .* --set task\.horizon=7"):
        model.predict(place / "ahead.csv", steps=7)
    (place / "short.csv").write_text("\n".join(sales().split("\n")[:6]) + "\n")
    with pytest.raises(DataError, match=r"short.csv: the series 'a' has 5 steps, and a forecast looks back on 12"):
        model.predict(place / "short.csv")
    (place / "other.csv").write_text("date,store,price,kind\n2000-01,a,1,x\n2000-02,a,1,x\n2000-03,a,1,x\n")
    with pytest.raises(UsageError, match=r"other.csv: no column is called 'sales'"):
        model.predict(place / "other.csv")
    with pytest.raises(DataError, match=r"sales.csv: no series has .* after the last training step"):
        model.evaluate(cut_file(place, 60))


def cut_file(place, steps):
    path = place / "cut" / "sales.csv"
    path.parent.mkdir(exist_ok=True)
    path.write_text(sales(steps))
    return path


def test_the_backtest_begins_after_training(model, place):
    # 84 steps, 24 of them after training: 19 origins of whole horizons in each of two series.
    scores = {score.name: score for score in model.evaluate(place / "sales.csv")}
    assert "38 origins" in scores["mase"].protocol
    assert "8 origins" in next(iter(model.evaluate(place / "sales.csv", stride=5))).protocol


def test_changing_the_future_changes_nothing_that_is_learnt(place, model):
    """Scales, season, weights and the forecasts of training windows: the same, whatever comes after training."""
    (place / "later").mkdir(exist_ok=True)
    (place / "later" / "sales.csv").write_text(sales(change=60))
    with_change = {**SMALL, "train": {**SMALL["train"], "steps": 5, "validate_every": 5}}
    runs = []
    for folder in (place, place / "later"):
        found = unrolled.train(
            folder / "sales.csv", task="forecast", out=folder / "five", settings=with_change, quiet=True
        )
        runs.append(found)
    one, other = runs
    assert one.text.fingerprint() == other.text.fingerprint()
    for first, second in zip(one.network.parameters(), other.network.parameters(), strict=True):
        np.testing.assert_array_equal(first.detach().numpy(), second.detach().numpy())
    assert values_of(one) != values_of(other)


def test_a_backtest_forecast_sees_nothing_after_its_origin(model, place):
    from unrolled.pipeline.series_windows import tried

    whole = [read_series(row.fields) for row in model.task.adapt(file_table(place / "sales.csv")).rows()]
    hidden = []
    for one in whole:
        values = one.values.copy()
        values[75:, 0] = 1e5
        hidden.append(one._replace(values=values))
    first, second = (
        tried(model.network, model.text, all_, stride=1, device="cpu", where="x") for all_ in (whole, hidden)
    )
    early = [row for row, (_, at) in enumerate(first.at) if at - whole[0].first <= 75]
    assert 0 < len(early) < len(first.at)
    np.testing.assert_array_equal(first.forecasts.quantiles[early], second.forecasts.quantiles[early])
    assert not np.array_equal(first.forecasts.quantiles, second.forecasts.quantiles)


def file_table(path):
    from unrolled.data.readers import open_table

    return open_table(path)


def test_series_in_any_order_and_alone(model, place):
    lines = (place / "ahead.csv").read_text().strip().split("\n")
    turned = place / "turned.csv"
    turned.write_text("\n".join([lines[0], *sorted(lines[1:], key=lambda line: line.split(",")[:2])]) + "\n")
    alone = place / "alone.csv"
    alone.write_text("\n".join([lines[0], *[line for line in lines if ",b," in line]]) + "\n")
    found = {one.series: one.quantiles for one in model.predict(place / "ahead.csv")}
    for path in (turned, alone):
        for one in model.predict(path):
            np.testing.assert_allclose(one.quantiles, found[one.series], rtol=1e-5)


def test_it_is_saved_and_keeps_its_promises(model, place):
    again = unrolled.load(place / "model")
    assert isinstance(again, unrolled.SeriesModel)
    for one, other in zip(again.predict(place / "ahead.csv"), model.predict(place / "ahead.csv"), strict=True):
        np.testing.assert_array_equal(one.quantiles, other.quantiles)
    promises = again.promises(None, 8)
    assert [one.name for one in promises if not one.holds] == []
    assert len(promises) == 6
    assert all(one.holds for one in again.promises(str(place / "ahead.csv"), 2))


def test_explaining_draws_the_past_and_says_how_far_to_trust_it(model, place, tmp_path):
    found = model.explain(place / "ahead.csv", "b")
    assert found.name == "b sales"
    assert found.attention.shape == found.moves.shape == (HORIZON, model.text.window.context)
    np.testing.assert_allclose(found.attention.sum(axis=1), 1, rtol=1e-5)
    assert set(found.faithfulness) == {"rank_correlation", "top_agreement"}
    assert len(found.times) == model.text.window.context + HORIZON
    for kind in ("svg", "png", "html", "json"):
        assert found.to(tmp_path / f"picture.{kind}").stat().st_size > 1000
    tree = json.loads((tmp_path / "picture.json").read_text())
    assert tree["forecast"] == found.point.tolist()
    assert "<svg" in (tmp_path / "picture.svg").read_text()[:10]
    assert "attention" in found.text()
    with pytest.raises(UsageError, match=r"no series of .* is called 'c'"):
        model.explain(place / "ahead.csv", "c")
    with pytest.raises(UsageError, match="'price' is none of the targets"):
        model.explain(place / "ahead.csv", "b", "price")


def told(*arguments):
    return CliRunner().invoke(app, list(map(str, arguments)))


def test_the_command_line(model, place):
    found = told("predict", place / "model", place / "ahead.csv", "--steps", 2)
    lines = found.stdout.strip().split("\n")
    assert lines[0] == "series,time,target,forecast,q0.1,q0.25,q0.5,q0.75,q0.9"
    assert len(lines) == 5 and lines[3].startswith("b,2007-01,sales,")
    (first, *_) = told("predict", place / "model", place / "ahead.csv", "--json").stdout.split("\n")
    assert set(json.loads(first)["quantiles"]) == {"q0.1", "q0.25", "q0.5", "q0.75", "q0.9"}
    tree = json.loads(told("evaluate", place / "model", place / "sales.csv", "--stride", 3, "--json").stdout)
    assert [row["forecast"] for row in tree["beside"]] == ["model", "naive", "seasonal naive (12)"]
    assert len(tree["horizon"]) == HORIZON
    tree = json.loads(
        told("evaluate", place / "model", place / "sales.csv", "--compare", place / "model", "--json").stdout
    )
    assert tree["beside"][-1]["mase"] == tree["beside"][0]["mase"]
    found = told("explain", place / "model", f"{place / 'ahead.csv'}#b", "--json")
    assert json.loads(found.stdout)["name"] == "b sales"
    assert told("describe", place / "model").exit_code == 0
    for verb, reason in (
        ("score", "evaluate has their loss"),
        ("generate", "no path can be drawn"),
        ("embed", "words"),
    ):
        arguments = [place / "model", *([place / "ahead.csv"] if verb != "generate" else [])]
        found = told(verb, *arguments)
        assert found.exception.exit_code == 2 and reason in str(found.exception)


def test_the_doctor_reads_series(place):
    found = told("check", place / "sales.csv")
    assert found.exit_code == 0 and "2 series of 84 steps, a step each month" in found.stdout
    lines = sales().split("\n")
    (place / "gap.csv").write_text("\n".join([*lines[:20], *lines[22:]]))
    found = told("check", place / "gap.csv")
    assert found.exit_code == 3 and "2 steps of a month are missing" in " ".join(found.stdout.split())
    assert "gap.csv:21" in found.stdout


def test_files_for_validation_and_test_go_on_from_training(place, tmp_path):
    lines = sales().strip().split("\n")
    parts = {"train": range(60), "valid": range(60, 72), "test": range(72, 84)}
    for name, steps in parts.items():
        months = {f"{2000 + step // 12}-{step % 12 + 1:02d}" for step in steps}
        rows = [line for line in lines[1:] if line.split(",")[0] in months]
        (tmp_path / f"{name}.csv").write_text("\n".join([lines[0], *rows]) + "\n")
    settings = {**SMALL, "task": {"known": ["price"], "static": ["kind"], "horizon": HORIZON}}
    settings["train"] = {**SMALL["train"], "steps": 5, "validate_every": 5}
    from unrolled.workshop.sources import Sources

    sources = Sources(**{name if name != "train" else "data": str(tmp_path / f"{name}.csv") for name in parts})
    found = unrolled.train(sources=sources, task="forecast", out=tmp_path / "m", settings=settings, quiet=True)
    cut = {**settings, "task": SMALL["task"]}
    same = unrolled.train(place / "sales.csv", task="forecast", out=tmp_path / "n", settings=cut, quiet=True)
    assert values_of(found) == values_of(same)


def test_a_part_is_said_once(place, tmp_path):
    from unrolled.workshop.sources import Sources

    path = str(place / "sales.csv")
    for name, other in (("valid", "valid"), ("test", "valid"), ("test", "test")):
        settings = {"task": {name: 12, "known": ["price"]}}
        sources = Sources(**{"data": path, other: path})
        with pytest.raises(UsageError, match=rf"task.{name}=12 takes the last steps .* and --{other} was given"):
            unrolled.train(sources=sources, task="forecast", out=tmp_path / "m", settings=settings, quiet=True)


def test_missing_numbers_are_masked_and_never_scored(tmp_path):
    lines = sales(60).strip().split("\n")
    for row in (10, 30, 31, 50):
        cells = lines[row].split(",")
        lines[row] = ",".join([*cells[:2], "", *cells[3:]])
    (tmp_path / "data.csv").write_text("\n".join(lines) + "\n")
    with pytest.raises(DataError, match=r"data.csv:11: the value of 'sales' is missing.*task\.missing=mask"):
        list(file_of(tmp_path / "data.csv", Wanted(target=("sales",))).rows(refuse))
    for how in ("mask", "forward"):
        task = {"known": ["price"], "horizon": 3, "missing": how}
        settings = {**SMALL, "task": task, "train": {"steps": 4}}
        found = unrolled.train(
            tmp_path / "data.csv", task="forecast", out=tmp_path / how, settings=settings, quiet=True
        )
        assert np.isfinite(values_of(found)["mase"])
        assert found.network.told


@pytest.mark.parametrize(
    ("settings", "error", "message"),
    [
        (
            {"task": {"horizon": 60}},
            DataError,
            r"the longest series has 84 steps; 60 are held out .* so 122 are the least",
        ),
        ({"task": {"test": 90}}, DataError, "the longest series has 84 steps, and task.test takes 90"),
        ({"task": {"target": ["sale"]}}, UsageError, "no column is called 'sale'. Did you mean 'sales'"),
        ({"model": {"point": "mean"}}, SettingsError, r"\[model.point\] .*--set text\.transform=none"),
        ({"train": {"label_smoothing": 0.1}}, SettingsError, r"\[train.label_smoothing\] 0.1 was given"),
        ({"task": {"every": "3 fortnights"}}, SettingsError, r"\[task.every\] '3 fortnights' was given"),
    ],
)
def test_what_cannot_be_is_said_before_training(place, tmp_path, settings, error, message):
    with pytest.raises(error, match=message):
        unrolled.train(place / "sales.csv", task="forecast", out=tmp_path / "m", settings=settings, quiet=True)
    assert not (tmp_path / "m").exists() or not (tmp_path / "m" / "model.safetensors").exists()
    shutil.rmtree(tmp_path / "m", ignore_errors=True)
