"""Training is an iterator of reports: ``update`` does one step, ``fit`` walks over a corpus and says what happens."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from unrolled.base.errors import UnrolledError
from unrolled.train import allocation, checkpoint, in_place, limits, memory, precision, randomness
from unrolled.train.averaging import AVERAGES
from unrolled.train.corpus import Batches, Corpus, Portion, all_places, given
from unrolled.train.devices import World, join
from unrolled.train.gradients import Gradients, LossFunction, clip_scale, names, step
from unrolled.train.in_place import Update
from unrolled.train.interruption import Interruption
from unrolled.train.optimizers import OPTIMIZERS
from unrolled.train.rate import Rate
from unrolled.train.reports import Report, Saved, Split, Step, Stopped, Trial, Validated
from unrolled.train.run import Run
from unrolled.train.schedules import SCHEDULES, Progress
from unrolled.train.settings import TrainSettings
from unrolled.train.stopping import Stopping

Validate = Callable[[nn.Module], Mapping[str, float]]


class Trainer:
    """Trains ``model`` by ``loss(model, batch) -> Loss(total, count)``.

    ``folder`` is where checkpoints go; None keeps nothing on disk. ``record`` is what else describes the run (the
    model's settings, the data): kept in each checkpoint and compared on resuming. ``world``: from the launcher's
    environment if None. ``carried``: what the loss itself keeps from batch to batch (the states of a
    language model that reads on and on); it goes into checkpoints, each process' own. ``update``: how a batch changes
    the weights where it is not by an optimiser that is given the gradients of the loss; in one process only.
    """

    def __init__(
        self,
        model: nn.Module,
        loss: LossFunction,
        settings: TrainSettings | None = None,
        *,
        folder: str | Path | None = None,
        record: Mapping[str, Any] | None = None,
        world: World | None = None,
        carried: dict[str, Tensor] | None = None,
        update: Update | None = None,
    ) -> None:
        self.settings = settings = settings or TrainSettings()
        self.folder = Path(folder) if folder is not None else None
        self.world = world or join(settings.device, settings.timeout)
        self.own_update = update
        in_place.refuse_many(update, self.world)
        device = self.world.device
        if device.type == "cpu":
            allocation.keep_freed()
        self.precision = precision.resolve(settings.precision, device)
        self.model = model.to(device)
        self.gradients = Gradients(model, loss, device, self.autocast)
        self.run = Run(
            model=model,
            optimizer=OPTIMIZERS.build(settings.optimizer).build(self.gradients.parameters, settings.learning_rate),
            schedule=SCHEDULES.build(settings.schedule),
            average=AVERAGES.build(settings.average),
            stopping=Stopping(settings.stop_on or "loss", settings.patience),
            world=self.world,
            carried={} if carried is None else carried,
            record={**(record or {}), "train": settings.tree(), "machine": self._machine()},
        )
        self.world.same(list(self.run.weights.values()))
        randomness.seed(settings.seed + self.world.rank)
        self._interruption = Interruption()
        self._asked = False  # someone asked to stop, agreed between the processes
        self._walking = False  # inside fit, where the share of epochs is known
        self._rate = Rate()
        self._started = time.monotonic()
        self._first: limits.Position | None = None  # after the first update that this trainer, or this fit, made

    def _machine(self) -> dict[str, Any]:
        """What decides, besides the settings, whether a resumed run repeats to the bit."""
        return {
            "processes": self.world.size,
            "device": self.world.device.type,
            "precision": self.precision,
            "threads": torch.get_num_threads(),
            "torch": torch.__version__,
        }

    def autocast(self) -> Any:
        """The context of a forward pass in this run's precision; also good for a validation loss."""
        return precision.autocast(self.precision, self.world.device)

    def update(self, batch: Any) -> Step:
        """One step on ``batch``, a tree of tensors whose first axis is its rows; in many processes this one's share.

        For loops of your own. The schedule then goes by steps or minutes; where only epochs are set, the rate does not
        change. Raises UnrolledError where the loss or the gradient is not a finite number (the weights stay as they
        were), and where a single row does not fit the memory.
        """
        return self._timed(self._update([given(batch)])[1])

    def fit(self, batches: Batches, validate: Validate | None = None, *, resume: bool = False) -> Iterator[Report]:
        """Train to the end, one report after the other; the last is Stopped.

        ``validate(model)`` gives scores by name; it sees the weights that would be kept (the averaged ones), in
        evaluation mode, and may draw random numbers: training does not notice. In many processes the first one
        validates and writes. ``resume`` goes on from the newest checkpoint in the folder, bit for bit, if there is one.
        Ctrl-C and SIGTERM finish the update, save, and stop with the reason 'interrupted'.
        """
        with self._interruption:
            yield from self._begin(resume)
            at, corpus = self.run.position, Corpus(batches, self.world)
            while True:
                reason = self._reason()
                if validate is not None and self._validation_is_due(reason):
                    yield from self._validate(validate)
                    reason = self._reason()
                if reason is not None:
                    break
                if self._save_is_due():
                    yield from self._save()
                yield from self._walk(corpus)
            if at.saved_step != at.step:
                yield from self._save()
            yield Stopped(reason, at.step, self.run.stopping.best_step, self.run.stopping.best, at.elapsed)

    def restore_best(self) -> int | None:
        """Put the best validated weights into the model; their step, or None where nothing was validated.

        Without a validation an average, where one is kept, is put in.
        """
        weights = self.world.first_does(lambda: self.run.best_weights(self.folder))
        if weights is not None:
            checkpoint.load_weights(self.model, weights, "the best weights")
        return self.run.stopping.best_step

    def dry_run(self, batches: Batches) -> Trial:
        """The longest batch through forward, backward and update, with a rate of 0: the weights stay as they are.

        It is timed the second time: the first makes machine code where there is none yet.
        """
        portion = Corpus(batches, self.world).longest()
        optimizer = OPTIMIZERS.build(self.settings.optimizer).build(self.gradients.parameters, 0.0)
        before, carried = self.run.position.elapsed, dict(self.run.carried)
        with randomness.kept(self.world.device), memory.Peak(self.world.device) as peak:
            for _ in range(2):
                started = time.perf_counter()
                if self.own_update is None:
                    pieces = sum(split.pieces for split in self._collect([portion])) or 1
                    _, _, symbols = self._apply(optimizer, 0.0, [portion])
                else:
                    pieces, (_, symbols) = 1, self._step_in_place(self.own_update, 0.0, [portion])
                seconds = time.perf_counter() - started
        self.gradients.clear()
        self.run.position.elapsed = before
        self.run.keep(carried)
        return Trial(len(portion.places()), symbols, pieces, seconds, peak.bytes)

    def _update(self, portions: Sequence[Portion]) -> tuple[list[Split], Step]:
        """One step on the sum of several batches."""
        started = time.perf_counter()
        run, at = self.run, self.run.position
        learning_rate = self.settings.learning_rate * self._factor()
        with randomness.deterministic(self.settings.deterministic):
            if self.own_update is None:
                splits = self._collect(portions)
                loss, norm, symbols = self._apply(run.optimizer, learning_rate, portions)
            else:
                splits, norm = [], None
                loss, symbols = self._step_in_place(self.own_update, learning_rate, portions)
        run.average.updated(run.weights)
        self.gradients.clear()
        at.step += 1
        rate = self._rate.note(symbols, time.perf_counter() - started)
        return splits, Step(at.step, at.epoch, loss, norm, learning_rate, symbols, rate, None)

    def _collect(self, portions: Sequence[Portion]) -> list[Split]:
        """Add up the gradients of this process' rows."""
        if not self.model.training:
            self.model.train()
        self.gradients.clear()
        splits = []
        for portion in portions:
            batch = portion.load()
            if batch is not None:
                pieces = self.gradients.add(batch, portion.mine)
                if pieces > 1:
                    splits.append(Split(self.run.position.step + 1, memory.rows(batch), pieces))
        return splits

    def _apply(
        self, optimizer: torch.optim.Optimizer, learning_rate: float, portions: Sequence[Portion]
    ) -> tuple[float, float, int]:
        """Bring all processes' gradients together, clip them and step: mean loss, gradient norm, symbols."""
        gradients = self.world.add_tensors(self.gradients.result())
        total, norm = self._numbers(gradients)
        clock = time.monotonic() - self._started if self.world.first else 0.0
        total, count, asked, elapsed = self.world.add(
            [total, self.gradients.count, float(self._interruption.asked), clock]
        )
        self._asked = asked > 0
        self.run.position.elapsed = elapsed
        loss, norm = total / max(count, 1), norm / max(count, 1)
        if not (math.isfinite(loss) and math.isfinite(norm)):
            raise self._refusal("loss" if not math.isfinite(loss) else "gradient", portions)
        scale = clip_scale(1 / max(count, 1), norm, self.settings.clip_norm)
        step(optimizer, self.gradients.parameters, gradients, learning_rate, scale, self.settings.clip_value)
        return loss, norm, int(count)

    def _step_in_place(self, update: Update, learning_rate: float, portions: Sequence[Portion]) -> tuple[float, int]:
        """What takes the place of gradients and optimiser where the model brings its update: mean loss, symbols."""
        loss, count = in_place.step(update, self.model, learning_rate, portions)
        self._asked = self._interruption.asked
        self.run.position.elapsed = time.monotonic() - self._started
        if not math.isfinite(loss):
            raise self._refusal("loss", portions)
        return loss, count

    def _numbers(self, gradients: Sequence[Tensor]) -> tuple[float, float]:
        """The summed loss of this process and the norm of all gradients, in the one wait for the device of a step."""
        norm = torch.nn.utils.get_total_norm(gradients)
        total = self.gradients.total
        loss, size = torch.stack([norm.new_zeros(()) if total is None else total.to(norm.dtype), norm]).tolist()
        return loss, size

    def _walk(self, corpus: Corpus) -> Iterator[Report]:
        """The next update of the corpus."""
        at, epoch = self.run.position, self.run.position.epoch
        at.batches = corpus.size(epoch)
        portions = corpus.take(epoch, at.batch, self.settings.accumulate)
        splits, done = self._update(portions)
        at.batch += len(portions)
        if at.batch >= at.batches:
            at.epoch, at.batch = epoch + 1, 0
        yield from splits
        yield self._timed(done)

    def _validate(self, validate: Validate) -> Iterator[Report]:
        """Score the weights that would be kept; save them where they are the best; save a checkpoint."""
        run, at = self.run, self.run.position
        before = run.average.state()
        run.average.validating(run.weights)
        started = time.monotonic()
        scores, seconds = self.world.first_does(lambda: (self._scores(validate), time.monotonic() - started))
        self._tell_time()
        if scores is None:
            self._asked = True
            run.average.restore(before)
            return
        better = run.stopping.observe(at.step, scores)
        run.schedule.observe(better)
        at.validated, at.validated_at, at.reserve = at.step, at.elapsed, seconds
        kept = run.save_best(self.folder) if better else None
        saved = list(self._save())  # all is on disk before anybody hears of it
        yield Validated(at.step, at.epoch, scores, better, seconds)
        if kept is not None:
            yield Saved(at.step, kept, True)
        yield from saved

    def _scores(self, validate: Validate) -> dict[str, float] | None:
        """What ``validate`` says; None where it was interrupted, which it may be at any point."""
        self.model.eval()
        try:
            self._interruption.open()
            with randomness.kept(self.world.device), self.run.averaged(), torch.no_grad():
                return {name: float(score) for name, score in validate(self.model).items()}
        except KeyboardInterrupt:
            return None
        finally:
            self._interruption.close()
            self.model.train()

    def _save(self) -> Iterator[Report]:
        if self.folder is not None:
            at = self.run.position
            self._tell_time()
            at.saved, at.saved_step = at.elapsed, at.step
            yield Saved(at.step, self.run.save(self.folder), False)

    def _begin(self, resume: bool) -> Iterator[Report]:
        """Take up a checkpoint, or make sure that none would be overwritten."""
        self._asked = False
        if self.folder is not None:
            resumed = self.run.resume(self.folder, resume)
            if resumed is not None:
                yield resumed
        self._walking, self._first = True, None
        self._started = time.monotonic() - self.run.position.elapsed

    def _reason(self) -> str | None:
        """Why to stop now."""
        if self._asked or (self.world.size == 1 and self._interruption.asked):
            return "interrupted"
        return limits.ended(self.settings, self.run.position) or ("patience" if self.run.stopping.exhausted else None)

    def _validation_is_due(self, reason: str | None) -> bool:
        at = self.run.position
        if reason is None:
            return limits.validation_is_due(self.settings, at)
        return at.step != at.validated and reason not in ("interrupted", "patience")

    def _save_is_due(self) -> bool:
        at, every = self.run.position, self.settings.save_every
        if at.step == at.saved_step:
            return False
        late = at.elapsed - at.saved >= self.settings.save_minutes * 60
        return late or (every is not None and at.step % every == 0)

    def _factor(self) -> float:
        if not self._walking and self.settings.steps is None and self.settings.minutes is None:
            return 1.0
        at = self.run.position
        return self.run.schedule.factor(Progress(at.step, limits.share(self.settings, at)))

    def _timed(self, done: Step) -> Step:
        """``done`` with the time that is left."""
        now = replace(self.run.position, elapsed=time.monotonic() - self._started)
        self._first = self._first or now
        return done._replace(seconds_left=limits.seconds_left(self.settings, now, self._first))

    def _tell_time(self) -> None:
        self.run.position.elapsed = self.world.tell(time.monotonic() - self._started)

    def _refusal(self, what: str, portions: Sequence[Portion]) -> UnrolledError:
        """The error of an update that is not a number."""
        found = checkpoint.steps(self.folder) if self.folder is not None else []
        kept = f"The last good checkpoint is kept: {found[0]}." if found else "There is no checkpoint yet."
        places = names(list(all_places(portions)))
        return UnrolledError(
            f"step {self.run.position.step + 1}: the {what} of this batch is not a finite number"
            f"{f' (lines: {places})' if places else ''}. The weights were not changed. {kept} "
            "Lower train.learning_rate or train.clip_norm, warm up longer, or set train.precision to float32."
        )
