"""Cells with several labels: each label is told by itself, and a new combination of known ones is nothing new."""

import itertools
from pathlib import Path

import pytest

from unrolled.data.doctor import examine
from unrolled.data.questions import ASKED
from unrolled.data.table import Row, Table


def table_of(rows, columns=("source", "target"), name="a.tsv"):
    """A table that stands in no file."""
    return Table(Path(name), columns, lambda _: (Row(number, fields) for number, fields in enumerate(rows, start=1)))


def found(report, kind):
    return [each for each in report.findings if each.kind == kind]


def only(report, kind):
    (finding,) = found(report, kind)
    return finding


def joint_labels(sign):
    """A table whose cells hold one label or several, with ``sign`` between them, or none."""
    cells = ("red", "blue", f"red{sign}blue", "", f"blue{sign}round", f"round{sign} red")
    return [(f"text {number} {number * 7}", cells[number % 6]) for number in range(60)]


@pytest.mark.parametrize("sign", [",", ";", "|"])
def test_of_cells_with_several_labels_each_is_told(sign):
    train = table_of([*joint_labels(sign), ("other text", "odd")], ("text", "label"))
    rows = [("one", f"red{sign}green"), ("two", f"round{sign}blue{sign}red"), ("three", f" green {sign}new"), ("4", "")]
    report = examine({"train": train, "valid": table_of(rows, ("text", "label"), "b.tsv")})
    assert report.splits[0].columns[1].labels == {"red": 30, "blue": 30, "round": 20, "odd": 1}
    finding = only(report, "unseen classes")
    wanted = "2 classes of 'label' never seen in train, in 2 rows: green, new. No model can answer them."
    assert (finding.message, finding.places) == (wanted, ("b.tsv:1", "b.tsv:3"))
    assert only(report, "rare classes").message == "1 of 4 classes of 'label' are seen fewer than 5 times: odd."
    note = only(report, "several labels")
    written = "text.separator=," if sign == "," else f"'text.separator={sign}'"
    assert note.message == (
        f"30 cells of 'label' hold several labels, as 'red{sign}blue', and each label is counted here. "
        f"A classifier reads them so with --set {written}."
    )
    assert (note.severity, note.places[0]) == ("note", "a.tsv:3")


def test_a_sign_that_is_given_separates_labels_whatever_stands_alone():
    rows = [(f"text {number} {number * 7}", ("red / blue", "blue / round")[number % 2]) for number in range(60)]
    valid = table_of([("one", "red / round"), ("two", "green / red")], ("text", "label"), "b.tsv")
    tables = {"train": table_of(rows, ("text", "label")), "valid": valid}
    assert not found(examine(tables), "several labels")
    report = examine(tables, separator="/")
    assert report.splits[0].columns[1].labels == {"blue": 60, "red": 30, "round": 30}
    assert "1 class of 'label' never seen in train, in 1 row: green." in only(report, "unseen classes").message
    assert "with --set 'text.separator=/'" in only(report, "several labels").message
    assert not found(examine(tables, separator="&"), "several labels")


def test_a_new_combination_of_known_labels_is_no_new_class():
    train, rows = table_of(joint_labels(","), ("text", "label")), [("one", "round,blue,red"), ("two", "red , round")]
    report = examine({"train": train, "valid": table_of(rows, ("text", "label"), "b.tsv")})
    assert not found(report, "unseen classes")


def test_more_combinations_than_classes_are_kept_apart_from_labels():
    names = [f"n{number}" for number in range(12)]
    cells = [",".join(each) for count in (1, 2, 3, 4, 5) for each in itertools.combinations(names, count)]
    train = table_of([(f"text {number} of it", cell) for number, cell in enumerate(cells)], ("text", "label"))
    valid = table_of([("a text", "n11,n10,n9,n8,n7,n6"), ("one more", "n3,n12")], ("text", "label"), "b.tsv")
    report = examine({"train": train, "valid": valid})
    assert len(cells) > 1000 and set(report.splits[0].columns[1].labels) == set(names)
    assert "1 class of 'label' never seen in train, in 1 row: n12." in only(report, "unseen classes").message


def test_a_label_that_is_in_most_rows_is_not_called_the_answer():
    train = table_of([(f"text {number} {number * 3}", ("a", "a,b", "b")[number % 3]) for number in range(60)])
    finding = only(examine({"train": train}), "unbalanced")
    assert finding.message == "'a' is among the labels of 67% of the rows ('target')."


def test_signs_in_labels_of_which_no_part_stands_alone_separate_nothing():
    train = table_of([(f"text {number} {number * 3}", ("a,b", "c,d", "e")[number % 3]) for number in range(60)])
    report = examine({"train": train, "valid": table_of([("one", "a,d")], name="b.tsv")})
    assert not found(report, "several labels")
    assert "1 class of 'target' never seen in train, in 1 row: a,d." in only(report, "unseen classes").message


def test_an_answer_is_one_whatever_is_in_it():
    answers = ("milk", "milk,football", "apple", "football")
    train = table_of([(f"Where is {number}?\nHe got it.", answers[number % 4]) for number in range(60)], ASKED)
    report = examine({"train": train, "valid": table_of([("Where?\nHe got it.", "apple,milk")], ASKED, "b.tsv")})
    assert not found(report, "several labels")
    assert f"1 class of '{ASKED[1]}' never seen in train" in only(report, "unseen classes").message
