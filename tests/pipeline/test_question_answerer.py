"""Readers trained in seconds on made-up stories: every verb, every kind of answer, and what is wrong."""

import json
import random

import numpy as np
import pytest
from typer.testing import CliRunner

import unrolled
from unrolled.base.errors import DataError, SettingsError, UsageError
from unrolled.cli.main import app
from unrolled.data.parts import Part
from unrolled.data.questions import question_of
from unrolled.data.readers import open_table
from unrolled.explain.explanation import Explanation
from unrolled.explain.highlights import Highlights
from unrolled.pipeline.model import NoVerb
from unrolled.runs.corpus import Corpus
from unrolled.workshop.sources import Sources, Tables

PEOPLE = ["Ana", "Ben", "Cleo", "Dov", "Eli"]
PLACES = ["attic", "barn", "cellar", "yard"]


def stories(count, seed, people=PEOPLE):
    """Stories of two people who go somewhere and a question for one of them, as bAbI writes them."""
    draw, lines = random.Random(seed), []
    for _ in range(count):
        who, where = draw.sample(people, 2), draw.sample(PLACES, 2)
        asked = draw.randrange(2)
        lines += [f"{n + 1} {who[n]} went to the {where[n]}." for n in range(2)]
        lines.append(f"3 Where is {who[asked]}?\t{where[asked]}\t{asked + 1}")
    return "\n".join(lines) + "\n"


def settings(**more):
    small = {
        "model": {
            "embedding_size": 16, "size": 24, "dropout": 0.0, "word_dropout": 0.05,
            "encoder": {"kind": "rnn", "cell": {"kind": "lstm", "hidden_size": 12}},
        },
        "train": {"epochs": 10, "batch_sentences": 16, "learning_rate": 0.02},
    }  # fmt: skip
    return {section: {**small.get(section, {}), **more.get(section, {})} for section in small | more}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    place = tmp_path_factory.mktemp("reading")
    (place / "qa_train.txt").write_text(stories(240, 1))
    (place / "qa_test.txt").write_text(stories(60, 2))
    return place


@pytest.fixture(scope="module")
def attentive(folder):
    sources = Sources(data=str(folder / "qa_train.txt"), test=str(folder / "qa_test.txt"))
    return unrolled.train(sources=sources, settings=settings(), out=folder / "attentive", quiet=True)


@pytest.fixture(scope="module")
def anonymous(folder):
    sources = Sources(data=str(folder / "qa_train.txt"), test=str(folder / "qa_test.txt"))
    given = settings(task={"kind": "reading", "answer": "anonymous"}, model={"answer": "attention_sum"})
    return unrolled.train(sources=sources, settings=given, out=folder / "anonymous", quiet=True)


@pytest.fixture(scope="module")
def spans(folder):
    path = folder / "spans.jsonl"
    draw = random.Random(3)
    rows = []
    for _ in range(240):
        who, where = draw.sample(PEOPLE, 2), draw.sample(PLACES, 2)
        document = f"{who[0]} is in the old {where[0]}. {who[1]} is in the {where[1]}."
        answer = draw.choice([f"old {where[0]}", where[1]])
        asked = who[0] if answer.startswith("old") else who[1]
        texts = [answer, f"the {answer}"]
        answers = {"text": texts, "answer_start": [document.index(text) for text in texts]}
        rows.append({"document": document, "question": f"Where is {asked}?", "answers": answers})
    path.write_text("\n".join(map(json.dumps, rows)))
    return unrolled.train(
        path, settings=settings(task={"kind": "reading", "answer": "span"}), out=folder / "spans", quiet=True
    )


def score(model, name):
    return next(one.value for one in model.scores if one.name == name)


ASKED = ("Ana went to the barn.\nBen went to the yard.", "Where is Ben?")


# --- learning and answers ---------------------------------------------------------------------------------------------


def test_a_reader_learns_to_read(attentive):
    assert score(attentive, "accuracy") >= 0.95
    assert score(attentive, "baseline_accuracy") < 0.5
    assert attentive.predict([ASKED, (ASKED[0], "Where is Ana?")]) == ["yard", "barn"]
    assert attentive.plan.settings["model"]["kind"] == "reader"
    said = attentive.answers([ASKED])[0]
    assert said.ranked[0] == ("yard", said.probability) and sum(p for _, p in said.ranked) == pytest.approx(1, abs=1e-4)


def test_attention_lies_where_the_answer_is(attentive):
    said = next(one.protocol for one in attentive.scores if one.name == "attention_on_support")
    assert (
        said == "share of the attention on words, 60 questions with supporting sentences; these hold 0.500 of the words"
    )
    assert score(attentive, "attention_on_support") > 0.8
    assert score(attentive, "support_read_most") > 0.8
    assert attentive.record["faithfulness"]["top_agreement"]["value"] is not None


def test_candidates_are_all_that_comes_into_question(attentive):
    found = attentive.answers([(*ASKED, ["attic", "barn"])])[0]
    assert {name for name, _ in found.ranked} <= {"attic", "barn"}
    with pytest.raises(DataError, match=r"none of the candidates \(moon\)"):
        attentive.predict([(*ASKED, ["moon"])])


def test_an_anonymous_reader_reads_names_that_it_has_never_seen(anonymous, folder):
    assert score(anonymous, "accuracy") >= 0.95
    document = "Ana went to the barn.\nBen went to the yard."
    assert anonymous.predict([(document, "Where is Ben?")]) == ["yard"]
    renamed = document.replace("barn", "moon").replace("yard", "harbour wall")
    found = anonymous.answers([(renamed, "Where is Ben?", ["moon", "harbour wall"])])[0]
    mine = anonymous.answers([(document, "Where is Ben?", ["barn", "yard"])])[0]
    assert found.label == "harbour wall"
    assert found.probability == pytest.approx(mine.probability, abs=1e-6)
    with pytest.raises(DataError, match="no entity that the model knows stands in"):
        anonymous.predict([("Ana slept.", "Where is Ana?")])


def test_spans_are_pieces_of_the_document(spans):
    assert score(spans, "exact_match") >= 0.9 and score(spans, "f1") >= score(spans, "exact_match")
    document = "Ana is in the old barn. Ben is in the yard."
    assert spans.predict([(document, "Where is Ana?"), (document, "Where is Ben?")]) == ["old barn", "yard"]
    shown = spans.explain(document, "Where is Ana?", "yard", trusted=False)
    assert shown.answer == "yard" and shown.probability < 0.5
    with pytest.raises(UsageError, match="the answer 'moon' does not stand in the document"):
        spans.explain(document, "Where is Ana?", "moon")
    assert {one.name for one in spans.evaluate([(document, "Where is Ana?")], ["the Old barn!"])} >= {
        "exact_match",
        "f1",
    }
    assert spans.evaluate([(document, "Where is Ana?")], ["the Old barn!"])[0].value == 1.0


def nested(count, seed):
    """Two people and a question for one of them, or for somebody who is not there, nested as in SQuAD."""
    draw, paragraphs = random.Random(seed), []
    for number in range(count):
        who, where = draw.sample(PEOPLE, 3), draw.sample(PLACES, 2)
        document = f"{who[0]} is in the old {where[0]}. {who[1]} is in the {where[1]}."
        asked = draw.randrange(3)
        texts = [[f"old {where[0]}", f"the old {where[0]}"], [where[1]], []][asked]
        answers = [{"text": text, "answer_start": document.index(text)} for text in texts]
        one = {
            "id": f"q{number}",
            "question": f"Where is {who[asked]}?",
            "answers": answers,
            "is_impossible": not texts,
        }
        paragraphs.append({"context": document, "qas": [one]})
    return json.dumps({"version": "v2.0", "data": [{"title": "people", "paragraphs": paragraphs}]})


@pytest.fixture(scope="module")
def doubtful(folder):
    (folder / "train-v2.0.json").write_text(nested(300, 3))
    (folder / "dev-v2.0.json").write_text(nested(60, 4))
    sources = Sources(data=str(folder / "train-v2.0.json"), valid=str(folder / "dev-v2.0.json"))
    return unrolled.train(sources=sources, settings=settings(), out=folder / "doubtful", quiet=True)


def test_a_squad_file_trains_spans_that_may_be_none(doubtful, folder, tmp_path):
    assert doubtful.task.answering == "span" and doubtful.text.nowhere
    gold = json.loads((folder / "dev-v2.0.json").read_text())["data"][0]["paragraphs"]
    answered = np.array([not one["qas"][0]["is_impossible"] for one in gold])
    scores = {one.name: one.value for one in doubtful.scores}
    assert scores["exact_match"] >= 0.9 and scores["no_answer"] >= 0.9 and scores["answered_f1"] >= 0.9
    share = answered.mean()
    whole = share * scores["answered_exact_match"] + (1 - share) * scores["no_answer"]
    assert scores["exact_match"] == pytest.approx(whole), "the two kinds of questions are all of them"
    result = run("predict", folder / "doubtful", folder / "dev-v2.0.json")
    found = [line.split("\t")[0] for line in result.stdout.splitlines()]
    assert np.mean([bool(one) == has for one, has in zip(found, answered, strict=True)]) >= 0.9
    document = "Ana is in the old barn. Ben is in the yard."
    assert doubtful.predict([(document, "Where is Ben?"), (document, "Where is Eli?")]) == ["yard", ""]
    assert doubtful.evaluate([(document, "Where is Eli?")], [""])[0].value == 1.0
    assert doubtful.probabilities([(document, "Where is Eli?")])[0].shape == (2, len(document.split()) + 2 + 1)
    number = 1 + int(np.flatnonzero(~answered)[0])
    shown = run("explain", folder / "doubtful", f"{folder}/dev-v2.0.json#{number}", "--to", tmp_path / "none.svg")
    assert "(no answer)" in (tmp_path / "none.svg").read_text() + shown.output
    asked = run(
        "explain", folder / "doubtful", f"{folder}/dev-v2.0.json#{number}", "--target", "", "--json", "--no-trust"
    )
    assert "(no answer)" in asked.output
    said = [
        json.loads(one)
        for one in run("predict", folder / "doubtful", folder / "dev-v2.0.json", "--json").stdout.splitlines()
    ]
    for number in (1 + int(np.flatnonzero(~answered)[0]), 1 + int(np.flatnonzero(answered)[0])):
        line = f"{folder}/dev-v2.0.json#{number}"
        shown = json.loads(run("explain", folder / "doubtful", line, "--json", "--no-trust").stdout)
        assert shown["probability"] == pytest.approx(said[number - 1]["probability"], abs=1e-5), "predict's number"
        steps = run("explain", folder / "doubtful", line, "--by", "steps", "--to", tmp_path / "steps.svg").output
        picture = (tmp_path / "steps.svg").read_text() + steps
        assert f"({said[number - 1]['probability']:.3f})" in picture
    run("selfcheck", folder / "doubtful", folder / "dev-v2.0.json")
    again = unrolled.load(folder / "doubtful")
    assert again.text.nowhere and again.predict([(document, "Where is Eli?")]) == [""]


def test_of_an_answer_that_stands_twice_the_likeliest_place_is_explained(spans):
    document = "Ben is in the yard. Ana is in the old barn. Eli likes the yard."
    (said,) = spans.answers([(document, "Where is Ben?")])
    for label in ("yard", "old barn"):
        best = max(probability for one, probability in said.ranked if one == label)
        shown = spans.explain(document, "Where is Ben?", label, trusted=False)
        assert shown.probability == pytest.approx(best, abs=1e-5)


def test_answers_inside_words_are_learnt_as_the_words_and_evaluated(folder, spans):
    tree = json.loads(nested(60, 5))
    for paragraph in tree["data"][0]["paragraphs"]:
        for one in paragraph["qas"][0]["answers"]:
            one["text"] = one["text"][:-1]
    path = folder / "parts.json"
    path.write_text(json.dumps(tree))
    given = settings()
    given["train"] = {**given["train"], "epochs": 1}
    model = unrolled.train(path, settings=given, out=folder / "parts", quiet=True)
    table = model.task.adapt(open_table(path))
    store = model.task.store(folder / "again", Part(table, tuple(range(8))), model.text, "")
    asked = [question_of(row.fields) for row in table.rows()]
    place = next(place for place, one in enumerate(asked) if one.answers)
    (first, last), one = store.take("answer", [place])[0], asked[place]
    spans_of = model.text.read(one.document, one.question).spans
    held = one.document[spans_of[first][0] : spans_of[last][1]]
    assert held[:-1] == one.answer, "the word that covers the answer"
    run("evaluate", folder / "parts", path)
    line = folder / "outside.jsonl"
    line.write_text(json.dumps({"document": "Ana is in the barn.", "question": "Where is Ana?", "answer": "bar"}))
    assert "exact_match" in run("evaluate", folder / "spans", line, "--json").stdout
    assert spans.explain("Ana is in the barn.", "Where is Ana?", "bar", trusted=False).probability > 0


def test_rows_of_a_nested_file_are_named_by_their_number(doubtful, folder, tmp_path):
    path = folder / "dev-v2.0.json"
    found = Part(doubtful.task.adapt(open_table(path)), tuple(range(8)))
    corpus = Corpus(tmp_path, Tables(found, found, None, []), doubtful.task, doubtful.plan.settings)
    doubtful.task.store(tmp_path / "data" / "valid", found, doubtful.text, "")
    assert corpus.batches("valid").places(np.array([0, 4])) == [f"{path}#1", f"{path}#5"]


def test_a_file_without_any_answer_is_nothing_to_learn_from(folder):
    tree = json.loads(nested(9, 5))
    for paragraph in tree["data"][0]["paragraphs"]:
        paragraph["qas"][0].update(answers=[], is_impossible=True)
    path = folder / "impossible.json"
    path.write_text(json.dumps(tree))
    with pytest.raises(DataError, match=r"impossible.json: every question is said not .* nothing to learn"):
        unrolled.train(path, settings=settings(), out=folder / "impossible", quiet=True)


def test_a_reader_that_always_answers_is_told_so(spans, folder, doubtful):
    path = folder / "dev-v2.0.json"
    found = json.loads(run("evaluate", folder / "spans", path, "--json").stdout)
    protocol = next(one["protocol"] for one in found["scores"] if one["name"] == "exact_match")
    assert "questions have no answer; this model always gives one" in protocol
    assert next(one["value"] for one in found["scores"] if one["name"] == "no_answer") == 0.0
    with pytest.raises(
        DataError, match=r"dev-v2.0.json#\d+: data.*: the document is said not to answer it, .* task.answer=span"
    ):
        unrolled.train(path, settings={"task": {"answer": "entity"}}, out=folder / "refused", quiet=True)
    with pytest.raises(UsageError, match="no training row is so: this model cannot say"):
        spans.explain("Ana is in the barn.", "Where is Eli?", "")


def test_the_deep_reader_has_no_attention_and_is_explained_by_erasure(folder):
    given = {"model": {"kind": "deep_reader", "first": "question", "embedding_size": 16}, "train": {"epochs": 1}}
    model = unrolled.train(
        folder / "qa_train.txt", preset="deep-lstm-reader", settings=given, out=folder / "deep", quiet=True
    )
    shown = model.explain(*ASKED)
    assert shown.method == "erasure" and not shown.summed
    with pytest.raises(UsageError, match="no attention, and so no steps"):
        model.explain(*ASKED, by="steps")
    assert model.record["faithfulness"] is None


# --- seeing -----------------------------------------------------------------------------------------------------------


def test_the_document_is_shaded_word_by_word_and_sentence_by_sentence(attentive, tmp_path):
    shown = attentive.explain(*ASKED)
    assert isinstance(shown, Highlights)
    assert [one.words for one in shown.sentences] == [
        ("Ana", "went", "to", "the", "barn", "."),
        ("Ben", "went", "to", "the", "yard", "."),
    ]
    assert sum(shown.shares) + shown.rest == pytest.approx(1, abs=1e-4) and int(np.argmax(shown.shares)) == 1
    drop = shown.faithfulness["sentence_drop"]
    assert drop.value > drop.chance + 0.05 and shown.faithfulness["sentence_agreement"].value == 1
    for ending in ("svg", "png", "html", "json"):
        assert shown.to(tmp_path / f"picture.{ending}").stat().st_size > 200


def test_steps_are_shown_by_the_words_of_the_question(folder, attentive):
    given = settings(train={"epochs": 1})
    model = unrolled.train(
        folder / "qa_test.txt", preset="impatient-reader", settings=given, out=folder / "impatient", quiet=True
    )
    shown = model.explain(*ASKED, by="steps")
    assert isinstance(shown, Explanation)
    assert shown.target == ("Where", "is", "Ben", "?", "(end)") and shown.weights.shape == (5, 12)
    assert attentive.explain(*ASKED, by="steps").target == ("hop 1",)
    with pytest.raises(UsageError, match=r"'word' is no way to show it. Did you mean 'words'"):
        attentive.explain(*ASKED, by="word")


# --- verbs ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["attentive", "anonymous", "spans"])
def test_every_promise_holds(name, request):
    model = request.getfixturevalue(name)
    found = model.promises(None, 12)
    assert len(found) == (6 if name == "anonymous" else 5)
    assert [one.name for one in found if not one.holds] == []


def run(*arguments, code=0):
    result = CliRunner().invoke(app, list(map(str, arguments)))
    assert result.exit_code == code, result.output
    return result


def test_the_command_line(attentive, folder, tmp_path):
    model, file = folder / "attentive", tmp_path / "asked.txt"
    file.write_text("1 Ana went to the barn.\n2 Where is Ana?\n3 Ben went to the yard.\n4 Where is Ben?\t\n5 Qui ?\n")
    result = run("predict", model, file)
    assert [line.split("\t")[0] for line in result.stdout.splitlines()][:2] == ["barn", "yard"]
    assert len(result.stdout.splitlines()) == 3, "a question of unknown words is answered too, and said"
    lines = run("predict", model, file, "--nbest", 2).stdout.splitlines()
    assert lines[0].split("\t")[::2] == ["0", "barn"] and len(lines) == 6
    tree = json.loads(run("predict", model, file, "--json").stdout.splitlines()[1])
    assert (tree["line"], tree["answer"]) == (4, "yard")
    run("explain", model, f"{file}#2", "--to", tmp_path / "steps.svg", "--by", "steps", "--no-trust")
    assert "Where is Ben? yard" in run("explain", model, f"{file}#2").stdout
    with pytest.raises(DataError, match=r"qa_test\.txt: there is no question 999"):
        attentive.show_explain(f"{folder}/qa_test.txt#999")
    found = json.loads(run("evaluate", model, folder / "qa_test.txt", "--json", "--compare", model).stdout)
    assert found["questions"] == 60 and found["compare"][0]["difference"] == 0
    run("selfcheck", model, folder / "qa_test.txt")
    assert "10,316 parameters" in run("describe", model).stdout
    assert len(run("embed", model).stdout.splitlines()) == attentive.text.tokenizer.vocabulary_size - 4
    assert unrolled.QuestionAnswerer.load(model).predict([ASKED]) == ["yard"]


def test_kinds_of_questions_have_a_line_each(attentive, folder, tmp_path):
    for name in ("qa1_test.txt", "qa2_test.txt"):
        (tmp_path / name).write_text((folder / "qa_test.txt").read_text())
    found = json.loads(run("evaluate", folder / "attentive", tmp_path, "--json").stdout)
    assert [(one["kind"], one["questions"]) for one in found["kinds"]] == [("qa1", 60), ("qa2", 60)]


def test_the_doctor_reads_questions(folder, tmp_path):
    result = run("check", folder / "qa_train.txt", "--valid", folder / "qa_test.txt")
    assert "every answer stands in its document" in " ".join(result.output.split())
    broken = tmp_path / "broken.txt"
    broken.write_text((folder / "qa_train.txt").read_text() + "1 Ana slept.\n3 Where is Ana?\tbed\t1\n")
    result = run("check", broken, code=3)
    assert "of a story that cannot be read" in " ".join(result.output.split()) and "broken.txt:722" in result.output


@pytest.mark.parametrize("verb", ["score", "generate"])
def test_verbs_that_it_lacks_say_why(attentive, verb):
    with pytest.raises(NoVerb, match=f"{verb}: a model of the task 'reading' does not {verb}"):
        getattr(attentive, verb)


# --- what is wrong ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "asked, error, message",
    [
        ("Ana slept.", UsageError, r"give a list of pairs \(document, question\)"),
        (["Ana slept."], UsageError, r"0 is 'Ana slept.'; a pair"),
        ([("Ana slept.",)], UsageError, r"a pair \(document, question\) is wanted"),
        ([("Ana slept.", 3)], UsageError, "question is of type int"),
        ([ASKED, (" ", "Where?")], DataError, "predict: 1: the document is empty"),
        ([("Ana slept.", "")], DataError, "predict: 0: the question is empty"),
    ],
)
def test_what_cannot_be_asked(attentive, asked, error, message):
    with pytest.raises(error, match=message):
        attentive.predict(asked)


def test_nothing_asked_nothing_answered(attentive):
    assert attentive.predict([]) == [] and attentive.answers([]) == []
    with pytest.raises(DataError, match="there is no question"):
        attentive.evaluate([], [])
    with pytest.raises(UsageError, match="1 questions and 0 answers"):
        attentive.evaluate([ASKED], [])
    with pytest.raises(DataError, match="no word of the question 'Qui dort' is one that training rows had"):
        attentive.explain(ASKED[0], "Qui dort")
    with pytest.raises(UsageError, match="the label 'moon' is none of the 4"):
        attentive.explain(*ASKED, "moon")


@pytest.mark.parametrize(
    "changed, given, error, message",
    [
        (("\tbarn\t", "\tmoon\t"), {"task": {"answer": "span"}}, DataError, r"set.txt:\d+: the answer 'moon' does"),
        (("\tbarn\t", "\tmoon\t"), {"task": {"answer": "anonymous"}}, DataError, "the answer 'moon' does not stand"),
        (("\t1\n", "\t9\n"), {}, DataError, r"set.txt:\d+: '9' is said to support the answer"),
        ((".\n3", ".\n4"), {}, DataError, r"set.txt:3: the number 4 follows 2"),
        (("\n", "\n"), {"task": {"answer": "span"}, "model": {"kind": "deep_reader"}}, SettingsError, "give spans"),
        (("\n", "\n"), {"task": {"answer": "span"}, "data": {"too_long": "cut"}}, SettingsError, "in what is cut"),
        (("barn\t", "barn yard\t"), {"model": {"answer": "attention_sum"}}, SettingsError, "'barn yard' is several"),
    ],
)  # fmt: skip
def test_data_and_settings_that_do_not_fit_are_refused(tmp_path, changed, given, error, message):
    path = tmp_path / "set.txt"
    path.write_text(stories(40, 1).replace(*changed))
    given = {**given, "task": {"kind": "reading", **given.get("task", {})}}
    with pytest.raises(error, match=message):
        unrolled.train(path, settings=given, out=tmp_path / "out", quiet=True)


def test_wrong_lines_are_left_out_where_told_to(tmp_path):
    path = tmp_path / "set.txt"
    path.write_text(stories(60, 1) + "1 Ana went to the moon.\n3 Where is Ana?\tmoon\t1\n")
    given = settings(data={"wrong_lines": "skip"})
    given["train"]["epochs"] = 1
    model = unrolled.train(path, settings=given, out=tmp_path / "out", quiet=True)
    assert "moon" not in model.labels and model.record["rows"]["train"] + model.record["rows"]["valid"] == 60
