"""Word vectors from a text to their verbs: learnt, asked, scored, drawn, written, saved, resumed, refused."""

import json
import random

import numpy as np
import pytest
import torch

import unrolled
from unrolled.base.errors import DataError, SettingsError, UsageError
from unrolled.data.vectors import Vectors, read_vectors, write_vectors
from unrolled.runs import Run, train
from unrolled.workshop.sources import Sources

GROUPS = [
    (["cat", "dog", "cow", "hen"], ["eats", "sleeps", "barks", "bites"], ["grass", "meat", "bones", "corn"]),
    (["car", "bus", "train", "tram"], ["drives", "stops", "turns", "brakes"], ["street", "bridge", "station", "road"]),
    (["queen", "king", "duke", "count"], ["rules", "reigns", "bows", "orders"], ["throne", "crown", "castle", "realm"]),
]
SMALL = {
    "text": {"tokenizer": {"min_count": 2}},
    "model": {"embedding_size": 16, "window": 3, "subsample": 0.0},
    "train": {"epochs": 8, "batch_tokens": 1000, "seed": 1, "learning_rate": 0.1, "deterministic": True},
}


def text(count, seed=0):
    draw = random.Random(seed)
    lines = []
    for _ in range(count):
        nouns, verbs, things = draw.choice(GROUPS)
        lines.append(f"The {draw.choice(nouns)} {draw.choice(verbs)} the {draw.choice(things)}.")
    return "\n".join(lines) + "\n"


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("words")
    (folder / "text.txt").write_text(text(1500))
    settings = {name: dict(tree) for name, tree in SMALL.items()}
    train(folder / "text.txt", task="word-vectors", out=folder / "skip-gram", settings=settings, quiet=True)
    settings["train"] |= {"learning_rate": 0.3}
    train(folder / "text.txt", preset="cbow", out=folder / "cbow", settings=settings, quiet=True)
    return folder


@pytest.fixture(scope="module")
def model(folder):
    return unrolled.load(folder / "skip-gram")


@pytest.mark.parametrize("kind", ["skip-gram", "cbow"])
def test_words_in_the_same_places_become_neighbours(folder, kind):
    model = unrolled.load(folder / kind)
    assert type(model) is unrolled.WordVectors and model.verbs() == ["predict", "evaluate", "explain", "embed"]
    for groups in zip(*GROUPS, strict=True):
        for group in groups:
            for word in group:
                assert {one.word for one in model.neighbours(word, 3)} == set(group) - {word}
    loss = {score.name: score.value for score in model.scores}["loss"]
    assert 0 < loss < 6 * np.log(2)  # what vectors of zeros have, of one word and five of noise
    assert model.plan.settings["model"]["algorithm"] == kind.replace("-", "_")


def test_neighbours_are_cosines(model):
    vectors = model.vectors()
    rows = {word: row / np.linalg.norm(row) for word, row in zip(vectors.words, vectors.matrix, strict=True)}
    for one in model.neighbours("cat", 5):
        assert one.cosine == pytest.approx(float(rows["cat"] @ rows[one.word]), abs=1e-5)
    assert model.neighbours("CAT") == model.neighbours("cat")  # the preset reads all in lower case
    both = model.neighbours("cat dog", 2)
    assert {one.word for one in both} == {"cow", "hen"}
    assert [[one.word for one in row] for row in model.predict(["cat", "", "king"], 1)][1] == []
    near = model.analogy("cat", "eats", "car", 4)
    direction = rows["eats"] - rows["cat"] + rows["car"]
    assert near[0].cosine == pytest.approx(float(direction @ rows[near[0].word] / np.linalg.norm(direction)), abs=1e-5)
    with pytest.raises(DataError, match=r"neighbours: 'trann' is none of the \d+ words. Did you mean 'train'\?"):
        model.neighbours("trann")
    with pytest.raises(DataError, match="analogy: b is 2 words, and one is wanted"):
        model.analogy("cat", "cat dog", "cow")
    with pytest.raises(UsageError, match="neighbours: count is 0"):
        model.neighbours("cat", 0)


def test_words_and_neighbourhoods_are_drawn(model, tmp_path):
    found = model.explain("cat")
    assert found.marked == ("cat",) or found.marked == ["cat"]
    assert found.words[0] == "cat" and found.likeness[0] == pytest.approx(1, abs=1e-5)
    assert list(found.words[1:4]) == [one.word for one in model.neighbours("cat", 3)]
    centred = model.space.unit[[model.space.places[word] for word in found.words]]
    centred = centred - centred.mean(axis=0)
    sizes = np.linalg.svd(centred, compute_uv=False)
    assert found.places.var(axis=0).sum() * len(found.words) == pytest.approx(float((sizes[:2] ** 2).sum()), rel=1e-4)
    assert found.kept == pytest.approx(float((sizes[:2] ** 2).sum() / (sizes**2).sum()), rel=1e-4)
    words = [*GROUPS[0][0], *GROUPS[1][0]]
    for method in ("pca", "tsne"):
        places = model.map(words, method=method).places
        inside = np.linalg.norm(places[:4] - places[:4].mean(axis=0), axis=1).max()
        apart = np.linalg.norm(places[:4].mean(axis=0) - places[4:].mean(axis=0))
        assert inside < apart, method
    with pytest.raises(UsageError, match="no method is called 'umap'"):
        model.map(words, method="umap")
    with pytest.raises(UsageError, match="1 different words were given"):
        model.map(["cat", "cat"])
    with pytest.raises(DataError, match="the text is empty"):
        model.explain(" ")


def test_the_verbs_of_the_command_line(run, model, folder, tmp_path):
    (tmp_path / "words.txt").write_text("king\n\nzzzz\n")
    place = folder / "skip-gram"
    found = run("predict", place, tmp_path / "words.txt", "--nbest", 3)
    lines = found.out.split("\n")
    assert [one.split()[0] for one in lines[0].split("\t")] == [one.word for one in model.neighbours("king", 3)]
    assert lines[1] == lines[2] == "" and "'zzzz' is none of the" in found.err and found.code == 0
    row = json.loads(run("predict", place, tmp_path / "words.txt", "--json").out.split("\n")[0])
    assert row["text"] == "king" and len(row["neighbours"]) == 10 and row["neighbours"][0]["cosine"] <= 1
    (tmp_path / "questions.txt").write_text(": all\ncat dog car bus\nKing queen duke count\nx y z w\n")
    tree = json.loads(run("evaluate", place, tmp_path / "questions.txt", "--json").out)
    assert tree["lines"] == 3 and tree["scores"][0]["name"] == "analogies"
    assert tree["sections"][0]["asked"] == 3 and tree["sections"][0]["known"] == 2
    (tmp_path / "pairs.tsv").write_text("cat\tdog\t9\ncat\tcar\t1\ncat\tthrone\t2\nking\tqueen\t8\n")
    tree = json.loads(run("evaluate", place, tmp_path / "pairs.tsv", "--compare", folder / "cbow", "--json").out)
    assert tree["scores"][0]["name"] == "likeness" and tree["scores"][0]["value"] > 0.5
    assert [one["model"] for one in tree["compare"]] == ["this", "other"]
    assert json.loads(run("evaluate", place, folder / "text.txt", "--json").out)["scores"][0]["name"] == "loss"
    seen = run("explain", place, "king queen cat dog", "--method", "tsne", "--to", tmp_path / "map.svg")
    assert seen.code == 0 and "t-SNE" in seen.out and (tmp_path / "map.svg").read_text().startswith("<svg")
    for verb, reason in (("score", "words alone have no probability"), ("generate", "words alone make no text")):
        refused = run(verb, place, *([folder / "text.txt"] if verb == "score" else []))
        assert (
            refused.code == 2 and reason in refused.err and "It has: predict, evaluate, explain, embed" in refused.err
        )
    assert run("selfcheck", place, "--lines", 9).out.count("holds") == 4
    card = (place / "README.md").read_text()
    assert "unrolled embed skip-gram --to vectors.txt" in card and "words in all" in card


def test_lines_are_scored_as_a_file_is(run, model, folder):
    lines = (folder / "text.txt").read_text().splitlines()
    (loss,) = model.evaluate(lines)
    by_file = json.loads(run("evaluate", folder / "skip-gram", folder / "text.txt", "--json").out)
    assert loss.value == pytest.approx(by_file["scores"][0]["value"], rel=1e-9) and by_file["lines"] == len(lines)
    assert model.evaluate([": all", "cat dog cow hen"])[0].name == "analogies"
    assert model.evaluate(["cat dog 9", "cat car 1", "king bus 0"])[0].name == "likeness"
    with pytest.raises(DataError, match="evaluate: no two known words are beside each other"):
        model.evaluate(["zzz", "cat"])
    with pytest.raises(DataError, match="line 2: two words and a number are expected"):
        model.evaluate(["cat dog 9", "cat car"])


def test_vectors_are_written_and_read(run, model, folder, tmp_path):
    place = folder / "skip-gram"
    wanted = model.vectors()
    assert wanted.words[:2] == ["the", "."] and not set(wanted.words) & {"<pad>", "<unk>"}
    for name in ("v.txt", "v.bin", "v.vec.gz", "v.glove", "v.bin.gz"):
        found = run("embed", place, "--to", tmp_path / name)
        assert found.code == 0 and f"{len(wanted.words)} words, 16 numbers each" in found.err
        again = read_vectors(tmp_path / name)
        assert again.words == wanted.words and np.array_equal(again.matrix, wanted.matrix)
    assert run("embed", place, "--to", tmp_path / "v.other", "--kind", "glove").code == 0
    printed = run("embed", place).out.split("\n")
    assert printed[0].startswith("the ") and len(printed) == len(wanted.words) + 1
    (tmp_path / "lines.txt").write_text("the cat\nzzz\n\n")
    assert run("embed", place, tmp_path / "lines.txt", "--to", tmp_path / "o.npz").code == 0
    lines = np.load(tmp_path / "o.npz")["vectors"]
    rows = dict(zip(*wanted, strict=True))
    np.testing.assert_allclose(lines, [(rows["the"] + rows["cat"]) / 2, np.zeros(16), np.zeros(16)], atol=1e-6)
    run("embed", place, tmp_path / "lines.txt", "--to", tmp_path / "o.tsv")
    assert np.array_equal(np.loadtxt(tmp_path / "o.tsv", dtype=np.float32), lines)
    for words, message in (
        (["--to", "v.pdf"], "ends in '.pdf', which is no file of words' vectors"),
        (["--to", "v.txt", "--kind", "word3vec"], "no kind of file is called 'word3vec'. Did you mean 'word2vec'?"),
        (["--side", "target"], "no side is called 'target'. Did you mean 'text'?"),
        ([str(tmp_path / "lines.txt"), "--to", "v.txt"], "one vector a line is written as .npz or .tsv"),
        ([str(tmp_path / "lines.txt"), "--side", "text"], "--side is for the vectors of words"),
    ):
        refused = run("embed", place, *words)
        assert refused.code == 2 and message in refused.err


def test_a_run_that_was_stopped_goes_on_bit_for_bit(folder, tmp_path):
    sources = Sources(data=str(folder / "text.txt"))
    flags = {"task": "word_vectors", **SMALL, "train": SMALL["train"] | {"epochs": 3}}
    whole = Run(sources, tmp_path / "whole", flags=flags)
    whole.prepare()
    list(whole.fit())
    half = Run(sources, tmp_path / "half", flags=flags)
    half.prepare()
    for report in half.fit():
        if type(report).__name__ == "Validated":
            break
    half.ground.close()
    rest = Run(Sources(), tmp_path / "half", resume=True)
    rest.prepare()
    list(rest.fit())
    assert torch.equal(rest.network.embedding.weight, whole.network.embedding.weight)
    assert torch.equal(rest.network.outputs, whole.network.outputs)
    assert whole.dry_run().symbols > 0


def test_words_may_start_from_a_file(folder, tmp_path):
    draw = np.random.default_rng(0)
    write_vectors(tmp_path / "v.txt", Vectors(["cat", "xx"], draw.normal(size=(2, 7)).astype(np.float32)), kind="glove")
    given = {"kind": "tuned", "file": str(tmp_path / "v.txt")}
    tree = {**SMALL, "text": {"tokenizer": {"min_count": 2, "vectors": given}}, "model": {}}
    run = Run(Sources(data=str(folder / "text.txt")), tmp_path / "m", flags={"task": "word_vectors", **tree})
    run.prepare()
    cat = run.network.embedding.weight[run.text.tokenizer.id_of("cat")]
    assert cat.shape == (7,) and torch.nn.functional.cosine_similarity(
        cat, torch.tensor(np.loadtxt(tmp_path / "v.txt", usecols=range(1, 8))[0], dtype=torch.float32), dim=0
    ) > 0.9999  # fmt: skip


@pytest.mark.parametrize("tree, error, message", [
    ({"train": {"optimizer": "adam"}}, SettingsError, r"\[train.optimizer\] 'adam' was given, and word vectors"),
    ({"train": {"clip_norm": 1.0}}, SettingsError, r"\[train.clip_norm\] 1.0 was given.* Set it to null"),
    ({"train": {"optimizer": {"kind": "sgd", "momentum": 0.5}}}, SettingsError, "momentum and weight_decay"),
    ({"text": {"tokenizer": {"vectors": {"kind": "frozen", "file": "v.txt"}}}}, SettingsError, "as tuned, with none"),
    ({"text": {"tokenizer": {"min_count": 5000}}}, DataError, "of its words, none stands there 5000 times or more"),
])  # fmt: skip
def test_what_cannot_be_is_refused(folder, tmp_path, tree, error, message, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "v.txt").write_text("cat 1 2\n")
    with pytest.raises(error, match=message):
        train(folder / "text.txt", task="word_vectors", out=tmp_path / "m", settings=tree, quiet=True)


def test_a_text_of_one_word_is_refused(tmp_path):
    (tmp_path / "one.txt").write_text("".join("spam " * count + "\n" for count in range(1, 30)))
    with pytest.raises(
        DataError, match=r"one.txt: of its words, only 'spam' stands there 5 times or more: there is nothing"
    ):
        train(tmp_path / "one.txt", task="word_vectors", out=tmp_path / "m", quiet=True)
