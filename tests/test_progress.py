"""One line that moves on a terminal, never wider than it."""

import io
import re

import pytest

from unrolled.progress import Progress
from unrolled.train.reports import Step, Stopped


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize("columns", [40, 80, 200])
def test_the_moving_line_fits_the_terminal(monkeypatch, columns):
    written = Terminal()
    monkeypatch.setattr("sys.stderr", written)
    monkeypatch.setenv("COLUMNS", str(columns))
    progress = Progress(unit="words")
    for seconds in (7384.0, 5.0):
        progress.last = 0.0
        progress.show(Step(123456, 12, 6.1234, 1.5, 1e-3, 4000, 123456.0, seconds))
    progress.show(Stopped("epochs", 123456, None, None, 60.0))
    moving = re.split(r"[\r\n]", written.getvalue())
    assert all(len(line) < columns for line in moving[:3])
    assert "step 123456" in moving[1]
    assert ("123,456 words/s" in moving[1]) == (columns >= 80)
    assert ("left 2:03:04" in moving[1]) == (columns >= 80)
    assert ("gradient 1.50" in moving[1]) == (columns >= 200)


def test_the_time_left_is_no_part_of_the_line_while_it_is_not_known(monkeypatch):
    written = io.StringIO()
    monkeypatch.setattr("sys.stderr", written)
    for seconds in (None, 65.0):
        Progress().show(Step(1, 0, 2.0, 1.5, 1e-3, 40, 200.0, seconds))
    first, second = written.getvalue().splitlines()
    assert first == "epoch 1  step 1  loss 2.000  gradient 1.50  rate 1.00e-03  200 symbols/s"
    assert second == f"{first}  left 1:05"
