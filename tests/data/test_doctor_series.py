"""Series: what training refuses is an error; what may be the known future is a warning."""

from __future__ import annotations

import pytest

from unrolled.data.doctor import examine
from unrolled.data.readers import open_table
from unrolled.data.series import Wanted, gathered


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
