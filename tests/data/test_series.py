"""Tables with a step a row as series: columns, clocks, gaps and repeats, parts in time."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from unrolled.base.errors import DataError, UsageError
from unrolled.data.readers import open_table
from unrolled.data.resampling import resampled
from unrolled.data.series import gathered
from unrolled.data.series_columns import Wanted
from unrolled.data.series_parts import cut, joined
from unrolled.text.series import read_series


def table_of(tmp_path, text, name="data.csv"):
    path = tmp_path / name
    path.write_text(text)
    return open_table(path)


def read(table, **wanted):
    return [read_series(row.fields) for row in gathered(table, Wanted(**wanted)).rows()]


DAYS = "date,store,sales,price\n" + "".join(
    f"2024-01-0{day},{store},{day * 10 + number},{day}\n" for day in (1, 2, 3) for number, store in enumerate("ba")
)


def test_series_are_told_apart_and_may_be_interleaved(tmp_path):
    found = read(table_of(tmp_path, DAYS), known=("price",))
    assert [one.name for one in found] == ["b", "a"]
    np.testing.assert_array_equal(found[1].values, [[11, 1], [21, 2], [31, 3]])
    assert found[1].lines.tolist() == [3, 5, 7]
    assert found[0].roles.target == ("sales",)
    assert found[0].clock.named() == "day"


def test_all_numbers_are_forecast_unless_one_is_called_so(tmp_path):
    assert read(table_of(tmp_path, "t,a,b\n1,2,3\n2,3,4\n3,4,5\n"))[0].roles.target == ("a", "b")
    assert read(table_of(tmp_path, "t,a,y\n1,2,3\n2,3,4\n3,4,5\n"))[0].roles.target == ("y",)
    said = gathered(table_of(tmp_path, "t,a,note\n1,2,x\n2,3,y\n3,4,z\n"), Wanted()).guessed[-1]
    assert "the time is 't'; forecast: a; not used: note" in said


def test_the_one_column_of_words_tells_series_apart_where_times_repeat(tmp_path):
    table = table_of(tmp_path, "day,place,y\n1,n,5\n1,s,6\n2,n,7\n2,s,8\n")
    assert [(one.name, one.values[:, 0].tolist()) for one in read(table)] == [("n", [5, 7]), ("s", [6, 8])]
    assert "series are told apart by 'place'" in gathered(table, Wanted()).guessed[-1]


def test_what_looks_like_series(tmp_path):
    from unrolled.tasks.forecast import Forecast

    assert "times in the column 'date'" in Forecast.recognises(table_of(tmp_path, DAYS))
    for text in (
        "date,stars,review\n2024-01-01,3,good\n2024-01-02,4,better\n2024-01-03,5,best\n",
        "date,word\n2024-01-01,a\n2024-01-02,a\n2024-01-03,b\n",
        "time,x,label\n1,3,a\n2,4,b\n3,5,a\n",
    ):
        assert Forecast.recognises(table_of(tmp_path, text)) is None


def test_few_readings_that_come_again_are_no_labels(tmp_path):
    from unrolled.tasks.classify import Classify
    from unrolled.tasks.forecast import Forecast

    rows = "".join(f"2024-{1 + day // 28:02d}-{1 + day % 28:02d},{day % 7 + 0.5}\n" for day in range(120))
    table = table_of(tmp_path, f"date,level\n{rows}")
    assert "times in the column 'date'" in Forecast.recognises(table)
    assert Classify.recognises(table) is None


def test_days_begin_at_the_users_midnight(tmp_path):
    rows = "".join(f"2024-01-0{1 + hour // 24}T{hour % 24:02d}:00:00+02:00,{hour // 24}\n" for hour in range(72))
    (one,) = read(table_of(tmp_path, f"time,y\n{rows}"), every="1d")
    assert one.values[:, 0].tolist() == [0, 1, 2]
    assert one.clock.written(one.first) == "2024-01-01T00:00:00+02:00"


def test_parquet_with_nulls(tmp_path):
    path = tmp_path / "data.parquet"
    times = pa.array(np.array(["2024-01-01", "2024-01-02", "2024-01-03"], "datetime64[us]"))
    pyarrow.parquet.write_table(pa.table({"date": times, "y": [1.5, None, 2.5]}), path)
    (one,) = read(open_table(path), missing="mask")
    np.testing.assert_array_equal(one.values[:, 0], [1.5, np.nan, 2.5])
    with pytest.raises(DataError, match=r"data.parquet:2: the value of 'y' is missing.*task\.missing=mask"):
        read(open_table(path))


@pytest.mark.parametrize(
    ("rows", "line", "message"),
    [
        ("1,2\n2,3\n4,4\n5,5\n", 4, r"between '2' and '4' 1 step of a 1 is missing.*task\.every=1"),
        ("1,2\n2,3\n2,4\n3,5\n", 4, r"the time '2' stands twice \(line 3 too\).*task\.series=NAME"),
        ("1,2\n3,3\n2,4\n3,5\n4,5\n5,5\n", 4, r"'2' comes after '3' \(line 3\). Sort the rows by time"),
        ("1,2\n2,3\n3.5,4\n4.5,4\n", 4, r"'3.5' comes 1.5 steps after '2': most are a 1 apart"),
        ("1,2\n2,x\n3,4\n4,4\n5,1\n6,1\n7,1\n8,1\n9,1\n10,1\n11,1\n", 3, "'x' in the column 'y' is no number"),
        ("1,2\n2,inf\n3,4\n", 3, "'inf' in the column 'y' is no finite number"),
        ("1,2\n2,nan\n3,4\n", 3, r"the value of 'y' is missing. Fill it.*task\.missing=mask"),
        ("1,2\n2,\n3,4\n", 3, "the value of 'y' is missing"),
        ("1,2\nsoon,3\n3,4\n", 3, "'soon' is no number where the times before are"),
    ],
)
def test_what_is_wrong_is_named_with_its_line(tmp_path, rows, line, message):
    table = table_of(tmp_path, f"t,y\n{rows}")
    with pytest.raises(DataError, match=rf"data.csv:{line}: .*{message}"):
        read(table, time="t", target=("y",))


def test_dates_in_messages(tmp_path):
    table = table_of(tmp_path, "date,y\n2024-01,1\n2024-02,2\n2024-05,3\n2024-06,3\n")
    with pytest.raises(DataError, match=r"data.csv:4: between '2024-02' and '2024-05' 2 steps of a month are missing"):
        read(table)
    (one,) = read(table, every="1month", missing="mask")
    np.testing.assert_array_equal(one.values[:, 0], [1, 2, np.nan, np.nan, 3, 3])
    assert one.lines.tolist() == [2, 3, 0, 0, 4, 5]


def test_unknown_and_doubled_columns(tmp_path):
    table = table_of(tmp_path, DAYS)
    with pytest.raises(UsageError, match=r"no column is called 'sale'. Did you mean 'sales'"):
        read(table, target=("sale",))
    with pytest.raises(UsageError, match="the column 'price' is named for two things"):
        read(table, target=("price",), known=("price",))
    with pytest.raises(DataError, match=r"no column holds times \(a, b\).*task\.time=NAME"):
        read(table_of(tmp_path, "a,b\nx,1\ny,2\nz,3\n"))
    moved = table_of(tmp_path, "date,shop,y\n2024-01-01,a,1\n2024-01-02,b,2\n")
    with pytest.raises(DataError, match=r"data.csv:3: 'shop' is 'b' and was 'a' before in this series"):
        read(moved, static=("shop",))


def test_trailing_rows_without_a_target_are_the_known_future(tmp_path):
    text = "date,y,price\n2024-01-01,1,5\n2024-01-02,2,6\n2024-01-03,,7\n"
    (one,) = read(table_of(tmp_path, text), known=("price",))
    assert one.ends == 2
    with pytest.raises(DataError, match=r"data.csv:4: the value of 'y' is missing"):
        read(table_of(tmp_path, text), target=("y",))


def test_another_pace_than_in_training_is_refused(tmp_path):
    clock = read(table_of(tmp_path, DAYS))[0].clock
    months = table_of(tmp_path, "date,sales\n2024-01,1\n2024-02,2\n2024-03,2\n", "months.csv")
    with pytest.raises(DataError, match=r"months.csv: a step is a month here and a day in the training data"):
        list(gathered(months, Wanted(target=("sales",)), clock).rows())


@settings(deadline=None)
@given(st.lists(st.tuples(st.integers(0, 19), st.floats(-5, 5)), min_size=1, max_size=40))
def test_resampling_takes_the_mean_of_each_step(pairs):
    positions = np.array([place / 4 for place, _ in pairs])
    numbers = np.array([[value] for _, value in pairs])
    found, means, lines = resampled(positions, numbers, np.arange(len(pairs)) + 2)
    assert found.tolist() == list(range(int(np.floor(positions.min())), int(np.floor(positions.max())) + 1))
    for place, mean, line in zip(found, means[:, 0], lines, strict=True):
        inside = [row for row, position in enumerate(positions) if np.floor(position) == place]
        assert line == (inside[0] + 2 if inside else 0)
        np.testing.assert_allclose(mean, np.mean(numbers[inside]) if inside else np.nan)


def series_table(tmp_path, count, name="data.csv", first=0):
    rows = "".join(f"{first + step},{first + step * step}\n" for step in range(count))
    return gathered(table_of(tmp_path, f"t,y\n{rows}", name), Wanted())


def test_parts_follow_each_other_and_the_past_comes_along(tmp_path):
    table = series_table(tmp_path, 20)
    train, valid = cut(table, -np.inf, 15), cut(table, 15, np.inf)
    (before,), (after,) = ([read_series(row.fields) for row in one.rows()] for one in (train, valid))
    assert len(before.values) == 15 and before.start == 0
    assert after.start == 15 and len(after.values) == 20
    assert train.fingerprint() != valid.fingerprint() != table.fingerprint()


def test_a_later_file_goes_on_from_an_earlier_one(tmp_path):
    before, after = series_table(tmp_path, 10), series_table(tmp_path, 4, "later.csv", 10)
    (one,) = (read_series(row.fields) for row in joined(before, after).rows())
    assert one.first == 0 and one.start == 10 and len(one.values) == 14
    np.testing.assert_array_equal(one.values[:10, 0], [step * step for step in range(10)])
    late = series_table(tmp_path, 4, "late.csv", 12)
    with pytest.raises(DataError, match=r"late.csv:2: the series '' ends 2 steps before these rows begin"):
        list(joined(before, late).rows())
    (whole,) = (read_series(row.fields) for row in joined(before, series_table(tmp_path, 14, "whole.csv")).rows())
    assert whole.start == 10 and len(whole.values) == 14
