"""Batches as trees of tensors, rows first: moved to a device, and halved when they do not fit its memory."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from types import TracebackType
from typing import Any

import torch
from torch import Tensor


def does_not_fit(error: BaseException) -> bool:
    """Whether ``error`` says that memory ran out, on a GPU or a CPU, so that half a batch is worth a try."""
    if isinstance(error, torch.OutOfMemoryError | MemoryError):
        return True
    words = ("not enough memory", "can't allocate memory", "out of memory", "cannot allocate memory")
    return isinstance(error, RuntimeError) and any(word in str(error).lower() for word in words)


def each(batch: Any, change: Callable[[Tensor], Tensor]) -> Any:
    """``batch`` with every tensor in its tuples, lists and mappings changed; anything else stays as it is."""
    if isinstance(batch, Tensor):
        return change(batch)
    if isinstance(batch, Mapping):
        return {name: each(part, change) for name, part in batch.items()}
    if isinstance(batch, tuple) and hasattr(batch, "_fields"):
        return type(batch)(*[each(part, change) for part in batch])
    if isinstance(batch, list | tuple):
        return type(batch)(each(part, change) for part in batch)
    return batch


def rows(batch: Any) -> int:
    """How many rows a batch has: the first axis of its first tensor; 0 where it has none."""
    found: list[int] = []

    def note(tensor: Tensor) -> Tensor:
        found.append(tensor.shape[0] if tensor.dim() else 1)
        return tensor

    each(batch, note)
    return found[0] if found else 0


def cut(batch: Any, start: int, stop: int) -> Any:
    """Rows ``start`` to ``stop`` of every tensor, as views."""
    return each(batch, lambda tensor: tensor[start:stop] if tensor.dim() else tensor)


def move(batch: Any, device: torch.device) -> Any:
    return each(batch, lambda tensor: tensor.to(device, non_blocking=True))


class Peak:
    """A context that notes in ``bytes`` the most memory in use inside: of the process, or of allocations on a GPU."""

    def __init__(self, device: torch.device) -> None:
        self.device = device
        self.bytes = 0
        self._over = threading.Event()

    def __enter__(self) -> Peak:
        if self.device.type == "cuda":
            torch.cuda.reset_peak_memory_stats(self.device)
        else:
            self._watcher = threading.Thread(target=self._watch, daemon=True)
            self._watcher.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self.device.type == "cuda":
            self.bytes = torch.cuda.max_memory_allocated(self.device)
        else:
            self._over.set()
            self._watcher.join()

    def _watch(self) -> None:
        import psutil

        process = psutil.Process()
        while True:
            self.bytes = max(self.bytes, process.memory_info().rss)
            if self._over.wait(0.002):
                return
