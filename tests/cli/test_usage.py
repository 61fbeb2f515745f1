"""A wrong call: one line, the nearest name, exit code 2."""

import subprocess
import sys
from pathlib import Path

import pytest


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["trian"], "no command is called 'trian'. Did you mean 'train'? Known: check, "),
        (["pairs.tsv"], "no command is called 'pairs.tsv'. Known: check, "),
        (["--vers"], "there is no option --vers. Did you mean --version? See: unrolled --help"),
        (["predict"], "predict: missing argument 'model'. See: unrolled predict --help"),
        (
            ["predict", "m", "--bem", "3"],
            "predict: there is no option --bem. Did you mean --beam? See: ",
        ),
        (
            ["predict", "m", "--keep-unknwon"],
            "no option --keep-unknwon. Did you mean --keep-unknown?",
        ),
        (["predict", "m", "--halp"], "Did you mean --help?"),
        (["predict", "m", "-z"], "predict: there is no option -z. See: unrolled predict --help"),
        (["predict", "m", "--beam"], "predict: option '--beam' requires an argument. See: unrolled predict --help"),
        (["predict", "m", "--beam", "many"], "predict: invalid value for '--beam': "),
        (["predict", "m", "--beam=many"], "many"),
        (["predict", "m", "--batch", "0"], "0"),
        (["predict", "m", "f", "more"], "more"),
        (["train", "--resume=3"], "train: option '--resume' does not take a value. See: unrolled train --help"),
    ],
)
def test_a_wrong_call_is_one_sentence(run, words, message):
    result = run(*words)
    assert (result.code, result.out) == (2, "")
    (line,) = result.err.splitlines()
    assert line.startswith("error: ") and message.lower() in line.lower()
    assert line.endswith(("--help", ".", "?"))


def test_without_words_there_is_help(run):
    result = run()
    assert (result.code, result.err) == (0, "")
    assert "unrolled demo" in result.out
    assert run("--version").out.startswith("unrolled ")


@pytest.mark.parametrize("verb", ["check", "train", "score", "evaluate"])
def test_data_are_given_the_same_way_everywhere(run, verb):
    text = run(verb, "--help").out
    for option in ("--source", "--target", "--columns"):
        assert option in text


def test_a_split_is_a_table_or_parallel_files(run, tmp_path):
    path = tmp_path / "pairs.tsv"
    path.write_text("a\tx\n" * 3)
    for verb in ("check", "train"):
        result = run(verb, path, "--valid", path, "--valid-source", path)
        assert result.code == 2
        assert "--valid is a table and --valid-source/--valid-target are parallel files: give one" in result.err


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="a device that is always full, as Linux has it")
def test_a_full_disk_under_the_output_is_one_sentence(tmp_path):
    path = tmp_path / "pairs.tsv"
    path.write_text("a\tx\n" * 3)
    with Path("/dev/full").open("w") as full:
        words = [sys.executable, "-m", "unrolled", "check", str(path), "--json"]
        done = subprocess.run(words, stdout=full, stderr=subprocess.PIPE, text=True)
    assert done.returncode == 1
    assert done.stderr == "error: No space left on device.\n"


NINE = ["  a0: &a0 [1]", *(f"  a{i}: &a{i} [{', '.join([f'*a{i - 1}'] * 9)}]" for i in range(1, 9))]
BOMB = "\n".join(["data:", *NINE])


@pytest.mark.parametrize(
    "content",
    ["train: &t {epochs: *t}", "&a [*a]", BOMB],
)
def test_settings_that_hold_themselves_are_refused(run, tmp_path, content):
    path = tmp_path / "settings.yaml"
    path.write_text(content)
    result = run("train", "pairs.tsv", "--config", path)
    assert result.code == 2
    (line,) = result.err.splitlines()
    assert len(line) < 400 and "Traceback" not in line


def test_a_mistyped_preset_is_named(run):
    assert (
        "no folder and no preset is called 'bahdanau-smal'. Did you mean 'bahdanau-small'?"
        in run("describe", "bahdanau-smal").err
    )


def test_train_is_a_function_whatever_was_imported():
    code = (
        "import unrolled, unrolled.train.trainer\n"
        "from unrolled.train import checkpoint\n"
        "from unrolled.runs import train\n"
        "assert unrolled.train is train and checkpoint.KEPT\n"
        "unrolled.layers.LSTM\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
