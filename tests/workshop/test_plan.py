"""Settings that mean nothing to a task are refused where somebody sets them."""

import pytest

from unrolled.base.errors import SettingsError
from unrolled.tasks import TASKS
from unrolled.workshop.plan import layers_of, plan

UNUSED = [(kind, setting) for kind in TASKS for setting in TASKS[kind].unused]
VALUES = {"data.max_length": 5, "data.too_long": "cut"}


@pytest.mark.parametrize("kind, setting", UNUSED)
def test_a_setting_without_effect_is_refused(kind, setting, tmp_path):
    section, _, name = setting.partition(".")
    given = {"task": {"kind": kind}}
    assert plan(layers_of(TASKS[kind].preset, flags=given)).settings[section][name] is not None
    layers = [
        layers_of(TASKS[kind].preset, flags=given, assignments=[f"{setting}={VALUES[setting]}"]),
        layers_of(TASKS[kind].preset, flags=given | {section: {name: VALUES[setting]}}),
    ]
    (tmp_path / "small.yaml").write_text(f"{section}: {{{name}: {VALUES[setting]}}}\n")
    layers.append(layers_of(TASKS[kind].preset, str(tmp_path / "small.yaml"), flags=given))
    for each in layers:
        with pytest.raises(SettingsError, match=rf"\[{setting}\] {VALUES[setting]} was given, and .* Leave it out\."):
            plan(each)


def test_a_saved_model_that_has_one_opens():
    settings = {"task": {"kind": "language_model"}, "data": {"max_length": 5}}
    assert plan([("saved model", settings)]).settings["data"]["max_length"] == 5
    assert plan(layers_of(None, resumed=settings)).settings["data"]["max_length"] == 5


def test_the_language_model_has_some():
    assert ("language_model", "data.max_length") in UNUSED
