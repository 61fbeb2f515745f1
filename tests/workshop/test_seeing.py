"""What a model wrote, as its explanation shows it: known words, those put in for unknown ones, unknown ones whole."""

from dataclasses import replace

import numpy as np
import pytest

import unrolled
from unrolled.base.protocol import END, UNKNOWN, Candidates
from unrolled.search import Hypothesis, SearchSettings
from unrolled.tasks.translate import Translate
from unrolled.text.texts import TextPair
from unrolled.text.tokenizer import TOKENIZERS
from unrolled.workshop.looking import _words
from unrolled.workshop.seeing import explain_translation, trust, written_side


class Says:
    """An engine that writes what it is told, whatever it reads, and looks at the place that it is told."""

    def __init__(self, size, ids, looks):
        self.vocabulary_size, self.ids, self.looks = size, [*ids, END], [*looks, 0]

    def start(self, ids, mask):
        return np.zeros(len(ids), np.int64), np.repeat(mask.shape[1], len(ids))

    def step(self, last_ids, state, k):
        done, widths = state
        scores = np.full((len(done), self.vocabulary_size), -20.0, np.float32)
        weights = np.full((len(done), widths[0]), 0.1 / widths[0], np.float32)
        for row, place in enumerate(done):
            scores[row, self.ids[place]] = -0.1
            weights[row, self.looks[place]] += 0.9
        order = np.argsort(-scores, axis=1, kind="stable")[:, :k]
        return Candidates(np.take_along_axis(scores, order, 1), order, weights, (done + 1, widths))

    def select(self, state, rows):
        return tuple(one[rows] for one in state)


@pytest.fixture
def model(trained):
    """Writes three words, of which it does not know the second, which it looked up at the second."""
    found = unrolled.load(str(trained.folder), device="cpu")
    known = found.text.target.id_of
    found.engine = Says(found.engine.vocabulary_size, [known("▁un"), UNKNOWN, known("▁chat")], [0, 1, 2])
    found.search = SearchSettings(kind="argmax")
    return found


def writing(model, replaced):
    model.search = replace(model.search, replace_unknown=replaced)
    return model


def test_known_words_are_shown_as_they_are_written(model):
    known = model.text.target.id_of
    model.engine.ids[1] = known("▁rouge")
    for replaced in (False, True):
        one = writing(model, replaced).explain("one red cat")
        assert (one.source, one.target) == (("one", "red", "cat"), ("un", "rouge", "chat"))
        assert one.target_text == model.predict(["one red cat"])[0] == "un rouge chat"
        assert one.weights.argmax(1).tolist() == [0, 1, 2] and one.faithfulness


def test_a_word_put_in_for_an_unknown_one_is_shown_in_its_place(model):
    one = writing(model, True).explain("one Zürich2 cat")
    assert one.target == ("un", "Zürich2", "chat")
    assert one.target_text == model.predict(["one Zürich2 cat"])[0] == "un Zürich2 chat"
    assert one.weights.argmax(1).tolist() == [0, 1, 2] and len(one.log_probs) == 3
    assert one.faithfulness["top_agreement"].value is not None
    looked = model.looked("one Zürich2 cat", model.translations(["one Zürich2 cat"])[0][0])
    assert looked["target"] == ["un", "Zürich2", "chat"]


def test_an_unknown_word_that_stays_is_shown_whole(model):
    one = writing(model, False).explain("one zzz cat")
    assert one.target == ("un", "<unk>", "chat")
    assert one.target_text == model.predict(["one zzz cat"])[0] == "un <unk> chat"
    assert one.weights.argmax(1).tolist() == [0, 1, 2] and one.faithfulness["sharpness"].value is not None


def test_the_erased_words_are_held_against_the_symbols_that_were_written(model, monkeypatch):
    """Not against those that the written text would be read as: ``<unk>`` would be three."""
    seen = []

    def log_probs(source_ids, source_mask, target_ids, target_mask):
        seen.append(target_ids[0].tolist())
        return target_ids[:, 1:] * 0.0

    monkeypatch.setattr(model.network, "log_probs", log_probs)
    (found,) = model.translations(["one zzz cat"])
    trust(model.network, model.text, [explain_translation(model.text, "one zzz cat", found[0])], written=found)
    assert seen[0][1:-1] == found[0].hypothesis.ids


def test_a_given_target_is_shown_in_the_users_words(model):
    one = model.explain("one zzz cat", "un zzz' chat")
    assert one.target == ("un", "zzz", "'", "chat") and one.faithfulness


def side(kind, lines, tokens):
    tokenizer = TOKENIZERS.build({"kind": kind, "min_count": 1})
    tokenizer.train(lines)
    found = written_side(tokenizer, [tokenizer.id_of(token) for token in tokens], tokens)
    return found.text, found.words()


@pytest.mark.parametrize(
    ("kind", "tokens", "text", "words"),
    [
        ("word", ("▁l", "'", "<unk>", ",", "<unk>"), "l' <unk>, <unk>", ("l", "'", "<unk>", ",", "<unk>")),
        ("word", ("<unk>", "'", "s"), "<unk>'s", ("<unk>", "'s")),
        ("word", ("▁l", "▁1.5-fold", ","), "l 1.5-fold,", ("l", "1.5-fold", ",")),
        ("whitespace", ("l", "<unk>", "a,b"), "l <unk> a,b", ("l", "<unk>", "a,b")),
        ("plain_word", ("l", "<unk>", "l"), "l <unk> l", ("l", "<unk>", "l")),
        ("character", ("l", "<unk>", "<unk>", "'"), "l<unk><unk>'", ("l", "<unk>", "<unk>", "'")),
        ("bpe", ("▁l", "<unk>", "s", "'"), "l<unk>s'", ("l", "<unk>", "s", "'")),
        ("unigram", ("▁l", "▁", "<unk>", "▁l"), "l <unk> l", ("l", "<unk>", "l")),
    ],
)
def test_an_unknown_symbol_is_a_word_by_itself(kind, tokens, text, words):
    assert side(kind, ["l 's l", "l s , ' l", "l' l's"], tokens) == (text, words)


PUT_IN = [
    ("vu (Zürich)", "▁un ▁( <unk> )", {}, "un (Zürich)"),
    ("vu Zürich", "▁un ▁( <unk> )", {}, "un (Zürich)"),
    ("(Zürich) vu", "▁un <unk>", {}, "un Zürich"),
    ("l'Yonne", "▁d ' <unk>", {}, "d'Yonne"),
    ("vu Yonne", "▁d ' <unk>", {}, "d' Yonne"),
    ("vu…", "▁un <unk>", {}, "un…"),
    ("vu Zürich", '▁" <unk> "', {}, '"Zürich"'),
    ("vu Zürich", '▁un " <unk>', {}, 'un" Zürich'),
    ("Zürich vu", "<unk> ▁un", {"lowercase": True}, "zürich un"),
    ("Zürich vu", "<unk> ▁un", {}, "Zürich un"),
]
"""A source whose strange word is looked at, symbols that are written, settings of the target, its text."""


@pytest.mark.parametrize("source, symbols, settings, wanted", PUT_IN)
def test_a_word_put_in_is_written_as_the_target_writes_words(source, symbols, settings, wanted):
    text = TextPair(TOKENIZERS.build("word"), TOKENIZERS.build({"kind": "word", "min_count": 1, **settings}))
    text.train(["a ( b )"] * 2, ['un (un) un d\'a "c"'])
    (row,) = text.read([source])
    names = symbols.split()
    strange = next(place for place, span in enumerate(row.spans) if source[slice(*span)] in ("Zürich", "Yonne", "…"))
    weights = np.zeros((len(names), len(row.ids) + 1), np.float32)
    weights[:, strange] = 1
    ids = [text.target.id_of(name) for name in names]
    hypothesis = Hypothesis(ids, -1.0, -1.0, [-0.5] * len(ids), weights, finished=False)
    written = Translate().surface(text, source, row, hypothesis, SearchSettings(replace_unknown=True))
    assert written.text == wanted


def test_an_unknown_word_stands_close_to_what_opens():
    tokenizer = TOKENIZERS.build("word")
    tokenizer.train(["un ( un )"] * 2)
    unknown = UNKNOWN
    ids = [tokenizer.id_of("▁un"), tokenizer.id_of("▁("), unknown, tokenizer.id_of("▁)"), unknown]
    assert tokenizer.decode(ids) == "un (<unk> ) <unk>"


def test_without_unknown_symbols_words_are_the_tokenizers():
    tokenizer = TOKENIZERS.build({"kind": "bpe"})
    line = "I don't know Ana's (1.5) well-known <tag> l'eau."
    tokenizer.train([line])
    encoded = tokenizer.encode(line)
    found = written_side(tokenizer, encoded.ids)
    assert (found.text, found.word_spans, found.tokens) == (line, tokenizer.words(line), encoded.tokens)


def test_an_unknown_word_between_spaces_is_whole_in_a_caption(model):
    target = model.text.target
    ids = [target.id_of("▁un"), UNKNOWN, target.id_of("▁chat")]
    for by_space in (False, True):
        spread, words = _words(model.text, ids, by_space=by_space)
        assert words == ["un", "<unk>", "chat"] and np.array_equal(spread, np.eye(3))


def test_a_hand_made_output_of_words_that_the_source_keeps_together():
    """A source cut at spaces puts in ``said,``, which the target's tokenizer would cut in two."""
    text = TextPair(TOKENIZERS.build("whitespace"), TOKENIZERS.build({"kind": "word", "min_count": 1}))
    text.train(["he left"], ["il dit"])
    (row,) = text.read(["he said, left"])
    weights = np.eye(4, dtype=np.float32)[:2]
    hypothesis = Hypothesis([text.target.id_of("▁il"), UNKNOWN], -1.0, -1.0, [-0.5, -0.5], weights, finished=False)
    for replaced, wanted in ((True, ("il", "said,")), (False, ("il", "<unk>"))):
        search = SearchSettings(replace_unknown=replaced)
        written = Translate().surface(text, "he said, left", row, hypothesis, search)
        one = explain_translation(text, "he said, left", written)
        assert (one.target, one.target_text) == (wanted, written.text)
        assert one.weights.tolist() == [[1, 0, 0], [0, 1, 0]]
