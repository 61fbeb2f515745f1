import json
import os
import subprocess
import sys
import unicodedata

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from unrolled.base.errors import DataError, SettingsError, UnrolledError
from unrolled.base.protocol import SPECIALS, UNKNOWN
from unrolled.text import TOKENIZERS, Encoded, Tokenizer, unknown_share

KINDS = sorted(set(TOKENIZERS) - {"contextual", "features"})  # which reads cells of values, no text
SPACED = ["bpe", "unigram", "word"]
LETTERS = "abcXYZ'\"-.,!?<>/%_0189éßñöЖшαςİ中文語カーกิทशक्तिشלوםעל가각👍👩🏽🚀\u200d\u0301\u0323\u0308\ufe0f"
SPACES = " \t\n\u00a0\u3000\x1c\u2028"
TEXT = st.text(st.sampled_from(LETTERS + SPACES), max_size=40)

LINES = [
    "He said, 'no'.",
    'The cat said: "yes!" 3.14 times.',
    "Ich weiß nicht, was soll es bedeuten.",
    "東京は日本の首都です。",
    "שָׁלוֹם עולם",
    "مرحبا بالعالم",
    "cafe\u0301 crème 👍🏽 👩\u200d👩\u200d👧",
    " ".join(LETTERS),
    "".join(LETTERS),
]


def trained(kind: str, lines: list[str] = LINES, **chosen: object) -> Tokenizer:
    tokenizer = TOKENIZERS.build({"kind": kind, "min_count": 1, **chosen})
    tokenizer.train(lines)
    return tokenizer


ALL = {kind: trained(kind, size=500) for kind in KINDS}


def folded(text: str, kind: str) -> str:
    """What a tokenizer promises to give back, in Python's own words."""
    text = unicodedata.normalize("NFC", text)
    if kind == "character":
        return text
    if kind == "plain_word":
        text = text.replace("▁", " ")
        return " ".join(text[start:end] for start, end in ALL["word"].pieces(text))
    return " ".join(text.replace("▁", " ").split() if kind in SPACED else text.split())


@pytest.mark.parametrize("kind", KINDS)
def test_training_text_comes_back_exactly(kind):
    for line in LINES:
        assert ALL[kind].decode(ALL[kind].encode(line).ids) == folded(line, kind)


@pytest.mark.parametrize("kind", ["bpe", "unigram", "character"])
@settings(max_examples=150, deadline=None)
@given(text=TEXT)
def test_any_text_of_known_characters_comes_back(kind, text):
    tokenizer = ALL[kind]
    alphabet = set(tokenizer.vocabulary)
    spaces = SPACES if kind != "character" else ""
    text = "".join(c if c in alphabet or c in spaces else "." for c in unicodedata.normalize("NFC", text))
    ids = tokenizer.encode(text).ids
    assert UNKNOWN not in ids
    assert tokenizer.decode(ids) == folded(text, kind)


@settings(max_examples=150, deadline=None)
@given(
    words=st.lists(st.sampled_from(["He", "no", "'", ",", ".", "(", "日", "👍🏽", "3"]), max_size=12), data=st.data()
)
def test_words_come_back_exactly_however_they_are_spaced(words, data):
    text = "".join(word + data.draw(st.sampled_from(["", " "])) for word in words).strip()
    tokenizer = trained("word", [text or "x"])
    assert tokenizer.decode(tokenizer.encode(text).ids) == text


def test_a_word_carries_the_space_before_it():
    assert ALL["word"].encode("He said, 'no'.").tokens == ["▁He", "▁said", ",", "▁'", "no", "'", "."]
    assert ALL["whitespace"].encode("He  said, ").tokens == ["He", "said,"]
    assert ALL["character"].encode("He no").tokens == ["H", "e", " ", "n", "o"]


@pytest.mark.parametrize("kind", KINDS)
@settings(max_examples=200, deadline=None)
@given(text=TEXT, form=st.sampled_from(["NFC", "NFD"]))
def test_spans_point_into_the_given_text(kind, text, form):
    text = unicodedata.normalize(form, text)
    tokenizer = ALL[kind]
    encoded = tokenizer.encode(text)
    ends = 0
    # Inside a word, marks that NFC reorders belong to no one place.
    exact = kind in ("word", "plain_word", "whitespace") or (form == "NFC" and kind != "character")
    for token, (start, end) in zip(encoded.tokens, encoded.spans, strict=True):
        assert ends <= start <= end <= len(text)
        ends = end
        if token not in SPECIALS and exact:
            assert unicodedata.normalize("NFC", text[start:end]) == token.removeprefix("▁")
    if kind == "character" and form == "NFC":
        assert encoded.spans == [(i, i + 1) for i in range(len(text))]
    covered = {i for start, end in encoded.spans for i in range(start, end)}
    if kind == "character":
        assert covered == set(range(len(text)))
    else:
        assert covered == {i for i, c in enumerate(text) if not c.isspace()}


@pytest.mark.parametrize(
    ("text", "pieces"),
    [
        ("e\u0301te\u0301  no!", ["e\u0301te\u0301", "no", "!"]),
        ("q\u0307\u0323 z", ["q\u0307\u0323", "z"]),
        ("\u1100\u1161\u11a8 x", ["\u1100\u1161\u11a8", "x"]),
        ("👩\u200d👩\u200d👧👍🏽 ok", ["👩\u200d👩\u200d👧", "👍🏽", "ok"]),
        ("東京ab。", ["東", "京", "ab", "。"]),
        ("שָׁלוֹם, עולם", ["שָׁלוֹם", ",", "עולם"]),
        ("مرحبا بالعالم", ["مرحبا", "بالعالم"]),
        ("İstanbul'da", ["İstanbul", "'", "da"]),
        ("ไทย", ["ไ", "ท", "ย"]),
        (" \t", []),
        ("", []),
    ],
)
@pytest.mark.parametrize("lowercase", [False, True])
def test_spans_where_normalisation_changes_lengths(text, pieces, lowercase):
    tokenizer = trained("word", lowercase=lowercase)
    assert [text[start:end] for start, end in tokenizer.encode(text).spans] == pieces
    assert [text[start:end] for start, end in tokenizer.pieces(text)] == pieces


@pytest.mark.parametrize("kind", KINDS)
@settings(max_examples=100, deadline=None)
@given(texts=st.lists(TEXT, max_size=4))
def test_the_quick_way_gives_the_same_ids(kind, texts):
    assert ALL[kind].encode_ids(texts) == [encoded.ids for encoded in ALL[kind].encode_batch(texts)]


def test_spans_of_subwords_where_a_character_is_composed():
    text = "cafe\u0301s  cre\u0300me"
    pieces = {kind: [text[start:end] for start, end in ALL[kind].encode(text).spans] for kind in KINDS}
    assert pieces["character"] == ["c", "a", "f", "e\u0301", "s", " ", " ", "c", "r", "e\u0300", "m", "e"]
    for kind in ("bpe", "unigram"):
        assert "e\u0301" in "".join(pieces[kind]) and not any(piece.startswith("\u0301") for piece in pieces[kind])


def test_words_are_those_a_reader_sees():
    text = "Don't  (go) 東京"
    cut = {kind: [text[start:end] for start, end in ALL[kind].words(text)] for kind in KINDS}
    assert cut["word"] == cut["bpe"] == cut["unigram"] == ["Do", "n't", "(", "go", ")", "東", "京"]
    assert cut["whitespace"] == ["Don't", "(go)", "東京"]
    assert cut["character"] == list(text)
    assert ALL["character"].words("e\u0301x") == [(0, 2), (2, 3)]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("l'accord d’Anna", "l'|accord|d’|Anna"),
        ("Qu'est-ce qu'il dit jusqu'ici", "Qu'|est|-|ce|qu'|il|dit|jusqu'|ici"),
        ("j'm'appelle aujourd'hui", "j'|m'|appelle|aujourd'hui"),
        ("dell'arte, un'ora c'è", "dell'|arte|,|un'|ora|c'|è"),
        ("my sister's dogs' bones", "my|sister|'s|dogs|'|bones"),
        ("I'm sure we'd've seen O'Brien's", "I|'m|sure|we|'d|'ve|seen|O'Brien|'s"),
        ("It isn't, he CAN'T; don’t", "It|is|n't|,|he|CA|N'T|;|do|n’t"),
        ("'tis 'so' rock'n'roll o'clock", "'|tis|'|so|'|rock'n'roll|o'clock"),
        ("İstanbul'da п'ять ng'ombe", "İstanbul'da|п'ять|ng'ombe"),
        ("l' accord l'", "l|'|accord|l|'"),
        ("L's 90's", "L|'s|90|'s"),
    ],
)
@pytest.mark.parametrize("kind", ["word", "bpe", "unigram"])
def test_elisions_and_clitics_are_words(kind, text, words):
    assert [text[start:end] for start, end in ALL[kind].words(text)] == words.split("|")


@settings(max_examples=100, deadline=None)
@given(text=st.text(alphabet="aln'’st é́ 東-1,", max_size=20))
def test_words_cover_what_is_not_blank_and_never_cut_a_piece(text):
    tokenizer = ALL["bpe"]
    words, pieces = tokenizer.words(text), tokenizer.pieces(text)
    covered = [place for start, end in words for place in range(start, end)]
    assert covered == sorted(set(covered))
    assert "".join(text[place] for place in covered) == "".join(text.split())
    assert "".join(text[start:end] for start, end in pieces) == "".join(text.split())


def test_every_symbol_of_a_word_lies_inside_it():
    text = "unbedeutend, schöne 東京です!"
    words = ALL["bpe"].words(text)
    for start, end in ALL["bpe"].encode(text).spans:
        assert start == end or any(low <= start and end <= high for low, high in words) or text[start:end] == "東京"


@pytest.mark.parametrize("kind", KINDS)
def test_special_symbols_come_first_and_never_from_text(kind):
    lines = ["<s> a <pad> b </s> <unk> x<s>y </s>"] * 5
    tokenizer = trained(kind, lines)
    assert tokenizer.vocabulary[:4] == SPECIALS
    ids = tokenizer.encode(lines[0]).ids
    assert not {0, 2, 3} & set(ids)
    assert ids == tokenizer.encode_ids(lines[:1])[0]
    if kind != "whitespace":
        cut = "< s > a < pad > b < / s > < unk > x < s > y < / s >"
        assert tokenizer.decode([2, *ids, 3, 0, 0]) == (cut if kind == "plain_word" else lines[0])


def test_unknown_symbols_are_seen():
    tokenizer = trained("word", ["a b", "a c"], min_count=2)
    encoded = tokenizer.encode("a b,")
    assert (encoded.tokens, tokenizer.decode(encoded.ids)) == (["▁a", "<unk>", "<unk>"], "a <unk> <unk>")
    assert unknown_share([encoded, [tokenizer.id_of("▁a")]]) == 0.5
    assert unknown_share([]) == 0
    assert tokenizer.id_of("▁zebra") == UNKNOWN
    assert ALL["bpe"].decode(ALL["bpe"].encode("aҖb").ids) == "a<unk>b"
    assert ALL["character"].decode(ALL["character"].encode("aҖb").ids) == "a<unk>b"
    assert ALL["whitespace"].decode(ALL["whitespace"].encode("He never said,").ids) == "He <unk> said,"


@pytest.mark.parametrize("kind", ["bpe", "unigram", "character"])
def test_rare_characters_are_unknown(kind):
    tokenizer = trained(kind, ["abc abc", "abz"], min_count=2)
    assert "z" not in "".join(tokenizer.vocabulary[4:])
    assert unknown_share([tokenizer.encode("z")]) > 0
    assert unknown_share([tokenizer.encode("abc")]) == 0


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("size", [5, 6, 9, 17, 100_000])
def test_size_is_an_upper_bound(kind, size):
    tokenizer = trained(kind, ["abab abc", "abab. x"], size=size)
    assert 5 <= tokenizer.vocabulary_size <= size
    assert tokenizer.vocabulary_size == len(tokenizer.vocabulary)
    assert max(tokenizer.encode("abab, q").ids, default=0) < tokenizer.vocabulary_size


def test_bpe_merges_as_in_its_paper():
    """Sennrich et al. 2016, Algorithm 1: low 5, lower 2, newest 6, widest 3; the first merges are e s, es t."""
    lines = ["low"] * 5 + ["lower"] * 2 + ["newest"] * 6 + ["widest"] * 3
    tokenizer = trained("bpe", lines, size=4 + len(set("lowernewstid")) + 1 + 4)
    merges = json.loads(tokenizer.text())["model"]["merges"]
    assert [tuple(merge) for merge in merges[:2]] == [("e", "s"), ("es", "t")]
    assert len(merges) == 4


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("lines", [[], ["", "  "]])
def test_nothing_to_learn_from(kind, lines):
    if kind == "character" and lines:
        lines = ["", ""]
    with pytest.raises(DataError, match="the training text is empty"):
        trained(kind, lines)


@pytest.mark.parametrize("kind", KINDS)
def test_awkward_text(kind):
    tokenizer = trained(kind, ["a\x00b", "x" * 5000, "é" * 3])
    for text in ["a\x00b", "x" * 100_000, "\ufeff", "\u0301"]:
        encoded = tokenizer.encode(text)
        assert len(encoded.ids) == len(encoded.spans) == len(encoded.tokens)
    for act in (
        tokenizer.encode,
        tokenizer.words,
        lambda text: tokenizer.encode_ids([text]),
        lambda text: tokenizer.train([text]),
    ):
        with pytest.raises(DataError, match=r"holds a lone surrogate \('\\ud83d'\), which is not valid Unicode"):
            act("ab\ud83dc")


def test_mistakes_are_named():
    with pytest.raises(
        UnrolledError, match=r"the bpe tokenizer has no vocabulary yet. Call train\(\) or load\(\) first."
    ):
        TOKENIZERS.build("bpe").encode("a")
    with pytest.raises(DataError, match="no symbol has the id 999: the vocabulary has the ids 0 to"):
        ALL["word"].decode([999])
    with pytest.raises(DataError, match="no symbol has the id -1"):
        ALL["word"].tokens([-1])
    with pytest.raises(
        SettingsError, match=r"\[text.source.size\] 3 was given; input should be greater than or equal to 5"
    ):
        TOKENIZERS.build({"kind": "bpe", "size": 3}, where="text.source")


@pytest.mark.parametrize("kind", KINDS)
def test_saved_is_loaded(kind, tmp_path):
    tokenizer = trained(kind, lowercase=True)
    tokenizer.save(tmp_path / "side.json")
    loaded = Tokenizer.load(tmp_path / "side.json")
    assert (type(loaded), loaded.settings) == (type(tokenizer), tokenizer.settings)
    assert loaded.fingerprint() == tokenizer.fingerprint()
    assert loaded.encode_batch(LINES) == tokenizer.encode_batch(LINES)
    assert isinstance(loaded.encode("He")[0], list) and isinstance(loaded.encode("He"), Encoded)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["side.json", "side.settings.json"]
    trained(kind, lowercase=True).save(tmp_path / "again.json")
    assert (tmp_path / "again.json").read_bytes() == (tmp_path / "side.json").read_bytes()
    assert trained(kind, lowercase=False).fingerprint() != tokenizer.fingerprint()


@pytest.mark.parametrize("kind", ["word", "unigram"])
def test_damaged_files(kind, tmp_path):
    path = tmp_path / "side.json"
    trained(kind).save(path)
    whole, settings_text = path.read_bytes(), (tmp_path / "side.settings.json").read_text()
    for share in (0, 0.1, 0.5, 0.9):
        path.write_bytes(whole[: int(len(whole) * share)])
        with pytest.raises(DataError, match=r"side\.json: the tokenizer file is damaged"):
            Tokenizer.load(path)
    for damaged in (b"\xff\xfe\x00", b"[]", b"{}", whole.replace(b"<unk>", b"<unq>")):
        path.write_bytes(damaged)
        with pytest.raises(DataError, match=r"side\.json: the tokenizer file is damaged"):
            Tokenizer.load(path)
    path.write_bytes(whole)
    for damaged, words in [
        ("{", "not JSON"),
        ("[]", "'kind' or 'settings' is missing"),
        (
            settings_text.replace('"format": 1', '"format": 2'),
            "written in format 2; this version of unrolled reads format 1",
        ),
        (
            settings_text.replace(kind, "wrod"),
            "no tokenizer is called 'wrod'. Did you mean|no tokenizer is called 'wrod'",
        ),
    ]:
        (tmp_path / "side.settings.json").write_text(damaged)
        with pytest.raises(DataError, match=words):
            Tokenizer.load(path)
    with pytest.raises(DataError, match=r"nothing\.settings\.json: the tokenizer's settings cannot be read"):
        Tokenizer.load(tmp_path / "nothing.json")
    with pytest.raises(UnrolledError, match="the tokenizer cannot be written"):
        trained(kind).save(tmp_path / "no" / "side.json")


TRAIN = """
import sys
from unrolled.text import TOKENIZERS
lines = [f"w{i * 7919 % 1000} x{i % 37}y abc{i % 11}def Zebra{i % 5} é{i % 3}" for i in range(1500)]
for kind in sorted(set(TOKENIZERS) - {"contextual", "features"}):
    tokenizer = TOKENIZERS.build({"kind": kind, "size": 150})
    tokenizer.train(lines)
    sys.stdout.write(kind + tokenizer.text())
"""


def test_every_process_learns_the_same_vocabulary():
    """Many ties, and hash seeds and threads that differ."""
    learnt = set()
    for seed, parallel in (("0", "true"), ("1", "false"), ("2", "true")):
        environment = {**os.environ, "PYTHONHASHSEED": seed, "TOKENIZERS_PARALLELISM": parallel}
        done = subprocess.run(
            [sys.executable, "-c", TRAIN], env=environment, capture_output=True, text=True, check=True
        )
        learnt.add(done.stdout)
    assert len(learnt) == 1 and len(learnt.pop()) > 10_000


FORK = """
import os
from unrolled.text import TOKENIZERS
tokenizer = TOKENIZERS.build("word")
tokenizer.train(["a b c"] * 5)
tokenizer.encode_batch(["a b c"] * 1000)
child = os.fork()
if child == 0:
    tokenizer.encode_batch(["a b c"] * 1000)
    os._exit(7)
assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system cannot fork")
def test_a_fork_is_silent():
    environment = {name: value for name, value in os.environ.items() if name != "TOKENIZERS_PARALLELISM"}
    done = subprocess.run([sys.executable, "-c", FORK], env=environment, capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stderr) == (0, "")
