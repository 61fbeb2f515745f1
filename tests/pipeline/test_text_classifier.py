"""A classifier from a file to its verbs: guessed, trained, scored, seen through, saved, resumed."""

import csv
import json
import random
from pathlib import Path

import numpy as np
import pytest

import unrolled
from unrolled.base.errors import DataError, SettingsError, UsageError
from unrolled.runs import Run, train
from unrolled.workshop.sources import Sources

GOOD, BAD = ["good", "fine", "great", "lovely"], ["bad", "poor", "awful", "dull"]
OTHER = ["the", "a", "film", "play", "book", "was", "seemed", "very", "quite", "here", "today", "again"]
SMALL = {
    "text": {"tokenizer": {"kind": "word", "min_count": 1}},
    "model": {"embedding_size": 16, "encoder": {"cell": {"kind": "gru", "hidden_size": 16}}, "dropout": 0.1},
    "train": {"epochs": 6, "batch_sentences": 16, "learning_rate": 0.02, "precision": "float32", "seed": 1},
}


def rows(count, seed):
    """(label, text): one word among others decides."""
    draw = random.Random(seed)
    found = []
    for _ in range(count):
        label = draw.choice(["good", "poor"])
        words = draw.choices(OTHER, k=draw.randint(2, 9))
        words.insert(draw.randint(0, len(words)), draw.choice(GOOD if label == "good" else BAD))
        found.append((label, " ".join(words)))
    return found


def write(path, table, order=(0, 1)):
    path.write_text("".join("\t".join(row[place] for place in order) + "\n" for row in table))
    return path


@pytest.fixture(scope="module")
def judged(tmp_path_factory):
    """A folder with data, and models with attention and without."""
    folder = tmp_path_factory.mktemp("judged")
    write(folder / "train.tsv", rows(400, 1))
    write(folder / "test.tsv", rows(80, 2))
    train(folder / "train.tsv", preset="bilstm-attention", out=folder / "model", settings=SMALL, quiet=True)
    settings = SMALL | {"model": SMALL["model"] | {"pooling": "max"}}
    train(folder / "train.tsv", task="classify", out=folder / "plain", settings=settings, quiet=True)
    return folder


@pytest.fixture(scope="module")
def model(judged):
    return unrolled.load(judged / "model")


def test_it_learns_which_words_decide(model, judged):
    table = [line.split("\t") for line in (judged / "test.tsv").read_text().splitlines()]
    scores = {score.name: score.value for score in model.evaluate([row[1] for row in table], [row[0] for row in table])}
    assert scores["accuracy"] >= 0.97 and scores["macro_f1"] >= 0.97 and scores["calibration_error"] < 0.1
    assert type(model) is unrolled.TextClassifier and model.verbs() == ["predict", "evaluate", "explain", "embed"]
    assert model.labels == ("good", "poor")
    assert model.predict(["the film was lovely", "the film was awful"]) == ["good", "poor"]


def test_the_word_that_decides_is_the_one_that_was_read(model, judged):
    line = "the film today was very lovely here again"
    seen = model.explain(line)
    assert seen.source[int(seen.weights.argmax())] == "lovely" and seen.method == "attention"
    assert seen.weights.sum() + seen.end_column[0] == pytest.approx(1, abs=1e-5)
    assert seen.faithfulness["top_agreement"].value == 1.0
    assert np.exp(seen.log_probs[0]) == pytest.approx(model.answers([line])[0].probability, abs=1e-5)
    erased = unrolled.load(judged / "plain").explain(line)
    assert erased.method == "erasure" and erased.source[int(erased.weights.argmax())] == "lovely"
    assert erased.weights.max() > 0.3 and erased.faithfulness is None
    other = model.explain(line, "poor", trusted=False)
    assert other.target == ("poor",) and other.log_probs[0] < seen.log_probs[0] and other.faithfulness is None
    with pytest.raises(UsageError, match=r"no label is called 'goood'. Did you mean 'good'\?"):
        model.explain(line, "goood")
    with pytest.raises(DataError, match="the text is empty"):
        model.explain("  ")


def test_an_answer_depends_on_its_text_alone(model):
    lines = [text for _, text in rows(40, 3)] + ["", "zzz"]
    together = model.probabilities(lines)
    assert together.sum(axis=1) == pytest.approx(np.ones(42), abs=1e-5)
    alone = np.concatenate([model.probabilities([line]) for line in lines])
    turned = model.probabilities(lines[::-1], batch=5)[::-1]
    assert np.abs(alone - together).max() < 1e-5 and np.abs(turned - together).max() < 1e-5
    assert model.probabilities([]).shape == (0, 2)
    with pytest.raises(UsageError, match="a list of texts is wanted"):
        model.predict("good")


def test_a_saved_model_is_the_same(model, tmp_path):
    lines = [text for _, text in rows(20, 4)]
    model.save(tmp_path / "copy")
    again = unrolled.TextClassifier.load(tmp_path / "copy")
    assert np.array_equal(again.probabilities(lines), model.probabilities(lines)) and again.scores == model.scores


def test_the_verbs_of_the_command_line(run, judged, tmp_path):
    folder = judged / "model"
    (tmp_path / "lines.txt").write_text("the film was lovely\n\nthe film was dull\n")
    plain = run("predict", folder, tmp_path / "lines.txt")
    assert [line.split("\t")[0] for line in plain.out.splitlines()][::2] == ["good", "poor"] and plain.code == 0
    assert "the line is empty" in plain.err and len(plain.out.splitlines()) == 3
    row = json.loads(run("predict", folder, tmp_path / "lines.txt", "--json").out.splitlines()[0])
    assert row["label"] == "good" and row["probabilities"]["good"] == row["probability"] > 0.5
    best = run("predict", folder, tmp_path / "lines.txt", "--nbest", 2).out.splitlines()
    assert len(best) == 6 and best[0].startswith("0\t0.9") and best[0].endswith("good") and best[1].endswith("poor")
    refused = run("predict", folder, tmp_path / "lines.txt", "--beam", 2)
    assert refused.code == 2 and "--beam is not for the task 'classify'" in refused.err
    picture = tmp_path / "confusion.svg"
    found = run(
        "evaluate", folder, judged / "test.tsv", "--confusion", picture, "--compare", judged / "plain", "--json"
    )
    tree = json.loads(found.out)
    assert tree["texts"] == 80 and [score["name"] for score in tree["scores"]][:2] == ["accuracy", "macro_f1"]
    assert {one["label"]: one["rows"] for one in tree["labels"]}.keys() == {"good", "poor"}
    assert tree["compare"][0]["low"] <= tree["compare"][0]["difference"] <= tree["compare"][0]["high"]
    assert picture.read_text().startswith("<svg") and "share of the row" in picture.read_text()
    seen = run("explain", folder, "a lovely play", "--to", tmp_path / "seen.html")
    assert seen.code == 0 and "lovely" in seen.out and "good (" in seen.out
    checked = run("selfcheck", folder, "--lines", 16)
    assert checked.code == 0 and checked.out.count("holds") == 5
    assert "Task: classify. It does: predict, evaluate, explain, embed." in run("describe", folder).out
    card = (folder / "README.md").read_text()
    assert "pipeline_tag: text-classification" in card and "How far to trust its attention" in card


@pytest.mark.parametrize("order, header, said", [
    ((0, 1), "", "column 1 has 2 different short values"),
    ((1, 0), "", "column 2 has 2 different short values"),
    ((0, 1), "Sentiment\tReview\n", "a column 'Sentiment' with 2 different values"),
])  # fmt: skip
def test_which_column_holds_the_labels_is_guessed_and_said(tmp_path, order, header, said):
    path = tmp_path / "data.tsv"
    write(path, rows(60, 5), order)
    path.write_text(header + path.read_text())
    run = Run(Sources(data=str(path)), tmp_path / "out")
    assert run.plan.settings["task"]["kind"] == "classify" and any(said in one for one in run.said)
    assert {row.fields[1] for row in run.tables.train.rows()} == {"good", "poor"}


def test_tables_with_quoted_line_feeds_jsonl_and_parquet(tmp_path, model):
    import pyarrow as pa
    import pyarrow.parquet as pq

    table = [(label, text.replace(" ", "\n", 1)) for label, text in rows(60, 6)]
    with (tmp_path / "data.csv").open("w", newline="") as file:
        csv.writer(file).writerows([("category", "text"), *table])
    lines = (json.dumps({"id": number, "text": text, "label": label}) for number, (label, text) in enumerate(table))
    (tmp_path / "data.jsonl").write_text("\n".join(lines) + "\n")
    columns = {"class": [row[0] for row in table], "text": [row[1] for row in table]}
    pq.write_table(pa.table(columns), tmp_path / "data.parquet")
    for name in ("data.csv", "data.jsonl", "data.parquet"):
        run = Run(Sources(data=str(tmp_path / name)), tmp_path / "out")
        assert run.plan.settings["task"]["kind"] == "classify", name
        found = sorted(row.fields for row in (*run.tables.train.rows(), *run.tables.valid.rows()))
        assert found == sorted((text, label) for label, text in table)
        assert {one.name: one.value for one in model.test(run.tables.valid).scores}["accuracy"] > 0.5


def test_pairs_and_text_are_not_taken_for_labels(trained, tmp_path):
    assert Run(Sources(data=str(trained.data)), tmp_path / "out").plan.settings["task"]["kind"] == "translate"
    write(tmp_path / "letters.tsv", [("abcdefgh"[n % 8], "xyzuvwst"[n % 8]) for n in range(80)])
    found = Run(Sources(data=str(tmp_path / "letters.tsv")), tmp_path / "out")
    assert found.plan.settings["task"]["kind"] == "translate"


def tried(path, **settings):
    run = Run(Sources(data=str(path)), path.parent / "out", flags={"task": "classify"} | SMALL | settings)
    run.prepare()
    return run


@pytest.mark.parametrize("table, message", [
    ([("ham", f"text {n}") for n in range(30)], "all 30 rows have the label 'ham': there is nothing to tell apart"),
    ([(f"name{n}", f"text {n}") for n in range(1000)], r"1,000 different labels in 1,000 rows: .* --columns"),
    ([("a", "x one"), ("b", "y two"), ("", "z three"), ("a", "one more")], r"data.tsv:3: the label is empty"),
])  # fmt: skip
def test_labels_that_cannot_be_learnt_are_refused_with_their_place(tmp_path, table, message):
    with pytest.raises(DataError, match=message):
        tried(write(tmp_path / "data.tsv", table, (1, 0)))


def test_one_label_in_front_of_the_texts_is_not_taken_for_them(tmp_path):
    table = [("ham", f"text {n}") for n in range(30)]
    with pytest.raises(DataError, match="all 30 rows have the label 'ham': there is nothing to tell apart"):
        tried(write(tmp_path / "data.tsv", table, (0, 1)))


def test_an_unseen_label_is_refused_for_validation_and_wrong_in_a_test(tmp_path, model):
    write(tmp_path / "valid.tsv", [("good", "fine film"), ("goood", "poor play")])
    write(tmp_path / "data.tsv", rows(60, 7))
    sources = Sources(data=str(tmp_path / "data.tsv"), valid=str(tmp_path / "valid.tsv"))
    with pytest.raises(DataError, match=r"valid.tsv:2: the label 'goood' is none of the 2 .* Did you mean 'good'\?"):
        Run(sources, tmp_path / "out", flags=SMALL).prepare()
    found = {one.name: one for one in model.evaluate(["fine film", "lovely play"], ["good", "odd"])}
    said = found["accuracy"].protocol
    assert found["accuracy"].value == 0.5
    assert "1 rows of labels unseen in training count as wrong" in said
    assert found["macro_f1"].value == pytest.approx((2 / 3 + 0) / 2)


def test_an_evaluation_on_another_column_is_refused(run, judged, tmp_path):
    """The order of two nameless columns is as in training, or said."""
    turned = write(tmp_path / "turned.tsv", rows(30, 12), (1, 0))
    refused = run("evaluate", judged / "model", turned)
    assert refused.code == 3 and "no labels that training rows have (good, poor). Which columns" in refused.err
    assert run("evaluate", judged / "model", turned, "--columns", "1,2").code == 0


def test_a_label_beside_something_else_to_learn_is_not_taken_for_the_task(tmp_path):
    path = tmp_path / "data.tsv"
    write(path, [(label, text, text[::-1]) for label, text in rows(60, 13)], (1, 2, 0))
    path.write_text("text\tsummary\ttopic\n" + path.read_text())
    assert Run(Sources(data=str(path)), tmp_path / "out").plan.settings["task"]["kind"] == "translate"


def test_a_label_of_one_row_may_be_held_out(tmp_path):
    """Which rows are held out, chance decides: no reason to refuse the file."""
    table = [*rows(60, 8), *((f"rare{n}", f"odd {n} text") for n in range(9))]
    run = tried(write(tmp_path / "data.tsv", table, (1, 0)), data={"valid_share": 0.5})
    labels = run.text.labels
    assert len(labels) == 11 and 0 in labels.counts
    assert sum(labels.counts) == labels.rows == len(run.corpus.store("train"))


def test_nul_bytes_and_empty_texts(tmp_path):
    table = [*rows(60, 9), ("good", ""), ("poor", "a\0film")]
    path = write(tmp_path / "data.tsv", table, (1, 0))
    with pytest.raises(DataError, match=r"data.tsv:62"):
        tried(path)
    run = tried(write(path, table[:-1], (1, 0)))
    assert len(run.corpus.store("train")) + len(run.corpus.store("valid")) == 61


def test_several_labels_a_row(tmp_path, run):
    draw = random.Random(1)
    table = []
    for _ in range(400):
        marks = [one for one in ("red", "hot", "big") if draw.random() < 0.4]
        table.append(
            (", ".join(marks), " ".join(draw.sample([*OTHER[:5], *(f"{one}ly" for one in marks)], 5 + len(marks))))
        )
    path = write(tmp_path / "data.tsv", table, (1, 0))
    settings = SMALL | {"text": SMALL["text"] | {"separator": ","}, "model": SMALL["model"] | {"pooling": "attention"}}
    model = train(path, task="classify", out=tmp_path / "model", settings=settings, quiet=True)
    scores = {one.name: one.value for one in model.scores}
    assert set(scores) == {"accuracy", "macro_f1", "micro_f1", "calibration_error"} and scores["micro_f1"] > 0.95
    assert model.predict(["the bigly hotly film", "the film"]) == ["big,hot", ""]
    shown = model.explain("the bigly hotly film")
    assert list(shown.target) == ["big", "hot"] and shown.weights.shape == (2, 4), "each label that it is answered with"
    each = [model.explain("the bigly hotly film", one) for one in ("big", "hot")]
    assert [list(one.target) for one in each] == [["big"], ["hot"]]
    np.testing.assert_allclose(shown.weights, np.concatenate([one.weights for one in each]), atol=1e-6)
    assert model.explain("the bigly hotly film", "hot, red").target == ("hot", "red"), "as the data have them"
    assert len(model.explain("the film").target) == 1, "where it is answered with none, the likeliest"
    tops = [one.faithfulness["top_agreement"] for one in each]
    both = shown.faithfulness["top_agreement"]
    assert (both.value, both.cases) == (sum(one.value for one in tops) / 2, 2), "of the labels that are shown"
    with pytest.raises(UsageError, match=r"no label is called 'rot'. Did you mean 'hot'"):
        model.explain("the bigly hotly film", "hot,rot")
    tree = json.loads(run("explain", tmp_path / "model", "the bigly hotly film", "--target", "hot", "--json").out)
    assert tree["target"]["words"] == ["hot"]
    assert run("explain", tmp_path / "model", "the bigly hotly film", "--to", tmp_path / "both.svg").code == 0
    assert all(f">{one}<" in (tmp_path / "both.svg").read_text() for one in ("big", "hot"))
    found = run("evaluate", tmp_path / "model", path, "--confusion", tmp_path / "c.svg")
    assert found.code == 2 and "may have several labels here" in found.err
    assert run("selfcheck", tmp_path / "model", "--lines", 4).code == 0
    assert run("evaluate", tmp_path / "model", path).code == 0


def test_a_run_that_was_stopped_goes_on(tmp_path):
    path = write(tmp_path / "data.tsv", rows(80, 10))
    whole = train(path, out=tmp_path / "whole", settings=SMALL, quiet=True)
    run = Run(Sources(data=str(path)), tmp_path / "parts", flags=SMALL | {"train": SMALL["train"] | {"save_every": 5}})
    run.prepare()
    reports = run.fit()
    while not any((tmp_path / "parts" / "training" / "checkpoints").glob("step-*")):
        next(reports)
    reports.close()
    run.ground.close()
    again = train(out=tmp_path / "parts", resume=True, quiet=True)
    lines = [text for _, text in rows(10, 11)]
    assert np.array_equal(again.probabilities(lines), whole.probabilities(lines))


def test_what_does_not_go_with_a_classifier_is_refused(tmp_path):
    path = write(tmp_path / "data.tsv", rows(60, 1))
    for flags, message in (
        ({"train": {"sampling": 0.1}}, r"\[train.sampling\] 0.1 was given, and a classifier writes no symbols"),
        ({"model": {"kind": "seq2seq"}}, "the model 'seq2seq' is not for the task 'classify'"),
        ({"task": {"label": 5}}, r"\[task.label\] 5 was given, and there are 2 columns"),
        ({"task": {"label": "lable"}}, r"\[task.label\] no column is called 'lable'"),
        ({"text": {"separator": " "}}, r"\[text\] separator is empty"),
    ):
        with pytest.raises(SettingsError, match=message):
            Run(Sources(data=str(path)), Path(tmp_path / "out"), flags={"task": "classify"} | flags)
