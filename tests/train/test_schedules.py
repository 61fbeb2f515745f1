import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from unrolled.base.errors import SettingsError
from unrolled.train.schedules import SCHEDULES, Progress


def factors(part, steps):
    schedule = SCHEDULES.build(part)
    return [schedule.factor(Progress(step, step / steps)) for step in range(steps)]


def torch_factors(scheduler, steps):
    """torch's own schedule over a rate of 1."""
    optimizer = torch.optim.SGD([torch.nn.Parameter(torch.zeros(1))], lr=1.0)
    schedule = scheduler(optimizer)
    rates = []
    for _ in range(steps):
        rates.append(schedule.get_last_lr()[0])
        optimizer.step()
        schedule.step()
    return rates


def test_one_cycle_falls_like_cosine_annealing():
    expected = torch_factors(lambda o: torch.optim.lr_scheduler.CosineAnnealingLR(o, 30, eta_min=0.1), 30)
    assert factors({"kind": "one_cycle", "warmup": 0, "end": 0.1}, 30) == pytest.approx(expected, abs=1e-6)


def test_exponential_holds_and_falls_like_that_of_torch():
    expected = torch_factors(lambda o: torch.optim.lr_scheduler.ExponentialLR(o, 0.01 ** (1 / 30)), 30)
    assert factors({"kind": "exponential", "hold": 0, "end": 0.01}, 30) == pytest.approx(expected, rel=1e-6)
    paper = factors({"kind": "exponential", "hold": 4 / 13, "end": 0.5**9}, 13)  # an update an epoch
    assert paper == pytest.approx([1.0] * 5 + [0.5**k for k in range(1, 9)])


def test_one_cycle_rises_and_falls_like_that_of_torch():
    """torch counts its phases one step shorter."""
    scheduler = torch.optim.lr_scheduler.OneCycleLR
    expected = torch_factors(
        lambda o: scheduler(o, 1.0, total_steps=1001, pct_start=0.3, cycle_momentum=False, final_div_factor=40), 1001
    )
    ours = factors({"kind": "one_cycle", "warmup": 0.3, "end": 0.001}, 1000)
    assert ours == pytest.approx(expected[:1000], abs=0.005)


def test_a_warmup_in_steps_or_as_a_share_is_the_same_cycle():
    steps = factors({"kind": "one_cycle", "warmup": 20}, 100)
    share = factors({"kind": "one_cycle", "warmup": 0.2}, 100)
    assert steps == pytest.approx(share, abs=0.1)
    assert max(steps) == pytest.approx(1, abs=0.01)


def test_constant_rises_like_linear_warmup():
    scheduler = torch.optim.lr_scheduler.LinearLR
    expected = torch_factors(lambda o: scheduler(o, start_factor=0.1, end_factor=1.0, total_iters=9), 15)
    assert factors({"kind": "constant", "warmup": 10}, 15) == pytest.approx(expected)
    assert factors("constant", 3) == [1, 1, 1]


def test_inverse_root_is_the_formula_of_the_transformer():
    """lrate ∝ min(n^-0.5, n · warmup^-1.5), with its top at 1."""
    ours = factors({"kind": "inverse_root", "warmup": 25}, 200)
    expected = [25**0.5 * min(n**-0.5, n * 25**-1.5) for n in range(1, 201)]
    assert ours == pytest.approx(expected)


@given(st.lists(st.floats(0, 1), max_size=30))
def test_plateau_cuts_when_torch_does(scores):
    optimizer = torch.optim.SGD([torch.nn.Parameter(torch.zeros(1))], lr=1.0)
    theirs = torch.optim.lr_scheduler.ReduceLROnPlateau(optimizer, factor=0.5, patience=2, threshold=0.0, eps=0.0)
    ours, best = SCHEDULES.build({"kind": "plateau", "cut": 0.5, "wait": 3}), float("inf")
    for step, score in enumerate(scores):
        theirs.step(score)
        ours.observe(score < best)
        best = min(best, score)
        assert ours.factor(Progress(step, 0.5)) == optimizer.param_groups[0]["lr"]


def test_plateau_is_taken_up_from_its_state():
    first, second = (SCHEDULES.build({"kind": "plateau", "wait": 2}) for _ in range(2))
    for _ in range(3):
        first.observe(False)
    second.restore(first.state())
    first.observe(False)
    second.observe(False)
    assert first.factor(Progress(5, 0.5)) == second.factor(Progress(5, 0.5)) == 0.25


@given(
    st.sampled_from(sorted(SCHEDULES)), st.sampled_from([0.05, 0.5, 1, 3, 1000]), st.integers(0, 500), st.floats(0, 1)
)
def test_every_schedule_stays_between_zero_and_one(kind, warmup, step, share):
    factor = SCHEDULES.build({"kind": kind, "warmup": warmup}).factor(Progress(step, share))
    assert 0 < factor <= 1


def test_a_wrong_warmup_is_refused():
    with pytest.raises(SettingsError, match=r"\[warmup\] -1 was given; input should be greater than or equal to 0"):
        SCHEDULES.build({"kind": "constant", "warmup": -1})
