"""SQuAD's nested files: what is read of them, and where each mistake is said to be."""

import gzip
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from unrolled.base.errors import DataError
from unrolled.data.doctor import examine
from unrolled.data.questions import NOWHERE, paired, question_of, questions
from unrolled.data.readers import open_table, splits

PLAIN = {
    "version": "1.1",
    "data": [
        {
            "title": "Rain",
            "paragraphs": [
                {
                    "context": " Rain\tfell on Ada. Bob ran.",
                    "qas": [
                        {
                            "id": "a1",
                            "question": "Who was wet? ",
                            "answers": [
                                {"text": "Ada", "answer_start": 14},
                                {"text": "Ada", "answer_start": 14},
                                {"text": " Ada.", "answer_start": 13},
                            ],
                        },
                        {"id": "a2", "question": "Who ran?", "answers": [{"text": "Bob", "answer_start": 19}]},
                    ],
                }
            ],
        },
        {
            "title": "Snow",
            "paragraphs": [
                {"context": "none asked", "qas": []},
                {
                    "context": "It snows.",
                    "qas": [
                        {
                            "id": "b1",
                            "question": "Does it rain?",
                            "answers": [],
                            "plausible_answers": [{"text": "snows", "answer_start": 3}],
                            "is_impossible": True,
                        }
                    ],
                },
            ],
        },
    ],
}


def written(folder, tree, name="dev-v2.0.json", **layout):
    path = folder / name
    text = json.dumps(tree, **layout)
    path.write_bytes(gzip.compress(text.encode()) if name.endswith(".gz") else text.encode())
    return path


def rows(path, **settings):
    return [question_of(row.fields) for row in questions(open_table(path), **settings).rows()]


@pytest.mark.parametrize("name", ["dev-v2.0.json", "dev.json.gz", "squad"])
@pytest.mark.parametrize("layout", [{}, {"indent": 2}, {"sort_keys": True}])
def test_each_question_is_a_row_with_its_answers_and_their_places(tmp_path, name, layout):
    path = written(tmp_path, PLAIN, name, **layout)
    table = open_table(path)
    assert table.format == "squad" and "SQuAD" in table.guessed[0]
    one, two, three = rows(path)
    assert (one.document, one.question) == ("Rain\tfell on Ada. Bob ran.", "Who was wet?")
    assert (one.answers, one.starts) == (("Ada", "Ada."), (13, 13)), "each text once; moved as the white space is gone"
    assert [one.document[at : at + len(text)] for text, at in zip(one.answers, one.starts, strict=True)] == [
        "Ada",
        "Ada.",
    ]
    assert (two.answers, two.nowhere) == (("Bob",), False)
    assert (three.answers, three.starts, three.nowhere) == ((), (), True)
    assert [table.place(row.place) for row in questions(table).rows()] == [f"{path}#{n}" for n in (1, 2, 3)]


def broken(change):
    tree = json.loads(json.dumps(PLAIN))
    change(tree["data"])
    return tree


def asked(data):
    return data[0]["paragraphs"][0]["qas"][1]


@pytest.mark.parametrize(
    "change, message",
    [
        (
            lambda data: asked(data)["answers"][0].update(answer_start=18),
            r"json#2: data\[0\].paragraphs\[0\].qas\[1\], id a2: the answer 'Bob' is said to begin at character 18, "
            r"where ' Bo' stands. It stands at character 19",
        ),
        (
            lambda data: asked(data)["answers"][0].update(answer_start=99),
            "at character 99, behind its end. It stands at",
        ),
        (
            lambda data: asked(data)["answers"][0].update(text="Eve"),
            "'Eve' is said .* It stands nowhere in the document",
        ),
        (
            lambda data: asked(data)["answers"][0].update(answer_start="19"),
            r"answer_start' is a whole number, .*; \"19\"",
        ),
        (lambda data: asked(data)["answers"][0].update(answer_start=True), "is a whole number, .*; true was given"),
        (
            lambda data: asked(data)["answers"][0].pop("answer_start"),
            r"answers\[0\] has no key 'answer_start'; it has text",
        ),
        (lambda data: asked(data)["answers"][0].pop("text"), r"json#2: .*answers\[0\] has no key 'text'"),
        (lambda data: asked(data).update(answers={"text": "Bob"}), "'answers' is no list"),
        (lambda data: asked(data).update(is_impossible=True), "'is_impossible' is true, and the answer 'Bob' is given"),
        (lambda data: asked(data).update(is_impossible="no"), 'true or false; "no" was given'),
        (lambda data: asked(data).update(answers=[]), r"json#2: data\[0\]\..*, id a2: the answer is empty"),
        (lambda data: asked(data).pop("answers"), r"json#2: data\[0\]\..*qas\[1\], id a2: the answer is empty"),
        (
            lambda data: asked(data)["answers"].insert(0, {"text": " ", "answer_start": 3}),
            r"json#2: .*id a2: 'answers\[0\].text' is empty. Write it, or leave that answer out",
        ),
        (
            lambda data: asked(data)["answers"].append({"text": "Bob", "answer_start": -5}),
            r"json#2: data\[0\].*'answers\[1\].answer_start' is a whole number, .* from 0; -5 was given",
        ),
        (lambda data: data[0]["paragraphs"][0].update(context=3), "'context' is the number 3 where text is expected"),
        (lambda data: asked(data).pop("question"), "json#2: .* it has no key 'question'; it has id, answers"),
        (lambda data: asked(data).update(question=" "), r"json#2: data\[0\]\..*, id a2: the question is empty"),
        (lambda data: data[0]["paragraphs"][0].pop("context"), r"json#1: .* its paragraph has no key 'context'"),
        (
            lambda data: data[1]["paragraphs"][1].pop("qas"),
            r"json#3: data\[1\].paragraphs\[1\] has no key 'qas'; it has",
        ),
        (lambda data: data[1].pop("paragraphs"), r"json#3: data\[1\] has no key 'paragraphs'; it has title"),
        (lambda data: data[0]["paragraphs"].append("x"), r"data\[0\].paragraphs\[1\] is no object with the key 'qas'"),
    ],
)
def test_what_is_wrong_is_named_by_the_question_and_by_where_it_is(tmp_path, change, message):
    path = written(tmp_path, broken(change))
    with pytest.raises(DataError, match=message):
        rows(path)
    wrong = []
    kept = list(questions(open_table(path)).rows(wrong.append))
    assert wrong and all(one.where.startswith(f"{path}#") for one in wrong)
    assert {row.place for row in kept}.isdisjoint(one.place for one in wrong if ".qas[" in one.message)


@pytest.mark.parametrize(
    "text, message",
    [
        ('{"data": [{"paragraphs": [', r"dev.json:1: not JSON \(Expecting value, .* as SQuAD nests questions"),
        ('{"data": {"paragraphs": []}}', "'data' of the file is no list"),
        ('{"version": "v2.0"}', "dev.json: the file has no key 'data'; it has version"),
        ('{"version": "v2.0", "data": []}', "dev.json: no questions in 'data': the list is empty"),
        ('{"data": []}', "no questions in 'data'"),
        ('{"articles": [{"paragraphs": []}]}', "the file has no key 'data'; it has articles"),
    ],
)
def test_a_file_that_is_no_such_object_is_refused_when_it_is_opened(tmp_path, text, message):
    path = tmp_path / "dev.json"
    path.write_text(text)
    with pytest.raises(DataError, match=message):
        open_table(path)


NINETIES = "In the 1990s, Beyonc\u00e9 sang. In 1990 she did not."


def in_nineties(**answer):
    one = {"id": "n", "question": "When?", "answers": [{"text": "199", "answer_start": 7, **answer}]}
    return {"data": [{"paragraphs": [{"context": NINETIES, "qas": [one]}]}]}


def test_an_answer_inside_a_word_is_one(tmp_path):
    path = written(tmp_path, in_nineties())
    (one,) = rows(path, inside=True)
    assert (one.answers, one.starts) == (("199",), (7,))
    findings = {one.kind: one for one in examine({"train": paired(open_table(path))}).findings}
    assert "answers" not in findings and findings["parts of words"].places == (f"{path}#1",)
    assert findings["parts of words"].message.startswith("100.0% of the answers stand in their document as a part of")
    line = tmp_path / "set.jsonl"
    line.write_text(json.dumps({"context": NINETIES, "question": "When?", "answer": "199"}))
    with pytest.raises(DataError, match=r"'199' .* only as a part of a word \('1990s'\). Say"):
        rows(line, inside=True)
    line.write_text(json.dumps({"context": NINETIES, "question": "When?", "answer": "Bob"}))
    with pytest.raises(DataError, match="'Bob' does not stand in the document"):
        rows(line, inside=True)


def test_questions_none_of_which_is_answered_are_nothing_to_learn_from(tmp_path):
    tree = in_nineties()
    tree["data"][0]["paragraphs"][0]["qas"][0].update(answers=[], is_impossible=True)
    findings = examine({"train": paired(open_table(written(tmp_path, tree)))}).findings
    assert [one.message for one in findings if one.kind == "nothing to learn"] == [
        "every question is said not to be answered by its document: there is nothing to learn. Give some with answers."
    ]


@pytest.mark.parametrize(
    "answers, message",
    [
        ({"text": ["In", "In"], "answer_start": [-5, 0]}, "'answer_start' is a whole number, .* from 0; -5 was given"),
        ({"text": ["", "In"], "answer_start": [0, 0]}, r"set.jsonl:1: answers\[0\] is empty. Write it, or leave"),
    ],
)
def test_json_lines_name_the_answer_that_is_wrong(tmp_path, answers, message):
    path = tmp_path / "set.jsonl"
    path.write_text(json.dumps({"context": NINETIES, "question": "When?", "answers": answers}))
    with pytest.raises(DataError, match=message):
        rows(path)


def test_other_json_is_not_taken_for_it(tmp_path):
    path = tmp_path / "set.json"
    path.write_text('{"context": "It rains.", "question": "What?", "answer": "rains"}\n')
    assert open_table(path).format == "jsonl"
    path.write_text('{"source": "paragraphs", "target": "qas"}\n')
    assert open_table(path).format == "jsonl"


def test_questions_without_an_answer_are_for_spans_alone(tmp_path):
    path = written(tmp_path, PLAIN)
    with pytest.raises(
        DataError,
        match=r"json#3: data\[1\].paragraphs\[1\].qas\[0\], id b1: the document is said not .* task.answer=span",
    ):
        rows(path, nowhere=False)
    assert [row.fields[1] for row in paired(open_table(path)).rows()] == ["Ada", "Bob", "(no answer)"]
    findings = {one.kind: one for one in examine({"train": paired(open_table(path))}).findings}
    assert findings["unanswered"].message.startswith("33.3% of the questions are said not to be answered")
    assert findings["answers"].count == 2, "a question without an answer is none whose answer stands elsewhere"


@pytest.mark.parametrize(
    "more",
    [{"answers": {"text": [], "answer_start": []}}, {"is_impossible": True}, {"answers": [], "is_impossible": True}],
)
def test_json_lines_can_say_so_too(tmp_path, more):
    path = tmp_path / "set.jsonl"
    path.write_text(json.dumps({"context": "It rains.", "question": "Why?", **more}))
    (one,) = rows(path)
    assert one.nowhere and one.answers == ()
    path.write_text(json.dumps({"context": "It rains.", "question": "Why?", "answers": []}))
    with pytest.raises(DataError, match=r"set.jsonl:1: the answer is empty"):
        rows(path)


@given(
    before=st.sampled_from(["", " ", "\n\t "]),
    lead=st.sampled_from(["", " "]),
    rest=st.text(alphabet="ab é", max_size=9),
)
def test_places_stand_where_they_stood_whatever_white_space_is_around(before, lead, rest):
    from unrolled.data.question_lines import Given, answered

    document = f"{before}x{rest} word {rest}"
    text = f"{lead}word"
    found, start = answered(document, [Given(text, str(document.index(text)))], nowhere=False)
    assert document.strip()[int(start) :].startswith(found) and found == "word"
    assert answered(document, [], nowhere=True) == ("", NOWHERE)


def test_a_folder_of_them_is_its_splits(tmp_path):
    written(tmp_path, PLAIN, "train-v2.0.json")
    written(tmp_path, PLAIN, "dev-v2.0.json")
    assert {name: table.format for name, table in splits(tmp_path).items()} == {"train": "squad", "valid": "squad"}
