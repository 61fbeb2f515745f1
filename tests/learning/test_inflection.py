"""The form depends on lemma and tag: learnt in seconds, with copy also for letters that are rare in training."""

import random

import pytest

import unrolled
from unrolled.base.errors import DataError, UsageError
from unrolled.pipeline import Translator
from unrolled.runs import train
from unrolled.workshop.promises import check_promises

ENDINGS = {"V;PST": "d", "V;PRS;NOM(3,SG)": "s", "N;PL": "n", "V;NFIN": ""}
SMALL = {
    "text": {"source": "character", "target": "character"},
    "model": {
        "embedding_size": 32,
        "dropout": 0.1,
        "encoder": {"cell": {"kind": "gru", "hidden_size": 32}},
        "decoder": {"cell": {"kind": "gru", "hidden_size": 48}, "attention": {"hidden_size": 32}},
    },
    "train": {"epochs": 7, "batch_sentences": 32, "learning_rate": 0.008, "validate_every": 1000, "seed": 1},
}


def lemmas(consonants: str, count: int, seed: int) -> list[str]:
    draw = random.Random(seed)
    return [
        "".join(draw.choice(consonants) + draw.choice("aeiou") for _ in range(draw.randint(1, 3))) for _ in range(count)
    ]


def rows(consonants: str, count: int, seed: int) -> list[tuple[str, str, str]]:
    draw = random.Random(seed)
    return [
        (lemma, tags, lemma + ENDINGS[tags])
        for lemma in dict.fromkeys(lemmas(consonants, count, seed))
        for tags in draw.sample(list(ENDINGS), 2)
    ]


def written(path, table):
    path.write_text("".join("\t".join(row) + "\n" for row in table))
    return path


TRAINED = rows("bdgklmnprst", 500, 1)
RARE = [("wa", "V;PST", "wad"), ("zovo", "N;PL", "zovon"), ("hixe", "V;NFIN", "hixe")]  # each of these letters once
UNSEEN = [row for row in rows("bdgklmnprst", 80, 2) if row[0] not in {one[0] for one in TRAINED}]


def fitted(folder, copy: bool) -> Translator:
    data = written(folder / "train.tsv", [*TRAINED, *RARE])
    settings = {**SMALL, "model": SMALL["model"] | {"copy": copy}}
    return train(data, out=folder / ("copy" if copy else "plain"), settings=settings, quiet=True)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("inflection")


@pytest.fixture(scope="module")
def model(folder) -> Translator:
    return fitted(folder, copy=True)


def share(model: Translator, table: list[tuple[str, str, str]]) -> float:
    outputs = model.predict([row[:2] for row in table], beam=1)
    return sum(output == row[2] for output, row in zip(outputs, table, strict=True)) / len(table)


def test_the_form_follows_from_lemma_and_tag(model: Translator) -> None:
    assert model.task.features == (2,)  # what the middle column looks like
    assert share(model, UNSEEN) > 0.95


def test_copying_helps_with_letters_that_were_hardly_seen(model: Translator, folder) -> None:
    table = rows("wzvhx", 40, 3)
    assert share(model, table) > share(fitted(folder, copy=False), table) + 0.3


def test_the_promises_hold(model: Translator) -> None:
    lines = ["bada\tV;PST", "tu\tN;PL", "", "kilopa\t", "gu\tV;NEW"]
    for checks in (check_promises(model, lines), check_promises(model, model.made_up(8))):
        assert all(one.holds for one in checks), checks


def test_rows_lines_and_the_command_line_say_the_same(model: Translator, folder, run, tmp_path) -> None:
    table = UNSEEN[:5]
    outputs = model.predict([row[:2] for row in table])
    assert outputs == model.predict([f"{lemma}\t{tags}" for lemma, tags, _ in table])
    files = {
        "two.tsv": ["\t".join(row[:2]) for row in table],
        "three.txt": ["\t".join(row) for row in table],
        "named.tsv": ["features\tlemma", *(f"{tags}\t{lemma}" for lemma, tags, _ in table)],
        "named.csv": ["form,lemma,tags", *(f'{form},{lemma},"{tags}"' for lemma, tags, form in table)],
    }
    for name, lines in files.items():
        path = tmp_path / name
        path.write_text("".join(f"{line}\n" for line in lines))
        found = run("predict", folder / "copy", path)
        assert found.code == 0, found.err
        assert found.out.splitlines() == outputs, name


def test_an_empty_line_stays_and_an_unseen_feature_is_said(model: Translator, folder, run, tmp_path) -> None:
    path = tmp_path / "lines.tsv"
    path.write_text("bada\tV;PST\n\nbada\tV;NEW\n")
    found = run("predict", folder / "copy", path)
    first, empty, _ = found.out.splitlines()
    assert (first, empty) == ("badad", "")
    assert "the feature 'NEW' was in no training row: it is read as unknown" in found.err


def test_a_row_without_its_features_is_refused(model: Translator, folder, run, tmp_path) -> None:
    path = tmp_path / "lines.tsv"
    path.write_text("bada\tV;PST\nbada\n")
    found = run("predict", folder / "copy", path)
    assert found.code == 3
    assert (
        f"{path}:2: 1 column where 2 are expected (source, features 2). Columns are separated by one tab." in found.err
    )
    path.write_text("bada\nbada\n")
    found = run("predict", folder / "copy", path)
    assert f"{path}:1: 1 column where 2 are expected (source, features 2)" in found.err
    with pytest.raises(
        UsageError, match=r"predict: lines\[1\] is 'bada'; a row of 2 texts, the source and its features,"
    ):
        model.predict([("bada", "V"), "bada"])
    with pytest.raises(UsageError, match=r"predict: lines\[0\] has 3 texts; 2 texts"):
        model.predict([("bada", "V", "x")])


def test_a_training_row_without_its_features_is_refused(tmp_path) -> None:
    data = written(tmp_path / "train.tsv", [*TRAINED[:30], ("bada", "badad")])
    with pytest.raises(DataError, match=r"train.tsv:31: 2 columns where 3 are expected"):
        train(data, out=tmp_path / "model", settings=SMALL, quiet=True)
    data = written(tmp_path / "empty.tsv", [("lemma", "features", "form"), *((a, "", b) for a, _, b in TRAINED[:30])])
    with pytest.raises(DataError, match="column 1 of features is empty in every row"):
        train(data, out=tmp_path / "model", settings=SMALL, quiet=True)


def test_the_card_says_how_it_is_used(model: Translator, folder) -> None:
    card = (folder / "copy" / "README.md").read_text()
    assert "unrolled explain copy 'one line' --features 'A;B' --to picture.svg" in card
    assert "model.predict([('one line', 'A;B')])" in card
    assert "features, " in card  # how the column is read


def test_a_picture_shows_both(model: Translator, folder, run, tmp_path) -> None:
    found = model.explain(("bada", "V;PRS;NOM(3,SG)"))
    assert found.source == ("V", "PRS", "NOM", "3", "SG", "b", "a", "d", "a")
    assert found.aside == 5
    assert found.target_text == "badas"
    assert found.faithfulness["top_agreement"].value > 0.5
    assert [list(found.source[:2]), found.to_dict()["source"]["features"]] == [["V", "PRS"], 5]
    assert "<title>feature V</title>" in found.svg()
    shown = run("explain", folder / "copy", "bada", "--features", "V;PST", "--no-trust")
    assert shown.out.startswith("badad\n") and "‹V› ‹PST›" in shown.out
    refused = run("explain", folder / "copy", "bada")
    assert refused.code == 2 and "Give --features once for each." in refused.err
    new = run("explain", folder / "copy", "bada", "--features", "V;NEW", "--no-trust")
    assert new.code == 0 and "the feature 'NEW' was in no training row" in new.err


def test_scores_and_evaluation_read_the_table(model: Translator, folder, run, tmp_path) -> None:
    path = written(tmp_path / "test.tsv", UNSEEN)
    assert "exact_match" in run("evaluate", folder / "copy", path, "--beam", "1").out
    assert run("score", folder / "copy", path).code == 0
    log_probs = [
        one.log_probs.sum() for one in model.score([row[:2] for row in UNSEEN[:3]], [row[2] for row in UNSEEN[:3]])
    ]
    wrong = [
        one.log_probs.sum()
        for one in model.score([(row[0], "V;NEW") for row in UNSEEN[:3]], [row[2] for row in UNSEEN[:3]])
    ]
    assert sum(log_probs) > sum(wrong)
    again = unrolled.load(folder / "copy")
    assert again.predict([row[:2] for row in UNSEEN[:3]]) == model.predict([row[:2] for row in UNSEEN[:3]])
