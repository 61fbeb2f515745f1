"""Values of --set that are text though their signs mean something in YAML."""

import pytest

from unrolled.base.errors import SettingsError
from unrolled.base.settings import assignment


def test_a_value_that_begins_as_no_plain_text_of_yaml_does_is_text():
    assert assignment("task.time_format=%d.%m.%Y") == {"task": {"time_format": "%d.%m.%Y"}}
    with pytest.raises(SettingsError, match="not YAML"):
        assignment("a.b={c: ")


@pytest.mark.parametrize("mark", [",", ";", "|", "||", ":", "&", "-", ">", "#", "?", "=", "%"])
def test_a_mark_alone_is_itself(mark):
    assert assignment(f"text.separator={mark}") == {"text": {"separator": mark}}
    assert assignment("a={}") == {"a": {}} and assignment("a=~") == {"a": None} and assignment("a=-1") == {"a": -1}
