"""Documents and questions as symbols: answers by number, entities without names, spans in the user's own text."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from unrolled.base.errors import DataError
from unrolled.base.protocol import UNKNOWN
from unrolled.data.questions import place_of
from unrolled.text.passages import ReadText

ROWS = [
    ("Ada met Bob Stone in Rome.", "Whom did Ada meet?", "Bob Stone", ""),
    ("Bob Stone saw Ada. Eve saw Rome.", "Who saw Rome?", "Eve", ""),
    ("Ada saw Eve.", "Who saw Eve?", "Ada", "Ada\tZoe"),
]
SETTINGS = {"tokenizer": {"kind": "plain_word", "min_count": 1, "lowercase": True}}
NAMES = ["Ada", "Bob Stone", "Eve", "Zoe"]


def learnt(answering="entity", rows=ROWS):
    return ReadText.learn(SETTINGS, lambda: rows, answering)


def test_a_closed_list_of_answers_holds_the_candidates_too():
    text = learnt()
    assert text.labels.names == ("Ada", "Bob Stone", "Eve", "Zoe")
    passage = text.read(*ROWS[0][:2])
    assert passage.candidates == () and passage.entities == ()
    assert text.tokenizer.tokens(passage.question_ids) == ["whom", "did", "ada", "meet", "?"]
    assert text.number(passage, "Eve", None) == [2]
    assert text.read("Ada", "Who?", ["Zoe", "Nobody", "Ada"]).candidates == (3, 0)
    with pytest.raises(DataError, match=r"the label 'Bo' is none of the 4"):
        text.number(passage, "Bo", None)
    with pytest.raises(DataError, match=r"none of the candidates \(Nobody\) is an answer"):
        text.read("Ada", "Who?", ["Nobody"])


def test_which_symbol_spells_which_answer():
    text = learnt()
    found = {text.tokenizer.vocabulary[symbol]: name for symbol, name in enumerate(text.symbols()) if name >= 0}
    assert found == {"ada": 0, "eve": 2}, "Bob Stone is two symbols, Zoe is in no text"


def test_entities_are_numbered_as_they_first_stand_there_and_their_names_are_not_read():
    text = learnt("anonymous")
    assert text.slots == 3
    assert not {"ada", "bob", "stone", "eve"} & set(text.tokenizer.vocabulary)
    first = text.tokenizer.vocabulary_size
    passage = text.read(*ROWS[1][:2])
    assert passage.entities == ("Bob Stone", "Ada", "Eve")
    assert [symbol - first for symbol in passage.ids if symbol >= first] == [0, 1, 2]
    document = ROWS[1][0]
    shown = [document[slice(*span)] for symbol, span in zip(passage.ids, passage.spans, strict=True) if symbol >= first]
    assert shown == ["Bob Stone", "Ada", "Eve"]
    assert text.number(passage, "eve", None) == [2]
    assert text.read("ada saw Eve and ADA.", "Who?").entities == ("ada", "Eve")
    assert text.read("Adam saw Beves.", "Who?").entities == (), "whole words only"


@given(st.permutations(NAMES[:3]))
def test_other_names_give_the_same_symbols(order):
    text = learnt("anonymous")
    named = dict(zip(NAMES, [*order, "Zoe"], strict=True))
    for document, question, *_ in ROWS:
        other = [text.entity_pattern.sub(lambda found: named[found[0]], side) for side in (document, question)]
        one, two = text.read(document, question), text.read(*other)
        assert (one.ids, one.question_ids) == (two.ids, two.question_ids)


def test_entities_named_already_are_read_by_their_marks_also_those_never_seen():
    rows = [("@entity7 met @entity2 .", "who met @entity2 ?", "@entity7", "")] * 2
    text = learnt("anonymous", rows)
    assert text.read("@entity99 saw @entity12 .", "@placeholder saw @entity12").entities == ("@entity99", "@entity12")


def test_more_entities_than_in_training_are_unknown_and_no_answer():
    text = learnt("anonymous")
    text.slots = 2
    passage = text.read("Ada, Eve, Bob Stone.", "Who?")
    assert UNKNOWN in passage.ids
    with pytest.raises(DataError, match="the answer 'Bob Stone' is no entity of the document: Ada, Eve, Bob Stone"):
        text.number(passage, "Bob Stone", None)


def test_an_entity_of_the_question_alone_is_no_answer():
    text = learnt("anonymous")
    passage = text.read("Ada ran.", "Whom did Eve see?")
    with pytest.raises(DataError, match="is no entity of the document"):
        text.number(passage, "Eve", None)


def test_candidates_of_a_question_are_entities_too():
    text = learnt("anonymous")
    assert text.read("Kim saw Ada.", "Who saw Ada?").entities == ("Ada",)
    passage = text.read("Kim saw Ada.", "Who saw Ada?", ["Kim", "Ada"])
    assert passage.entities == ("Kim", "Ada") and passage.candidates == (0, 1)


@pytest.mark.parametrize(
    "answer, start, symbols", [("Bob Stone", None, [2, 3]), ("met", None, [1, 1]), ("Stone in", 12 - 4, [3, 4])]
)
def test_a_span_is_the_symbols_that_it_touches(answer, start, symbols):
    text = learnt("span")
    document = "Ada met Bob Stone in Rome."
    place = place_of(document, answer, document.index(answer) if start is not None else None)
    passage = text.read(document, "Whom?")
    found = text.number(passage, answer, place)
    assert found == symbols
    assert document[passage.spans[found[0]][0] : passage.spans[found[1]][1]] == answer
    with pytest.raises(DataError, match="the answer 'Eve' does not stand in the document"):
        text.number(passage, "Eve", place_of(document, "Eve", None))


@pytest.mark.parametrize("answering", ["entity", "anonymous", "span"])
def test_saved_is_loaded(tmp_path, answering):
    text = learnt(answering)
    text.save(tmp_path)
    again = ReadText.load(tmp_path)
    assert again.fingerprint() == text.fingerprint() and again.answers == text.answers
    for row in ROWS:
        assert again.read(*row[:2]) == text.read(*row[:2])
    assert again.commonest in {"Bob Stone", "Eve", "Ada"}
    (tmp_path / "reading.json").write_text("{")
    with pytest.raises(DataError, match=r"reading\.json"):
        ReadText.load(tmp_path)
