"""One process or many, on one machine or many: who I am, what all of us add up, and what the first tells the others."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from datetime import timedelta
from typing import Any, TypeVar

import torch
import torch.distributed as distributed
from torch import Tensor

from unrolled.base.errors import SettingsError, UnrolledError

T = TypeVar("T")


class World:
    """The processes of a run. Alone (``size`` 1) every method answers at once and no process group exists.

    Gradients are added in one message after the backward pass, not in pieces during it as DistributedDataParallel does:
    a recurrent net's weight gradients are complete only when the walk back through time ends, so there is little to
    overlap; and a process may then run its share in one piece, in several (where memory is short) or not at all (fewer
    rows than processes) without the others noticing.
    """

    def __init__(self, device: torch.device, rank: int = 0, size: int = 1, timeout: float = 600.0) -> None:
        self.device = device
        self.rank = rank
        self.size = size
        self.timeout = timeout
        # What waits for the first process (validation, saving) may take any time; a dead one still ends the wait.
        self._patient = distributed.new_group(backend="gloo", timeout=timedelta(days=30)) if size > 1 else None

    @property
    def first(self) -> bool:
        """Whether this process is the one that validates and writes."""
        return self.rank == 0

    def add(self, values: Sequence[float]) -> list[float]:
        """The sums of ``values`` over all processes."""
        if self.size == 1:
            return list(values)
        facts = torch.tensor(values, dtype=torch.float64, device=self.device)
        self._with_others(lambda: distributed.all_reduce(facts))
        return facts.tolist()

    def add_tensors(self, tensors: Sequence[Tensor]) -> list[Tensor]:
        """The sums of float tensors over all processes, in one message."""
        if self.size == 1:
            return list(tensors)
        flat = torch.cat([tensor.reshape(-1) for tensor in tensors])
        self._with_others(lambda: distributed.all_reduce(flat))
        pieces = flat.split([tensor.numel() for tensor in tensors])
        return [piece.view_as(tensor) for piece, tensor in zip(pieces, tensors, strict=True)]

    def same(self, tensors: Sequence[Tensor]) -> None:
        """Overwrite ``tensors`` with those of the first process."""
        for tensor in tensors if self.size > 1 else ():
            self._with_others(lambda tensor=tensor: distributed.broadcast(tensor.data, 0))

    def tell(self, value: T) -> T:
        """The first process' ``value``, in all of them. Waits as long as the first one works."""
        if self.size == 1:
            return value
        box = [value]
        self._with_others(lambda: distributed.broadcast_object_list(box, 0, group=self._patient))
        return box[0]

    def first_does(self, action: Callable[[], T]) -> T:
        """What ``action`` gave in the first process, in all of them; its UnrolledError too."""
        if self.size == 1:
            return action()
        outcome: tuple[T | None, UnrolledError | None] = (None, None)
        if self.first:
            try:
                outcome = action(), None
            except UnrolledError as error:
                outcome = None, error
        result, error = self.tell(outcome)
        if error is not None:
            raise error
        return result  # type: ignore[return-value]

    def collect(self, value: T) -> list[T]:
        """Everyone's ``value``, by rank, in all processes."""
        if self.size == 1:
            return [value]
        boxes: list[Any] = [None] * self.size
        self._with_others(lambda: distributed.all_gather_object(boxes, value, group=self._patient))
        return boxes

    def _with_others(self, action: Callable[[], Any]) -> None:
        try:
            action()
        except RuntimeError as error:
            reason = str(error).strip().splitlines()[0][:200]
            raise UnrolledError(
                f"process {self.rank} of {self.size}: another process ended, or did not answer for "
                f"{self.timeout:.0f} seconds ({reason}). The run is stopped; go on with --resume."
            ) from None


def join(device: str = "auto", timeout: float = 600.0) -> World:
    """This process' world: what torchrun or another launcher put into RANK, WORLD_SIZE and MASTER_ADDR, or alone.

    ``device``: auto (a GPU where there is one), cpu, cuda or cuda:1. SettingsError where there is no such device.
    """
    chosen = choose_device(device, "[train.device]")
    if int(os.environ.get("WORLD_SIZE", "1")) == 1:
        return World(chosen)
    from accelerate import PartialState

    if chosen.type == "cuda":
        os.environ.setdefault("LOCAL_RANK", str(int(os.environ["RANK"]) % torch.cuda.device_count()))
    try:
        state = PartialState(cpu=chosen.type == "cpu", timeout=timedelta(seconds=timeout))
    except (RuntimeError, ValueError) as error:
        raise UnrolledError(
            f"the processes of this run did not find each other ({str(error).strip().splitlines()[0]}). "
            "Check MASTER_ADDR, MASTER_PORT, RANK and WORLD_SIZE, or start with torchrun."
        ) from None
    return World(state.device, state.process_index, state.num_processes, timeout)


def leave() -> None:
    """Part from the other processes; call it when the run is over."""
    if distributed.is_available() and distributed.is_initialized():
        distributed.destroy_process_group()


def choose_device(name: str, where: str) -> torch.device:
    """``auto`` is a GPU where there is one; SettingsError, beginning with ``where``, for a device that is not there."""
    if name == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    try:
        device = torch.device(name)
    except RuntimeError:
        raise SettingsError(f"{where} '{name}' was given; known: auto, cpu, cuda, cuda:0, cuda:1 …") from None
    there = {"cpu": 1, "cuda": torch.cuda.device_count(), "mps": int(torch.backends.mps.is_available())}
    if (device.index or 0) >= there.get(device.type, 0):
        raise SettingsError(f"{where} there is no '{name}' on this machine. Give cpu, or auto.")
    return device
