import pytest

from unrolled.base.errors import SettingsError
from unrolled.base.settings import complete
from unrolled.train.settings import EPOCHS, TrainSettings


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"learning_rate": 0}, r"\[train.learning_rate\] 0 was given; input should be greater than 0"),
        ({"optimizer": "adamm"}, r"\[train.optimizer\] no optimizer is called 'adamm'. Did you mean 'adam'\?"),
        (
            {"schedule": {"kind": "constant", "warmpu": 3}},
            "no setting of the schedule 'constant' is called 'warmpu'. Did you",
        ),
        ({"average": "exponental"}, "no average is called 'exponental'. Did you mean 'exponential'"),
        ({"precision": "float16"}, r"\[train.precision\] 'float16' was given; input should be 'auto', 'bfloat16' or"),
        ({"accumulate": 0}, "input should be greater than or equal to 1"),
        ({"deterministic": 3}, r"\[train.deterministic\] 3 was given"),
        ({"label_smoothing": 1.0}, "input should be less than 1"),
    ],
)
def test_wrong_values_are_named(given, message):
    with pytest.raises(SettingsError, match=message):
        TrainSettings(**given)


def test_the_signature_is_the_schema():
    tree = complete(TrainSettings, {"optimizer": "adamw", "minutes": 3}, "train")
    assert tree["optimizer"] == {"kind": "adamw", "beta1": 0.9, "beta2": 0.999, "epsilon": 1e-8, "weight_decay": 0.01}
    again = TrainSettings(**tree)
    assert complete(TrainSettings, again.tree(), "train") == again.tree()


def test_a_run_always_ends():
    assert TrainSettings().epochs == EPOCHS
    assert TrainSettings(minutes=1).epochs is None
    assert TrainSettings(steps=5).epochs is None
