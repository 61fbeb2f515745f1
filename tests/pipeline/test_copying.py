"""Names that training never saw, copied: through every verb of a trained model."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from pathlib import Path

import pytest

import unrolled
from unrolled.pipeline.translator import Translator
from unrolled.workshop.sources import Sources

CONFIG = """
text: {source: word, target: word}
data: {max_unknown: 0.8}
model:
  embedding_size: 24
  dropout: 0.1
  copy: true
  encoder: {cell: {kind: gru, hidden_size: 24}}
  decoder: {kind: query_after, cell: {kind: gru, hidden_size: 32}, attention: {kind: additive, hidden_size: 24}}
train: {steps: 220, validate_every: 110, batch_sentences: 40, learning_rate: 0.01, precision: float32}
search: {beam: 2}
"""


def rows(count: int, seed: int) -> list[tuple[str, str]]:
    """ "sees Rix near Tof" → "Tof and Rix": two names, every one of them new, change places."""
    draw = random.Random(seed)

    def name() -> str:
        return "".join(draw.choice(letters) for letters in ("BDFGKLM", "aeiou", "bdfgklmnprst", "aeiou", "xz"))

    found = []
    for _ in range(count):
        one, other = name(), name()
        found.append(
            (f"{draw.choice(['sees', 'hears'])} {one} {draw.choice(['near', 'by'])} {other}", f"{other} and {one}")
        )
    return found


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("names")
    for name, count, seed in (("train", 600, 1), ("valid", 60, 2)):
        text = "".join(f"{source}\t{target}\n" for source, target in rows(count, seed))
        (folder / f"{name}.tsv").write_text(text, encoding="utf-8")
    (folder / "settings.yaml").write_text(CONFIG, encoding="utf-8")
    return folder


def trained(data: Path, out: Path, **settings: object) -> Translator:
    given = Sources(data=str(data / "train.tsv"), valid=str(data / "valid.tsv"))
    found = unrolled.train(sources=given, config=str(data / "settings.yaml"), settings=settings, out=out, quiet=True)
    assert isinstance(found, Translator)
    return found


@pytest.fixture(scope="module")
def model(data: Path) -> Translator:
    return trained(data, data / "run")


@pytest.mark.slow
def test_unseen_names_are_copied_each_in_its_place(model: Translator) -> None:
    unseen = rows(100, 3)
    outputs = model.predict([source for source, _ in unseen])
    assert sum(output == target for output, (_, target) in zip(outputs, unseen, strict=True)) >= 90


def test_every_verb_knows_the_words_of_the_sentence(model: Translator, tmp_path: Path) -> None:
    source, target = "sees Zorbux near Quenta", "Quenta and Zorbux"
    assert model.predict([source]) == [target]
    ((best, *_),) = model.translations([source], model.searching(beam=2))
    (forced,) = model.score([source], [target])
    assert forced.log_probs.tolist() == pytest.approx(best.hypothesis.token_log_probs, abs=1e-4)
    assert forced.log_probs.sum() > -1
    (other,) = model.score([source], ["Quenta and Mirwen"])
    assert other.log_probs[2] < -3  # it is no word of the source, and has no symbol
    for given in (None, target):
        shown = model.explain(source, given)
        assert (list(shown.source), list(shown.target)) == (source.split(), target.split())
    ((begun,),) = model.translations([source], model.searching(beam=1), prefixes=["Quenta"])
    assert begun.text == target
    model.save(tmp_path / "saved")
    assert unrolled.load(tmp_path / "saved").predict([source]) == [target]
    assert model.joined([model]).predict([source]) == [target]
    promises = model.promises(None, 12)
    assert all(one.holds is not False for one in promises), promises


def test_the_command_line_writes_them(model: Translator, data: Path, run: Callable, tmp_path: Path) -> None:
    lines = tmp_path / "lines.txt"
    lines.write_text("hears Wilbex by Trunz\n", encoding="utf-8")
    found = run("predict", data / "run", lines, "--attention")
    assert found.code == 0, found.err
    (shown, *_) = json.loads(found.out)["outputs"]
    assert (shown["text"], shown["tokens"]) == ("Trunz and Wilbex", ["▁Trunz", "▁and", "▁Wilbex"])
    assert shown["alignment"]["target"] == ["Trunz", "and", "Wilbex"]
    (tmp_path / "pairs.tsv").write_text("hears Wilbex by Trunz\tTrunz and Wilbex\n", encoding="utf-8")
    found = run("score", data / "run", tmp_path / "pairs.tsv", "--tokens", "--json")
    assert found.code == 0, found.err
    shown = json.loads(found.out.splitlines()[0])
    assert [name for name, _ in shown["tokens"]] == ["▁Trunz", "▁and", "▁Wilbex", "</s>"]


def test_one_that_copies_joins_one_that_does_not(model: Translator, data: Path, tmp_path: Path) -> None:
    plain = trained(data, tmp_path / "run", model={"copy": False}, train={"steps": 2, "validate_every": 2})
    source, target = "sees Zorbux near Quenta", "Quenta and Zorbux"
    for one, both in ((model, model.joined([model, plain])), (plain, plain.joined([model, model]))):
        assert both.predict([source]) == [target]
        assert both.joined([plain]).predict([source]) == [target]
        alone, beside = one.score([source], [target]), both.score([source], [target])
        assert beside[0].log_probs.tolist() == alone[0].log_probs.tolist()
        assert both.embed([source]).tolist() == one.embed([source]).tolist()
        assert both.explain(source, target).weights.tolist() == one.explain(source, target).weights.tolist()
    sure = {one.text: one.hypothesis.log_prob for one in model.joined([plain]).translations([source])[0]}
    alone = {one.text: one.hypothesis.log_prob for one in model.translations([source])[0]}
    assert sure[target] < alone[target]
    assert plain.predict([source]) != [target]


def test_too_many_unknown_words_of_sources_are_refused_as_before(data: Path, run: Callable, tmp_path: Path) -> None:
    found = run(
        "train", data / "train.tsv", "--valid", data / "valid.tsv", "--config", data / "settings.yaml",
        "--set", "data.max_unknown=0.2", "--out", tmp_path / "run",
    )  # fmt: skip
    assert found.code == 3
    assert "49% of the source symbols are unknown to the vocabulary (at most 20% are allowed)" in found.err
