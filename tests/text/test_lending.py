"""Words without a symbol: what they are lent, beside a plain count of the words of each sentence."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from unrolled.base.errors import DataError
from unrolled.base.protocol import UNKNOWN
from unrolled.text.featured import joined
from unrolled.text.lending import LENT, Given
from unrolled.text.texts import TextPair, TextSettings

KNOWN = ["a", "b", "c"]
WORDS = st.lists(st.sampled_from([*KNOWN, "x", "y", "z", "w"]), min_size=1, max_size=9)


def whole(kind: str = "whitespace", joint: bool = False, lends: int = LENT, features: int = 0) -> TextPair:
    rows = [(" ".join(KNOWN), *["F;G"] * features, "a c")]
    settings = {"source": {"kind": kind}, "target": {"kind": kind}, "joint": joint}
    if kind == "word":
        settings |= {side: {"kind": kind, "min_count": 1} for side in ("source", "target")}
    found = TextPair.learn(settings, lambda: rows)
    found.lends = lends
    return found


@given(source=WORDS, target=WORDS, joint=st.booleans(), lends=st.integers(1, 3), features=st.integers(0, 1))
def test_the_kth_unknown_word_has_the_kth_symbol_on_both_sides(
    source: list[str], target: list[str], joint: bool, lends: int, features: int
) -> None:
    text = whole(joint=joint, lends=lends, features=features)
    line = joined([" ".join(source), *["F"] * features])
    new: list[str] = []
    for word in source:
        if word not in KNOWN and word not in new:
            new.append(word)
    new = new[:lends]
    assert text.lent(line) == new

    def plain(word: str) -> int:
        return text.plain.id_of(word) if word in KNOWN else UNKNOWN

    first = text.source.vocabulary_size
    expected = [first + new.index(word) if word in new else plain(word) for word in source]
    (row,) = text.read([line])
    assert row.ids[len(row.ids) - len(source) :] == expected
    assert text.unknown_ids(row.ids)[-len(source) :] == [UNKNOWN] * len(source)
    assert text.read_ids("source", row.ids)[-len(source) :] == [plain(word) for word in source]
    (given,) = text.read_targets([line], [" ".join(target)])
    size = text.target.vocabulary_size
    assert given.ids == [
        size + new.index(word) if word in new else text.target.id_of(word) if word in KNOWN else UNKNOWN
        for word in target
    ]
    shown = [word if word in new or text.target.id_of(word) != UNKNOWN else "<unk>" for word in target]
    assert text.names(line, given.ids) == shown
    assert text.read_ids("target", given.ids) == given.ids
    assert text.encoders()["source"].encode_ids([line]) == [row.ids]
    assert text.encoders()["target"].encode_ids([Given(line, " ".join(target))]) == [given.ids]


def test_words_are_compared_as_the_target_writes_them() -> None:
    settings = {
        "source": {"kind": "word", "min_count": 1},
        "target": {"kind": "word", "min_count": 1, "lowercase": True},
    }
    text = TextPair.learn(settings, lambda: [("the cat", "the cat")])
    text.lends = LENT
    line = "the Näme and the NÄME cat"
    assert text.lent(line) == ["näme", "and"]
    (row,) = text.read_targets([line], ["NÄme the and"])
    size = text.target.vocabulary_size
    assert row.ids == [size, text.target.id_of("▁the"), size + 1]
    assert text.target.join(text.names(line, row.ids)) == "näme the and"
    assert text.names(line, [size + 5]) == ["<unk>"]


def test_letters_are_lent_too() -> None:
    text = whole("character")
    (row,) = text.read_targets(["añb☃"], ["☃ñ☃"])
    size = text.target.vocabulary_size
    assert row.ids == [size + 1, size, size + 1]
    assert text.target.join(text.names("añb☃", row.ids)) == "☃ñ☃"


def test_without_lending_all_is_as_the_tokenizers_have_it(tmp_path: Path) -> None:
    text = whole(lends=0)
    assert text.read(["a x"]) == text.source.encode_batch(["a x"])
    assert text.read_targets(["a x"], ["x"])[0].ids == [UNKNOWN]
    assert text.lent("a x") == []
    text.save(tmp_path)
    assert not (tmp_path / "lent.json").exists()


def test_a_saved_text_lends_as_much_and_is_another_one(tmp_path: Path) -> None:
    text = whole()
    text.save(tmp_path)
    again = TextPair.load(tmp_path)
    assert (again.lends, again.fingerprint()) == (LENT, text.fingerprint())
    plain = whole(lends=0)
    assert plain.fingerprint() != text.fingerprint()
    plain.save(tmp_path)
    assert TextPair.load(tmp_path).lends == 0


@pytest.mark.parametrize(
    "damage", ["{", "[]", '{"format": 2, "lends": 64}', '{"format": 1, "lends": 65}', '{"format": 1}', "\udcff"]
)
def test_a_damaged_number_is_refused(tmp_path: Path, damage: str) -> None:
    whole().save(tmp_path)
    (tmp_path / "lent.json").write_bytes(damage.encode("utf-8", "surrogateescape"))
    with pytest.raises(DataError, match=r"lent\.json: it .*Copy the model again\."):
        TextPair.load(tmp_path)


def test_settings_have_no_say_in_it() -> None:
    assert TextPair.build(TextSettings()).lends == 0


def test_a_name_of_a_symbol_and_a_letter_made_two_are_no_words() -> None:
    assert whole().lent("<s> x <pad> a<s>b <unk>") == ["x", "a<s>b"]
    rows = [("abc", "abc")]
    letters = TextPair.learn(
        {side: {"kind": "character", "lowercase": True} for side in ("source", "target")}, lambda: rows
    )
    letters.lends = LENT
    (row,) = letters.read(["\u0130x"])  # in lower case two letters, both of one place
    assert letters.lent("\u0130x") == ["x"] and row.ids.count(UNKNOWN) == 2


def test_a_word_that_is_said_by_its_lent_symbol_stands_close_to_a_bracket() -> None:
    text = TextPair.learn(
        {"source": {"kind": "word"}, "target": {"kind": "word", "min_count": 1}, "joint": False},
        lambda: [("a", "b (c)")] * 2,
    )
    text.lends = LENT
    ids = [text.target.id_of(name) for name in ("▁b", "▁(")] + [text.target.vocabulary_size] * 2
    names = text.names("a Xyz", ids)
    assert names == ["▁b", "▁(", "Xyz", "▁Xyz"] and text.target.join(names) == "b (Xyz Xyz"
