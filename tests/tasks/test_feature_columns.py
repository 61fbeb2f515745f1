"""Which columns are features: by word, by name, by looks."""

import pytest

from unrolled.base.errors import SettingsError
from unrolled.data.readers import open_table
from unrolled.tasks import TASKS
from unrolled.tasks.feature_columns import columns_of, guess, sources_of
from unrolled.workshop.sources import open_sources


@pytest.mark.parametrize(
    ("features", "columns", "places"),
    [
        ([2], ("source", "target", "3"), (0, 1, 2)),
        ([3], ("source", "target", "3"), (0, 2, 1)),
        ([1], ("a", "b", "c"), (1, 0, 2)),
        (["features"], ("form", "Features", "lemma"), (2, 1, 0)),
        (["style", "lang"], ("lang", "de", "style", "en"), (1, 2, 0, 3)),
        ([4, "x"], ("x", "src", "trg", "z"), (1, 3, 0, 2)),
        (["tag"], ("translation", "tag", "source"), (2, 1, 0)),
        ([2], ("tags", "lemma", "form"), (1, 0, 2)),  # the number is that of a table without names
        ([2], ("tags", "style", "form"), (0, 1, 2)),
    ],
)
def test_source_and_target_are_the_others(features, columns, places) -> None:
    assert columns_of(features, columns) == places


@pytest.mark.parametrize(
    ("features", "columns", "message"),
    [
        (["tag"], ("a", "b", "c"), r"\[task.features\] no column is called 'tag', only a, b, c\. A number"),
        ([4], ("a", "b", "c"), r"\[task.features\] 4 was given, and there are 3 columns"),
        ([2], ("a", "b"), r"\[task.features\] 2 of the columns a, b: two others must remain"),
        (["a", 1], ("a", "b", "c"), r"\[task.features\] a, 1: a column is named twice"),
    ],
)
def test_what_is_not_there_is_said(features, columns, message) -> None:
    with pytest.raises(SettingsError, match=message):
        columns_of(features, columns)


@pytest.mark.parametrize(
    ("features", "columns", "named", "places"),
    [
        ([2], ("source", "target"), False, (0, 1)),
        ([3], ("source", "target"), False, (0, 1)),
        ([1], ("source", "target"), False, (1, 0)),
        ([2], ("source", "target", "3"), False, (0, 1)),
        ([2], ("tags", "lemma"), True, (1, 0)),
        (["features"], ("features", "lemma"), True, (1, 0)),
        (["features"], ("source", "target"), False, (0, 1)),
        (["features"], ("form", "features", "lemma"), True, (2, 1)),
        (["style", "lang"], ("source", "target", "3"), False, (0, 1, 2)),
    ],
)
def test_a_table_to_predict_from_may_lack_the_target(features, columns, named, places) -> None:
    assert sources_of(features, columns, named=named) == places


def table(tmp_path, rows, name="data.tsv"):
    path = tmp_path / name
    path.write_text("".join("\t".join(row) + "\n" for row in rows))
    return open_table(path)


INFLECTED = [(f"lemma{n}", ("V;PST", "V;PRS;NOM(3,SG)", "N")[n % 3], f"form{n}") for n in range(30)]


def test_lists_of_values_between_two_texts_are_features(tmp_path) -> None:
    found = table(tmp_path, INFLECTED)
    assert guess(found)[0] == 2
    tree, said = TASKS["translate"].conclude(found)
    assert tree == {"task": {"features": [2]}}
    assert said[0].endswith("is read so (task.features; to read none: --set task.features=null).")


def test_a_name_says_it_in_any_order(tmp_path) -> None:
    rows = [("form", "features", "lemma"), *((form, tags, lemma) for lemma, tags, form in INFLECTED)]
    assert guess(table(tmp_path, rows))[0] == "features"


@pytest.mark.parametrize(
    "rows",
    [
        [(f"name{n}", f"{n % 7} {n % 5} x", "3") for n in range(40)],  # letters apart, a count
        [(f"a{n}", f"b{n}", f"c{n}") for n in range(40)],
        [(f"a{n}", "de" if n % 2 else "fr", str(n % 3)) for n in range(40)],  # the target would be one of three
        INFLECTED[:10],
        [(f"a{n}", f"b{n}") for n in range(40)],
    ],
)
def test_other_tables_have_none(tmp_path, rows) -> None:
    assert guess(table(tmp_path, rows)) is None


def test_a_few_labels_between_two_texts_are_features(tmp_path) -> None:
    assert guess(table(tmp_path, [(f"a{n}", ("de", "fr")[n % 2], f"c{n}") for n in range(40)]))[0] == 2


def test_the_doctor_reads_them_as_features(tmp_path, run) -> None:
    """Sources with the same lemma and other features are not ambiguous; what is new or empty is said."""
    many = [(f"w{n % 15}", ("V;PST", "N;PL", "V;NOM(2,SG)", "N")[n % 4], f"f{n}") for n in range(60)]
    train, valid = tmp_path / "train.tsv", tmp_path / "valid.tsv"
    table(tmp_path, many, "train.tsv")
    table(tmp_path, [("u1", "V;FUT", "x"), ("u2", "V;PST", "y")], "valid.tsv")
    found = run("check", train, "--valid", valid)
    assert found.code == 0, found.err
    assert "columns source, target, features" in found.out
    assert "train: column 2 looks like features of the source and is read so." in found.out
    assert "warning: valid: 1 value is new among the features 'features': FUT. Read as unknown." in found.out
    assert f"  {valid}:1" in found.out
    assert "several targets" not in found.out and "classes" not in found.out
    table(tmp_path, [("lemma", "features", "form"), *((lemma, "", form) for lemma, _, form in many)], "train.tsv")
    found = run("check", train)
    assert found.code == 3
    assert "error: train: the features 'features' are empty in every row: leave the column out" in found.out


@pytest.mark.parametrize("chosen", [None, ["form", "features", "lemma"]])
def test_a_run_takes_the_columns_by_their_names(tmp_path, chosen) -> None:
    rows = [("form", "features", "lemma"), *((form, tags, lemma) for lemma, tags, form in INFLECTED)]
    data = {"columns": chosen, "wrong_lines": "refuse", "valid_share": 0.1, "valid_rows": 5}
    task = TASKS["translate"](features="features")
    assert task.columns == ("source", "features", "target")
    found = open_sources({"train": table(tmp_path, rows)}, task, data)
    taken = sorted(row.fields for part in (found.train, found.valid) for row in part.rows())
    assert taken == sorted(INFLECTED)
