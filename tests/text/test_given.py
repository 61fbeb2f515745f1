"""Words that join a vocabulary, and what is remembered of the file that they come from."""

import json
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from unrolled.base.errors import DataError, SettingsError
from unrolled.text import TOKENIZERS, Tokenizer
from unrolled.text.given import Held

HELD = Held(
    file="v.txt", width=3, exact=2, lowered=1, missing=1234, joined=5, tuned=False, frozen=((4, 6), (9, 10))
)  # fmt: skip


@given(st.sets(st.integers(0, 50)))
def test_ranges_hold_the_same_symbols(ids):
    ranges = Held.ranges(sorted(ids))
    assert [one for first, last in ranges for one in range(first, last)] == sorted(ids)
    assert all(two[0] > one[1] for one, two in pairwise(ranges))


@pytest.mark.parametrize("kind, settings, joined, absent", [
    ("word", {}, ["▁New", "New", "▁!", "!"], ["▁well-known", "▁", "▁a b"]),
    ("word", {"lowercase": True}, ["▁new", "new"], ["▁New", "New"]),
    ("whitespace", {}, ["New", "well-known", "!"], ["a b"]),
])  # fmt: skip
def test_words_join_under_the_names_that_text_is_read_as(kind, settings, joined, absent):
    tokenizer = TOKENIZERS.build({"kind": kind, "min_count": 1, **settings})
    tokenizer.train(["one two two"])
    before = tokenizer.vocabulary
    count = tokenizer.admit(["New", "new", "two", "well-known", "a b", "!", "", "<s>", "<unk>"])
    assert tokenizer.vocabulary[: len(before)] == before and tokenizer.vocabulary_size == len(before) + count
    assert count == len(set(tokenizer.vocabulary)) - len(before)
    assert set(joined) <= set(tokenizer.vocabulary) and not set(absent) & set(tokenizer.vocabulary)
    line = "two New" if kind == "word" else "two well-known New"
    assert "<unk>" not in tokenizer.encode(line).tokens
    assert tokenizer.decode(tokenizer.encode_ids([line])[0]) == (line.lower() if settings else line)


def test_subwords_have_no_vectors_and_say_so():
    tokenizer = TOKENIZERS.build({"kind": "bpe", "size": 20})
    tokenizer.train(["one two"])
    assert tokenizer.spelt("one") == []
    with pytest.raises(SettingsError, match="no setting of the tokenizer 'bpe' is called 'vectors'"):
        TOKENIZERS.build({"kind": "bpe", "vectors": {"kind": "frozen", "file": "v"}})
    with pytest.raises(SettingsError, match=r"no way to take vectors is called 'thawed'.*frozen, tuned"):
        TOKENIZERS.build({"kind": "word", "vectors": {"kind": "thawed", "file": "v"}})
    with pytest.raises(SettingsError, match="needs the setting 'file'"):
        TOKENIZERS.build({"kind": "word", "vectors": "tuned"})


def test_what_is_held_is_saved_with_the_tokenizer(tmp_path):
    tokenizer = TOKENIZERS.build({"kind": "word", "min_count": 1, "vectors": {"kind": "frozen", "file": "gone.txt"}})
    tokenizer.train(["one two"])
    tokenizer.held = HELD
    tokenizer.save(tmp_path / "text.json")
    again = Tokenizer.load(tmp_path / "text.json")
    assert again.held == HELD and again.held.symbols() == [4, 5, 9] and again.fingerprint() == tokenizer.fingerprint()
    assert again.about().startswith("word, ") and again.about().endswith(
        "vectors of v.txt (3 numbers, frozen): 2 found, 1 in lower case only, 1,234 not, and 5 joined"
    )
    path = tmp_path / "text.settings.json"
    tree = json.loads(path.read_text())
    path.write_text(json.dumps(tree | {"vectors": {"file": "v.txt"}}))
    with pytest.raises(DataError, match="damaged"):
        Tokenizer.load(tmp_path / "text.json")
