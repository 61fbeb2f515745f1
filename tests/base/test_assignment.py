"""Values of --set that are no YAML by their first sign."""

import pytest

from unrolled.base.errors import SettingsError
from unrolled.base.settings import assignment


def test_a_value_that_begins_as_no_plain_text_of_yaml_does_is_text():
    assert assignment("task.time_format=%d.%m.%Y") == {"task": {"time_format": "%d.%m.%Y"}}
    with pytest.raises(SettingsError, match="not YAML"):
        assignment("a.b={c: ")
