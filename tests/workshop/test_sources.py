"""Which rows are held out for validation, and what is said of wrong lines."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from unrolled.base.errors import DataError
from unrolled.data import parts
from unrolled.data.parts import share_of
from unrolled.tasks import TASKS
from unrolled.tasks.translate import Translate
from unrolled.workshop.sources import Sources, open_sources, part_of, tables_of

DATA = {"columns": None, "wrong_lines": "refuse", "valid_share": 0.05, "valid_rows": 1000}


def opened(path, **data):
    return open_sources(tables_of(Sources(data=str(path)), data.get("columns")), TASKS.build("translate"), DATA | data)


@settings(max_examples=40, deadline=None)
@given(
    numbers=st.lists(st.integers(0, 300), min_size=2, max_size=400).filter(lambda found: len(set(found)) > 1),
    share=st.sampled_from([0.001, 0.05, 0.3, 0.9]),
    most=st.integers(1, 30),
)
def test_the_held_out_rows_are_those_of_all_digests_sorted(numbers, share, most, tmp_path_factory):
    path = tmp_path_factory.mktemp("data") / "pairs.tsv"
    path.write_text("".join(f"row {number}\tx\n" for number in numbers))
    places = sorted({share_of(f"row {number}") for number in numbers})
    held = max(1, min(round(share * len(places)), most, len(places) - 1))
    tables = opened(path, valid_share=share, valid_rows=most)
    valid = [row.fields[0] for row in tables.valid.rows()]
    train = [row.fields[0] for row in tables.train.rows()]
    assert {share_of(source) for source in valid} == set(places[:held])
    assert not set(valid) & set(train)
    assert len(valid) + len(train) == len(numbers)


def test_a_tiny_share_asks_for_no_memory(tmp_path):
    path = tmp_path / "pairs.tsv"
    path.write_text("a\tx\nb\ty\nc\tz\n")
    assert len(list(opened(path, valid_share=1e-300, valid_rows=10**9).valid.rows())) == 1


def test_few_of_many_digests_are_held():
    numbers = np.random.default_rng(0).permutation(200_000) / 200_000
    kept = parts.smallest(iter(numbers.tolist()), 100)
    assert kept.tolist() == [i / 200_000 for i in range(100)]


def test_one_source_cannot_be_held_out(tmp_path):
    path = tmp_path / "pairs.tsv"
    path.write_text("a\tx\na\ty\n")
    with pytest.raises(DataError, match=r"1 source, and some must be held out .* with --valid"):
        opened(path)


def test_wrong_lines_left_out_are_counted(tmp_path):
    path = tmp_path / "pairs.tsv"
    path.write_text("a\tx\n" * 50 + "lonely\n" * 3 + "b\ty\n" * 50)
    said = opened(path, wrong_lines="skip").said
    assert any("3 wrong lines left out, the first: " in one and "pairs.tsv:51" in one for one in said)


@pytest.mark.parametrize("header", ["", "source\ttarget\n", "target\tsource\n"])
@pytest.mark.parametrize(("columns", "first"), [((1, 2), "a"), ((2, 1), "x")])
def test_chosen_columns_keep_their_order_whatever_they_are_called(tmp_path, header, columns, first):
    path = tmp_path / "pairs.tsv"
    path.write_text(header + "a0\tx0\na1\tx1\na2\tx2\n")
    rows = [*opened(path, columns=columns).train.rows(), *opened(path, columns=columns).valid.rows()]
    assert {row.fields[0][0] for row in rows} == {first}
    left, right = Translate().pairs(
        part_of(Sources(data=str(path)), TASKS.build("translate"), ",".join(map(str, columns)))
    )
    assert {line[0] for line in left} == {first} and len(left) == len(right)


@pytest.mark.parametrize(("names", "first"), [("source,target", "a"), ("target,source", "x")])
def test_columns_chosen_by_name_keep_their_order(tmp_path, names, first):
    path = tmp_path / "pairs.tsv"
    path.write_text("source\ttarget\na0\tx0\na1\tx1\n")
    assert {
        line[0] for line in Translate().pairs(part_of(Sources(data=str(path)), TASKS.build("translate"), names))[0]
    } == {first}
