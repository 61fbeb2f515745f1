"""A two-direction language model from a file to its verbs: trained, embedded, scored, explained, saved, loaded."""

from __future__ import annotations

import json
import math
import random

import numpy as np
import pytest

import unrolled
from unrolled.base.errors import DataError, UsageError
from unrolled.runs import train

SMALL = {
    "task": {"kind": "contextual_vectors"},
    "text": {"min_count": 1},
    "model": {
        "character_size": 4,
        "filters": [4, 8],
        "highways": 1,
        "cell": {"kind": "lstm", "hidden_size": 24},
        "layers": 2,
        "dropout": 0.0,
    },
    "train": {"epochs": 8, "batch_tokens": 250, "learning_rate": 0.03, "precision": "float32", "seed": 1},
    "data": {"valid_rows": 30},
}
PLACES = ("here", "there", "where", "now", "then", "when", "once", "twice", "always", "never")
NOUNS = ("branch", "twig", "pole", "stick")
VERBS = ("glue", "pin", "tape", "stick")


def texts(count: int, seed: int) -> list[str]:
    """Things that lie there and things that are done; ``stick`` is of both."""
    draw = random.Random(seed)
    rows = []
    for _ in range(count):
        first, last = draw.choice(PLACES), draw.choice(PLACES)
        if draw.random() < 0.5:
            rows.append(f"{first} the {draw.choice(NOUNS)} lies {last}")
        else:
            rows.append(f"{first} we {draw.choice(VERBS)} them {last}")
    return rows


@pytest.fixture(scope="module")
def read(tmp_path_factory):
    """A folder with text, and a model of its lines."""
    folder = tmp_path_factory.mktemp("read")
    (folder / "train.txt").write_text("\n".join(texts(600, 1)) + "\n")
    (folder / "test.txt").write_text("\n\n".join(texts(20, 2)) + "\n\n")
    train(folder / "train.txt", out=folder / "model", settings=SMALL, quiet=True)
    return folder


@pytest.fixture(scope="module")
def model(read):
    return unrolled.load(read / "model")


def test_it_learns_what_can_be_told_from_each_side(model, read):
    """Of a text ten places are drawn twice, a thing or deed of eight once; six words are predicted: nothing can do
    better than 800^(1/6). Each direction is told whether it is a thing by the word before it."""
    scores = {one.name: one.value for one in model.evaluate(texts(300, 3))}
    best = 800 ** (1 / 6)
    for name in ("perplexity", "forward_perplexity", "backward_perplexity"):
        assert best * 0.98 < scores[name] < best * 1.05, name
    assert scores["loss"] == pytest.approx(math.log(scores["perplexity"]))


def test_a_word_of_two_senses_has_two_vectors_and_one_spelling(model):
    things = model.embed(["now the stick lies there", "then the stick lies on", "when the stick lies"])
    deeds = model.embed(["now we stick them there", "then we stick them", "when we stick them on"])
    assert all(one.words[2] == "stick" for one in things + deeds)

    def mean(left, right, layer):
        pairs = [(a.vectors[2, layer], b.vectors[2, layer]) for a in left for b in right if a is not b]
        return np.mean([a @ b / np.linalg.norm(a) / np.linalg.norm(b) for a, b in pairs])

    assert mean(things, deeds, 0) == pytest.approx(1.0, abs=1e-5)
    for layer in (1, 2):
        within = (mean(things, things, layer) + mean(deeds, deeds, layer)) / 2
        assert within > mean(things, deeds, layer) + 0.1


def test_vectors_stand_for_the_words_of_the_line(model):
    line = "  the stick, lies"
    (one,) = model.embed([line])
    assert one.words == ["the", "stick", ",", "lies"] and [line[a:b] for a, b in one.spans] == one.words
    assert one.vectors.shape == (4, 3, 48) and one.vectors.dtype == np.float32
    assert np.array_equal(one.vectors[:, 0, :24], one.vectors[:, 0, 24:])
    empty, blank = model.embed(["", " \t"])
    assert empty.words == blank.words == [] and empty.vectors.shape == (0, 3, 48)
    with pytest.raises(UsageError, match=r"embed: texts is one text, 'the stick'; a list of texts is wanted"):
        model.embed("the stick")


def test_places_of_a_word_are_drawn_apart_by_sense(model, tmp_path):
    things = [f"{place} the stick lies here" for place in PLACES[:5]]
    deeds = [f"{place} we stick them here" for place in PLACES[:5]]
    drawn = model.map("stick", [*things, "no such word", *deeds])
    assert drawn.words[0] == "here the stick lies here" and len(drawn.words) == 10
    first = drawn.places[:, 0]
    assert max(first[:5]) < min(first[5:]) or min(first[:5]) > max(first[5:])
    drawn.to(tmp_path / "map.svg")
    with pytest.raises(DataError, match=r"map: 'stick' stands in 1 place of the texts, and two make a map"):
        model.map("stick", ["the stick", "the pole"])


def test_vectors_are_written_for_programs_and_line_by_line(run, read, model, tmp_path):
    (tmp_path / "lines.txt").write_text("now the stick\n\nwe pin, them\n")
    wanted = model.embed(["now the stick", "", "we pin, them"])
    whole = np.concatenate([one.vectors for one in wanted])
    for layer, expected in (("all", whole), ("mean", whole.mean(1)), ("2", whole[:, 2])):
        run("embed", read / "model", tmp_path / "lines.txt", "--to", tmp_path / "v.npz", "--layer", layer)
        found = np.load(tmp_path / "v.npz", allow_pickle=False)
        np.testing.assert_allclose(found["vectors"], expected, atol=1e-5)
        assert found["words"].tolist() == ["now", "the", "stick", "we", "pin", ",", "them"]
        assert found["offsets"].tolist() == [0, 3, 3, 7]
    run("embed", read / "model", tmp_path / "lines.txt", "--to", tmp_path / "v.jsonl")
    rows = [json.loads(line) for line in (tmp_path / "v.jsonl").read_text().splitlines()]
    assert [row["words"] for row in rows] == [one.words for one in wanted] and rows[2]["spans"][1] == [3, 6]
    np.testing.assert_allclose(rows[2]["vectors"], wanted[2].vectors.mean(1), atol=1e-5)
    shown = run("embed", read / "model", tmp_path / "lines.txt").out.splitlines()
    assert [line.split("\t")[:2] for line in shown[:4]] == [["0", "now"], ["0", "the"], ["0", "stick"], ["2", "we"]]
    for words, said in (
        ((), "hang on the text around it. Give lines"),
        ((tmp_path / "lines.txt", "--layer", "3"), "--layer 3 was given; it is mean, all, or a number from 0 to 2"),
        ((tmp_path / "lines.txt", "--to", tmp_path / "v.txt"), "are written as .npz or .jsonl"),
    ):
        done = run("embed", read / "model", *words)
        assert done.code == 2 and said in done.err


def test_a_word_that_was_never_seen_is_read_by_its_characters(model):
    known, near, far = model.embed(["the stick lies there", "the sticks lies there", "the 42 lies there"])
    top = [one.vectors[1, -1] for one in (known, near, far)]
    assert not np.allclose(top[0], top[1])
    assert top[0] @ top[1] / np.linalg.norm(top[1]) > top[0] @ top[2] / np.linalg.norm(top[2])


def test_scores_are_of_each_text_alone(model):
    rows = texts(7, 5)
    together = model.score(rows)
    for row, one in zip(rows, together, strict=True):
        (alone,) = model.score([row])
        assert one.words == row.split()
        for left, right in zip(one.sides, alone.sides, strict=True):
            assert len(left) == 6
            np.testing.assert_allclose(left, right, atol=1e-4)
    (nothing,) = model.score([""])
    assert [len(side) for side in nothing.sides] == [1, 1]  # an end follows, a beginning went before
    tally = {one.name: one.value for one in model.evaluate(rows)}
    total = -sum(float(side.sum()) for one in together for side in one.sides)
    assert tally["loss"] == pytest.approx(total / (2 * 6 * 7))


def test_the_command_line_scores_line_by_line(run, read):
    done = run("score", read / "model", read / "test.txt", "--tokens", "--json")
    rows = [json.loads(line) for line in done.out.splitlines()]
    lines = (read / "test.txt").read_text().split("\n")[:-1]
    assert [row["line"] for row in rows[:-1]] == list(range(len(lines))) and rows[-1]["texts"] == 20
    for row, line in zip(rows, lines, strict=False):
        assert row["words"] == len(line.split())
        if line:
            assert [word for word, _, _ in row["tokens"]] == line.split()
            assert row["forward"] < sum(left for _, left, _ in row["tokens"])  # the end is predicted too
    shown = run("score", read / "model", read / "test.txt").out.splitlines()
    assert len(shown) == len(lines) and shown[1] == "0.0000\t0.0000\t0\t1.0000"


def test_it_evaluates_beside_another_and_explains_and_keeps_its_promises(run, read):
    done = run("evaluate", read / "model", read / "test.txt", "--compare", read / "model", "--json")
    found = json.loads(done.out)
    assert {one["name"] for one in found["scores"]} >= {"loss", "perplexity", "forward_perplexity"}
    first, second = found["compare"]
    assert first["perplexity"] == second["perplexity"] and first["model"] != second["model"]
    run("explain", read / "model", "we stick them on", "--to", read / "picture.svg")
    assert (read / "picture.svg").read_text().count("stick") >= 2
    checked = json.loads(run("selfcheck", read / "model", "--json").out)
    assert len(checked["checks"]) == 5 and all(one["holds"] for one in checked["checks"])


def test_what_decides_a_sense_turns_the_vector(model):
    shown = model.explain("we stick them on")
    assert shown.source == shown.target == ("we", "stick", "them", "on")
    assert (np.diag(shown.weights) == 0).all() and shown.weights[1, 0] > 0.05
    with pytest.raises(DataError, match="empty"):
        model.explain(" ")


def test_what_it_cannot_do_is_said(run, read):
    for verb, rest in (("generate", ["--prompt", "the"]), ("predict", [read / "test.txt"])):
        done = run(verb, read / "model", *rest)
        assert f"a model of the task 'contextual_vectors' does not {verb} (" in done.err


def test_text_between_blank_lines_is_guessed_and_read_as_one(tmp_path, run):
    rows = texts(120, 1)
    blocks = [f"{rows[place]}\n{rows[place + 1]}" for place in range(0, 120, 2)]
    (tmp_path / "a.txt").write_text("\n\n".join(blocks) + "\n")
    settings = {**SMALL, "train": {**SMALL["train"], "epochs": 1}}
    made = train(tmp_path / "a.txt", out=tmp_path / "model", settings=settings, quiet=True)
    assert made.task.documents == "blank_line"
    done = run("score", tmp_path / "model", tmp_path / "a.txt", "--json")
    found = [json.loads(line) for line in done.out.splitlines()]
    assert [one["line"] for one in found[:3]] == [0, 3, 6] and found[0]["words"] == len(blocks[0].split())


def test_cut_texts_are_predicted_as_far_as_they_go(tmp_path):
    (tmp_path / "a.txt").write_text("\n".join(" ".join(texts(4, seed)) for seed in range(30)) + "\n")
    settings = {**SMALL, "train": {**SMALL["train"], "epochs": 1}, "data": {"max_length": 5, "too_long": "cut"}}
    made = train(tmp_path / "a.txt", out=tmp_path / "model", settings=settings, quiet=True)
    assert made.record["rows"]["train"] > 20


def test_an_empty_text_and_a_damaged_file_are_refused(tmp_path, read):
    (tmp_path / "a.txt").write_text("\n\n \n")
    with pytest.raises(DataError, match=r"a\.txt"):
        train(tmp_path / "a.txt", out=tmp_path / "model", settings=SMALL, quiet=True)
    from unrolled.text.spelled import SpelledText

    (tmp_path / "spelling.json").write_text("{}")
    with pytest.raises(DataError, match=r"spelling.json: damaged, it does not hold the spelling\. Take the file"):
        SpelledText.load(tmp_path)
    with pytest.raises(DataError, match=r"spelling.json: the spelling cannot be read"):
        SpelledText.load(tmp_path / "none")
