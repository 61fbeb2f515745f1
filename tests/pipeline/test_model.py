"""What trained models of every task share: verbs that are there or named, options that are taken or refused."""

import json

import pytest
import torch

import unrolled
from unrolled.base.errors import SettingsError, UsageError
from unrolled.pipeline import TRAINED, Model, Translator
from unrolled.pipeline.model import VERBS
from unrolled.tasks import TASKS
from unrolled.text import TextPair, TextSettings
from unrolled.workshop.plan import layers_of, plan, preset_names


def test_every_task_has_a_model_whose_verbs_are_all_on_the_command_line():
    assert set(TRAINED) == set(TASKS)
    for kind in TRAINED:
        verbs = TRAINED[kind].verbs()
        assert "evaluate" in verbs
        assert all(hasattr(TRAINED[kind], f"show_{verb}") for verb in verbs), kind


@pytest.mark.parametrize("verb", VERBS)
def test_a_task_has_a_verb_or_says_why_not(verb):
    for kind in TRAINED:
        assert (verb in TRAINED[kind].verbs()) is not (verb in TRAINED[kind].lacks), kind


def test_the_class_is_that_of_the_task(trained):
    model = unrolled.load(trained.folder)
    assert type(model) is Translator and model.kind == "translate"
    assert model.describe()[0].parameters == sum(weight.numel() for weight in model.network.parameters())
    assert type(Translator.load(trained.folder)) is type(Model.load(trained.folder)) is Translator


def test_a_verb_that_there_is_not_names_those_that_there_are(trained, run):
    model = unrolled.load(trained.folder)
    wanted = r"the task 'translate' does not generate \(.*draws\). It has: predict, score, evaluate, explain, embed."
    with pytest.raises(UsageError, match=wanted):
        model.generate("x")
    assert not hasattr(model, "generate")
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        model.nothing  # noqa: B018


def test_an_option_of_another_task_is_refused(trained):
    model = unrolled.load(trained.folder)
    show, chosen = model.showing("score", {"tokens": False, "beam": None})
    assert chosen == {} and callable(show)
    with pytest.raises(
        UsageError, match=r"score: --token is not .* 'translate'. Did you mean --tokens\? It takes: --t"
    ):
        model.showing("score", {"token": True})


def test_a_preset_says_its_task_and_a_model_of_another_is_refused():
    for name in preset_names():
        assert plan(layers_of(name)).origin("task.kind") == f"preset {name}"
    with pytest.raises(SettingsError, match=r"\[task\] no task is called 'translat'. Did you mean 'translate'"):
        plan([("flag", {"task": "translat"})])


def test_an_ensemble_is_the_mean_of_models_of_the_same_symbols(trained, run, tmp_path):
    model, other = unrolled.load(trained.folder), unrolled.load(trained.folder)
    lines = [line.split("\t")[0] for line in trained.valid.read_text().splitlines()[:5]]
    for weight in other.network.parameters():
        weight.data.add_(0.3 * weight.std())
    alone, twice = model.translations(lines), model.joined([model]).translations(lines)
    assert [one[0].text for one in alone] == [one[0].text for one in twice]
    (tmp_path / "lines.txt").write_text("\n".join(lines) + "\n")
    other.save(tmp_path / "other")
    said = run("predict", trained.folder, tmp_path / "lines.txt", "--ensemble", tmp_path / "other")
    assert said.code == 0 and said.out.splitlines() == model.joined([other]).predict(lines)
    scored = run("evaluate", trained.folder, trained.valid, "--ensemble", tmp_path / "other", "--json")
    assert scored.code == 0 and '"bleu"' in scored.out
    other.text = TextPair.build(TextSettings())
    other.text.train(["a b"], ["c d"])
    with pytest.raises(UsageError, match=r"ensemble: a model of other symbols was given\. Give models"):
        model.joined([other])


def test_searches_run_in_bfloat16_where_asked(trained, run, tmp_path, monkeypatch):
    from unrolled.models import stepper
    from unrolled.train import precision

    monkeypatch.setattr(precision, "has_bfloat16", lambda _device: True)
    lines = [line.split("\t")[0] for line in trained.valid.read_text().splitlines()[:5]]
    model, half = unrolled.load(trained.folder), unrolled.load(trained.folder).computing("bfloat16")
    assert half.engine.precision == "bfloat16" and model.engine.precision == "float32"
    assert half.network.state_dict().keys() == model.network.state_dict().keys()
    assert {one.dtype for one in half.network.parameters()} == {torch.float32}
    exact, rounded = (one.translations(lines)[0][0].hypothesis.log_prob for one in (model, half))
    assert exact != rounded and exact == pytest.approx(rounded, abs=0.2)
    (tmp_path / "lines.txt").write_text("\n".join(lines) + "\n")
    said = run("predict", trained.folder, tmp_path / "lines.txt", "--precision", "bfloat16")
    assert said.code == 0 and said.out.splitlines() == half.predict(lines)
    scored = run(
        "evaluate", trained.folder, trained.valid, "--precision", "bfloat16", "--compare", trained.folder, "--json"
    )
    told = json.loads(scored.out)
    assert told["precision"] == "bfloat16" and told["compare"]
    assert "searched in bfloat16" in run("evaluate", trained.folder, trained.valid, "--precision", "bfloat16").out
    wrong = run("predict", trained.folder, tmp_path / "lines.txt", "--precision", "half")
    assert wrong.code == 2 and "precision: 'half' was given. Give float32 or bfloat16." in wrong.err
    monkeypatch.setattr(precision, "has_bfloat16", lambda _device: False)
    assert model.computing("bfloat16").engine.precision == "bfloat16"  # of our own products, on any processor
    monkeypatch.setattr(stepper, "lays_out", lambda _device, _precision: False)
    with pytest.raises(
        SettingsError,
        match=r"precision: bfloat16 was given, but the device 'cpu' .* has no bfloat16 .* OMP_NUM_THREADS=4",
    ):
        unrolled.load(trained.folder).computing("bfloat16")


def test_a_task_without_a_search_refuses_a_precision(tmp_path):
    rows = [f"{word}\t{word[0]}" for word in ("ab", "ac", "ba", "bc") * 6]
    (tmp_path / "rows.tsv").write_text("text\tlabel\n" + "\n".join(rows) + "\n")
    settings = {"model": {"embedding_size": 4}, "train": {"steps": 2, "epochs": None}}
    unrolled.train(tmp_path / "rows.tsv", task="classify", settings=settings, out=tmp_path / "model", quiet=True)
    with pytest.raises(UsageError, match=r"bfloat16 was given, and it is searches .* of the task 'classify' searches"):
        unrolled.load(tmp_path / "model").computing("bfloat16")
