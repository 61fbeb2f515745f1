"""One row of a file by its number: the first without, and a sentence for every other mistake."""

from __future__ import annotations

import pytest

from unrolled.base.errors import DataError, UsageError
from unrolled.pipeline.numbered import Named, nth

NAMED = Named("signal", "signals.ts")


def rows(file: str) -> list[str]:
    return [f"{file}-{letter}" for letter in "abc"]


def test_rows_count_from_one_and_the_first_of_several_says_that_it_is(tmp_path):
    said: list[str] = []
    assert nth("explain", "x.ts#3", NAMED, rows, said) == "x.ts-c"
    assert nth("explain", "x.ts#1", NAMED, rows, said) == "x.ts-a"
    assert nth("explain", "x.ts", NAMED, lambda file: [file], said) == "x.ts"
    assert said == []
    assert nth("explain", "x.ts", NAMED, rows, said) == "x.ts-a"
    assert said == ["This is signal 1 of x.ts; another: 'x.ts#2'."]
    odd = tmp_path / "a#2"
    odd.write_text("")
    assert nth("explain", str(odd), NAMED, rows, said) == f"{odd}-a"


@pytest.mark.parametrize("line", ["x.ts#0", "x.ts#-1", "x.ts#two", "x.ts#"])
def test_what_is_no_number_is_named(line):
    with pytest.raises(UsageError, match=r"explain: 'x\.ts#.*': after # the number of a signal .*signals\.ts#3"):
        nth("explain", line, NAMED, rows, [])


def test_a_row_that_there_is_not_says_how_many_there_are():
    with pytest.raises(DataError, match=r"x\.ts: there is no signal 9 in it, it has 3"):
        nth("explain", "x.ts#9", NAMED, rows, [])
