"""What a value of a setting is called where another kind came: in words, whatever the annotation."""

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Literal

import pytest

from unrolled.base.errors import SettingsError
from unrolled.base.settings import check, choices

KINDS: list[tuple[Any, str]] = [
    (int, "a whole number"),
    (Annotated[int, "at least 1"], "a whole number"),
    (Annotated[float, "positive"] | None, "a number or null"),
    (str | int | None, "text or a whole number or null"),
    (Annotated[int, "at least 1"] | Literal["auto"], "a whole number or auto"),
    (list[int], "a list"),
    (Sequence[str] | None, "a list or null"),
    (dict[str, int], "a mapping"),
    (Mapping[str, float], "a mapping"),
]


@pytest.mark.parametrize("annotation, words", KINDS, ids=[words for _, words in KINDS])
def test_a_yes_or_no_where_something_else_is_wanted(annotation, words):
    with pytest.raises(SettingsError) as error:
        check(annotation, False, "model.size")
    assert str(error.value) == f"[model.size] false was given where {words} is expected."


def test_of_every_setting_of_every_part():
    from unrolled.models import DECODERS, ENCODERS, MODELS
    from unrolled.train.settings import TrainSettings

    tried = 0
    for build in [TrainSettings, *(of[kind] for of in (MODELS, ENCODERS, DECODERS) for kind in of)]:
        for name, (annotation, _) in choices(build).items():
            try:
                check(annotation, True, name)
            except SettingsError as error:
                tried += 1
                assert "typing." not in str(error) and "<class" not in str(error)
    assert tried > 50
