"""Series: what training refuses is an error; what may be the known future is a warning."""

from __future__ import annotations

import pytest

import unrolled
from unrolled.base.errors import DataError
from unrolled.data.doctor import examine
from unrolled.data.readers import open_table
from unrolled.data.series import Wanted, gathered
from unrolled.workshop.sources import Sources


def test_too_few_steps_to_hold_some_out_are_an_error(tmp_path):
    path, more = tmp_path / "a.csv", tmp_path / "b.csv"
    rows = [f"2020-01-{day:02d},{day}\n" for day in range(1, 17)]
    path.write_text("date,y\n" + "".join(rows[:15]))
    more.write_text("date,y\n" + "".join(rows))
    tables = [gathered(open_table(one), Wanted()) for one in (path, more)]
    (said,) = [one for one in examine({"train": tables[0]}).findings if one.severity == "error"]
    assert said.message.startswith(
        "the longest series has 15 steps; 7 are held out for validation and forecasts reach 7"
    )
    sources = Sources(data=str(path))
    with pytest.raises(DataError, match=r"the longest series has 15 steps; 7 are held out .* so 16 are the least"):
        unrolled.train(sources=sources, out=tmp_path / "run", quiet=True)
    assert examine({"train": tables[1]}).ok and examine({"train": tables[0], "valid": tables[1]}).ok


@pytest.mark.parametrize("kind, row", [("time,a,b", "2020-01-01,1,2"), ("Month\ta\tb", "3\t1\t2")])
def test_a_row_of_names_that_begins_with_the_time_is_a_header(tmp_path, kind, row):
    path = tmp_path / ("a.csv" if "," in kind else "a.tsv")
    path.write_text(kind + "\n")
    with pytest.raises(DataError, match=r"a header \(\w+, a, b\) and no rows below it"):
        open_table(path)
    path.write_text(f"{kind}\n{row}\n")
    table = open_table(path)
    assert table.columns[1:] == ("a", "b") and len(list(table.rows())) == 1
    path.write_text(f"{kind}\n{kind.replace('a', 'x')[1:]}\n")
    assert len(list(open_table(path).rows())) == 2, "two rows of words"


@pytest.mark.parametrize(
    ("cells", "expected"),
    [
        (["1", "2", "", "4", "5"], ("error", "missing", 1)),
        (["1", "2", "3", "", ""], ("warning", "missing", 2)),
    ],
)
def test_numbers_missing_inside_are_errors_and_at_the_end_warnings(tmp_path, cells, expected):
    path = tmp_path / "a.csv"
    rows = "".join(f"2020-01-{day:02d},{cell},{day}\n" for day, cell in enumerate(cells, start=1))
    path.write_text("date,y,known\n" + rows)
    wanted = Wanted(
        time=None, series=None, target=None, past=(), known=(), static=(), time_format=None, every=None, missing="mask"
    )
    found = examine({"train": gathered(open_table(path), wanted)}).findings
    assert [(one.severity, one.kind, one.count) for one in found if one.kind == "missing"] == [expected]
