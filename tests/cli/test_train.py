"""Training from files of every kind, resuming, and what is said about it."""

import gzip
import json
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from safetensors.torch import load_file

import unrolled
from unrolled.base.errors import UsageError
from unrolled.runs import place

FAST = ("--set", "train.epochs=1", "--set", "train.steps=3")


def settings(trained, out):
    return ("--preset", "bahdanau-small", "--config", trained.config, "--out", out)


def write_formats(folder: Path, rows: list[tuple[str, str]]) -> dict[str, tuple]:
    """The same rows in every format, as the words that train them."""
    import pyarrow
    import pyarrow.parquet

    sources, targets = [row[0] for row in rows], [row[1] for row in rows]
    (folder / "p.tsv").write_text("".join(f"{a}\t{b}\n" for a, b in rows))
    (folder / "p.csv").write_text("source,target\n" + "".join(f'"{a}","{b}"\n' for a, b in rows))
    (folder / "p.jsonl").write_text("".join(json.dumps({"source": a, "target": b}) + "\n" for a, b in rows))
    (folder / "p.en").write_text("\n".join(sources) + "\n")
    (folder / "p.fr").write_text("\n".join(targets) + "\n")
    pyarrow.parquet.write_table(pyarrow.table({"source": sources, "target": targets}), folder / "p.parquet")
    with gzip.open(folder / "z.tsv.gz", "wt") as file:
        file.write("".join(f"{a}\t{b}\n" for a, b in rows))
    hub = folder / "hub"
    hub.mkdir()
    (hub / "train.jsonl").write_text((folder / "p.jsonl").read_text())
    return {
        "tsv": (folder / "p.tsv",),
        "csv": (folder / "p.csv",),
        "jsonl": (folder / "p.jsonl",),
        "parquet": (folder / "p.parquet",),
        "parallel": ("--source", folder / "p.en", "--target", folder / "p.fr"),
        "gzip": (folder / "z.tsv.gz",),
        "folder": (hub,),
    }


def test_every_format_trains_the_same_model(trained, run, tmp_path):
    rows = [tuple(line.split("\t")) for line in trained.data.read_text().splitlines()[:60]]
    weights = {}
    for name, words in write_formats(tmp_path, rows).items():
        result = run("train", *words, *settings(trained, tmp_path / f"out-{name}"), *FAST, "--json")
        assert result.code == 0, result.err
        weights[name] = load_file(tmp_path / f"out-{name}" / "model.safetensors")
    first = weights.pop("tsv")
    for name, other in weights.items():
        assert all((first[key] == other[key]).all() for key in first), name


def test_what_was_guessed_is_said(trained, run, tmp_path):
    result = run("train", trained.data, *settings(trained, tmp_path / "m"), *FAST)
    assert "held out" in result.err and "parameters" in result.err
    assert "exact_match" in result.out


def test_dry_run_writes_no_model(trained, run, tmp_path):
    result = run("train", trained.data, *settings(trained, tmp_path / "m"), "--dry-run", "--json")
    found = json.loads(result.out)
    assert found["rows"] > 0 and found["memory"] > 0 and found["seconds"] > 0
    assert not (tmp_path / "m").exists()


def everything(folder: Path) -> dict[str, bytes]:
    return {str(path): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@pytest.mark.parametrize("resume", [[], ["--resume"]])
def test_dry_run_leaves_a_run_as_it_is(trained, run, tmp_path, resume):
    words = ("train", trained.data, *settings(trained, tmp_path / "m"), *FAST)
    assert run(*words).code == 0
    before = everything(tmp_path)
    assert any("checkpoints/step-" in name for name in before)
    result = run(*words, "--dry-run", *resume)
    assert result.code == 0, result.err
    assert everything(tmp_path) == before


def test_resuming_before_the_first_checkpoint_is_said(trained, run, tmp_path):
    words = ("train", trained.data, *settings(trained, tmp_path / "m"), *FAST)
    assert run(*words).code == 0
    for path in (tmp_path / "m" / "training" / "checkpoints").iterdir():
        shutil.rmtree(path)
    result = run(*words, "--resume", "--explain-settings")
    assert result.code == 0
    result = run(*words, "--resume")
    assert result.code == 0 and "no checkpoint yet; it begins at the first step" in result.err


def test_a_refused_resume_changes_nothing(trained, run, tmp_path):
    words = ("train", trained.data, *settings(trained, tmp_path / "m"), *FAST)
    assert run(*words).code == 0
    record = tmp_path / "m" / "training" / "run.json"
    before = json.loads(record.read_text())
    assert before["finished"]
    result = run("train", "--out", tmp_path / "m", "--resume", "--set", "model.embedding_size=9")
    assert result.code == 3
    assert json.loads(record.read_text()) == before
    assert run("train", "--out", tmp_path / "m", "--resume").code == 0


def test_a_stopped_run_is_not_thrown_away(trained, run, tmp_path):
    words = ("train", trained.data, *settings(trained, tmp_path / "m"), *FAST)
    assert run(*words).code == 0
    assert run(*words, "--replace").code == 0, "a finished one may be trained anew"
    record = tmp_path / "m" / "training" / "run.json"
    record.write_text(json.dumps(json.loads(record.read_text()) | {"finished": False}))
    before = everything(tmp_path)
    result = run(*words)
    assert result.code == 2
    assert "holds a run that was stopped. Go on with it by --resume, choose another --out, or remove" in result.err
    assert everything(tmp_path) == before


def test_a_trained_model_is_not_replaced_unasked(trained, run, tmp_path):
    words = ("train", trained.data, *settings(trained, tmp_path / "m"), *FAST)
    assert run(*words).code == 0
    (tmp_path / "m-2").mkdir()
    before = everything(tmp_path)
    result = run(*words)
    assert result.code == 2
    said = (
        f"{tmp_path}/m: holds a trained model, which training here would replace. Choose another --out ({tmp_path}/m-3"
    )
    assert f"{said} is free), go on training it by --resume, or say --replace." in result.err
    shutil.rmtree(tmp_path / "m" / "training")
    assert run(*words).code == 2, "a model that was brought here is one too"
    with pytest.raises(UsageError, match="holds a trained model, which training here would replace"):
        unrolled.train(trained.data, out=tmp_path / "m", quiet=True)
    assert everything(tmp_path) == {name: held for name, held in before.items() if "/training/" not in name}
    assert run(*words, "--replace", "--seed", 5).code == 0
    assert everything(tmp_path)[f"{tmp_path}/m/model.safetensors"] != before[f"{tmp_path}/m/model.safetensors"]


REFUSED = {
    "a row that cannot be read": ("Where?\n", (), 3, "1 column where 2 are expected"),
    "sizes that do not fit": ("", ("--set", "model.decoder.attention.kind=dot", "--set", "model.bridge=none"), 2, "["),
}


@pytest.mark.parametrize("cause", REFUSED)
def test_a_run_that_makes_no_step_leaves_nothing_behind(trained, run, tmp_path, cause):
    more, words, code, said = REFUSED[cause]
    data = tmp_path / "data.tsv"
    data.write_text("".join(trained.data.read_text().splitlines(keepends=True)[:60]) + more)
    out = tmp_path / "new" / "runs" / "m"
    before = everything(tmp_path)
    given = ("train", data, *settings(trained, out), *FAST)
    result = run(*given, *words)
    assert (result.code, said in result.err) == (code, True), result.err
    assert everything(tmp_path) == before and not (tmp_path / "new").exists()
    assert run("train", trained.data, *settings(trained, out), *FAST).code == 0
    before = everything(tmp_path)
    assert run(*given, *words, "--replace").code == code
    assert everything(tmp_path) == before, "the model and the run before are as they were"


def test_a_run_that_is_ended_while_it_is_prepared_leaves_nothing_behind(trained, tmp_path, monkeypatch):
    def ended(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr("unrolled.runs.corpus.Corpus.encode", ended)
    with pytest.raises(KeyboardInterrupt):
        unrolled.train(trained.data, out=tmp_path / "m", quiet=True)
    assert not list(tmp_path.iterdir())


def test_one_run_in_a_folder_at_a_time(tmp_path, monkeypatch):
    held = place.lock(tmp_path / "m")
    assert place.lock(tmp_path / "m") is None, "this process may"
    monkeypatch.setattr("os.getpid", lambda: 1)
    with pytest.raises(UsageError, match=rf"m: process {held_by(tmp_path)} is training here\. Wait until it ends"):
        place.lock(tmp_path / "m")
    held.close()
    place.lock(tmp_path / "m").close()


def held_by(folder: Path) -> str:
    return (folder / "m" / "training" / "lock").read_text().strip()


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--set", "train.stop_on=blue"], "no validation score is called 'blue'. Did you mean 'bleu'?"),
        (["--set", "train.learning_rate=.inf"], "[train.learning_rate] inf was given; input should be a finite"),
        (["--minutes", "inf"], "[train.minutes] inf was given; input should be"),
    ],
)
def test_settings_that_cannot_be_meant_are_refused_at_once(trained, run, tmp_path, words, message):
    result = run("train", trained.data, "--out", tmp_path / "m", *words, "--explain-settings")
    assert (result.code, result.out) == (2, "")
    assert message in result.err


def test_a_size_alone_changes_the_concluded_tokenizer(trained, run, tmp_path):
    words = ("train", trained.data, "--out", tmp_path / "m", "--explain-settings", "--json")
    concluded = json.loads(run(*words).out)
    found = json.loads(run(*words, "--set", "text.source.size=77").out)
    assert found.pop("text.source.size") == {"value": 77, "origin": "flag --set text.source.size=77"}
    del concluded["text.source.size"]
    assert found == concluded


def test_explain_settings_tells_origins(trained, run, tmp_path):
    result = run(
        "train", trained.data, *settings(trained, tmp_path / "m"), "--set", "train.clip_norm=2", "--seed", 7,
        "--explain-settings", "--json",
    )  # fmt: skip
    found = json.loads(result.out)
    assert found["train.clip_norm"] == {"value": 2.0, "origin": "flag --set train.clip_norm=2"}
    assert found["train.seed"] == {"value": 7, "origin": "flag"}
    assert found["model.embedding_size"]["origin"] == f"file {trained.config}"
    assert found["data.max_length"]["origin"] == "default"
    assert not (tmp_path / "m").exists()


def test_fine_tuning_keeps_the_vocabulary(trained, run, tmp_path):
    other = tmp_path / "other.tsv"
    other.write_text("one cat\tun chat\ndog two\tchien deux\n" * 20)
    result = run("train", other, "--from", trained.folder, "--out", tmp_path / "m", *FAST)
    assert result.code == 0, result.err
    for name in ("source.json", "target.json"):
        assert (tmp_path / "m" / "text" / name).read_bytes() == (trained.folder / "text" / name).read_bytes()


@pytest.mark.parametrize("change", ["model.copy=true", "model.decoder.cell.hidden_size=17"])
def test_weights_do_not_go_into_another_network(trained, run, tmp_path, change):
    out = tmp_path / "m"
    result = run("train", trained.data, "--from", trained.folder, "--out", out, "--set", change, *FAST)
    assert result.code == 2
    assert "its weights do not fit the network of these settings, which differ in " in result.err
    assert change.partition("=")[0] in result.err
    assert "Traceback" not in result.err
    assert not out.exists()


def test_a_high_share_of_unknown_symbols_stops_before_training(trained, run, tmp_path):
    valid = tmp_path / "valid.tsv"
    valid.write_text("what are these\twords never seen\n" * 5)
    result = run("train", trained.data, "--valid", valid, *settings(trained, tmp_path / "m"), *FAST)
    assert result.code == 3 and "unknown to the vocabulary" in result.err


def test_minutes_fits_into_the_time(trained, run, tmp_path):
    result = run("train", trained.data, *settings(trained, tmp_path / "m"), "--minutes", "0.05",
                 "--set", "train.epochs=100000", "--json")  # fmt: skip
    assert result.code == 0, result.err
    assert "(minutes)" in result.err


def command(*words: object) -> list[str]:
    return [sys.executable, "-m", "unrolled", *map(str, words)]


@pytest.mark.slow
def test_killed_and_resumed_is_bit_for_bit_the_uninterrupted_run(trained, tmp_path):
    """SIGKILL at random moments; the model that comes out in the end is the same to the last bit."""
    import random

    common = ("--set", "train.epochs=6", "--set", "train.save_every=3", "--set", "model.dropout=0.2")
    whole = command("train", trained.data, *settings(trained, tmp_path / "whole"), *common)
    assert subprocess.run(whole, capture_output=True, timeout=200).returncode == 0
    draw = random.Random(time.time_ns())
    words = command("train", trained.data, *settings(trained, tmp_path / "cut"), *common)
    checkpoints = tmp_path / "cut" / "training" / "checkpoints"
    for attempt in range(12):
        resumed = [*words, "--resume"] if (tmp_path / "cut" / "training" / "run.json").exists() else words
        process = subprocess.Popen(resumed, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        if attempt < 3:
            before = set(checkpoints.iterdir()) if checkpoints.exists() else set()
            deadline = time.monotonic() + 100
            while process.poll() is None and time.monotonic() < deadline:
                if checkpoints.exists() and set(checkpoints.iterdir()) - before:
                    break
                time.sleep(0.01)
            time.sleep(draw.uniform(0, 0.5))
            process.send_signal(signal.SIGKILL)
        _, errors = process.communicate(timeout=200)
        if process.returncode == 0:
            break
        assert b"Traceback" not in errors
    assert process.returncode == 0, errors.decode()
    first, second = (load_file(tmp_path / name / "model.safetensors") for name in ("whole", "cut"))
    assert all((first[key] == second[key]).all() for key in first)


@pytest.mark.slow
def test_interrupted_saves_and_exits_130(trained, tmp_path):
    words = command("train", trained.data, *settings(trained, tmp_path / "m"), "--set", "train.epochs=100000")
    process = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    checkpoints = tmp_path / "m" / "training" / "checkpoints"
    deadline = time.monotonic() + 100
    while not (checkpoints.exists() and any(checkpoints.iterdir())) and time.monotonic() < deadline:
        time.sleep(0.05)
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=100)
    assert process.returncode == 130, errors.decode()
    assert b"--resume" in errors and b"Traceback" not in errors


def test_a_differing_setting_on_resume_is_printed_and_the_flag_wins(trained, run, tmp_path):
    words = ("train", trained.data, *settings(trained, tmp_path / "m"))
    assert run(*words, "--set", "train.epochs=1").code == 0
    result = run(*words, "--set", "train.epochs=2", "--set", "train.learning_rate=0.005", "--resume")
    assert result.code == 0, result.err
    assert "resumed at step" in result.err
    assert "learning_rate: was 0.01, now 0.005" in result.err
