import math
import random
import subprocess
import sys

import jiwer
import numpy as np
import pytest
import sacrebleu
from hypothesis import given
from hypothesis import strategies as st

from unrolled.base.errors import DataError, SettingsError
from unrolled.tasks.scores import MEASURES, Bucket, by_length, matched, score, scores

WORDS = ["the", "cat", "dog", "sat", "on", "a", "mat", "big", "small", "red", "house", "is", "was", "here", "."]


def texts(rows: int, seed: int) -> list[str]:
    draw = random.Random(seed)
    return [" ".join(draw.choices(WORDS, k=draw.randint(3, 11))) for _ in range(rows)]


def noisy(lines: list[str], share: float, seed: int) -> list[str]:
    draw = random.Random(seed)
    return [" ".join(word if draw.random() > share else draw.choice(WORDS) for word in line.split()) for line in lines]


FIRST, SECOND = texts(40, 1), texts(40, 2)
OUTPUT = noisy(FIRST, 0.3, 3)
words = st.text(alphabet="abé ", max_size=7)


def test_the_closed_list():
    assert list(MEASURES) == ["bleu", "cer", "chrf", "exact_match", "rouge1", "rouge2", "rougeL", "ser", "ter", "wer"]


@pytest.mark.parametrize(
    ("measure", "oracle"),
    [
        ("bleu", lambda outputs, streams: sacrebleu.corpus_bleu(outputs, streams)),
        ("chrf", lambda outputs, streams: sacrebleu.corpus_chrf(outputs, streams)),
        (
            {"kind": "chrf", "word_order": 2},
            lambda outputs, streams: sacrebleu.corpus_chrf(outputs, streams, word_order=2),
        ),
        ("ter", lambda outputs, streams: sacrebleu.corpus_ter(outputs, streams)),
        (
            {"kind": "bleu", "lowercase": True},
            lambda outputs, streams: sacrebleu.corpus_bleu(outputs, streams, lowercase=True),
        ),
        (
            {"kind": "bleu", "tokenize": "char"},
            lambda outputs, streams: sacrebleu.corpus_bleu(outputs, streams, tokenize="char"),
        ),
    ],
)
def test_sacrebleu_says_the_same(measure, oracle):
    outputs = [OUTPUT[0].upper(), *OUTPUT[1:]]
    assert score(measure, outputs, FIRST).value == pytest.approx(oracle(outputs, [FIRST]).score, abs=1e-9)
    both = list(zip(FIRST, SECOND, strict=True))
    assert score(measure, outputs, both).value == pytest.approx(oracle(outputs, [FIRST, SECOND]).score, abs=1e-9)
    some = [[one] if row % 2 else [one, other] for row, (one, other) in enumerate(both)]
    holes = [None if row % 2 else line for row, line in enumerate(SECOND)]
    assert score(measure, outputs, some).value == pytest.approx(oracle(outputs, [FIRST, holes]).score, abs=1e-9)


def test_the_protocol_is_the_signature():
    bleu = score("bleu", OUTPUT, FIRST)
    assert bleu.name == "BLEU"
    assert bleu.protocol == f"nrefs:1|case:mixed|eff:no|tok:13a|smooth:exp|version:{sacrebleu.__version__}"
    assert "nrefs:var" in score("bleu", OUTPUT[:2], [["a"], ["a", "b"]]).protocol
    assert "case:lc" in score({"kind": "bleu", "lowercase": True}, OUTPUT, FIRST).protocol
    assert score({"kind": "chrf", "word_order": 2}, OUTPUT, FIRST).name == "chrF2++"
    assert score("chrf", OUTPUT, FIRST).name == "chrF2"
    assert score("exact_match", OUTPUT, FIRST).protocol == "exact|nrefs:1|case:mixed|norm:nfc|space:stripped"
    assert score("cer", OUTPUT[:1], [("a", "b")]).protocol.startswith(
        "cer|nrefs:2|case:mixed|norm:nfc|space:stripped|jiwer:"
    )


def test_a_known_bleu():
    # Precisions 5/6, 3/5, 1/4 and, of no match in three, 1/(2·3); no brevity penalty.
    (value,) = [one.value for one in scores(["bleu"], ["the cat sat on a mat"], ["the cat sat in a mat"])]
    assert value == pytest.approx(100 * (5 / 6 * 3 / 5 * 1 / 4 * 1 / 6) ** 0.25)


def test_counted_by_hand():
    outputs, references = ["kitten", "a b c", "é "], ["sitting", "a c", "e\u0301"]
    cer, wer, exact = scores(["cer", "wer", "exact_match"], outputs, references)
    assert cer.value == (3 + 2 + 0) / (7 + 3 + 1)
    assert wer.value == (1 + 1 + 0) / (1 + 2 + 1)
    assert exact.value == 1 / 3
    assert [one.higher_is_better for one in (cer, wer, exact)] == [False, False, True]


def test_the_nearest_of_several_references_counts():
    references = [["abcd", "xyz", "xy"]]
    assert score("cer", ["xy"], references).value == 0
    assert score("cer", ["xyzw"], references).value == 1 / 3
    assert score("exact_match", ["xyz"], references).value == 1


def test_empty_references():
    assert score("cer", ["ab", "cd"], ["", "cd"]).value == 2 / 2
    assert score("cer", ["", ""], ["", ""]).value == 0
    assert score("wer", ["a b c"], [""]).value == 1
    assert score("wer", [""], ["a b c"]).value == 1
    assert score("exact_match", ["", "a"], ["", ""]).value == 0.5
    for measure in ("bleu", "chrf", "ter"):
        assert math.isfinite(score(measure, ["", "a"], ["", ""]).value)


@given(st.lists(st.tuples(words, words), min_size=1, max_size=7))
def test_error_rates_add_up_as_jiwer_counts(pairs):
    outputs, references = map(list, zip(*pairs, strict=True))
    for measure, oracle in (("cer", jiwer.cer), ("wer", jiwer.wer)):
        value = score(measure, outputs, references).value
        if any(reference.strip() for reference in references):
            assert value == pytest.approx(oracle(references, outputs))
        else:
            assert value == float(any(output.strip() for output in outputs))


@given(
    st.lists(st.text(alphabet="ab é.", min_size=1, max_size=9).filter(str.strip), min_size=1, max_size=5), st.randoms()
)
def test_perfect_outputs_and_any_order(lines, draw):
    best = {"bleu": None, "chrf": 100, "ter": 0, "exact_match": 1, "cer": 0, "ser": 0, "wer": 0}
    best |= dict.fromkeys(("rouge1", "rouge2", "rougeL"))  # a text without a to z has no words
    assert set(best) == set(MEASURES)
    outputs = [line[1:] for line in lines]
    order = list(range(len(lines)))
    draw.shuffle(order)
    for measure, perfect in best.items():
        if perfect is not None:
            assert score(measure, lines, lines).value == pytest.approx(perfect)
        turned = score(measure, [outputs[row] for row in order], [lines[row] for row in order])
        assert turned.value == pytest.approx(score(measure, outputs, lines).value)


def test_by_length():
    lengths = [len(line.split()) for line in FIRST]
    buckets = by_length(lengths, OUTPUT, FIRST, edges=(5, 8))
    assert [bucket[:2] for bucket in buckets] == [(0, 5), (6, 8), (9, None)]
    assert sum(bucket.size for bucket in buckets) == 40
    for bucket in buckets:
        rows = [row for row, n in enumerate(lengths) if bucket.shortest <= n <= (bucket.longest or 99)]
        assert bucket.size == len(rows)
        expected = sacrebleu.corpus_bleu([OUTPUT[row] for row in rows], [[FIRST[row] for row in rows]])
        assert bucket.score.value == pytest.approx(expected.score)
    exact = by_length([2, 3, 9], ["a", "b", "c"], ["a", "x", "c"], measure="exact_match", edges=(3, 6))
    assert [(bucket.shortest, bucket.longest, bucket.size, bucket.score.value) for bucket in exact] == [
        (0, 3, 2, 0.5),
        (7, None, 1, 1.0),
    ]
    assert all(isinstance(bucket, Bucket) for bucket in exact)


def test_one_number_for_each_output():
    for measure in MEASURES:
        rows = MEASURES.build(measure).statistics(OUTPUT, matched(OUTPUT, FIRST)).rows
        assert rows.shape[0] == 40
        assert rows.dtype == np.float64


def test_wrong_calls():
    with pytest.raises(
        DataError, match=r"2 outputs were given for 1 references\. Give one line for each, empty ones too"
    ):
        score("bleu", ["a", "b"], ["a"])
    with pytest.raises(DataError, match="there are no outputs to score"):
        score("cer", [], [])
    with pytest.raises(DataError, match="output 2 has no reference"):
        score("cer", ["a", "b"], [["a"], []])
    with pytest.raises(DataError, match="1 source lengths were given for 2 outputs"):
        by_length([1], ["a", "b"], ["a", "b"])
    with pytest.raises(SettingsError, match=r"no score is called 'belu'. Did you mean 'bleu'\?"):
        score("belu", ["a"], ["a"])


def test_scorers_are_imported_when_they_score():
    code = (
        "import sys, unrolled.tasks.comparison; print([m for m in ('sacrebleu', 'jiwer', 'torch') if m in sys.modules])"
    )
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "[]\n"
