"""`unrolled check`: exit code 0 or 3, JSON for machines, plain lines for pipes, a drawing for a terminal."""

import io
import json
import os
import pty
import subprocess
import sys

import pytest
import typer
from rich.console import Console
from typer.testing import CliRunner

from unrolled.base.errors import DataError, SettingsError, UsageError
from unrolled.cli import findings
from unrolled.cli.check import check
from unrolled.data.doctor import examine
from unrolled.data.readers import open_table

app = typer.Typer()
app.command()(check)


def run(*arguments):
    """The result of the command; a user's mistake is raised."""
    result = CliRunner().invoke(app, [str(each) for each in arguments])
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result


@pytest.fixture
def good(tmp_path):
    path = tmp_path / "good.tsv"
    path.write_text("".join(f"word {number} here\tmot {number} ici\n" for number in range(120)))
    return path


@pytest.fixture
def bad(tmp_path):
    path = tmp_path / "bad.tsv"
    lines = [f"word {number} here\tmot {number} ici\n" for number in range(120)]
    lines[41], lines[67] = "one column alone\n", "\tempty source\n"
    path.write_text("".join(lines))
    return path


def test_clean_data_exits_with_0(good):
    result = run(good)
    assert result.exit_code == 0
    lines = result.stdout.splitlines()
    assert lines[0] == f"train: {good}: tsv, 120 rows, columns source, target"
    assert lines[1] == "train: No header row; the columns are called source, target."
    assert lines[2].startswith("train: source: words: shortest 3, median 3, 99% up to 3, longest 3 (")
    assert lines[-1] == "0 errors, 0 warnings, 0 notes"


def test_wrong_data_exits_with_3_and_names_the_lines(bad):
    result = run(bad)
    assert result.exit_code == 3
    assert "error: train: 1 line with another number of columns, left out here. Repair it." in result.stdout
    assert (
        f"  {bad}:42: 1 column where 2 are expected (source, target). Columns are separated by one tab."
        in result.stdout
    )
    assert f"error: train: 1 text of 'source' empty. Fill in the text or remove the row.\n  {bad}:68\n" in result.stdout
    assert result.stdout.splitlines()[-1] == "2 errors, 0 warnings, 0 notes"
    assert "\x1b" not in result.stdout


def test_labels_are_counted_one_by_one_where_their_separator_is_given(tmp_path):
    path = tmp_path / "labels.tsv"
    cells = ("red / blue", "blue / round")
    path.write_text("text\tlabel\n" + "".join(f"text {number} {number}\t{cells[number % 2]}\n" for number in range(60)))
    (split,) = json.loads(run(path, "--separator", "/", "--json").stdout)["splits"]
    assert split["columns"][1]["labels"] == {"blue": 60, "red": 30, "round": 30}
    with pytest.raises(UsageError, match=r"--separator: it is empty. Give what stands between two labels"):
        run(path, "--separator", " ")


def test_json_is_one_line_on_stdout(good, bad):
    result = run(bad, "--valid", good, "--json")
    assert result.exit_code == 3
    (line,) = result.stdout.splitlines()
    tree = json.loads(line)
    assert tree["ok"] is False
    assert [(each["name"], each["rows"], each["wrong"]) for each in tree["splits"]] == [
        ("train", 119, 1),
        ("valid", 120, 0),
    ]
    assert {(each["severity"], each["kind"], each["split"]) for each in tree["findings"]} == {
        ("error", "columns", "train"),
        ("error", "empty", "train"),
        ("warning", "overlap", "valid"),
        ("note", "unknown symbols", "valid"),
    }
    assert {each["tokenizer"] for each in tree["unknown"]} == {"character", "word"}
    assert json.loads(run(good, "--json").stdout)["ok"] is True


def test_splits_by_flags(tmp_path, good):
    for name in ("train", "dev", "test"):
        (tmp_path / f"{name}.en").write_text("".join(f"{name} word {number}\n" for number in range(120)))
        (tmp_path / f"{name}.de").write_text("".join(f"{name} Wort {number}\n" for number in range(120)))
    flags = ["--source", tmp_path / "train.en", "--target", tmp_path / "train.de"]
    flags += ["--valid-source", tmp_path / "dev.en", "--valid-target", tmp_path / "dev.de", "--test", good]
    tree = json.loads(run(*flags, "--json").stdout)
    assert [(each["name"], each["format"]) for each in tree["splits"]] == [
        ("train", "parallel"),
        ("valid", "parallel"),
        ("test", "tsv"),
    ]
    folder = json.loads(run(tmp_path, "--columns", "en,de", "--json").stdout)
    assert [each["columns"][0]["name"] for each in folder["splits"]] == ["en", "en", "en"]


def test_three_columns_give_the_first_two(tmp_path):
    path = tmp_path / "a.tsv"
    path.write_text("".join(f"a {number}\tb {number}\t{number}\n" for number in range(120)))
    (split,) = json.loads(run(path, "--json").stdout)["splits"]
    assert [each["name"] for each in split["columns"]] == ["source", "target"]
    assert split["guessed"][-1] == "Looked at are source, target; not used: 3 (choose with --columns)."
    (split,) = json.loads(run(path, "--columns", "3,1", "--json").stdout)["splits"]
    assert [each["name"] for each in split["columns"]] == ["3", "source"]


def test_tokenizers_are_measured_when_asked_for(good):
    tree = json.loads(run(good, "--test", good, "--tokenizer", "bpe", "--json").stdout)
    assert {each["tokenizer"] for each in tree["unknown"]} == {"character", "word", "bpe"}


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ([], UsageError, r"no data: give a table \(DATA\), or parallel files with --source and --target"),
        (["good.tsv", "--source", "x"], UsageError, "give a table .* or parallel files .* not both"),
        (["--source", "x"], UsageError, "--target is missing: parallel files come in pairs"),
        (["good.tsv", "--valid-target", "x"], UsageError, "--valid-source is missing"),
        (["good.tsv", "--test", "good.tsv", "--test-source", "x"], UsageError, "give one of them"),
        (["good.tsv", "--columns", "sorce"], UsageError, "Did you mean 'source'"),
        (["good.tsv", "--tokenizer", "pbe"], SettingsError, "no tokenizer is called 'pbe'. Did you mean 'bpe'"),
        (["goood.tsv"], DataError, "Did you mean 'good.tsv'"),
        (["good.tsv", "--valid", "nowhere.tsv"], DataError, "there is no such file"),
    ],
)
def test_mistakes(good, monkeypatch, arguments, error, message):
    monkeypatch.chdir(good.parent)
    with pytest.raises(error, match=message):
        run(*arguments)


@pytest.mark.parametrize("content", [b"", b"\x00\xff" * 500, b"x" * 1_000_000])
def test_the_program_ends_bad_files_with_a_sentence(tmp_path, content):
    path = tmp_path / "a.tsv"
    path.write_bytes(content)
    command = [sys.executable, "-m", "unrolled", "check", str(path), "--json"]
    result = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert result.returncode == 3
    assert result.stderr.startswith(f"error: {path}")
    assert len(result.stderr.splitlines()) == 1
    assert not result.stdout


def test_a_drawing_shows_everything_in_80_columns(bad, good):
    report = examine({"train": open_table(bad), "test": open_table(good)})
    console = Console(file=io.StringIO(), width=80, force_terminal=True, color_system=None)
    findings.draw(report, console)
    drawn = console.file.getvalue()
    assert all(len(line) <= 80 for line in drawn.splitlines())
    assert "✗ train  1 line with another number of columns, left out here. Repair it." in drawn
    assert "         bad.tsv:42: 1 column where 2 are expected (source, target)." in drawn
    assert "train  source  words    0       3    3    3" in drawn
    assert "! test   118 of 120 rows (98.3%) stand in train too" in drawn
    assert drawn.splitlines()[-1].rstrip() == "2 errors, 1 warning, 1 note"


def test_what_the_data_holds_is_not_markup(tmp_path):
    path = tmp_path / "a.csv"
    rows = "".join(f'"word {number} [/bold] [red]",[bold]yes\n' for number in range(120))
    path.write_text(rows + '" [/x]",[bold]no\n')
    report = examine({"train": open_table(path)})
    console = Console(file=io.StringIO(), width=100, color_system=None)
    findings.draw(report, console)
    assert "[bold]yes 99%" in console.file.getvalue()


@pytest.mark.skipif(sys.platform == "win32", reason="needs a pseudo-terminal")
def test_on_a_terminal_it_draws(good):
    ours, theirs = pty.openpty()
    environment = {**os.environ, "TERM": "xterm", "COLUMNS": "100", "PYTHONIOENCODING": "utf-8"}
    command = [sys.executable, "-m", "unrolled", "check", str(good)]
    process = subprocess.Popen(command, stdout=theirs, stderr=subprocess.PIPE, env=environment)
    os.close(theirs)
    seen = b""
    while True:
        try:
            seen += os.read(ours, 4096)
        except OSError:  # the other end is closed
            break
        if process.poll() is not None and not seen:
            break
    os.close(ours)
    assert process.wait(60) == 0, process.stderr.read()
    assert "█" in seen.decode()
    assert b"\x1b[" in seen


@pytest.mark.parametrize(
    ("counts", "expected"),
    [([], ""), ([0, 0], "  "), ([0, 1, 50, 100], " ▁▄█"), ([7], "█"), ([1, 2, 3, 4, 5, 6, 7, 8], "▁▂▃▄▅▆▇█")],
)
def test_bars(counts, expected):
    assert findings.bars(counts) == expected


def test_places_name_a_file_once():
    assert (
        findings.shortened(["x/a.tsv:3", "x/a.tsv:7 (as line 2)", "x/b.tsv:9", "c"])
        == "a.tsv:3, :7 (as line 2), b.tsv:9, c"
    )


@pytest.mark.parametrize("module", ["unrolled.cli.check", "unrolled.data.doctor", "unrolled.data.readers"])
def test_no_torch_and_no_datasets(module):
    code = f"import sys, {module}; print([m for m in ('torch', 'datasets', 'pandas', 'pyarrow') if m in sys.modules])"
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120)
    assert result.stdout == "[]\n", result.stderr
