import pytest

from unrolled.base.errors import DataError, SettingsError, UnrolledError
from unrolled.base.settings import complete
from unrolled.text import TextPair, TextSettings

SOURCES, TARGETS = ["a b", "a c"], ["x y z", "x"]


def trained(**chosen):
    pair = TextPair.build(TextSettings(**chosen))
    pair.train(iter(SOURCES), iter(TARGETS))
    return pair


def test_each_side_learns_its_own():
    pair = trained(source={"kind": "whitespace", "size": 6}, target="character")
    assert pair.source.vocabulary[4:] == ("a", "b")
    assert set(pair.target.vocabulary[4:]) == set("xyz ")
    assert not pair.joint


def test_a_joint_vocabulary_is_one_object_learnt_on_both():
    pair = trained(source="whitespace", target="whitespace", joint=True)
    assert pair.source is pair.target and pair.joint
    assert set(pair.source.vocabulary[4:]) == set("abcxyz")


def test_a_joint_vocabulary_needs_equal_sides():
    with pytest.raises(
        SettingsError, match=r"\[text\] joint needs the same tokenizer .* 'size' is 9 for the source and 8"
    ):
        TextPair.build(TextSettings(source={"kind": "bpe", "size": 9}, target={"kind": "bpe", "size": 8}, joint=True))
    with pytest.raises(SettingsError, match=r"\[text\.target\] no tokenizer is called 'bpee'. Did you mean 'bpe'"):
        TextPair.build(TextSettings(target="bpee"))


def test_settings_name_their_parts():
    tree = complete(TextSettings, {"source": {"kind": "unigram", "size": 300}}, "text")
    assert tree["source"] == {"kind": "unigram", "size": 300, "min_count": 1, "lowercase": False}
    assert tree["joint"] is False


@pytest.mark.parametrize("joint", [False, True])
def test_saved_is_loaded(joint, tmp_path):
    trained(source="character", target="character", joint=not joint).save(tmp_path / "text")
    pair = trained(source="whitespace", target="whitespace", joint=joint)
    pair.save(tmp_path / "text")
    loaded = TextPair.load(tmp_path / "text")
    assert loaded.joint == joint
    assert loaded.fingerprint() == pair.fingerprint()
    names = ["joint"] if joint else ["source", "target"]
    files = [f"{name}{end}" for name in names for end in (".json", ".settings.json")]
    assert sorted(path.name for path in (tmp_path / "text").iterdir()) == files


def test_missing_and_unwritable(tmp_path):
    with pytest.raises(DataError, match="source"):
        TextPair.load(tmp_path)
    (tmp_path / "file").write_text("")
    with pytest.raises(UnrolledError, match="the folder cannot be made"):
        trained(source="word", target="word").save(tmp_path / "file" / "text")
