"""A tagger from a file to its verbs: guessed, trained, scored, seen through, saved; bad data refused with its place."""

import json
import random

import numpy as np
import pytest

import unrolled
from unrolled.base.errors import DataError, SettingsError, UsageError
from unrolled.runs import train

SMALL = {
    "model": {
        "embedding_size": 12,
        "character_size": 8,
        "character_hidden_size": 12,
        "encoder": {"cell": {"kind": "gru", "hidden_size": 16}},
        "dropout": 0.1,
    },
    "train": {"epochs": 6, "batch_sentences": 16, "learning_rate": 0.02, "precision": "float32", "seed": 1},
}
SYLLABLES = ["ba", "do", "ki", "lu", "me", "po", "ra", "su"]


def sentence(draw):
    """(word, part of speech, tag of a name): verbs end in t, nouns in n; names follow "mr"."""
    rows = []
    for _ in range(draw.randint(2, 6)):
        stem = "".join(draw.choices(SYLLABLES, k=2))
        kind = draw.choice(["verb", "noun", "name"])
        if kind == "name":
            rows.append(("mr", "NOUN", "O"))
            rows += [
                (stem.title(), "PROPN", "B-PER"),
                *[(draw.choice(SYLLABLES).title(), "PROPN", "I-PER")] * draw.randint(0, 1),
            ]
        else:
            rows.append((stem + ("t" if kind == "verb" else "n"), kind.upper(), "O"))
    return [*rows, (".", "PUNCT", "O")]


def sentences(count, seed):
    draw = random.Random(seed)
    return [sentence(draw) for _ in range(count)]


def conllu(rows):
    """CoNLL-U with a multiword token, an empty node, comments and CRLF."""
    lines = ["# sent_id = 1", "1-2\txx\t_\t_\t_\t_\t_\t_\t_\t_"]
    for number, (word, tag, _) in enumerate(rows, start=1):
        lines.append(f"{number}\t{word}\t{word}\t{tag}\t_\t_\t0\troot\t_\tSpaceAfter=No")
    return "\r\n".join([*lines, f"{len(rows)}.1\tnode\t_\tX\t_\t_\t_\t_\t_\t_", "", ""])


def conll(rows):
    return "".join(f"{word} x {tag}\n" for word, _, tag in rows) + "\n"


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Data in both forms, a tagger of parts of speech and one of names."""
    folder = tmp_path_factory.mktemp("tagged")
    for name, count, seed in (("train", 250, 1), ("test", 40, 2)):
        made = sentences(count, seed)
        (folder / f"{name}.conllu").write_bytes("".join(map(conllu, made)).encode())
        (folder / f"{name}.txt").write_text("-DOCSTART- x O\n\n" + "".join(map(conll, made)))
    train(folder / "train.conllu", out=folder / "pos", settings=SMALL, quiet=True)
    train(folder / "train.txt", out=folder / "names", settings=SMALL, quiet=True)
    return folder


@pytest.fixture(scope="module")
def pos(folder):
    return unrolled.load(folder / "pos")


@pytest.fixture(scope="module")
def names(folder):
    return unrolled.load(folder / "names")


def given(count, seed):
    made = sentences(count, seed)
    return [[[row[place] for row in one] for one in made] for place in range(3)]


def test_it_learns_parts_of_speech_from_endings(pos):
    words, tags, _ = given(60, 3)
    scores = {score.name: score.value for score in pos.evaluate(words, tags)}
    assert scores["accuracy"] > 0.98 and scores["macro_f1"] > 0.97
    assert type(pos) is unrolled.TextTagger and pos.kinds == ("NOUN", "PROPN", "PUNCT", "VERB")
    assert pos.network.crf is False and pos.plan.settings["train"]["stop_on"] == "accuracy"


def test_it_learns_names_as_spans(names):
    words, _, tags = given(60, 3)
    scores = {score.name: score.value for score in names.evaluate(words, tags)}
    assert scores["f1"] > 0.95 and scores["partial_f1"] >= scores["f1"] and "macro_f1" not in scores
    assert names.network.crf is True and names.text.tags.scheme == "iob2" and names.text.tags.learnt == "bioes"
    (one,) = names.answers([["mr", "Dolu", "Ba", "ran", "."]])
    assert one.tags == ["O", "B-PER", "I-PER", "O", "O"] and one.spans == [(1, 3, "PER")]


def test_an_answer_depends_on_its_sentence_alone(names):
    words = [*given(30, 4)[0], ["."], []]
    together = names.marginals(words)
    alone = [names.marginals([one])[0] for one in words]
    turned = names.marginals(words[::-1], batch=4)[::-1]
    for rows in (alone, turned):
        assert max(np.abs(a - b).max(initial=0) for a, b in zip(rows, together, strict=True)) < 1e-5
    assert names.predict([]) == [] and names.predict([[]]) == [[]] and together[-1].shape == (0, 5)
    with pytest.raises(UsageError, match=r"sentences\[0\] is the text 'a b'; a list of words is wanted: \['a', 'b'\]"):
        names.predict(["a b"])


def test_a_file_comes_back_with_other_tags_and_nothing_else_changed(run, folder, pos, tmp_path):
    source = (folder / "test.conllu").read_bytes()
    written = run("predict", folder / "pos", folder / "test.conllu").out
    assert written.encode() == pos.predict_file(folder / "test.conllu", tmp_path / "to.conllu").read_bytes()
    lines = list(zip(source.decode().split("\n"), written.split("\n"), strict=True))
    changed = [(old, new) for old, new in lines if old != new]
    assert len(changed) < len(lines) / 20
    assert all(
        old.split("\t")[:3] + old.split("\t")[4:] == new.split("\t")[:3] + new.split("\t")[4:] for old, new in changed
    )
    (tmp_path / "blank.conllu").write_bytes(source.replace(b"\tVERB\t", b"\t_\t"))
    assert run("predict", folder / "pos", tmp_path / "blank.conllu").out == written


def test_lines_and_standard_input_and_files_without_tags(run, folder, tmp_path):
    (tmp_path / "lines.txt").write_text("mr Dolu kilun)\n\nbadot\n")
    assert run("predict", folder / "names", tmp_path / "lines.txt").out.splitlines()[1:] == ["", "badot/O"]
    row = json.loads(run("predict", folder / "names", tmp_path / "lines.txt", "--json").out.splitlines()[0])
    assert row["words"] == ["mr", "Dolu", "kilun", ")"] and row["spans"] == [{"start": 1, "stop": 2, "label": "PER"}]
    spaces = json.loads(
        run("predict", folder / "names", tmp_path / "lines.txt", "--json", "--spaces").out.splitlines()[0]
    )
    assert spaces["words"] == ["mr", "Dolu", "kilun)"]
    (tmp_path / "bare.conll").write_text("mr\nDolu\n\nbadot\n")
    assert run("predict", folder / "names", tmp_path / "bare.conll").out == "mr\tO\nDolu\tB-PER\n\nbadot\tO\n"


def test_scores_tables_and_promises_on_the_command_line(run, folder):
    found = run("evaluate", folder / "pos", folder / "test.conllu", "--compare", folder / "pos", "--json")
    tree = json.loads(found.out)
    assert tree["sentences"] == 40 and [score["name"] for score in tree["scores"]] == ["accuracy", "macro_f1"]
    assert {row["tag"] for row in tree["tags"]} == {"NOUN", "PROPN", "PUNCT", "VERB"}
    assert tree["compare"][0]["difference"] == 0 and tree["compare"][0]["p"] == 1
    tree = json.loads(
        run("evaluate", folder / "names", folder / "test.txt", "--compare", folder / "names", "--json").out
    )
    assert tree["kinds"][0]["kind"] == "PER" and [row["measure"] for row in tree["compare"]] == ["f1", "accuracy"]
    for name in ("pos", "names"):
        checked = run("selfcheck", folder / name, "--lines", 16)
        assert checked.code == 0 and checked.out.count("holds") == 6
    assert "pipeline_tag: token-classification" in (folder / "names" / "README.md").read_text()


@pytest.mark.parametrize("text, settings, said", [
    ("a O\nb I-X\n\nc B-X\nd O\n\ne B-X\nf I-X\n\n", {}, r"bad.conll:2: I-X after O, which iob2 does not allow"),
    ("a O\nb\n\nc B-X\nd O\n\n", {}, r"bad.conll:2: 1 column where 2 are expected"),
    ("a O\nb O\n\nc O\nd O\n\n", {}, r"bad.conll: all words have the tag 'O': there is nothing to tell apart"),
    ("a B-X\nb O\n\nc O\n\n", {"scheme": "bioes"}, r"bad.conll:2: O after B-X, which bioes does not allow"),
    ("a B-X\nb O\n\n", {}, r"bad.conll: 1 sentence, and some must be held out"),
])  # fmt: skip
def test_wrong_data_is_named_with_its_place(tmp_path, text, settings, said):
    (tmp_path / "bad.conll").write_text(text)
    with pytest.raises(DataError, match=said):
        train(tmp_path / "bad.conll", out=tmp_path / "out", settings={"task": {"kind": "tag"} | settings}, quiet=True)


def test_evaluate_names_the_line_of_a_broken_tag(folder, tmp_path, run):
    bad = tmp_path / "bad.txt"
    bad.write_text("Ann x B-PER\nran x O\n\nand x O\nBob x I-PER\n")
    result = run("evaluate", folder / "names", bad)
    assert result.code == 3 and f"{bad}:5: I-PER after O, which iob2 does not allow. Repair the tag" in result.err
    rows = tmp_path / "bad.jsonl"
    rows.write_text('{"tokens": ["ran", "Bob"], "tags": ["O", "I-PER"]}\n')
    result = run("evaluate", folder / "names", rows)
    assert result.code == 3 and f"{rows}:1, word 2: I-PER after O" in result.err


def test_a_tag_that_training_never_had_and_an_empty_split(tmp_path, folder):
    from unrolled.workshop.sources import Sources

    (tmp_path / "valid.conll").write_text("a x O\nb x B-PRE\n\n")
    sources = Sources(data=str(folder / "train.txt"), valid=str(tmp_path / "valid.conll"))
    with pytest.raises(DataError, match=r"valid.conll:2: the label 'PRE' is none of the 1 that training rows have"):
        train(sources=sources, out=tmp_path / "out", settings=SMALL, quiet=True)
    (tmp_path / "valid.conll").write_text("# nothing\n\n")
    with pytest.raises(DataError, match=r"valid.conll: there is no sentence in it"):
        train(sources=sources, out=tmp_path / "out", settings=SMALL, quiet=True)


@pytest.mark.parametrize("settings, said", [
    ({"task": {"tags": "upso"}}, r"\[task.tags\] no column is called 'upso', only id, form"),
    ({"task": {"tags": 12}}, r"\[task.tags\] 12 was given, and there are 10 columns"),
    ({"text": {"tokenizer": {"kind": "bpe"}}}, r"\[text.tokenizer\] 'bpe' was given. The words are given"),
    ({"train": {"sampling": 0.5}}, r"\[train.sampling\] 0.5 was given, and a tagger"),
    ({"model": {"crf": True}, "train": {"label_smoothing": 0.1}}, r"\[train.label_smoothing\] 0.1 was given; a chain"),
    ({"model": {"encoder": {"kind": "pyramidal"}}}, r"one position of it stands for \d+ words"),
])  # fmt: skip
def test_settings_that_do_not_fit(tmp_path, folder, settings, said):
    with pytest.raises(SettingsError, match=said):
        train(folder / "test.conllu", task="tag", out=tmp_path / "out", settings=settings, quiet=True)


def test_another_column_is_learnt_where_it_is_named(tmp_path, folder):
    settings = SMALL | {"task": {"tags": "deprel"}}
    text = (folder / "test.conllu").read_text().replace("\tVERB\t_\t_\t0\troot", "\tVERB\t_\t_\t0\tnsubj")
    (tmp_path / "t.conllu").write_text(text)
    model = train(tmp_path / "t.conllu", out=tmp_path / "out", settings=settings | {"train": {"steps": 1}}, quiet=True)
    assert model.kinds == ("nsubj", "root")


def test_a_tag_is_explained_by_its_words_and_its_characters(run, folder, names, pos, tmp_path):
    seen = names.explain(["mr", "Kilu", "badot", "."])
    assert seen.target[1] == "Kilu/B-PER" and seen.weights.shape == (4, 4) and seen.method == "erasure"
    (one,) = names.answers([["mr", "Kilu", "badot", "."]])
    assert np.exp(seen.log_probs) == pytest.approx(one.probabilities, abs=1e-5)
    by_letter = pos.explain("mr badot.", 1)
    assert by_letter.source == ("(the word)", *"badot") and by_letter.target == ("badot/VERB",)
    assert by_letter.weights[0].argmax() == 5  # the ending decides
    with pytest.raises(UsageError, match="word 3 was asked for; the sentence has the words 0 to 2"):
        pos.explain("mr badot.", 3)
    with pytest.raises(DataError, match="the sentence is empty"):
        pos.explain("  ")
    shown = run("explain", folder / "pos", "mr badot.", "--word", 2, "--to", tmp_path / "seen.svg")
    assert shown.code == 0 and (tmp_path / "seen.svg").read_text().startswith("<svg")


def test_given_tags_are_scored(run, folder, names, pos):
    words = [["mr", "Kilu", "badot", "."]]
    (right,), (wrong,) = (names.score(words, [tags]) for tags in (["O", "B-PER", "O", "O"], ["O", "O", "O", "O"]))
    assert right.log_probability > wrong.log_probability and len(right.words) == 4
    (one,) = names.answers(words)
    assert one.log_probability == pytest.approx(right.log_probability, abs=1e-5)
    (plain,) = pos.score(words, [["NOUN", "PROPN", "VERB", "PUNCT"]])
    assert plain.log_probability == pytest.approx(sum(plain.words), abs=1e-5)
    rows = [json.loads(line) for line in run("score", folder / "names", folder / "test.txt", "--json").out.splitlines()]
    assert len(rows) == 41 and rows[-1]["log_prob"] == pytest.approx(sum(row["log_prob"] for row in rows[:-1]))
    with pytest.raises(DataError, match="sentence 0, word 1: I-PER after O"):
        names.score(words, [["O", "I-PER", "O", "O"]])


def test_json_lines_come_back_with_other_spans(run, folder, tmp_path):
    text = '{"id": 1.50, "text": "mr Kilu badot.", "spans": []}\n\n{"text": "poran"}\n'
    (tmp_path / "a.jsonl").write_text(text)
    said = text.replace("[]", '[{"start": 3, "end": 7, "label": "PER"}]').replace('poran"', 'poran", "spans": []')
    assert run("predict", folder / "names", tmp_path / "a.jsonl").out == said
    refused = run("predict", folder / "pos", tmp_path / "a.jsonl")
    assert refused.code == 2 and "holds spans of words, and this model gives each word its own tag" in refused.err


def test_words_start_from_vectors_of_a_file_also_those_that_training_never_sees(folder, tmp_path):
    vectors = "".join(f"{word} {number / 9} 0.5 -0.25\n" for number, word in enumerate(["mr", "badot", "unseen", "."]))
    (tmp_path / "vectors.txt").write_text(vectors)
    network = SMALL["model"] | {"embedding_size": 3}
    settings = {"text": {"tokenizer": {"vectors": {"kind": "frozen", "file": str(tmp_path / "vectors.txt")}}}}
    settings |= {"model": network, "train": SMALL["train"] | {"epochs": None, "steps": 3}}
    model = train(folder / "test.conllu", task="tag", out=tmp_path / "out", settings=settings, quiet=True)
    known = model.text.tokenizer.id_of("unseen")
    assert known > 3 and not model.network.rare[model.text.tokenizer.id_of("badot")] and model.network.rare.any()
    again = unrolled.load(tmp_path / "out")
    assert np.array_equal(model.marginals([["unseen", "x"]])[0], again.marginals([["unseen", "x"]])[0])
