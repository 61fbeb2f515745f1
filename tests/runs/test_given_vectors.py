"""Vectors from a file as a setting of every text task: what is joined, frozen, tuned, saved, said and refused."""

import random
import shutil

import numpy as np
import pytest
import torch

import unrolled
from unrolled.base.errors import DataError, SettingsError
from unrolled.data.vectors import Vectors, write_vectors
from unrolled.runs import Run, train
from unrolled.workshop.sources import Sources

WIDTH = 6
GOOD, BAD, OTHER = ([f"{stem}{number}" for number in range(12)] for stem in ("good", "bad", "word"))
LOST = ["lost", "gone"]
"""Words of the text that the file does not have."""


def vectors_file(path, kind="glove"):
    """Good words lie on one side, bad ones on the other."""
    draw = np.random.default_rng(1)
    words = [*GOOD, *BAD, *OTHER]
    matrix = draw.normal(size=(len(words), WIDTH))
    matrix[:, 0] = [9.0] * 12 + [-9.0] * 12 + [0.0] * 12
    write_vectors(path, Vectors(words, matrix.astype(np.float32)), kind=kind)
    return path


def rows(count, seed, first, last):
    """(label, text): the words ``first`` to ``last`` of the good and bad ones decide."""
    draw = random.Random(seed)
    found = []
    for _ in range(count):
        label = draw.choice(["yes", "no"])
        words = [
            *draw.choices(OTHER, k=4),
            draw.choice((GOOD if label == "yes" else BAD)[first:last]),
            draw.choice(LOST),
        ]
        draw.shuffle(words)
        found.append((label, " ".join(words)))
    return found


def settings(file, kind="frozen", **vectors):
    return {
        "text": {"tokenizer": {"min_count": 1, "vectors": {"kind": kind, "file": str(file), **vectors}}},
        "model": {"encoder": {"kind": "ngram", "widest": 1, "hidden_size": 8}, "dropout": 0.1},
        "train": {"epochs": 5, "batch_sentences": 16, "learning_rate": 0.02, "precision": "float32", "seed": 1},
        "data": {"max_unknown": 1.0},
    }


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Training rows with words 0 to 5, test rows with the words 6 to 11, which training never sees."""
    folder = tmp_path_factory.mktemp("given")
    for name, table in (("train", rows(300, 1, 0, 6)), ("test", rows(100, 2, 6, 12))):
        (folder / f"{name}.tsv").write_text("".join("\t".join(row) + "\n" for row in table))
    vectors_file(folder / "v.txt")
    return folder


def accuracy(model, folder):
    table = [line.split("\t") for line in (folder / "test.tsv").read_text().splitlines()]
    return np.mean([said == row[0] for said, row in zip(model.predict([row[1] for row in table]), table, strict=True)])


def known(model):
    """The vectors of the words after a space, by name."""
    names = model.text.tokenizer.vocabulary
    return {name[1:]: row for name, row in zip(names, model.network.embedding.table(), strict=True) if name[0] == "▁"}


@pytest.mark.parametrize("kind", ["frozen", "tuned"])
def test_words_that_training_never_saw_are_understood(folder, tmp_path, kind):
    file = shutil.copy(folder / "v.txt", tmp_path / "v.txt")
    model = train(folder / "train.tsv", task="classify", out=tmp_path / "m", settings=settings(file, kind), quiet=True)
    assert model.plan.settings["model"]["embedding_size"] == WIDTH
    assert accuracy(model, folder) >= 0.95
    given = dict(zip([*GOOD, *BAD, *OTHER], np.loadtxt(file, usecols=range(1, WIDTH + 1)), strict=True))
    mine = known(model)
    scale = float(mine["good9"].norm() / np.linalg.norm(given["good9"]))
    kept = {word for word, vector in given.items() if np.allclose(mine[word], vector * scale, atol=1e-5)}
    unseen = {*GOOD[6:], *BAD[6:]}
    assert kept == ({*given} if kind == "frozen" else unseen)
    rms = np.sqrt(np.mean(np.square(list(given.values())))) * scale
    assert rms == pytest.approx(WIDTH**-0.5, rel=1e-3)
    assert model.network.embedding.weight.requires_grad and len(model.network.embedding.weight) < len(mine)
    card = (tmp_path / "m" / "README.md").read_text()
    assert f"vectors of v.txt (6 numbers, {kind}): 24 found, 0 in lower case only, 2 not, and 48 joined" in card
    (tmp_path / "v.txt").unlink()
    again = unrolled.load(tmp_path / "m")
    lines = [text for _, text in rows(20, 3, 0, 12)]
    assert np.array_equal(again.probabilities(lines), model.probabilities(lines))
    further = Run(Sources(data=str(folder / "train.tsv")), tmp_path / "n", start=str(tmp_path / "m"))
    further.prepare()
    assert torch.equal(further.network.embedding.table(), model.network.embedding.table().cpu())


def test_without_joined_words_they_are_not(folder, tmp_path):
    tree = settings(folder / "v.txt", joined=0)
    model = train(folder / "train.tsv", task="classify", out=tmp_path / "m", settings=tree, quiet=True)
    assert accuracy(model, folder) < 0.7 and "good9" not in known(model)
    assert model.text.tokenizer.held.joined == 0 and model.text.tokenizer.held.exact == 24
    some = settings(folder / "v.txt", joined=14)
    run = Run(Sources(data=str(folder / "train.tsv")), tmp_path / "n", flags={"task": {"kind": "classify"}, **some})
    run.prepare()
    # the first fourteen words of the file: good6 to good11 are new, each a symbol after a space and one without; so is
    # the form without a space of the others
    assert run.text.tokenizer.held.joined == 14 + 6


def test_a_stopped_run_goes_on_without_the_file_bit_for_bit(folder, tmp_path):
    file = shutil.copy(folder / "v.txt", tmp_path / "v.txt")
    tree = {"task": {"kind": "classify"}, **settings(file, "tuned")}
    sources = Sources(data=str(folder / "train.tsv"))
    whole = Run(sources, tmp_path / "whole", flags=tree)
    whole.prepare()
    list(whole.fit())
    half = Run(sources, tmp_path / "half", flags=tree)
    half.prepare()
    for report in half.fit():
        if type(report).__name__ == "Saved":
            break
    half.ground.close()
    (tmp_path / "v.txt").unlink()
    rest = Run(Sources(), tmp_path / "half", resume=True)
    rest.prepare()
    list(rest.fit())
    assert torch.equal(rest.network.embedding.weight, whole.network.embedding.weight)
    assert torch.equal(rest.network.embedding.frozen, whole.network.embedding.frozen)


def test_each_side_of_a_translator_has_its_own(tmp_path):
    (tmp_path / "pairs.tsv").write_text("".join(f"good{n % 6} word1\tBad{n % 6} lost\n" for n in range(40)))
    vectors_file(tmp_path / "v.bin", "binary")
    given = {"kind": "frozen", "file": str(tmp_path / "v.bin")}
    tree = {"text": {"source": {"min_count": 1, "vectors": given}, "target": {"min_count": 1, "vectors": given}}}
    tree |= {"train": {"steps": 2}}
    sources = Sources(data=str(tmp_path / "pairs.tsv"), valid=str(tmp_path / "pairs.tsv"))
    preset = "feedforward-small"
    model = train(sources=sources, preset=preset, out=tmp_path / "m", settings=tree, quiet=True)
    source, target = model.text.source.held, model.text.target.held
    assert (source.exact, source.lowered, source.missing, source.joined) == (7, 0, 0, 72 - 7)
    assert (target.exact, target.lowered, target.missing, target.joined) == (0, 6, 1, 0)
    assert model.network.target_embedding.frozen.shape == (6, WIDTH)
    assert len(unrolled.load(tmp_path / "m").predict(["good3 word1"])) == 1
    for side, tie in ((None, "decoder"), (True, "all")):
        tied = {**tree, "model": {"tie": tie}, "text": tree["text"] | ({"joint": True} if side else {})}
        with pytest.raises(SettingsError, match=r"keep the vectors that they are given.*are the same weights"):
            train(sources=sources, preset=preset, out=tmp_path / tie, settings=tied, quiet=True)


@pytest.mark.parametrize("kind", ["frozen", "tuned"])
def test_a_language_model_reads_by_them(tmp_path, kind):
    (tmp_path / "text.txt").write_text("good1 word2 lost\nword3 good2 bad1\n" * 30)
    given = {"kind": kind, "file": str(vectors_file(tmp_path / "v.txt"))}
    tree = {"text": {"tokenizer": {"min_count": 1, "vectors": given}}, "train": {"steps": 2}}
    preset = "language-model-feedforward"
    model = train(tmp_path / "text.txt", preset=preset, out=tmp_path / "m", settings=tree, quiet=True)
    held = model.text.tokenizer.held
    assert (held.exact, held.missing, held.joined) == (5, 1, 0)
    row = model.text.network_ids([model.text.tokenizer.id_of("word2")])[0]
    given = np.loadtxt(tmp_path / "v.txt", usecols=range(1, WIDTH + 1))[26]
    vector = model.network.embedding.table()[row].cpu().numpy()
    assert np.dot(vector, given) / np.linalg.norm(vector) / np.linalg.norm(given) == pytest.approx(1, abs=1e-2)
    assert np.isfinite(unrolled.load(tmp_path / "m").score(["good1 word2"])[0].log_prob)
    # where nothing says, the output layer is tied as the size of the vocabulary has it, but not to what is frozen
    usual = Run(Sources(data=str(tmp_path / "text.txt")), tmp_path / "n", flags={"task": "language_model", **tree})
    assert usual.plan.settings["model"]["tie"] is (False if kind == "frozen" else None)


@pytest.mark.parametrize("change, error, message", [
    ({"model": {"embedding_size": 7}}, SettingsError,
     r"\[model.embedding_size\] 7 was given, and the vectors of .*v.txt \(\[text.tokenizer.vectors\]\) have 6"),
    ({"text": {"tokenizer": {"vectors": {"file": "nowhere.txt"}}}}, DataError, "nowhere.txt: there is no such file"),
    ({"text": {"tokenizer": {"kind": "bpe", "min_count": 1, "vectors": {"kind": "tuned", "file": "v.txt"}}}},
     SettingsError, "no setting of the tokenizer 'bpe' is called 'vectors'"),
    ({"text": {"tokenizer": {"vectors": {"file": "other.txt", "joined": 0}}}}, SettingsError,
     "no word of .*other.txt is one of the text's"),
])  # fmt: skip
def test_what_cannot_be_is_refused_before_training(folder, tmp_path, monkeypatch, change, error, message):
    monkeypatch.chdir(folder)
    (folder / "other.txt").write_text("jiné 1 2\nslovo 3 4\n")
    tree = unrolled.base.settings.merge([("", settings(folder / "v.txt")), ("", change)])[0]
    with pytest.raises(error, match=message):
        train(folder / "train.tsv", task="classify", out=tmp_path / "m", settings=tree, quiet=True)


def test_two_files_of_one_width(tmp_path):
    (tmp_path / "pairs.tsv").write_text("a b\tc d\n" * 20)
    (tmp_path / "two.txt").write_text("a 1 2\nc 3 4\n")
    (tmp_path / "three.txt").write_text("a 1 2 3\nc 3 4 5\n")
    tree = {"text": {side: {"vectors": {"kind": "tuned", "file": str(tmp_path / f"{file}.txt")}}
            for side, file in (("source", "two"), ("target", "three"))}}  # fmt: skip
    with pytest.raises(SettingsError, match=r"\[text.target.vectors\] .*three.txt have 3 numbers, those"):
        train(tmp_path / "pairs.tsv", out=tmp_path / "m", settings=tree, quiet=True)


def test_the_command_line_says_where_vectors_came_from(run, folder, tmp_path):
    (tmp_path / "train.tsv").write_text((folder / "train.tsv").read_text().replace("good", "Good"))
    given = f"text.tokenizer.vectors={{kind: frozen, file: {folder / 'v.txt'}}}"
    settings = ("--set", given, "--set", "train.steps=2")
    found = run("train", tmp_path / "train.tsv", "--task", "classify", "--out", tmp_path / "m", *settings)
    assert found.code == 0, found.err
    assert (
        "text: word, " in found.err and "vectors of v.txt (6 numbers, frozen): 18 found, 6 in lower case" in found.err
    )
    flag = run("train", tmp_path / "train.tsv", "--task", "classify", "--out", tmp_path / "n", "--vectors",
               folder / "v.txt", "--set", "train.steps=2")  # fmt: skip
    assert "vectors of v.txt (6 numbers, tuned): 18 found" in flag.err and flag.code == 0
    assert "vectors v.txt" in (tmp_path / "n" / "README.md").read_text()
    for words in (("--from", tmp_path / "n"), ("--resume", "--out", tmp_path / "n")):
        refused = run("train", tmp_path / "train.tsv", "--vectors", folder / "v.txt", *words)
        assert refused.code == 2 and "keeps the vectors that its words have" in refused.err
    refused = run("train", tmp_path / "train.tsv", "--task", "contextual_vectors", "--vectors", folder / "v.txt")
    assert refused.code == 2 and "has no words that could start from a file" in refused.err
    assert "6 words have a vector in lower case only; --set text.tokenizer.lowercase=true reads" in found.err
