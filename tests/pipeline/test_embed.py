"""One vector a line, and the vectors of words, of every task that has them."""

import numpy as np
import pytest
import torch

import unrolled
from unrolled.base.errors import UsageError
from unrolled.base.protocol import BEGIN, END
from unrolled.data.vectors import read_vectors
from unrolled.runs import train

LINES = ["one two three", "", "two", "seven one zzz", "three " * 40]
SMALL = {"train": {"steps": 2, "precision": "float32"}, "data": {"max_unknown": 1.0}}
WORDS = {"kind": "word", "min_count": 1}


@pytest.fixture(scope="module")
def models(tmp_path_factory):
    folder = tmp_path_factory.mktemp("embed")
    text = [f"{one} {two} three" for one in ("one", "two", "four") for two in ("five", "six", "seven")]
    (folder / "text.txt").write_text("\n".join(text * 10) + "\n")
    (folder / "labels.tsv").write_text(
        "label\ttext\n" + "".join(f"{'ab'[n % 2]}\t{line}\n" for n, line in enumerate(text * 10))
    )
    (folder / "pairs.tsv").write_text("".join(f"{line}\t{line.upper()}\n" for line in text))
    encoder = {"kind": "ngram", "widest": 1, "hidden_size": 5}
    trees = {
        "classify": {"text": {"tokenizer": WORDS}, "model": {"embedding_size": 3, "encoder": encoder}},
        "language_model": {"text": {"tokenizer": WORDS}, "model": {"embedding_size": 3}},
        "translate": {
            "text": {"source": WORDS, "target": WORDS},
            "model": {"embedding_size": 3, "encoder": encoder, "decoder": {"kind": "feedforward", "hidden_size": 4}},
        },
    }
    trees["language_model"]["model"] |= {"history": {"kind": "feedforward", "window": 2, "hidden_size": 4}}
    files = {"classify": "labels.tsv", "language_model": "text.txt", "translate": "pairs.tsv"}
    return {
        kind: train(folder / files[kind], task=kind, out=folder / kind, settings={**tree, **SMALL}, quiet=True)
        for kind, tree in trees.items()
    }


KINDS = ["classify", "language_model", "translate"]


@pytest.mark.parametrize("kind", KINDS)
def test_a_lines_vector_depends_on_the_line_alone(models, kind):
    model = models[kind]
    together = model.embed(LINES)
    assert together.shape[0] == 5 and together.dtype == np.float32 and np.isfinite(together).all()
    alone = np.concatenate([model.embed([line]) for line in LINES])
    np.testing.assert_allclose(alone, together, atol=1e-5)
    np.testing.assert_allclose(model.embed(LINES[::-1])[::-1], together, atol=1e-5)
    assert len({tuple(row.round(5)) for row in together}) == 5 and model.embed([]).shape == (0, 0)
    with pytest.raises(UsageError, match="a list of texts is wanted"):
        model.embed("one")
    assert "embed" in model.verbs()


def test_what_the_vectors_are(models):
    """By the networks' own parts, for one line."""
    model = models["classify"]
    ids = torch.tensor([[*model.text.tokenizer.encode("one two").ids, END]])
    network, mask = model.network, torch.ones(1, 3, dtype=torch.bool)
    with torch.no_grad():
        logits = network.output(torch.tensor(model.embed(["one two"])))
        assert torch.allclose(logits, network(ids, mask).logits, atol=1e-6)
        model = models["translate"]
        ids = torch.tensor([[*model.text.source.encode("one two").ids, END]])
        vectors = model.network.source_embedding(ids) * model.network.embedding_factor
        wanted = model.network.encoder(vectors, mask).output.mean(1)
        assert torch.allclose(torch.tensor(model.embed(["one two"])), wanted, atol=1e-6)
        model = models["language_model"]
        ids = torch.tensor([[BEGIN, 4, *model.text.encode_ids(["two"])[0]]])
        state = model.network.initial(1)
        wanted = model.network(ids, mask, state).hidden.mean(0)
        assert torch.allclose(torch.tensor(model.embed(["two"]))[0], wanted, atol=1e-6)


@pytest.mark.parametrize("kind", KINDS)
def test_words_of_any_task_have_vectors(run, models, kind, tmp_path):
    model = models[kind]
    vectors = model.vectors()
    assert set(vectors.words) >= {"one", "five", "three"} and not any("▁" in word for word in vectors.words)
    assert len(set(vectors.words)) == len(vectors.words) and vectors.matrix.shape[1] == 3
    tokenizer = model.text.source if kind == "translate" else model.text.tokenizer
    table = model.network.source_embedding if kind == "translate" else model.network.embedding
    row = model.text.network_ids([tokenizer.id_of("▁five")])[0]
    assert np.array_equal(vectors.matrix[vectors.words.index("five")], table.table()[row].numpy())
    if kind == "translate":
        assert "FIVE" in model.vectors("target").words
    model.save(tmp_path / "m")
    assert run("embed", tmp_path / "m", "--to", tmp_path / "v.bin").code == 0
    assert read_vectors(tmp_path / "v.bin").words == vectors.words
    assert unrolled.load(tmp_path / "m").embed(["one"]) == pytest.approx(model.embed(["one"]), abs=1e-6)


def test_a_tagger_has_vectors_of_words_and_none_of_lines(run, tmp_path):
    lines = [f"{one} {tag}" for one, tag in (("one", "N"), ("runs", "V"), ("two", "N"), ("sees", "V"))]
    sentences = [[lines[at % 4] for at in range(first, first + 2 + first % 5)] for first in range(40)]
    (tmp_path / "train.txt").write_text("".join("\n".join(one) + "\n\n" for one in sentences))
    tree = {"model": {"embedding_size": 3, "encoder": {"kind": "ngram", "widest": 1, "hidden_size": 5}}, **SMALL}
    train(tmp_path / "train.txt", task="tag", out=tmp_path / "m", settings=tree, quiet=True)
    assert run("embed", tmp_path / "m", "--to", tmp_path / "v.txt").code == 0
    assert {"one", "runs", "two", "sees"} <= set(read_vectors(tmp_path / "v.txt").words)
    refused = run("embed", tmp_path / "m", tmp_path / "train.txt")
    assert refused.code == 2 and "has no one vector of a line. Leave out the file" in refused.err
