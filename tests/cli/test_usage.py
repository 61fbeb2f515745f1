"""A wrong call: one line, the nearest name, exit code 2."""

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
