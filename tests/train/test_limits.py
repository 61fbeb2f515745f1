import pytest
from hypothesis import given
from hypothesis import strategies as st

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


def test_seconds_left_follow_the_pace_after_the_first_update():
    settings, first = TrainSettings(steps=100), Position(step=1, elapsed=60)
    assert seconds_left(settings, first, first) is None
    assert seconds_left(settings, Position(step=2, elapsed=60.5), first) == pytest.approx(49)
    assert seconds_left(settings, Position(step=25, elapsed=72, reserve=3), first) == pytest.approx(37.5 + 3)
    assert seconds_left(settings, Position(step=100, elapsed=109.5), first) == 0


def test_seconds_left_of_epochs_count_batches():
    settings, first = TrainSettings(epochs=3), Position(step=1, batch=1, batches=4, elapsed=10)
    assert seconds_left(settings, Position(step=4, epoch=1, batches=4, elapsed=16), first) == pytest.approx(16)
    assert seconds_left(settings, Position(step=2, batch=1, batches=4, elapsed=11), first) is None, "no batch was done"


def test_minutes_alone_say_what_is_left_at_once():
    first = Position(step=1, elapsed=10, reserve=5)
    assert seconds_left(TrainSettings(minutes=1), first, first) == pytest.approx(50)
    assert seconds_left(TrainSettings(minutes=1), Position(step=9, elapsed=70), first) == 0


@given(
    durations=st.lists(st.floats(0.01, 50), min_size=3, max_size=12),
    more=st.integers(0, 500),
    before=st.integers(0, 300),
    minutes=st.none() | st.floats(0.1, 20),
    reserve=st.floats(0, 9),
)
def test_the_first_update_counts_once_and_time_ends_the_run(durations, more, before, minutes, reserve):
    """``before``: updates of a run that is taken up again, which do not count."""
    start, steps = 7.0 * before, before + len(durations) + more
    settings = TrainSettings(steps=steps, minutes=minutes)
    at = [
        Position(step=before + done, elapsed=start + sum(durations[:done]), reserve=reserve)
        for done in range(1, len(durations) + 1)
    ]
    assert seconds_left(settings, at[0], at[0]) is None
    for done in range(2, len(durations) + 1):
        wanted = sum(durations[1:done]) / (done - 1) * (steps - before - done) + reserve
        if minutes is not None:
            wanted = max(0.0, min(wanted, minutes * 60 - at[done - 1].elapsed))
        assert seconds_left(settings, at[done - 1], at[0]) == pytest.approx(wanted, rel=1e-6, abs=1e-6)


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
