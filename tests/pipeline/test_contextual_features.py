"""Frozen contextual vectors in other tasks: one setting to train with, one folder afterwards; the mixture learns."""

from __future__ import annotations

import json
import random
import shutil

import pytest
import torch

import unrolled
from unrolled.base.errors import DataError, SettingsError
from unrolled.runs import train
from unrolled.text import TOKENIZERS

NOUNS, VERBS = ("branch", "twig", "stick"), ("glue", "pin", "stick")
PLACES = ("here", "there", "now", "then")


def texts(count: int, seed: int) -> list[tuple[str, str]]:
    """Texts and what they are of."""
    draw = random.Random(seed)
    rows = []
    for _ in range(count):
        first, last = draw.choice(PLACES), draw.choice(PLACES)
        if draw.random() < 0.5:
            rows.append((f"{first} the {draw.choice(NOUNS)} lies {last}", "thing"))
        else:
            rows.append((f"{first}, we {draw.choice(VERBS)} them {last}", "deed"))
    return rows


@pytest.fixture(scope="module")
def vectors(tmp_path_factory):
    """A folder with a model of contextual vectors, hardly trained, and tables to learn from."""
    folder = tmp_path_factory.mktemp("vectors")
    (folder / "text.txt").write_text("\n".join(text for text, _ in texts(150, 1)) + "\n")
    settings = {
        "task": {"kind": "contextual_vectors"},
        "text": {"min_count": 1},
        "model": {"filters": [8, 8], "cell": {"kind": "lstm", "hidden_size": 12}, "dropout": 0.0},
        "train": {"epochs": 2, "batch_tokens": 300, "learning_rate": 0.02, "precision": "float32"},
    }
    train(folder / "text.txt", out=folder / "vectors", settings=settings, quiet=True)
    (folder / "labels.tsv").write_text("text\tlabel\n" + "".join(f"{a}\t{b}\n" for a, b in texts(150, 2)))
    return folder


CLASSIFY = {
    "model": {"encoder": {"cell": {"hidden_size": 8}}, "pooling": "attention", "dropout": 0.0, "word_dropout": 0.1},
    "train": {"epochs": 8, "batch_sentences": 8, "learning_rate": 0.02, "precision": "float32"},
}


def contextual(folder) -> dict[str, object]:
    return {"kind": "contextual", "model": str(folder / "vectors")}


@pytest.fixture(scope="module")
def labelled(vectors, tmp_path_factory):
    """A classifier that read with contextual vectors, whose own model is gone."""
    aside = tmp_path_factory.mktemp("aside")
    shutil.copytree(vectors / "vectors", aside / "vectors")
    settings = {**CLASSIFY, "text": {"tokenizer": contextual(aside)}}
    train(vectors / "labels.tsv", task="classify", out=aside / "model", settings=settings, quiet=True)
    shutil.rmtree(aside / "vectors")
    return aside


def test_a_classifier_learns_with_them_and_needs_nothing_else_afterwards(labelled, vectors, run):
    model = unrolled.load(labelled / "model")
    rows = texts(60, 3)
    said = model.predict([text for text, _ in rows])
    assert sum(one == label for one, (_, label) in zip(said, rows, strict=True)) >= 57
    reader, source = model.network.embedding.reader, unrolled.load(vectors / "vectors").network.reader
    for name, weight in source.state_dict().items():
        assert torch.equal(weight, reader.state_dict()[name]), name
    assert not torch.equal(model.network.embedding.mixture.weight, torch.zeros(3))
    assert model.plan.settings["model"]["embedding_size"] == 24
    checked = json.loads(run("selfcheck", labelled / "model", "--json").out)
    assert checked["checks"] and all(one["holds"] is not False for one in checked["checks"])


def test_its_answers_are_explained_by_words(labelled):
    model = unrolled.load(labelled / "model")
    shown = model.explain("now, we stick them")
    assert shown.source == ("now", ",", "we", "stick", "them")
    assert float(shown.weights.sum() + shown.end_column.sum()) == pytest.approx(1.0, abs=1e-5)
    assert shown.faithfulness


def test_lines_have_a_vector_and_words_by_themselves_have_none(labelled, run, tmp_path):
    model = unrolled.load(labelled / "model")
    lines = ["now the twig lies here", "now, we pin them here", ""]
    found = model.embed(lines)
    assert found.shape == (3, model.network.encoder.output_size)
    assert torch.allclose(torch.from_numpy(found[:1]), torch.from_numpy(model.embed(lines[:1])), atol=1e-5)
    done = run("embed", labelled / "model")
    assert done.code == 2 and "has no vectors of words by themselves" in done.err


def test_a_stopped_run_goes_on_without_the_saved_model(vectors, tmp_path):
    shutil.copytree(vectors / "vectors", tmp_path / "vectors")
    short = {**CLASSIFY["train"], "steps": 5, "schedule": "constant"}
    settings = {**CLASSIFY, "text": {"tokenizer": contextual(tmp_path)}, "train": short}
    begun = train(vectors / "labels.tsv", task="classify", out=tmp_path / "part", settings=settings, quiet=True)
    shutil.rmtree(tmp_path / "vectors")
    gone_on = train(out=tmp_path / "part", settings={"train": {"steps": 8}}, resume=True, quiet=True)
    for name, weight in begun.network.embedding.reader.state_dict().items():
        assert torch.equal(weight, gone_on.network.embedding.reader.state_dict()[name])
    assert gone_on.record["steps"] == 8


def test_a_translator_reads_its_source_by_them(vectors, tmp_path, run):
    rows = [(text, " ".join(word[0] for word in text.split())) for text, _ in texts(80, 4)]
    (tmp_path / "pairs.tsv").write_text("".join(f"{a}\t{b}\n" for a, b in rows))
    settings = {
        "text": {"source": contextual(vectors), "target": {"kind": "whitespace"}},
        "model": {"encoder": {"cell": {"hidden_size": 8}}, "decoder": {"cell": {"hidden_size": 12}}, "dropout": 0.0},
        "train": {"epochs": 2, "batch_sentences": 8, "precision": "float32"},
        "data": {"valid_rows": 3},
        "search": {"max_length": 8},
    }
    model = train(tmp_path / "pairs.tsv", preset="bahdanau-small", out=tmp_path / "m", settings=settings, quiet=True)
    assert len(model.predict(["now the twig lies here", ""])) == 2
    shown = model.explain("now, we stick them", "n w s t")
    assert shown.source == ("now", ",", "we", "stick", "them") and len(shown.target) == 4
    checked = json.loads(run("selfcheck", tmp_path / "m", "--lines", "6", "--json").out)
    assert all(one["holds"] is not False for one in checked["checks"])


def test_a_tagger_has_them_beside_its_words(vectors, tmp_path, run):
    """``stick`` is tagged by its sense, which its own vector and its spelling cannot tell."""
    rows = [(text.replace(",", " ,").split(), label) for text, label in texts(200, 5)]
    blocks = ["".join(f"{word}\t{label if word == 'stick' else 'O'}\n" for word in words) for words, label in rows]
    (tmp_path / "train.conll").write_text("\n".join(blocks))
    settings = {
        "task": {"scheme": "plain"},
        "text": {"characters": contextual(vectors)},
        "model": {
            "embedding_size": 6,
            "characters": "none",
            "encoder": {"kind": "cnn", "layers": 1, "width": 1, "hidden_size": 16},
            "dropout": 0.0,
        },
        "train": {"epochs": 6, "learning_rate": 0.03, "batch_tokens": 100, "precision": "float32"},
    }
    train(tmp_path / "train.conll", task="tag", out=tmp_path / "model", settings=settings, quiet=True)
    model = unrolled.load(tmp_path / "model")
    assert model.network.context.mixture.weight.abs().sum() > 0.01
    seen = [(words, label) for words, label in rows if "stick" in words]
    said = model.predict([words for words, _ in seen])
    told = [tags[words.index("stick")] == label for tags, (words, label) in zip(said, seen, strict=True)]
    assert len(told) > 40 and all(told)
    checked = json.loads(run("selfcheck", tmp_path / "model", "--json").out)
    assert all(one["holds"] is not False for one in checked["checks"])


def test_words_are_those_of_the_saved_model(vectors):
    tokenizer = TOKENIZERS.build(contextual(vectors))
    tokenizer.train([])
    text = unrolled.load(vectors / "vectors").text
    line = " now,  we sticktionary them é e\u0301\u00a0!"
    found = tokenizer.encode(line)
    assert tokenizer.words(line) == text.spans(line)
    assert tokenizer.encode_ids([line, ""]) == [found.ids, []]
    spelled = text.spell(text.cut(line))
    first = [place for place, one in enumerate(found.ids) if one >= tokenizer.characters]
    bounds = zip(first, [*first[1:], len(found.ids)], strict=True)
    words = [found.ids[start:stop] for start, stop in bounds]
    assert [[tokenizer.begins(word[1]), *word[2:-1]] for word in spelled] == words
    known = "now , we stick them"
    assert tokenizer.decode(tokenizer.encode(known).ids) == tokenizer.normalize(known) == known
    assert tokenizer.normalize("now, we") == "now , we"
    for (start, stop), one in zip(found.spans, found.tokens, strict=True):
        assert one.endswith("<unk>") or line[start:stop] == one.removeprefix("▁")
    assert tokenizer.unknown_ids(words[0]) == [tokenizer.characters, 1, 1]


@pytest.mark.parametrize(
    ("settings", "match"),
    [
        ({"text": {"tokenizer": {"kind": "contextual", "model": "gone"}}}, r"gone: does not exist, where the folder"),
        ({"text": {"tokenizer": {"kind": "contextual"}}}, r"'model'|needs.*model"),
        ({"model": {"embedding_size": 7}}, r"\[model.embedding_size\] 7 was given, and the vectors of .* have 24"),
    ],
)
def test_what_does_not_fit_is_said(vectors, tmp_path, settings, match):
    whole = {**CLASSIFY, "text": {"tokenizer": contextual(vectors)}, **settings}
    with pytest.raises((SettingsError, DataError), match=match):
        train(vectors / "labels.tsv", task="classify", out=tmp_path / "model", settings=whole, quiet=True)


@pytest.mark.parametrize(
    ("settings", "match"),
    [
        ({"text": {"target": "CONTEXTUAL"}}, r"\[text.target\] contextual vectors are for text that is read"),
        ({"text": {"source": "CONTEXTUAL"}, "model": {"copy": True}}, r"\[model.copy\] True was given, and contextual"),
        (
            {"text": {"source": "CONTEXTUAL"}, "task": {"features": [2]}},
            r"\[task.features\] \(2,\) was given, and contextual vectors are of words spelled out",
        ),
    ],
)
def test_text_that_is_written_or_copied_is_refused(vectors, tmp_path, settings, match):
    (tmp_path / "pairs.tsv").write_text("a b\tc d\tx\n" * 9)
    (side,) = settings["text"]
    whole = {**settings, "text": {side: contextual(vectors)}}
    with pytest.raises(SettingsError, match=match):
        train(tmp_path / "pairs.tsv", preset="bahdanau-small", out=tmp_path / "m", settings=whole, quiet=True)


def test_another_model_is_refused(labelled, vectors, tmp_path):
    settings = {**CLASSIFY, "text": {"tokenizer": {"kind": "contextual", "model": str(labelled / "model")}}}
    with pytest.raises(SettingsError, match=r"is a model of the task 'classify', and contextual vectors are wanted"):
        train(vectors / "labels.tsv", task="classify", out=tmp_path / "model", settings=settings, quiet=True)
    tokenizer = TOKENIZERS.build({"kind": "contextual", "model": str(tmp_path)})
    with pytest.raises(SettingsError, match=r"holds no model of contextual vectors. Train one first"):
        tokenizer.train([])
    (tmp_path / "a.txt").write_text("a b\n" * 50)
    with pytest.raises(SettingsError, match=r"\[text.tokenizer\] contextual vectors are for text that is read"):
        settings = {"text": {"tokenizer": contextual(vectors)}}
        train(tmp_path / "a.txt", task="language_model", out=tmp_path / "lm", settings=settings, quiet=True)
