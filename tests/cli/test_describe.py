"""A preset is described as train would take it, with a file and single settings over it."""

import json

import pytest

SHOWN = ("describe", "bahdanau-small")


def parts(run, *words):
    found = json.loads(run(*words, "--json").out)
    return found["parameters"], {row["path"]: row for row in found["parts"]}


def test_a_preset_is_described_with_the_settings_of_file_and_line(run, tmp_path):
    path = tmp_path / "settings.yaml"
    path.write_text("preset: gnmt\nmodel: {embedding_size: 24, encoder: {layers: 3}}\n")
    plain, _ = parts(run, *SHOWN)
    of_file, _ = parts(run, *SHOWN, "--config", path)
    both, rows = parts(run, *SHOWN, "--config", path, "--set", "model.embedding_size=20")
    assert len({plain, of_file, both}) == 3
    embeddings = [row for name, row in rows.items() if name.endswith("embedding")]
    assert [row["parameters"] for row in embeddings] == [8000 * 20, 8000 * 20]
    assert sum(name.startswith("encoder.recurrent.cells.") for name in rows) == 6, "three layers in two directions"


def test_what_is_described_is_what_is_trained(trained, run):
    import unrolled

    model = unrolled.load(str(trained.folder))
    sizes = ("--source-vocabulary", model.text.source.vocabulary_size)
    sizes += ("--target-vocabulary", model.text.target.vocabulary_size)
    count, _ = parts(run, *SHOWN, "--config", trained.config, *sizes)
    assert count == sum(weight.numel() for weight in model.network.parameters())


def test_that_settings_were_changed_is_said(run):
    assert "A preset, shown with 8,000 source" in run(*SHOWN).out
    assert "A preset with your settings, shown with 8,000 source" in run(*SHOWN, "--set", "model.dropout=0").out


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (
            ("--set", "model.embeding_size=3"),
            "[model] no setting of the model 'seq2seq' is called 'embeding_size'. Did you mean 'embedding_size'?",
        ),
        (("--set", "model.embedding_size=0"), "[model.embedding_size] 0 was given; input should be greater than"),
        (("--set", "train.stop_on=foo"), "[train.stop_on] no validation score is called 'foo'. Known: bleu, "),
        (("--set", "modle.layers=3"), "no section is called 'modle'. Did you mean 'model'?"),
        (("--set", "model"), "--set 'model': write it as name.name=value, e.g. --set train.learning_rate=0.001."),
        (("--config", "none.yaml"), "none.yaml: the settings file cannot be read (No such file or directory)."),
        (("--set", "model.encoder.kind=rn"), "no encoder is called 'rn'. Did you mean 'rnn'?"),
    ],
)
def test_a_bad_setting_ends_as_in_training(trained, run, tmp_path, monkeypatch, words, message):
    monkeypatch.chdir(tmp_path)
    found = run(*SHOWN, *words)
    assert message in found.err
    trains = run("train", trained.data, "--preset", "bahdanau-small", "--out", tmp_path / "model", *words)
    assert (found.code, found.out, found.err) == (2, "", trains.err)
    assert trains.code == 2


def test_a_saved_model_keeps_its_settings(trained, run):
    found = run("describe", trained.folder, "--set", "model.dropout=0")
    assert found.code == 2
    assert found.err == (
        f"error: describe: --set changes a preset, and {trained.folder} is a saved model, which has the settings that "
        "it was trained with. Leave it out, or name a preset.\n"
    )
    assert "describe: --config changes a preset" in run("describe", trained.folder, "--config", trained.config).err
