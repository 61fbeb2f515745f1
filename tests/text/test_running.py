"""Running text: every end of a line is a symbol, and text comes back."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from unrolled.base.protocol import SPECIALS, UNKNOWN
from unrolled.text import TOKENIZERS
from unrolled.text.running import LINE, RunningText

LINES = ["one two", "two, three!", "", "one"]


def learnt(kind):
    settings = {"tokenizer": {"kind": kind, **({"min_count": 1} if kind == "word" else {})}}
    return RunningText.learn(settings, lambda: ((line,) for line in LINES * 3))


@pytest.mark.parametrize("kind", sorted(set(TOKENIZERS) - {"contextual", "features"}))
def test_text_comes_back_line_by_line(kind, tmp_path):
    text = learnt(kind)
    ids = text.encode_ids(["one two\n\ntwo one\n", "one"])
    assert ids[0].count(LINE) == 3 and LINE not in ids[1]
    assert text.decode(ids[0]) == "one two\n\ntwo one\n" and text.decode(ids[1]) == "one"
    assert max(map(max, ids)) < text.vocabulary_size
    names = text.tokens(range(text.vocabulary_size))
    assert tuple(names[:4]) == SPECIALS and names[LINE] == "\n" and len(set(names)) == len(names)
    text.save(tmp_path / "text")
    again = RunningText.load(tmp_path / "text")
    assert again.fingerprint() == text.fingerprint() and again.encode_ids(["one\ntwo"]) == text.encode_ids(["one\ntwo"])
    assert text.about() == {"text": f"{kind}, {text.vocabulary_size} symbols"}


@given(st.text(alphabet="one tw\n,!hr", max_size=30))
def test_what_the_symbols_spell_is_the_normal_form(sample):
    text = learnt("character")
    assert text.decode(text.encode_ids([sample])[0]) == text.normalize(sample)
    assert UNKNOWN not in text.encode_ids([sample])[0]
