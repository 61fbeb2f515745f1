"""A language model from a file to its verbs: trained, scored, continued, saved, resumed, shared among processes."""

import json
import math
import random
import subprocess
import sys

import numpy as np
import pytest

import unrolled
from unrolled.base.errors import UsageError
from unrolled.runs import train
from unrolled.tasks.generation import Stopper

SMALL = {
    "text": {"tokenizer": {"kind": "word", "min_count": 1}},
    "model": {
        "embedding_size": 16,
        "embedding_scale": "none",
        "dropout": 0.0,
        "history": {"kind": "rnn", "cell": {"kind": "gru", "hidden_size": 24}, "layers": 1},
    },
    "train": {"epochs": 8, "batch_sentences": 8, "learning_rate": 0.02, "precision": "float32", "seed": 1},
}


def sentences(count, seed):
    """Who sees whom, in words; the verb's form follows from its subject, two words before."""
    draw = random.Random(seed)
    rows = []
    for _ in range(count):
        many = draw.random() < 0.5
        subject = draw.choice(["cats", "dogs"] if many else ["cat", "dog"])
        rows.append(f"the {draw.choice(['red', 'old'])} {subject} here {'see' if many else 'sees'} one")
    return rows


@pytest.fixture(scope="module")
def spoken(tmp_path_factory):
    """A folder with text, and a model of its lines."""
    folder = tmp_path_factory.mktemp("spoken")
    (folder / "train.txt").write_text("\n".join(sentences(300, 1)) + "\n")
    (folder / "test.txt").write_text("\n".join(sentences(40, 2)) + "\n")
    settings = SMALL | {"task": {"documents": "line", "steps": 8}}
    train(folder / "train.txt", out=folder / "model", settings=settings, quiet=True)
    return folder


@pytest.fixture(scope="module")
def model(spoken):
    return unrolled.load(spoken / "model")


def test_it_learns_what_can_be_known_and_no_more(model, spoken):
    """ln 2 for the colour, 2 ln 2 for the subject: the rest of the seven symbols follows."""
    scores = {score.name: score for score in model.evaluate((spoken / "test.txt").read_text().splitlines())}
    least = 3 * math.log(2) / 7
    assert least - 0.06 < scores["loss"].value < least + 0.08
    assert scores["word_perplexity"].value == pytest.approx(scores["perplexity"].value)
    assert type(model) is unrolled.LanguageModel and model.verbs() == [
        "score",
        "evaluate",
        "explain",
        "generate",
        "embed",
    ]


def test_a_score_is_the_sum_of_what_the_steps_say(model):
    line = "the red cat here sees one"
    found = model.score([line, "the dogs", ""])
    assert found[0].tokens[-1] == "</s>" and len(found[0].log_probs) == 7
    state, last, total = model.engine.start(np.array([[2]]), np.array([[True]])), 2, 0.0
    for symbol in [*model.text.encode_ids([line])[0], 3]:
        step = model.engine.step(np.array([last]), state, model.text.vocabulary_size)
        total += float(step.scores[0][step.ids[0] == symbol][0])
        state, last = step.state, symbol
    assert found[0].log_prob == pytest.approx(total, abs=1e-4)
    assert found[1].log_probs[:2] == pytest.approx(model.score(["the dogs"])[0].log_probs[:2], abs=1e-5)
    assert found[2].tokens == ["</s>"] and found[0].amount.words == 7


def test_agreement_is_known_from_two_words_before(model):
    right, wrong = model.score(["the red cats here see one", "the red cats here sees one"])
    assert right.log_prob > wrong.log_prob + 2


def test_samples_are_texts_of_the_language_and_hang_on_seed_and_number(model):
    some = model.generate("the old", samples=8, seed=3, length=20)
    known = {line.removeprefix("the old") for line in sentences(500, 5) if line.startswith("the old")}
    assert sum(one.text in known for one in some) >= 7 and all(one.finished for one in some)
    again = model.generate("the old", samples=3, seed=3, length=20)
    assert [one.text for one in again] == [one.text for one in some[:3]]
    assert [one.text for one in model.generate("the old", samples=8, seed=4)] != [one.text for one in some]
    cold = model.generate("the old cat", samples=4, temperature=0.01, length=20)
    assert {one.text for one in cold} == {" here sees one"}
    assert [one.text for one in model.generate("the old cat", top_k=1, samples=2)] == [" here sees one"] * 2


def test_a_text_ends_before_a_stop_and_at_its_length(model):
    stopped = model.generate("the old cat", top_k=1, stop=["sees"])[0]
    assert stopped.text == " here " and stopped.finished
    assert model.generate("the old cat", top_k=1, stop=["nothing", "ere s"])[0].text == " h"
    cut = model.generate("the old cat", top_k=1, length=1)[0]
    assert cut.text == " here" and not cut.finished
    both = model.complete("the old cat", 2, stop=["here"])
    assert both[0].text == " " and both[0].finished


def test_completions_are_the_likeliest_by_brute_force(model):
    found = model.complete("the old cat here", 3, length=3, beam=30)
    assert [one.log_prob for one in found] == sorted((one.log_prob for one in found), reverse=True)
    said = model.score(["the old cat here" + one.text for one in found])
    before = model.score(["the old cat here"])[0].log_probs[:4].sum()
    for one, whole in zip(found, said, strict=True):
        assert one.finished and one.log_prob == pytest.approx(whole.log_prob - before, abs=1e-4)
    words = model.text.tokens(range(5, model.text.vocabulary_size))
    every = [f"the old cat here {a.strip('▁')} {b.strip('▁')}" for a in words for b in words]
    best = max(model.score(every), key=lambda one: one.log_prob)
    assert best.text == "the old cat here" + found[0].text


def test_the_verbs_of_the_command_line(run, spoken, tmp_path):
    folder = spoken / "model"
    drawn = run("generate", folder, "--prompt", "the red dog", "--samples", 2, "--top-k", 1, "--json")
    rows = [json.loads(line) for line in drawn.out.splitlines()]
    assert [row["text"] for row in rows] == [" here sees one"] * 2 and drawn.code == 0
    likely = run("generate", folder, "--prompt", "the red dog", "--likeliest", 2).out.splitlines()
    assert likely[0].split("\t")[1] == "the red dog here sees one" and float(likely[0].split("\t")[0]) > -0.7
    refused = run("generate", folder, "--likeliest", 2, "--top-p", 0.5)
    assert refused.code == 2 and "--top-p is for samples, --likeliest for what is found" in refused.err
    strange = run("generate", folder, "--prompt", "the zzz dog", "--length", 3)
    assert strange.code == 0 and "1 of the prompt's 3 symbols are unknown to the model" in strange.err
    scored = run("score", folder, spoken / "test.txt", "--json", "--tokens")
    lines = [json.loads(line) for line in scored.out.splitlines()]
    assert len(lines) == 41 and lines[-1]["log_prob"] == pytest.approx(sum(row["log_prob"] for row in lines[:-1]))
    assert len(lines[0]["tokens"]) == lines[0]["symbols"] == 7
    (tmp_path / "gaps.txt").write_text("\nthe red dog\n\n\nthe cat\n\n")
    gaps = run("score", folder, tmp_path / "gaps.txt").out.splitlines()
    assert len(gaps) == 6 and [line.split("\t")[1] for line in gaps] == ["0", "4", "0", "0", "3", "0"]
    evaluated = json.loads(run("evaluate", folder, spoken / "test.txt", "--ngram", spoken / "train.txt", "--json").out)
    assert evaluated["lines"] == 40
    this, ngram = evaluated["compare"]
    assert this["model"] == "this" and 1.3 < this["perplexity"] < ngram["perplexity"] * 1.1 < 2
    alike = json.loads(run("evaluate", folder, spoken / "test.txt", "--compare", folder, "--json").out)["compare"]
    assert alike[0] | {"model": ""} == alike[1] | {"model": ""}
    refused = run("predict", folder)
    assert refused.code == 2 and "does not predict (it goes on from a text: generate). It has: score," in refused.err
    checked = run("selfcheck", folder, "--lines", 16)
    assert checked.code == 0 and checked.out.count("holds") == 6
    described = run("describe", folder)
    assert "task: language_model" in described.out.lower() and "RecurrentHistory" in described.out
    card = (folder / "README.md").read_text()
    assert "unrolled generate model --prompt 'Once'" in card and "pipeline_tag: text-generation" in card


@pytest.mark.parametrize("documents", ["file", "line"])
def test_a_run_that_was_stopped_goes_on_bit_for_bit(tmp_path, documents):
    """States of the streams come back too: midway in an epoch everything hangs on them."""
    path = tmp_path / "text.txt"
    path.write_text("\n".join(sentences(60, 1)) + "\n")
    settings = SMALL | {"task": {"documents": documents, "steps": 8}}
    settings["train"] = SMALL["train"] | {"steps": 9, "epochs": None, "save_every": 3, "batch_sentences": 4}
    settings["train"] |= {"optimizer": {"kind": "sgd", "momentum": 0.9}} if documents == "file" else {}
    settings["model"] = SMALL["model"] | {"dropout": 0.3}
    from unrolled.runs import Run
    from unrolled.train.reports import Saved
    from unrolled.workshop.sources import Sources

    ends = []
    for name, stop in (("whole", None), ("cut", 6)):
        for resume in (False, True) if stop else (False,):
            run = Run(Sources(data=str(path)), tmp_path / name, flags=settings, resume=resume)
            run.prepare()
            reports = run.fit()
            for report in reports:
                if stop and not resume and isinstance(report, Saved) and report.step == stop:
                    break
            reports.close()
            run.ground.close()
        ends.append({key: value.clone() for key, value in run.network.state_dict().items()})
    assert all(ends[0][key].equal(ends[1][key]) for key in ends[0])


def test_a_model_of_a_whole_file_has_no_ends_and_no_lead(spoken, tmp_path):
    settings = SMALL | {"task": {"steps": 8}}
    model = train(spoken / "train.txt", task="language_model", out=tmp_path / "m", quiet=True, settings=settings)
    found = model.generate("the old cat", top_k=1, length=30)[0]
    assert not found.finished and found.text.startswith(" here sees one\nthe ") and len(found.tokens) == 30
    assert "</s>" not in model.score(["the old cat"])[0].tokens
    assert model.generate("", top_k=1, length=1)[0].text == "the"
    assert isinstance(model.engine, object) and Stopper(model.engine, model.text, [], ends=False).vocabulary_size > 4
    with pytest.raises(UsageError, match="score: texts is one text"):
        model.score("the old cat")
    with pytest.raises(UsageError, match="generate: length is 0; a whole number of at least 1"):
        model.generate("x", length=0)


@pytest.mark.slow
def test_two_processes_train_the_model_of_one(run, spoken, tmp_path):
    """Each keeps the states of its own streams; gradients add up to the same."""
    sets = [
        "task.documents=line",
        "task.steps=8",
        "train.steps=6",
        "train.batch_sentences=8",
        "train.precision=float32",
    ]
    sets += ["text.tokenizer=word", "model.embedding_size=16", "model.history.cell.hidden_size=24"]
    sets += ["model.dropout=0", "model.history.dropout=0"]
    found = []
    for devices in (1, 2):
        words = ["train", spoken / "train.txt", "--out", tmp_path / str(devices), "--devices", devices]
        flags = [word for one in sets for word in ("--set", one)]
        command = [sys.executable, "-m", "unrolled", *map(str, words), *flags]
        done = subprocess.run(command, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr[-2000:]
        found.append({score.name: score.value for score in unrolled.load(tmp_path / str(devices)).scores})
    assert found[0] == pytest.approx(found[1], rel=1e-4)


def test_it_is_told_on_which_words_a_word_rests(model, run, spoken, tmp_path):
    found = model.explain("the old cats here see one")
    assert found.source == found.target == ("the", "old", "cats", "here", "see", "one")
    assert found.weights.shape == (6, 6) and not np.triu(found.weights).any() and found.weights.max() <= 1
    assert found.weights[4, 2] > 0.3  # without "cats", "see" is less likely than "sees" or nothing
    assert sum(found.log_probs) == pytest.approx(
        model.score(["the old cats here see one"])[0].log_probs[:-1].sum(), abs=1e-4
    )
    assert run("explain", spoken / "model", "the old cats", "--to", tmp_path / "x.svg").code == 0
    assert "probability lost without it" in (tmp_path / "x.svg").read_text()
    refused = run("explain", spoken / "model", "the cat", "--target", "x")
    assert refused.code == 2 and "--target is not for the task 'language_model'" in refused.err


# --- bad input


@pytest.mark.parametrize(
    ("content", "wanted"),
    [
        (b"", "the file is empty"),
        (b"\n \n\n", "lines are blank"),
        (b"word", "1 line, and some must be held out"),
        (b"\x89PNG\r\n\x1a\n\0\0\0", "this is not text but a PNG image"),
        (b"one\xff\xfe two\n" * 3, "not UTF-8"),
    ],
)
def test_text_that_cannot_be_read_is_named(run, tmp_path, content, wanted):
    path = tmp_path / "bad.txt"
    path.write_bytes(content)
    result = run("train", path, "--task", "language_model", "--out", tmp_path / "m")
    assert result.code == 3 and wanted in result.err and str(path) in result.err
    assert not (tmp_path / "m" / "settings.yaml").exists()


def test_a_line_of_a_million_characters_without_an_end_is_text(run, tmp_path):
    path = tmp_path / "long.txt"
    draw = random.Random(1)
    path.write_text(" ".join(draw.choice(["one", "two", "three"]) for _ in range(220_000)))
    assert path.stat().st_size > 900_000
    flags = ["model.embedding_size=8", "model.history.cell.hidden_size=8", "text.tokenizer=word", "train.steps=8"]
    result = run("train", path, "--out", tmp_path / "m", *(word for one in flags for word in ("--set", one)))
    assert result.code == 0, result.err
    assert "running text. The task is language_model" in result.err


def test_rows_of_text_alone_are_documents_and_a_column_without_tabs_is_a_mistake(run, tmp_path):
    rows = "".join(json.dumps({"text": f"{line}\nsecond"}) + "\n" for line in sentences(60, 1))
    (tmp_path / "a.jsonl").write_text(rows)
    (tmp_path / "a.tsv").write_text("one two\n" * 60)
    said = run("train", tmp_path / "a.jsonl", "--out", tmp_path / "m", "--set", "train.steps=1",
               "--set", "model.history.cell.hidden_size=8")  # fmt: skip
    assert said.code == 0 and "one column, text. The task is language_model" in said.err, said.err
    assert "</s>" in unrolled.load(tmp_path / "m").score(["one"])[0].tokens  # where a row ends is learnt
    refused = run("train", tmp_path / "a.tsv", "--out", tmp_path / "n")
    assert refused.code == 3 and "1 column (text) where 2 are needed (source, target)" in refused.err


def test_single_words_are_texts_of_their_own(run, tmp_path):
    path = tmp_path / "names.txt"
    draw = random.Random(1)
    path.write_text("".join("".join(draw.choices("abc", k=draw.randint(2, 5))) + "\n" for _ in range(200)))
    said = run("train", path, "--out", tmp_path / "m", "--explain-settings", "--json")
    settings = json.loads(said.out)
    assert settings["task.documents"] == {"value": "line", "origin": "the data"}
    assert settings["text.tokenizer.kind"]["value"] == "character"


# --- presets


SMALLER = {
    "zaremba-small": {}, "zaremba-medium": {}, "zaremba-large": {},
    "awd-lstm": {"embedding_dropout": 0.02, "input_dropout": 0.1, "history": {"last_size": 20, "weight_dropout": 0.1}},
    "language-model": {},
    "language-model-feedforward": {"history": {"cell": None, "hidden_size": 24}},
}  # fmt: skip


@pytest.mark.parametrize("preset", SMALLER)
def test_every_preset_learns_at_a_smaller_size(tmp_path, preset):
    """Words in a ring: each is known from the one before, so that nothing is left to chance."""
    path = tmp_path / "ring.txt"
    path.write_text(("one two three four five\n" * 60) + "\n")
    model = {"embedding_size": 20, "dropout": 0.1, **SMALLER[preset]}
    history = {"cell": {"hidden_size": 24}, "dropout": 0.1, **model.get("history", {})}
    model["history"] = {name: value for name, value in history.items() if value is not None}
    settings = {
        "model": model,
        "task": {"steps": 6},
        "train": {"epochs": 60 if preset == "awd-lstm" else 15, "batch_sentences": 6, "seed": 1},
    }
    settings["train"] |= {"validate_every": 1000, "precision": "float32"}
    settings["text"] = {"tokenizer": {"kind": "whitespace", "size": 20}}
    found = train(path, preset=preset, out=tmp_path / "m", settings=settings, quiet=True)
    assert found.generate("one two", top_k=1, length=9)[0].text == " three four five\none two three four five"
