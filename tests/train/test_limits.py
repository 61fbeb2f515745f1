import pytest

from unrolled.train.limits import Position, ended, seconds_left, share, validation_is_due
from unrolled.train.settings import TrainSettings


def test_the_nearest_limit_rules():
    settings = TrainSettings(epochs=4, steps=100, minutes=2)
    at = Position(step=10, epoch=1, batch=1, batches=2, elapsed=12)
    assert share(settings, at) == pytest.approx(1.5 / 4)
    at = Position(step=90, epoch=1, batch=1, batches=2, elapsed=12)
    assert share(settings, at) == pytest.approx(0.9)
    assert ended(settings, at) is None
    assert ended(settings, Position(step=100)) == "steps"
    assert ended(settings, Position(epoch=4)) == "epochs"
    assert ended(settings, Position(elapsed=120)) == "minutes"


def test_time_is_kept_for_the_validation_at_the_end():
    settings = TrainSettings(minutes=1)
    assert ended(settings, Position(elapsed=50, reserve=9)) is None
    assert ended(settings, Position(elapsed=50, reserve=10)) == "minutes"
    assert ended(settings, Position(elapsed=1, reserve=90)) == "minutes"


def test_seconds_left_follow_the_pace():
    assert seconds_left(TrainSettings(steps=100), Position()) is None
    assert seconds_left(TrainSettings(steps=100), Position(step=25, elapsed=10)) == pytest.approx(30)
    assert seconds_left(TrainSettings(minutes=1), Position(step=25, elapsed=10, reserve=5)) == pytest.approx(50)
    assert seconds_left(TrainSettings(steps=10), Position(step=10, elapsed=10)) == 0


def test_a_validation_comes_every_so_many_steps_or_once_an_epoch():
    assert validation_is_due(TrainSettings(validate_every=4), Position(step=8, validated=4, batch=3))
    assert not validation_is_due(TrainSettings(validate_every=4), Position(step=8, validated=8, batch=0))
    assert not validation_is_due(TrainSettings(validate_every=4), Position(step=9, validated=8, batch=0))
    assert not validation_is_due(TrainSettings(), Position())
    assert validation_is_due(TrainSettings(), Position(step=9, batch=0, elapsed=5, validated_at=4, reserve=10))
    assert not validation_is_due(TrainSettings(), Position(step=9, batch=1))


def test_validations_take_a_fifth_of_the_minutes_at_most():
    settings = TrainSettings(minutes=5)
    assert validation_is_due(settings, Position(step=9, elapsed=20, validated_at=10, reserve=2.5))
    assert not validation_is_due(settings, Position(step=9, elapsed=20, validated_at=10, reserve=2.6))
