"""The trainer: against a plain torch loop, and what it reports."""

import gc
import math
import sys
import tracemalloc
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from torch import nn

from unrolled.base.errors import DataError, SettingsError, UnrolledError, UsageError
from unrolled.base.protocol import Loss
from unrolled.train.reports import Split, Step, Stopped, Validated
from unrolled.train.settings import TrainSettings
from unrolled.train.trainer import Trainer


def settings(**given):
    return TrainSettings(**{"precision": "float32", "device": "cpu", "schedule": "constant", **given})


def of(kind, reports):
    return [report for report in reports if isinstance(report, kind)]


@pytest.mark.parametrize("kind", ["adam", "adamw"])
@pytest.mark.parametrize("clip_norm", [0.5, None])
def test_updates_are_those_of_a_plain_torch_loop(toy, kind, clip_norm):
    ours, theirs, corpus = toy.build(0.0), toy.build(0.0), toy.Toy()
    trainer = Trainer(ours, toy.loss, settings(optimizer=kind, learning_rate=0.01, clip_norm=clip_norm))
    if kind == "adam":
        optimizer = torch.optim.Adam(theirs.parameters(), lr=0.01, foreach=False)
    else:
        matrices = [p for p in theirs.parameters() if p.dim() > 1]
        vectors = [p for p in theirs.parameters() if p.dim() == 1]
        groups = [{"params": matrices}, {"params": vectors, "weight_decay": 0.0}]
        optimizer = torch.optim.AdamW(groups, lr=0.01, weight_decay=0.01, foreach=False)
    for rows in corpus.plan(0):
        report = trainer.update(corpus.load(rows))
        total, count = toy.loss(theirs, corpus.load(rows))
        (total / count).backward()
        norm = nn.utils.clip_grad_norm_(theirs.parameters(), clip_norm or 1e9)
        optimizer.step()
        optimizer.zero_grad()
        assert report.loss == pytest.approx(float(total.detach()) / count, rel=1e-6)
        assert report.gradient_norm == pytest.approx(float(norm), rel=1e-5)
        assert (report.symbols, report.learning_rate) == (count, 0.01)
    for mine, plain in zip(ours.parameters(), theirs.parameters(), strict=True):
        torch.testing.assert_close(mine, plain, rtol=1e-5, atol=1e-6)
    assert all(parameter.grad is None for parameter in ours.parameters())


def test_gradients_are_cut_by_value(toy):
    model = toy.build(0.0)
    trainer = Trainer(model, toy.loss, settings(clip_norm=None, clip_value=0.002))
    trainer.update(toy.Toy().load(np.arange(5)))
    first_moments = torch.cat([state["exp_avg"].flatten() for state in trainer.run.optimizer.state.values()]) / 0.1
    assert first_moments.abs().max().item() == pytest.approx(0.002, rel=1e-4)
    assert (first_moments.abs() < 0.0019).any()


def test_accumulated_batches_are_one_big_batch(toy):
    big, small = toy.build(0.0), toy.build(0.0)
    one = list(Trainer(big, toy.loss, settings(steps=4)).fit(toy.Toy(size=10)))
    two = list(Trainer(small, toy.loss, settings(steps=4, accumulate=2)).fit(toy.Toy(size=5)))
    for left, right in zip(of(Step, one), of(Step, two), strict=True):
        assert left.loss == pytest.approx(right.loss, rel=1e-5)
        assert (left.step, left.epoch, left.symbols) == (right.step, right.epoch, right.symbols)
    for left, right in zip(big.parameters(), small.parameters(), strict=True):
        torch.testing.assert_close(left, right, rtol=1e-5, atol=1e-6)


def test_every_row_of_every_epoch_is_seen_once(toy):
    corpus = toy.Toy()
    reports = list(Trainer(toy.build(), toy.loss, settings(epochs=2, accumulate=3)).fit(corpus))
    rows = [row for batch in corpus.loaded for row in batch]
    assert sorted(rows[:23]) == sorted(rows[23:]) == list(range(23))
    assert [report.epoch for report in of(Step, reports)] == [0, 0, 1, 1]
    assert reports[-1] == Stopped("epochs", 4, None, None, reports[-1].seconds)


def test_reports_come_in_order(toy, tmp_path):
    trainer = Trainer(toy.build(), toy.loss, settings(epochs=2, learning_rate=0.01), folder=tmp_path)
    reports = list(trainer.fit(toy.Toy(), toy.score))
    kinds = [type(report).__name__ for report in reports]
    epoch = ["Step"] * 5 + ["Validated", "Saved", "Saved"]
    assert kinds == [*epoch, *epoch, "Stopped"]
    left = [report.seconds_left for report in of(Step, reports)]
    assert left[0] is None and all(value >= 0 for value in left[1:])
    assert left[1] > left[-1]
    assert all(report.rate > 0 for report in of(Step, reports))
    assert reports[-1].best_step == 10
    assert sorted(path.name for path in tmp_path.iterdir()) == ["best-00000010", "step-00000005", "step-00000010"]


class Clock:
    """A clock that goes on with each loss, ``first`` seconds with the first one and ``later`` with those after it, and
    two seconds with each validation."""

    def __init__(self, toy, monkeypatch, first, later):
        self.toy, self.now, self.first, self.later = toy, 100.0, first, later
        self.next = first
        clock = SimpleNamespace(monotonic=lambda: self.now, perf_counter=lambda: self.now)
        monkeypatch.setattr(sys.modules[Trainer.__module__], "time", clock)

    def loss(self, model, batch):
        self.now, self.next = self.now + self.next, self.later
        return self.toy.loss(model, batch)

    def score(self, model):
        self.now += 2
        return self.toy.score(model)


def test_the_run_fits_into_its_minutes_and_the_rate_follows_the_time_used(toy, monkeypatch):
    clock = Clock(toy, monkeypatch, 1, 1)
    chosen = settings(minutes=2, schedule={"kind": "one_cycle", "warmup": 0.25}, learning_rate=0.01)
    reports = list(Trainer(toy.build(), clock.loss, chosen).fit(toy.Toy(), clock.score))
    assert reports[-1].reason == "minutes"
    assert 115 <= reports[-1].seconds <= 120
    rates = [report.learning_rate for report in of(Step, reports)]
    assert rates[0] < 0.001
    assert max(rates) > 0.0099
    assert rates.index(max(rates)) == pytest.approx(len(rates) / 4, abs=6)
    assert rates[-1] < 0.0005
    assert isinstance(reports[-2], Validated)
    assert reports[-2].step == of(Step, reports)[-1].step


def test_the_time_left_forgets_the_first_update_also_of_a_run_taken_up_again(toy, monkeypatch, tmp_path):
    clock = Clock(toy, monkeypatch, 60, 0.5)
    for steps, resume in ((4, False), (9, True)):
        clock.next = clock.first
        trainer = Trainer(toy.build(), clock.loss, settings(steps=steps), folder=tmp_path)
        updates = of(Step, trainer.fit(toy.Toy(), resume=resume))
        wanted = [0.5 * (steps - update.step) for update in updates[1:]]
        assert updates[0].seconds_left is None
        assert [update.seconds_left for update in updates[1:]] == pytest.approx(wanted)


def test_the_time_left_in_a_loop_of_ones_own(toy, monkeypatch):
    clock, batch = Clock(toy, monkeypatch, 60, 0.5), toy.Toy().load(np.arange(5))
    trainer = Trainer(toy.build(), clock.loss, settings(steps=8))
    assert [trainer.update(batch).seconds_left for _ in range(4)] == [None, 3, 2.5, 2]


def test_validation_does_not_change_training(toy):
    def run(validate, every):
        model = toy.build()
        list(Trainer(model, toy.loss, settings(steps=6, validate_every=every)).fit(toy.Toy(), validate))
        return toy.digest(model)

    assert run(None, None) == run(toy.score, 1) == run(toy.score, 4)


def test_the_best_weights_come_back(toy, tmp_path):
    for folder in (tmp_path, None):
        model = toy.build()
        seen = {}

        def validate(model, seen=seen):
            assert not model.training
            seen[len(seen) + 1] = toy.digest(model)
            return {"bleu": [1.0, 3.0, 2.0, float("nan")][len(seen) - 1], "loss": -len(seen)}

        trainer = Trainer(model, toy.loss, settings(steps=4, validate_every=1, stop_on="bleu"), folder=folder)
        reports = list(trainer.fit(toy.Toy(), validate))
        assert [report.best for report in of(Validated, reports)] == [True, True, False, False]
        assert trainer.restore_best() == 2
        assert toy.digest(model) == seen[2]


@pytest.mark.parametrize("kind", ["last", {"kind": "exponential", "decay": 0.6, "every": 1}])
def test_the_average_is_what_is_validated_and_kept(toy, tmp_path, kind):
    model, validated = toy.build(), []

    def validate(model):
        validated.append(toy.digest(model))
        return {"loss": -len(validated)}

    trainer = Trainer(
        model, toy.loss, settings(steps=4, validate_every=2, average=kind, learning_rate=0.1), folder=tmp_path
    )
    list(trainer.fit(toy.Toy(), validate))
    own = toy.digest(model)
    plain = toy.build()
    list(Trainer(plain, toy.loss, settings(steps=4, learning_rate=0.1)).fit(toy.Toy()))
    assert own == toy.digest(plain)  # training goes on with its own weights
    assert trainer.restore_best() == 4
    assert toy.digest(model) == validated[-1] != own


def test_patience_ends_a_run(toy):
    scores = iter([3.0, 2.0, 2.5, 2.0, 1.0])
    trainer = Trainer(toy.build(), toy.loss, settings(epochs=9, validate_every=2, patience=2))
    reports = list(trainer.fit(toy.Toy(), lambda model: {"loss": next(scores)}))
    assert reports[-1][:4] == ("patience", 8, 4, 2.0)


def test_a_score_that_is_not_there_is_named(toy):
    trainer = Trainer(toy.build(), toy.loss, settings(steps=2, stop_on="belu"))
    with pytest.raises(
        SettingsError, match=r"\[train.stop_on\] the validation has no score called 'belu'. Did you mean 'bleu'"
    ):
        list(trainer.fit(toy.Toy(), lambda model: {"bleu": 1.0, "chrf": 2.0}))


def test_an_empty_corpus_is_refused(toy):
    with pytest.raises(DataError, match="no batch to train on"):
        list(Trainer(toy.build(), toy.loss, settings()).fit(toy.Toy(rows=0)))


def test_a_loss_that_is_no_number_stops_with_the_lines_and_the_checkpoint(toy, tmp_path):
    corpus = toy.Toy()
    bad = corpus.plan(0)[3][2]
    corpus.values[bad][1, 1] = math.inf
    model = toy.build()
    trainer = Trainer(model, toy.loss, settings(epochs=1, save_every=2), folder=tmp_path)
    with pytest.raises(UnrolledError) as caught:
        for report in trainer.fit(corpus):
            if isinstance(report, Step):
                weights = toy.digest(model)
    message = str(caught.value)
    assert message.startswith("step 4: the loss of this batch is not a finite number (lines: pairs.tsv:")
    assert f"pairs.tsv:{bad + 1}" in message
    assert f"kept: {tmp_path / 'step-00000002'}." in message
    assert toy.digest(model) == weights
    assert (tmp_path / "step-00000002" / "weights.safetensors").exists()


def test_a_gradient_that_is_no_number_stops(toy):
    def loss(model, batch):
        return Loss(model.out.bias.sub(model.out.bias.detach()).sqrt().sum(), 1)

    with pytest.raises(UnrolledError, match=r"step 1: the gradient of this batch is not a finite number\. The weights"):
        Trainer(toy.build(), loss, settings()).update(toy.Toy().load(np.arange(2)))


def out_of_memory(rows, error, toy):
    """The toy's loss on a machine that holds ``rows`` rows; what fails has drawn random numbers before."""

    def loss(model, batch):
        total, count = toy.loss(model, batch)
        if len(batch["x"]) > rows:
            if error is None:
                torch.empty(1 << 55)  # torch's own error
            raise error
        return Loss(total, count)

    return loss


@pytest.mark.parametrize(
    "error",
    [
        None,
        MemoryError(),
        torch.OutOfMemoryError("CUDA out of memory."),
        RuntimeError("DefaultCPUAllocator: not enough memory"),
    ],
)
def test_a_batch_that_does_not_fit_is_split_with_the_same_result(toy, error):
    whole, split = toy.build(0.0), toy.build(0.0)
    expected = of(Step, Trainer(whole, toy.loss, settings(steps=5)).fit(toy.Toy()))
    reports = list(Trainer(split, out_of_memory(2, error, toy), settings(steps=5)).fit(toy.Toy()))
    assert of(Split, reports)[0] == Split(1, 5, 3)
    for left, right in zip(expected, of(Step, reports), strict=True):
        assert left.loss == pytest.approx(right.loss, rel=1e-5)
        assert left.gradient_norm == pytest.approx(right.gradient_norm, rel=1e-4)
    for left, right in zip(whole.parameters(), split.parameters(), strict=True):
        torch.testing.assert_close(left, right, rtol=1e-4, atol=1e-5)


def test_a_failed_try_draws_no_random_number(toy):
    """Two halves, run because the whole failed, draw what two batches of one row draw."""
    split, halves = toy.build(0.5), toy.build(0.5)
    batch = toy.Toy().load(np.arange(2))
    Trainer(split, out_of_memory(1, MemoryError(), toy), settings()).update(batch)

    class Halves(toy.Toy):
        def plan(self, epoch):
            return [np.array([0]), np.array([1])]

        def load(self, rows):
            return {name: tensor[rows] for name, tensor in batch.items()}

    list(Trainer(halves, toy.loss, settings(steps=1, accumulate=2)).fit(Halves()))
    for left, right in zip(split.parameters(), halves.parameters(), strict=True):
        torch.testing.assert_close(left, right, rtol=1e-6, atol=1e-7)


def test_a_single_row_that_does_not_fit_is_named(toy):
    trainer = Trainer(toy.build(), out_of_memory(0, MemoryError(), toy), settings(steps=5))
    corpus = toy.Toy()
    first = corpus.plan(0)[0][0]
    with pytest.raises(
        UnrolledError, match=rf"^pairs.tsv:{first + 1}: this row alone does not fit the memory. Shorten"
    ):
        list(trainer.fit(corpus))


def test_another_runtime_error_is_not_taken_for_memory(toy):
    with pytest.raises(RuntimeError, match="shapes"):
        Trainer(toy.build(), out_of_memory(0, RuntimeError("shapes"), toy), settings()).update(
            toy.Toy().load(np.arange(2))
        )


def test_equal_seeds_give_equal_weights_and_others_do_not(toy):
    def run(seed):
        model = toy.build()
        chosen = settings(steps=4, seed=seed, deterministic=True)
        list(Trainer(model, toy.loss, chosen).fit(toy.Toy()))
        return toy.digest(model)

    assert run(1) == run(1) != run(2)
    assert not torch.are_deterministic_algorithms_enabled()


def test_an_operation_without_a_repeatable_form_is_named(toy):
    def loss(model, batch):
        raise RuntimeError("put_ does not have a deterministic implementation, but you set ...")

    with pytest.raises(UnrolledError, match="no repeatable form of an operation here: put_ does not"):
        Trainer(toy.build(), loss, settings(deterministic=True)).update(toy.Toy().load(np.arange(2)))


def test_a_dry_run_leaves_everything_as_it_was(toy):
    tried, fresh = toy.build(), toy.build()
    chosen = settings(steps=3, optimizer="adamw")
    trainer = Trainer(tried, toy.loss, chosen)
    before = toy.digest(tried)
    trial = trainer.dry_run(toy.Toy())
    assert toy.digest(tried) == before
    assert (trial.rows, trial.pieces) == (5, 1)
    assert trial.symbols == toy.Toy().lengths[toy.Toy().longest()].sum()
    assert trial.seconds > 0
    assert 1e7 < trial.memory < 1e11
    list(trainer.fit(toy.Toy()))
    list(Trainer(fresh, toy.loss, chosen).fit(toy.Toy()))
    assert toy.digest(tried) == toy.digest(fresh)


def test_a_dry_run_tells_how_a_batch_is_split(toy):
    assert Trainer(toy.build(), out_of_memory(2, MemoryError(), toy), settings()).dry_run(toy.Toy()).pieces == 3


def test_shared_gradients_are_scaled_once(toy):
    """Autograd hands out one tensor for both parts of a sum."""

    class Sum(nn.Module):
        def __init__(self):
            super().__init__()
            self.left, self.right = nn.Parameter(torch.zeros(3)), nn.Parameter(torch.zeros(3))

    model = Sum()
    trainer = Trainer(model, lambda m, b: Loss(((m.left + m.right) * b["x"][0, 0]).sum(), 2), settings(clip_norm=None))
    batch = toy.Toy().load(np.arange(1))
    report = trainer.update(batch)
    assert report.gradient_norm == pytest.approx(float(batch["x"][0, 0].norm()) / 2 * math.sqrt(2), rel=1e-5)
    for state in trainer.run.optimizer.state.values():
        torch.testing.assert_close(state["exp_avg"], batch["x"][0, 0] / 2 * 0.1)


def test_tied_weights_are_one_tensor_in_a_checkpoint(toy, tmp_path):
    class Tied(nn.Module):
        def __init__(self):
            super().__init__()
            self.embed, self.out = nn.Linear(3, 3), nn.Linear(3, 3)
            self.out.weight = self.embed.weight

    def loss(model, batch):
        return Loss((model.out(model.embed(batch["x"]).tanh()) ** 2).sum(), 1)

    torch.manual_seed(0)
    first = Tied()
    list(Trainer(first, loss, settings(steps=2), folder=tmp_path).fit(toy.Toy()))
    second = Tied()
    trainer = Trainer(second, loss, settings(steps=2), folder=tmp_path)
    list(trainer.fit(toy.Toy(), resume=True))
    assert second.out.weight is second.embed.weight
    assert toy.digest(first) == toy.digest(second)


def test_parameters_that_the_loss_does_not_use_do_no_harm(toy):
    model = toy.build()
    model.spare = nn.Linear(2, 2)
    before = model.spare.weight.clone()
    frozen = model.out.bias.requires_grad_(False).clone()
    list(Trainer(model, toy.loss, settings(steps=3)).fit(toy.Toy()))
    torch.testing.assert_close(model.spare.weight, before, rtol=0, atol=0)
    torch.testing.assert_close(model.out.bias, frozen, rtol=0, atol=0)


def test_memory_does_not_grow_with_steps(toy):
    trainer = Trainer(toy.build(), toy.loss, settings(steps=240, validate_every=30, average="last"))
    sizes = []
    tracemalloc.start()
    try:
        corpus = toy.Toy()
        for report in trainer.fit(corpus, toy.score):
            corpus.loaded.clear()
            if isinstance(report, Step) and report.step in (130, 239):
                gc.collect()
                sizes.append(tracemalloc.get_traced_memory()[0])
    finally:
        tracemalloc.stop()
    assert sizes[1] - sizes[0] < 20_000


def test_the_loop_of_ones_own_has_a_constant_rate_without_a_number_of_steps(toy):
    trainer = Trainer(toy.build(), toy.loss, settings(schedule="one_cycle", learning_rate=0.5))
    batch = toy.Toy().load(np.arange(2))
    assert [trainer.update(batch).learning_rate for _ in range(3)] == [0.5] * 3
    trainer = Trainer(toy.build(), toy.loss, settings(schedule="one_cycle", learning_rate=0.5, steps=3))
    rates = [trainer.update(batch).learning_rate for _ in range(3)]
    assert rates[1] > rates[2] > 0


def test_a_model_may_step_its_own_weights(toy, tmp_path):
    rates = []

    def update(model, batch, rate):
        rates.append(rate)
        total, count = toy.loss(model, batch)
        weights = list(model.parameters())
        for weight, step in zip(weights, torch.autograd.grad(total / count, weights), strict=True):
            weight.data -= rate * step
        return Loss(total.detach(), count)

    def run(model, folder, **given):
        chosen = settings(optimizer="sgd", schedule="linear", clip_norm=None, learning_rate=0.1, epochs=2)
        return Trainer(model, toy.loss, chosen, folder=folder, **given)

    own, plain = toy.build(0.0), toy.build(0.0)
    reports = list(run(own, tmp_path / "own", update=update).fit(toy.Toy()))
    wanted = list(run(plain, None).fit(toy.Toy()))
    for one, two in zip(of(Step, reports), of(Step, wanted), strict=True):
        assert one.loss == pytest.approx(two.loss, rel=1e-5) and one.symbols == two.symbols
        assert one.gradient_norm is None and one.learning_rate == two.learning_rate
    assert rates[0] == pytest.approx(0.1) and rates == sorted(rates, reverse=True) and rates[-1] < 0.02
    for one, two in zip(own.parameters(), plain.parameters(), strict=True):
        assert torch.allclose(one, two, atol=1e-6)

    half, rest = toy.build(0.0), toy.build(0.0)
    torch.nn.utils.vector_to_parameters(torch.zeros(sum(p.numel() for p in rest.parameters())), rest.parameters())
    for report in run(half, tmp_path / "half", update=update).fit(toy.Toy(), lambda model: {"loss": 1.0}):
        if isinstance(report, Validated):
            break
    list(run(rest, tmp_path / "half", update=update).fit(toy.Toy(), lambda model: {"loss": 1.0}, resume=True))
    assert all(torch.equal(one, two) for one, two in zip(rest.parameters(), own.parameters(), strict=True))
    before = [weight.clone() for weight in own.parameters()]
    trial = run(own, None, update=update).dry_run(toy.Toy())
    assert trial.symbols > 0 and rates[-1] == 0.0
    assert all(torch.equal(one, two) for one, two in zip(own.parameters(), before, strict=True))

    with pytest.raises(UnrolledError, match="the loss of this batch is not a finite number"):
        list(run(own, None, update=lambda model, batch, rate: Loss(torch.tensor(math.nan), 1)).fit(toy.Toy()))
    many = SimpleNamespace(size=2, rank=0, device=torch.device("cpu"))
    with pytest.raises(
        UsageError, match="2 processes were started, and the weights of this model are stepped in place"
    ):
        run(own, None, update=update, world=many)
