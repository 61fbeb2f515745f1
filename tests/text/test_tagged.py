"""Words, spellings and tags: learnt, written as they were, saved, and refused where they break their scheme."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from unrolled.base.errors import DataError
from unrolled.base.protocol import END, UNKNOWN
from unrolled.text.spans import Span, tags_of
from unrolled.text.tagged import LONGEST, LetterIds, TaggedText, UnseenTag, WordIds, scheme_of

SETTINGS = {
    "tokenizer": {"kind": "whitespace", "lowercase": True, "min_count": 1},
    "characters": "character",
    "learn_as": "bioes",
}


def text_of(*rows, **settings):
    """A text of (words, tags), each written with spaces."""
    fields = [tuple(one.replace(" ", "\t") for one in row) for row in rows]
    return TaggedText.learn(SETTINGS | settings, lambda: fields)


@pytest.mark.parametrize("sentences, scheme", [
    (["B-A I-A O", "O B-A"], "iob2"),
    (["I-A B-A", "O"], "iob1"),
    (["S-A O", "B-A E-A"], "bioes"),
    (["B-A E-A"], "bioes"),
    (["O O", "O"], None),
    (["NOUN", "O VERB"], None),
    (["B-A NOUN"], None),
])  # fmt: skip
def test_the_scheme_is_read_off_the_tags(sentences, scheme):
    assert scheme_of([one.split() for one in sentences]) == scheme


def test_plain_tags():
    text = text_of(("The cat", "DET NOUN"), ("the end .", "DET NOUN PUNCT"))
    assert text.tags.names == ("DET", "NOUN", "PUNCT") and text.tags.scheme is None
    assert text.tags.encode(["NOUN", "PUNCT"]) == [1, 2] and text.tags.decode([2, 0]) == ["PUNCT", "DET"]
    with pytest.raises(
        UnseenTag, match=r"the label 'NUON' is none of the 3 that training rows have. Did you mean 'NOUN'"
    ) as found:
        text.tags.encode(["DET", "NUON"])
    assert found.value.word == 1
    assert text.about()["tag"] == "3 tags"


def test_words_their_spellings_and_what_is_rare():
    text = text_of(("The cat saw the 10 000", "D N V D N N"))
    spelt = text.spell(["THE", "cat", "dog", "x\u00a0y", ""])
    assert spelt.words[0] == text.tokenizer.id_of("the") < text.rare <= text.tokenizer.id_of("cat")
    assert spelt.words[2] == UNKNOWN and len(spelt.words) == len(spelt.characters) == 5
    assert text.characters.tokens(spelt.characters[1]) == ["c", "a", "t"]
    assert text.characters.tokens(spelt.characters[0])[0] == "T"  # spelt as it is written
    assert len(text.spell(["a" * 99]).characters[0]) == LONGEST


def test_a_word_with_spaces_is_one_word():
    text = TaggedText.learn(SETTINGS, lambda: [("10 000\tkm", "NUM\tNOUN"), ("a  b", "NOUN")])
    spelt = text.spell(["10 000", "10\u00a0000", "a  b", "10", "<unk>", "</s>"])
    assert spelt.words[0] == spelt.words[1] > END and spelt.words[2] > END and spelt.words[3:] == [UNKNOWN] * 3


@given(st.lists(st.text(st.characters(codec="utf-8"), max_size=6), min_size=1, max_size=5))
def test_every_word_has_one_id_and_a_spelling(words):
    text = text_of(("a b", "X Y"))
    words = [word.replace("\t", " ") for word in words]
    field = "\t".join(words)
    (ids,), (letters,) = WordIds(text.tokenizer).encode_ids([field]), LetterIds(text.characters).encode_ids([field])
    assert len(ids) == letters.count(END) == len(words) and letters[-1] == END
    assert all(letters[place] != END or letters[place - 1] != END for place in range(1, len(letters)))


@given(
    st.sampled_from(["iob1", "iob2", "bioes"]),
    st.sampled_from(["same", "iob2", "bioes"]),
    st.lists(st.tuples(st.integers(1, 3), st.sampled_from(["", "A", "B"])), min_size=1, max_size=6),
)
def test_spans_are_learnt_in_one_scheme_and_written_in_another(scheme, learn_as, parts):
    spans, at = [], 0
    for length, label in parts:
        spans += [Span(at, at + length, label)] if label else []
        at += length
    tags = tags_of(spans, at, scheme)
    rows = [("w\tw\tw", "\t".join(tags_of([Span(0, 2, "A"), Span(2, 3, "B")], 3, scheme)))]
    settings = SETTINGS | {"learn_as": learn_as}
    text = TaggedText.of(settings, {"w": 3}, [rows[0][1].split("\t")], scheme)
    ids = text.tags.encode(tags)
    assert text.tags.decode(ids) == tags and text.tags.learnt_spans(ids) == text.tags.spans(tags) == spans
    assert text.tags.learnt == (scheme if learn_as == "same" else learn_as)
    names = ["O", *(text.tags.names[number] for number in ids), "O"]
    assert all(text.tags.allowed(*pair) for pair in pairwise(names))


def test_tags_that_break_the_scheme_or_are_not_known():
    text = text_of(("a b c", "B-PER I-PER O"))
    assert (
        text.tags.kinds == ("PER",)
        and len(text.tags) == 5
        and text.about()["tag"] == "spans of 1 kind in iob2, learnt as bioes"
    )
    with pytest.raises(DataError, match=r"f:2: I-PER after O, which iob2 does not allow"):
        text.tags.encode(["O", "I-PER"], ["f:1", "f:2"])
    with pytest.raises(UnseenTag, match="the label 'PRE' is none of the 1 that training rows have") as found:
        text.tags.encode(["O", "B-PRE"])
    assert found.value.word == 1


@pytest.mark.parametrize("rows", [[("a b", "X Y")], [("a b", "B-P I-P")]])
def test_saved_and_loaded(tmp_path, rows):
    text = text_of(*rows)
    text.save(tmp_path / "text")
    again = TaggedText.load(tmp_path / "text")
    assert again.fingerprint() == text.fingerprint() and again.spell(["a", "c"]) == text.spell(["a", "c"])
    (tmp_path / "text" / "tags.json").write_text("{}")
    with pytest.raises(DataError, match="damaged, it does not hold the tags"):
        TaggedText.load(tmp_path / "text")
