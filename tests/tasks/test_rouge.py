"""ROUGE against rouge-score's own way of counting, and by hand."""

import pytest
from rouge_score.rouge_scorer import RougeScorer
from rouge_score.scoring import BootstrapAggregator

from unrolled.base.errors import MissingPartError, SettingsError
from unrolled.tasks.scores import score

OUTPUTS = ["the cat sat on the mat", "Dogs bark .", "", "a b c d e"]
REFERENCES = ["a cat sat on a mat", "dogs bark loudly", "nothing here", "e d c b a"]
KINDS = ["rouge1", "rouge2", "rougeL"]


@pytest.mark.parametrize("kind", KINDS)
def test_it_is_the_mean_f_score_of_rouge_score(kind: str) -> None:
    scorer, total = RougeScorer(KINDS, use_stemmer=False), BootstrapAggregator()
    for output, reference in zip(OUTPUTS, REFERENCES, strict=True):
        total.add_scores(scorer.score(reference, output))
    mean = sum(scorer.score(reference, one)[kind].fmeasure for one, reference in zip(OUTPUTS, REFERENCES, strict=True))
    found = score(kind, OUTPUTS, REFERENCES)
    assert found.value == pytest.approx(100 * mean / 4)
    assert total.aggregate()[kind].low.fmeasure <= found.value / 100 <= total.aggregate()[kind].high.fmeasure
    assert found.protocol.startswith(f"{kind}|nrefs:1|f1|mean|case:lc|stem:no|tok:standard|rouge-score:")


def test_by_hand() -> None:
    """Of five and of four words three are shared, and two of the pairs; the longest common subsequence has three."""
    output, reference = "a b c x y", "a b c z"
    assert score("rouge1", [output], [reference]).value == pytest.approx(100 * 2 * 3 / 9)
    assert score("rouge2", [output], [reference]).value == pytest.approx(100 * 2 * 2 / 7)
    assert score("rougeL", [output], [reference]).value == pytest.approx(100 * 2 * 3 / 9)


def test_the_best_of_several_references_counts() -> None:
    assert score("rougeL", ["a b c"], [["x y", "a b c", "a"]]).value == 100


def test_other_scripts_need_their_words() -> None:
    assert score("rouge1", ["שלום עולם"], ["שלום עולם"]).value == 0
    found = score({"kind": "rouge1", "tokenize": "words"}, ["שלום עולם", "Été ."], ["שלום עולם", "été"])
    assert found.value == 100 and "tok:words" in found.protocol


def test_a_missing_library_and_a_wrong_setting_are_said(monkeypatch) -> None:
    with pytest.raises(SettingsError, match="tokenize"):
        score({"kind": "rouge1", "tokenize": "greek"}, ["a"], ["a"])
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(MissingPartError, match=r"rouge_score is not installed. .* pip install 'unrolled\[rouge\]'"):
        score("rouge1", ["a"], ["a"])
