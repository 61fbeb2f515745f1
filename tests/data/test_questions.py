"""Questions about documents out of stories, tables, JSON lines and the CNN corpus; what is wrong has its place."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from unrolled.base.errors import DataError
from unrolled.data.opening import refuse
from unrolled.data.questions import COLUMNS, fault, place_of, question_of, questions, sentences
from unrolled.data.readers import open_table, splits

STORIES = """1 Mary moved to the bathroom.
2 John went to the hallway.
3 Where is Mary? \tbathroom\t1
4 Daniel went back to the hallway.
5 Where is Daniel?\thallway\t4
1 Mice are afraid of wolves.
2 Emily is a mouse.
3 What is emily afraid of?\twolf\t2 1
"""


def opened(tmp_path, text, name="qa1_train.txt", **settings):
    path = tmp_path / name
    path.write_text(text, encoding="utf-8")
    return questions(open_table(path), **settings)


def rows(table):
    return [question_of(row.fields) for row in table.rows()]


def test_a_story_s_document_is_what_was_said_before_the_question(tmp_path):
    table = opened(tmp_path, STORIES)
    first, second, third = rows(table)
    assert first.document == "Mary moved to the bathroom.\nJohn went to the hallway."
    assert (first.question, first.answers, first.support) == ("Where is Mary?", ("bathroom",), (0,))
    assert second.document.split("\n") == [
        "Mary moved to the bathroom.",
        "John went to the hallway.",
        "Daniel went back to the hallway.",
    ]
    assert second.support == (2,), "the question's own line is no sentence of the story"
    assert third.support == (1, 0)
    assert [row.place for row in table.rows()] == [3, 5, 8]
    stories = [row.fields[0] for row in table.rows()]
    assert stories[0] == stories[1] != stories[2], "what is held out is whole stories"


@pytest.mark.parametrize(
    "text, message",
    [
        (STORIES.replace("4 Daniel", "6 Daniel"), r"qa1_train.txt:4: the number 6 follows 3: .* numbered 1, 2, 3"),
        (STORIES.replace("2 John", "John"), r"qa1_train.txt:2: no number in front"),
        (STORIES.replace("bathroom\t1", "bathroom\t7"), r"qa1_train.txt:3: '7' is said to support the answer"),
        (STORIES.replace("hallway\t4", "hallway\t3"), r"qa1_train.txt:5: '3' is said to support .* 1 to 5"),
        (STORIES.replace("hallway\t4", "hallway\tfour"), r"qa1_train.txt:5: 'four' is said to support"),
        (STORIES.replace("hallway\t4", "hallway\t4\tmore"), r"qa1_train.txt:5: 4 parts where question, answer"),
        (STORIES.replace("\tbathroom\t1", "\t\t"), r"qa1_train.txt:3: the answer is empty"),
        (STORIES + "1 Where is nobody?\there\n", r"qa1_train.txt:9: the document is empty"),
    ],
)
def test_what_is_wrong_with_a_story_is_named_with_its_line(tmp_path, text, message):
    table = opened(tmp_path, text)
    with pytest.raises(DataError, match=message):
        list(table.rows())


def test_a_broken_story_is_left_out_from_there_on_and_the_others_are_kept(tmp_path):
    wrong = []
    table = opened(tmp_path, STORIES.replace("4 Daniel", "6 Daniel"))
    kept = [question_of(row.fields).question for row in table.rows(wrong.append)]
    assert kept == ["Where is Mary?", "What is emily afraid of?"]
    assert [(one.place, one.kind) for one in wrong] == [(4, "story")]


def test_stories_without_answers_can_be_asked(tmp_path):
    text = STORIES.replace("\tbathroom\t1", "").replace("\thallway\t4", "\t").replace("\twolf\t2 1", "\twolf")
    found = rows(opened(tmp_path, text, answered=False))
    assert [one.answers for one in found] == [(), (), ("wolf",)]


def test_a_folder_of_stories_says_of_which_file_a_question_is(tmp_path):
    for name in ("qa1_train.txt", "qa15_train.txt", "qa1_test.txt", "qa15_test.txt"):
        (tmp_path / name).write_text(STORIES, encoding="utf-8")
    found = splits(tmp_path)
    assert list(found) == ["train", "test"]
    assert [one.kind for one in rows(questions(found["train"]))] == ["qa15"] * 3 + ["qa1"] * 3


def test_json_lines_of_every_shape(tmp_path):
    lines = [
        {"document": "It rains.", "question": "What does it?", "answer": "rains", "candidates": ["rains", "snows"]},
        {
            "context": "Ada met Bob. Bob left.",
            "question": "Who left?",
            "answers": {"text": ["Bob", "Bob", "Bob left"], "answer_start": [13, 8, 13]},
            "kind": "who",
        },
        {"context": "Ada met Bob.", "question": "Whom?", "answers": [{"text": "Bob", "answer_start": 8}]},
    ]
    one, two, three = rows(opened(tmp_path, "\n".join(map(json.dumps, lines)), "set.jsonl"))
    assert (one.answers, one.candidates, one.starts) == (("rains",), ("rains", "snows"), ())
    assert (two.answers, two.starts, two.kind) == (("Bob", "Bob left"), (13, 13), "who")
    assert (three.answers, three.starts) == (("Bob",), (8,))


@pytest.mark.parametrize("head", ["document\tquestion\tanswer\n", "answer\tcontext\tquestion\tlabels\n", ""])
def test_a_table_is_read_by_its_names_or_in_order(tmp_path, head):
    line = "b\tA met b.\tWhom did A meet?\t0\n" if "answer\tc" in head else "A met b.\tWhom did A meet?\tb\n"
    found = rows(opened(tmp_path, head + line * 3, "set.tsv"))
    assert {(one.document, one.question, one.answers) for one in found} == {("A met b.", "Whom did A meet?", ("b",))}


@pytest.mark.parametrize(
    "name, text, message",
    [
        (
            "set.tsv",
            "source\ttarget\na\tb\n",
            r"no column is called document, question, answer; there are source, target",
        ),
        ("set.tsv", "document\tquestion\nA b.\tWho?\n", r"no column is called answer; there are document, question"),
        ("set.jsonl", '{"document": "It rains.", "question": "What?", "answer": 5.0}', None),
    ],
)
def test_wrong_columns_are_named(tmp_path, name, text, message):
    if message is None:
        assert rows(opened(tmp_path, text, name))[0].answers == ("5.0",)
        return
    with pytest.raises(DataError, match=message):
        opened(tmp_path, text, name)


@pytest.mark.parametrize(
    "changed, message",
    [
        ({"document": " "}, "the document is empty"),
        ({"question": ""}, "the question is empty"),
        (
            {"answer": "snow", "candidates": "rain\thail"},
            r"the answer 'snow' is not among its candidates \(rain, hail\)",
        ),
        ({"start": "3"}, "the answer 'rains' is said to begin at character 3, where 'rains'|'ains.' stands"),
        ({"start": "x"}, "whole numbers from 0; 'x' was given"),
        ({"start": "3 4"}, "1 answers and 2 places"),
        ({"support": "1"}, "sentence 1 is said to support it; the document has 1"),
        ({"answer": "ain"}, r"'ain' stands in the document only as a part of a word \('rains'\)"),
    ],
)
def test_what_is_wrong_with_a_row_is_said(changed, message):
    row = {"story": "s", "document": "It rains.", "question": "What does it do?", "answer": "rains"}
    cells = [{**dict.fromkeys(COLUMNS, ""), **row, **changed}[name] for name in COLUMNS]
    found = fault(cells, answered=True, inside=True)
    if changed == {"start": "3"}:
        assert found is None, "it stands there"
        cells[COLUMNS.index("start")] = "4"
        found = fault(cells, answered=True, inside=True)
        message = "the answer 'rains' is said to begin at character 4, where 'ains.' stands"
    import re

    assert found is not None and re.search(message, found)


def test_questions_of_the_cnn_corpus(tmp_path):
    whole = (
        "http://x\n\n@entity1 met @entity0 .\n\n@placeholder met @entity0\n\n@entity1\n\n@entity0:Bob\n@entity1:Ada\n"
    )
    folder = tmp_path / "questions"
    (folder / "training").mkdir(parents=True)
    (folder / "test").mkdir()
    (folder / "training" / "a.question").write_text(whole)
    (folder / "training" / "b.question").write_text(whole.replace("http://x\n\n", ""))
    (folder / "test" / "c.question").write_text(whole)
    found = splits(folder)
    assert list(found) == ["train", "test"]
    (one,) = rows(questions(found["test"]))
    assert (one.document, one.answers, one.candidates) == (
        "@entity1 met @entity0 .",
        ("@entity1",),
        ("@entity0", "@entity1"),
    )
    with pytest.raises(DataError, match=r"b.question:1: 4 parts where five are expected"):
        list(questions(found["train"]).rows(refuse))
    assert rows(questions(open_table(folder / "test" / "c.question"))) == [one]


def test_sentences_are_lines_or_end_in_marks():
    cut = lambda text: [text[start:end] for start, end in sentences(text)]  # noqa: E731
    assert cut("One two. Three? Four") == ["One two.", "Three?", "Four"]
    assert cut("One two. Three?\n\nFour") == ["One two. Three?", "Four"]
    assert cut("One") == ["One"]


@given(st.text(alphabet="ab .?!\n", max_size=30))
def test_sentences_hold_every_word_once_and_in_order(text):
    spans = sentences(text)
    assert [end for _, end in spans[:-1]] <= [start for start, _ in spans[1:]]
    kept = "".join("".join(text[start:end].split()) for start, end in spans)
    assert kept == "".join(text.split())


def test_an_answer_is_found_as_a_whole_word_first_as_it_is_written():
    assert place_of("Rain, rain again.", "rain", None) == (6, 10)
    assert place_of("Rain again.", "rain", None) == (0, 4)
    assert place_of("raining", "rain", None) is None
    assert place_of("a (b) c", "(b)", None) == (2, 5)
