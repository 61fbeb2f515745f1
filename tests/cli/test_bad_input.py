"""Hostile input through every verb: a sentence and the right exit code, no traceback, nothing half-written."""

import gzip
import json
import os
import shutil
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

BAD_FILES = {
    "rubbish": bytes(range(256)) * 20,
    "truncated.gz": gzip.compress(b"one\tun\n" * 4000)[:60],
    "not.gz": b"one\tun\n",
    "long": b"a" * 1_000_001 + b"\tb\n",
    "nul": b"one\tun\0\n",
    "utf16": "one\tun\n".encode("utf-16"),
    "latin1": "un\tété\n".encode("latin-1") * 3,
    "surrogate.jsonl": b'{"source": "\\ud800", "target": "x"}\n' * 3,
    "deep.jsonl": b"[" * 100_000,
    "empty": b"",
    "blank": b"\n\n\n",
    "one-column.tsv": b"one\ntwo\nthree\n",
    "ragged.tsv": b"one\tun\ntwo\tdeux\textra\nred\trouge\n",
    "pickle.parquet": b"PAR1\x80\x04broken",
}


@pytest.fixture
def bad(tmp_path, request):
    name = request.param
    path = tmp_path / name
    path.write_bytes(BAD_FILES[name])
    return path


def clean(result, codes=(1, 2, 3)):
    assert result.code in codes, (result.code, result.err)
    assert "Traceback" not in result.err + result.out
    last = result.err.strip().splitlines()[-1]
    assert last.startswith("error: ") and len(last) > 15, result.err


@pytest.mark.parametrize("bad", list(BAD_FILES), indirect=True)
def test_train_refuses_and_writes_nothing(trained, run, tmp_path, bad):
    out = tmp_path / "model"
    clean(run("train", bad, "--preset", "bahdanau-small", "--config", trained.config, "--out", out), (2, 3))
    assert not (out / "settings.yaml").exists()


@pytest.mark.parametrize("bad", list(BAD_FILES), indirect=True)
@pytest.mark.parametrize("verb", ["evaluate", "score"])
def test_evaluate_and_score_refuse(trained, run, bad, verb):
    clean(run(verb, trained.folder, bad), (2, 3))


@pytest.mark.parametrize("bad", ["rubbish", "truncated.gz", "not.gz", "long", "nul", "utf16", "latin1"], indirect=True)
def test_predict_refuses_with_the_line(trained, run, bad):
    result = run("predict", trained.folder, bad)
    clean(result, (3,))
    assert bad.name in result.err


@pytest.mark.parametrize("verb", ["predict", "evaluate", "score", "train", "check"])
@pytest.mark.parametrize("kind", ["missing", "folder", "fifo"])
def test_what_is_no_file(trained, run, tmp_path, verb, kind):
    path = tmp_path / "data"
    if kind == "folder":
        path.mkdir()
    elif kind == "fifo":
        os.mkfifo(path)
    words = {"train": (path, "--out", tmp_path / "m"), "check": (path,)}.get(verb, (trained.folder, path))
    clean(run(verb, *words), (2, 3))


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_unreadable_file(trained, run, tmp_path):
    path = tmp_path / "data.tsv"
    path.write_text("one\tun\n")
    path.chmod(0)
    clean(run("evaluate", trained.folder, path), (3,))


@pytest.mark.parametrize("verb", ["predict", "evaluate", "score", "explain", "describe", "selfcheck"])
@pytest.mark.parametrize(
    "damage",
    [
        "no folder",
        "empty folder",
        "weights cut",
        "weights gone",
        "text gone",
        "settings gone",
        "scores rubbish",
        "a pickle",
    ],
)
def test_a_damaged_model(trained, run, tmp_path, verb, damage):
    folder = tmp_path / "model"
    if damage == "empty folder":
        folder.mkdir()
    elif damage != "no folder":
        shutil.copytree(trained.folder, folder, ignore=shutil.ignore_patterns("training"))
    if damage == "weights cut":
        with (folder / "model.safetensors").open("r+b") as file:
            file.truncate(1000)
    elif damage == "weights gone":
        (folder / "model.safetensors").unlink()
    elif damage == "text gone":
        shutil.rmtree(folder / "text")
    elif damage == "settings gone":
        (folder / "settings.yaml").unlink()
    elif damage == "scores rubbish":
        (folder / "scores.json").write_bytes(b"\xff\x00")
    elif damage == "a pickle":
        import pickle

        (folder / "model.safetensors").write_bytes(pickle.dumps({"a": 1}))
    words = {"explain": ("one",), "predict": (trained.valid,), "describe": (), "selfcheck": ()}.get(
        verb, (trained.valid,)
    )
    clean(run(verb, folder, *words), (2, 3))


@pytest.mark.parametrize(
    "text, says",
    [
        ("model: {encoder: {kind: rnn, cell: {kind: gru, hidden: 3}}}", "Did you mean 'hidden_size'"),
        ("modle: {}", "Did you mean 'model'"),
        ("train: {epochs: many}", r"epochs"),
        ("train: [1, 2]", "mapping"),
        ("a: [unclosed", "not YAML"),
        ("train: {optimizer: adaam}", "Did you mean 'adam'"),
        ("preset: nowhere", "no preset"),
    ],
)
def test_a_settings_file_with_a_mistake(trained, run, tmp_path, text, says):
    import re

    config = tmp_path / "settings.yaml"
    config.write_text(text)
    result = run("train", trained.data, "--config", config, "--out", tmp_path / "m")
    clean(result, (2,))
    assert re.search(says, result.err), result.err
    assert not (tmp_path / "m").exists()


@pytest.mark.parametrize(
    "words",
    [
        ("--set", "train.epoch=3"),
        ("--set", "nonsense"),
        ("--preset", "luomg"),
        ("--task", "fly"),
        ("--minutes", "0"),
        ("--set", "train.seed=-1"),
        ("--set", "model.tie=all"),
    ],
)
def test_flags_with_a_mistake(trained, run, tmp_path, words):
    clean(run("train", trained.data, "--out", tmp_path / "m", *words), (2,))
    assert not (tmp_path / "m").exists()


def test_an_output_folder_that_holds_other_things(trained, run, tmp_path):
    out = tmp_path / "precious"
    out.mkdir()
    (out / "thesis.txt").write_text("years of work")
    clean(run("train", trained.data, "--config", trained.config, "--preset", "bahdanau-small", "--out", out), (2,))
    assert sorted(path.name for path in out.iterdir()) == ["thesis.txt"]


def test_an_output_folder_that_is_a_file(trained, run, tmp_path):
    out = tmp_path / "file"
    out.write_text("x")
    clean(run("train", trained.data, "--config", trained.config, "--preset", "bahdanau-small", "--out", out), (1, 2))
    assert out.read_text() == "x"


def test_an_output_place_that_cannot_be_written(trained, run):
    place = "/proc/nowhere/model"
    if not Path("/proc").is_dir():
        pytest.skip("no /proc here")
    clean(run("train", trained.data, "--config", trained.config, "--preset", "bahdanau-small", "--out", place), (1, 2))


def test_a_full_disk(trained, run, tmp_path):
    if not Path("/dev/full").exists():
        pytest.skip("no /dev/full here")
    clean(run("explain", trained.folder, "one red cat", "--to", "/dev/full/picture.svg"), (1, 2))


@pytest.mark.parametrize("name", ["picture", "picture.bmp"])
def test_a_picture_of_no_known_kind(trained, run, tmp_path, name):
    clean(run("explain", trained.folder, "one red cat", "--to", tmp_path / name), (2,))


def test_links_that_do_not_fit(trained, run, tmp_path):
    pairs, links = tmp_path / "p.tsv", tmp_path / "links"
    pairs.write_text("one\tun\n")
    for text in ("0-0\n0-0\n", "0-5\n", "x\n"):
        links.write_text(text)
        clean(run("evaluate", trained.folder, pairs, "--links", links), (2, 3))


def test_odd_lines_are_only_lines(trained, run, tmp_path):
    """What is valid UTF-8 is text, however odd: a line in, a line out."""
    lines = [
        "\u2028\u2029\x0b",
        "\x1b[31mred\x1b[0m",
        "\u202eabc",
        "a" * 3000,
        "\ufffe\uffff",
        "🙂" * 50,
        "\r",
        "<script>",
    ]
    path = tmp_path / "odd.txt"
    path.write_text("\n".join(lines) + "\n", encoding="utf-8", newline="")
    result = run("predict", trained.folder, path, "--max-length", 5)
    assert result.code == 0, result.err
    assert result.out.count("\n") == len(lines)


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.binary(max_size=300), st.sampled_from(["d.tsv", "d.csv", "d.jsonl", "d.txt", "d.tsv.gz", "d.parquet"]))
def test_random_bytes_never_end_in_a_traceback(trained, run, tmp_path, content, name):
    path = tmp_path / name
    path.write_bytes(content)
    for words in (
        ("evaluate", trained.folder, path),
        ("predict", trained.folder, path, "--max-length", 3),
        ("check", path),
    ):
        result = run(*words)
        assert result.code in (0, 1, 2, 3) and "Traceback" not in result.err


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
        lambda inner: (
            st.lists(inner, max_size=3)
            | st.dictionaries(
                st.sampled_from(["model", "train", "kind", "text", "encoder", "x", "source"]), inner, max_size=3
            )
        ),
        max_leaves=8,
    )
)
def test_random_settings_never_end_in_a_traceback(trained, run, tmp_path, tree):
    config = tmp_path / "settings.yaml"
    config.write_text(json.dumps(tree))
    result = run("train", trained.data, "--config", config, "--out", tmp_path / "m", "--explain-settings")
    assert result.code in (0, 2) and "Traceback" not in result.err


@pytest.mark.parametrize("verb", ["score", "evaluate", "train", "check"])
def test_standard_input_is_refused_in_one_way_where_data_are_read_twice(trained, run, verb):
    words = (verb, "-") if verb in ("train", "check") else (verb, trained.folder, "-")
    result = run(*words)
    assert result.code == 2
    assert (
        "-: data are read more than once, and standard input cannot be. Write them to a file and name it." in result.err
    )


@pytest.mark.parametrize(
    "words, says",
    [
        (("predict", "MODEL", ""), "'' was given where a file is expected. Name one."),
        (("score", "MODEL", ""), "DATA: '' was given where a file is expected"),
        (("evaluate", "MODEL", ""), "DATA: '' was given where a file is expected"),
        (("predict", "", "x.txt"), "load: folder is ''; a path is wanted"),
        (("describe", ""), "load: folder is ''; a path is wanted"),
        (("check", ""), "DATA: '' was given"),
        (("train", ""), "DATA: '' was given"),
        (("train", "DATA", "--valid", ""), "--valid: '' was given"),
        (("train", "--source", "DATA", "--target", ""), "--target: '' was given"),
        (("train", "DATA", "--out", ""), "--out: '' was given. Give a value, or leave the option out."),
        (("train", "DATA", "--config", ""), "--config: '' was given"),
        (("train", "DATA", "--task", ""), "--task: '' was given"),
        (("predict", "MODEL", "DATA", "--prefix", ""), "--prefix: '' was given"),
        (("evaluate", "MODEL", "DATA", "--compare", ""), "--compare: '' was given"),
        (("explain", "MODEL", "a", "--to", ""), "--to: '' was given"),
        (("embed", "MODEL", "--to", ""), "--to: '' was given"),
    ],
)
def test_an_empty_path_is_no_folder(trained, run, tmp_path, monkeypatch, words, says):
    monkeypatch.chdir(tmp_path)
    given = {"MODEL": trained.folder, "DATA": trained.data}
    result = run(*(given.get(word, word) for word in words))
    assert (result.code, says in result.err) == (2, True), result.err
    assert not list(tmp_path.iterdir())


HEADERS = {
    "translate": ("source", "target"),
    "classify": ("text", "label"),
    "captions": ("image", "caption"),
    "speech": ("path", "text"),
    "reading": ("document", "question", "answer"),
    "signals": ("sequence", "label", "ax", "ay"),
    "forecast": ("date", "sales"),
    "handwriting": ("drawing", "stroke", "x", "y"),
}
ROWS = {"forecast": ("2024-01-01", "5"), "handwriting": ("0", "0", "1", "2"), "signals": ("1", "walk", "0.5", "1")}
ROWS |= {
    "captions": ("a.png", "A cat."),
    "speech": ("a.wav", "hello"),
    "reading": ("It rains.", "What does it?", "rains"),
}


@pytest.mark.parametrize("task", HEADERS)
@pytest.mark.parametrize("name, delimiter", [("t.tsv", "\t"), ("t.csv", ",")])
def test_a_header_without_rows_is_told_as_one_and_so_is_one_row(run, tmp_path, task, name, delimiter):
    path, out = tmp_path / name, tmp_path / "out"
    path.write_text(delimiter.join(HEADERS[task]) + "\n\n")
    said = f"{path}: a header ({', '.join(HEADERS[task])}) and no rows below it. Give some rows."
    for words in (("train", path, "--task", task), ("train", path), ("check", path)):
        result = run(*words, *(("--out", out) if words[0] == "train" else ()))
        assert (result.code, said in result.err) == (3, True), result.err
    path.write_text("\n".join(delimiter.join(row) for row in (HEADERS[task], ROWS.get(task, ("one", "two")))) + "\n")
    for words in (("train", path, "--task", task), ("train", path)):
        result = run(*words, "--out", out)
        assert (result.code, f"{path}: one row, and some must be held out" in result.err) == (3, True), result.err
    assert "one row, and some must be held out" in " ".join(run("check", path).out.split())
    assert not out.exists()


def test_a_row_that_stands_alone_is_a_row(tmp_path):
    from unrolled.base.errors import DataError
    from unrolled.data.readers import open_table

    for line in ("hello\tbonjour", "x1\t5", "date\t2024-01-01", "text\ttext", "1\t2"):
        path = tmp_path / "one.tsv"
        path.write_text(line + "\n")
        assert [row.fields for row in open_table(path).rows()] == [tuple(line.split("\t"))], line
    path.write_text("source\ttarget\nbad\0\tx\n")
    with pytest.raises(DataError, match=r"one.tsv:2: a NUL character"):
        list(open_table(path).rows())
