"""All that a run of training is at one moment, how it is saved, and how it is taken up again bit for bit."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator, Mapping
from dataclasses import asdict, fields
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from unrolled.base.errors import DataError, UsageError
from unrolled.base.settings import leaves
from unrolled.train import checkpoint, randomness
from unrolled.train.averaging import Average
from unrolled.train.checkpoint import Checkpoint, load_weights, weights_of
from unrolled.train.devices import World
from unrolled.train.limits import Position
from unrolled.train.reports import Difference, Resumed
from unrolled.train.schedules import Schedule
from unrolled.train.stopping import Stopping


class Run:
    """The parts of a run that change while it goes on. ``record`` holds its settings, to be compared on resuming; JSON,
    with the settings of training under ``train`` and what they run on under ``machine``."""

    def __init__(
        self,
        *,
        model: nn.Module,
        optimizer: torch.optim.Optimizer,
        schedule: Schedule,
        average: Average,
        stopping: Stopping,
        world: World,
        carried: dict[str, Tensor],
        record: Mapping[str, Any],
    ) -> None:
        self.model = model
        self.weights = weights_of(model)
        self.optimizer = optimizer
        self.schedule = schedule
        self.average = average
        self.stopping = stopping
        self.position = Position()
        self.world = world
        self.carried = carried
        self.record = json.loads(json.dumps(record))  # as it is read back: lists, no tuples
        self._best: dict[str, Tensor] | None = None  # where no folder keeps them

    def save(self, folder: Path) -> Path:
        """Write a checkpoint of this moment; only the first process writes, the others lend their random state."""
        states = self.world.collect(randomness.pack(randomness.capture(self.world.device)))
        tensors = {
            "weights": self.weights,
            "optimizer": self._optimizer_state(),
            "random": {f"{rank}.{key}": value for rank, state in enumerate(states) for key, value in state.items()},
            "average": self.average.state(),
            "carried": {
                f"{rank}.{key}": value
                for rank, kept in enumerate(self.world.collect({k: v.cpu() for k, v in self.carried.items()}))
                for key, value in kept.items()
            },
        }
        state = {
            "position": asdict(self.position),
            "schedule": self.schedule.state(),
            "stopping": self.stopping.state(),
            "record": self.record,
        }

        def write() -> Path:
            path = checkpoint.write(folder, f"step-{self.position.step:08d}", tensors, state)
            checkpoint.prune(folder, self.stopping.best_step)
            return path

        return self.world.first_does(write)

    def keep(self, carried: Mapping[str, Tensor]) -> None:
        """Put ``carried`` in the place of what the loss keeps."""
        self.carried.clear()
        self.carried.update(carried)

    def save_best(self, folder: Path | None) -> Path | None:
        """Keep the weights that were validated just now: in the folder, or without one in memory."""
        weights = self.average.weights() or self.weights
        if folder is None:
            self._best = {name: tensor.detach().clone() for name, tensor in weights.items()}
            return None
        state = {"position": asdict(self.position), "stopping": self.stopping.state(), "record": self.record}
        name = f"best-{self.position.step:08d}"
        return self.world.first_does(lambda: checkpoint.write(folder, name, {"weights": weights}, state))

    def best_weights(self, folder: Path | None) -> Mapping[str, Tensor] | None:
        """The best validated weights; where nothing was validated the average, or None for the weights as they are."""
        if self.stopping.best_step is None:
            return self.average.weights()
        if folder is None:
            return self._best
        return checkpoint.read(folder / f"best-{self.stopping.best_step:08d}").tensors["weights"]

    @contextlib.contextmanager
    def averaged(self) -> Iterator[None]:
        """Inside, the model has the averaged weights."""
        average = self.average.weights()
        if average is None:
            yield
            return
        own = {name: tensor.detach().clone() for name, tensor in self.weights.items()}
        checkpoint.copy_weights(self.weights, average)
        try:
            yield
        finally:
            checkpoint.copy_weights(self.weights, own)

    def resume(self, folder: Path, wanted: bool) -> Resumed | None:
        """Become what the newest checkpoint in ``folder`` was; None where there is none.

        Raises DataError for a damaged checkpoint and for one of another model; UsageError where there is one that is
        not ``wanted``.
        """
        found = self.world.first_does(lambda: _find(folder, wanted))
        if found is None:
            return None
        path, saved, best = found
        try:
            self._take(path, saved)
        except (KeyError, TypeError, ValueError, AttributeError, RuntimeError) as error:
            raise DataError(f"{path}: the checkpoint is not one of this version ({error!r}). Train anew.") from None
        if best != self.stopping.best_step:  # removed by hand, or chosen by another score
            self.stopping.forget()
        return Resumed(self.position.step, path, self._differences(saved.state))

    def _take(self, path: Path, saved: Checkpoint) -> None:
        load_weights(self.model, saved.tensors["weights"], str(path))
        state = saved.state
        self._restore_optimizer(saved.tensors["optimizer"])
        self.average.restore({key: self._here(value) for key, value in saved.tensors["average"].items()})
        known = {field.name for field in fields(Position)}
        for name, value in state["position"].items():
            if name in known:
                setattr(self.position, name, value)
        self.stopping.restore(state["stopping"])
        self.schedule.restore(state["schedule"])
        own = self._mine(saved.tensors["random"])
        if state["record"]["machine"]["processes"] == self.world.size and own:
            randomness.restore(randomness.unpack(own), self.world.device)
            self.keep({key: self._here(value) for key, value in self._mine(saved.tensors.get("carried", {})).items()})
        else:  # another number of processes: no state fits, so draw anew, but the same every time; nothing is carried
            randomness.seed(self.record["train"]["seed"] + 1_000_003 * self.position.step + self.world.rank)

    def _mine(self, tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
        """Those of all processes' tensors that are this one's."""
        prefix = f"{self.world.rank}."
        return {key.removeprefix(prefix): value for key, value in tensors.items() if key.startswith(prefix)}

    def _optimizer_state(self) -> dict[str, Tensor]:
        names = {id(parameter): name for name, parameter in self.model.named_parameters()}
        return {
            f"{key}:{names[id(parameter)]}": torch.as_tensor(value)
            for parameter, values in self.optimizer.state.items()
            for key, value in values.items()
        }

    def _restore_optimizer(self, tensors: Mapping[str, Tensor]) -> None:
        parameters = dict(self.model.named_parameters())
        self.optimizer.state.clear()
        for key, tensor in tensors.items():
            kind, _, name = key.partition(":")
            self.optimizer.state[parameters[name]][kind] = self._here(tensor)

    def _here(self, tensor: Tensor) -> Tensor:
        return tensor.to(self.world.device, copy=True)  # not the file, mapped into memory

    def _differences(self, state: Mapping[str, Any]) -> tuple[Difference, ...]:
        saved, now = leaves(state["record"]), leaves(self.record)
        return tuple(
            Difference(name, saved.get(name), now.get(name))
            for name in sorted(saved.keys() | now.keys())
            if saved.get(name) != now.get(name)
        )


def _find(folder: Path, wanted: bool) -> tuple[Path, Checkpoint, int | None] | None:
    """The newest checkpoint and the step of the best weights that it knew."""
    checkpoint.prepare(folder)
    if not wanted:
        if checkpoint.steps(folder):
            raise UsageError(
                f"{folder} holds a run already (up to {checkpoint.steps(folder)[0].name}). Go on with it by "
                "--resume, or give another --out."
            )
        return None
    found = checkpoint.read_last(folder)
    if found is None:
        return None
    path, saved = found
    checkpoint.forget_after(folder, int(path.name.removeprefix("step-")))
    best = checkpoint.best(folder)
    return path, saved, int(best.name.removeprefix("best-")) if best is not None else None
