"""One command in several processes of this machine, by torch's own launcher; the first that fails ends them all."""

from __future__ import annotations

import logging
import os
import signal
import sys
import uuid
from collections.abc import Sequence

from unrolled.base.errors import UnrolledError, UsageError

INTERRUPTED = 130
"""The exit code of a run that was asked to stop and can be resumed."""


def launched() -> bool:
    """Whether a launcher (torchrun, or ``launch``) started this process beside others."""
    return int(os.environ.get("WORLD_SIZE", "1")) > 1


def first() -> bool:
    """Whether this process is the one that prints and writes."""
    return int(os.environ.get("RANK", "0")) == 0


def launch(arguments: Sequence[str], devices: int) -> int:
    """Run ``python`` with ``arguments`` in ``devices`` processes; the exit code of the run.

    Where a process fails with a message of its own, its code is given back. UnrolledError where one was killed or
    crashed: the others are stopped then, and the last checkpoint is whole. Ctrl-C and SIGTERM are passed on, so that
    the processes save; the code is then 130.
    """
    if devices < 2:
        raise UsageError(f"--devices {devices} was given; several processes are 2 or more.")
    from torch.distributed.elastic.multiprocessing import SignalException
    from torch.distributed.elastic.multiprocessing.errors import ChildFailedError
    from torch.distributed.launcher.api import LaunchConfig, elastic_launch

    logging.getLogger("torch.distributed.elastic").setLevel(logging.CRITICAL)
    os.environ.setdefault("OMP_NUM_THREADS", str(max(1, (os.cpu_count() or 1) // devices)))
    config = LaunchConfig(
        min_nodes=1,
        max_nodes=1,
        nproc_per_node=devices,
        run_id=uuid.uuid4().hex,
        rdzv_backend="c10d",
        rdzv_endpoint="localhost:0",
        local_addr="127.0.0.1",
        max_restarts=0,
    )
    try:
        elastic_launch(config, sys.executable)(*arguments)
    except SignalException:
        return INTERRUPTED
    except ChildFailedError as error:
        return _code({rank: failure.exitcode for rank, failure in error.failures.items()}, devices)
    return 0


def _code(codes: dict[int, int], devices: int) -> int:
    """The exit code that says most: UnrolledError for a killed process, else the first own code."""
    for rank, code in sorted(codes.items()):
        if code < 0 and code != -signal.SIGTERM:  # SIGTERM is what the launcher sends to the others
            raise UnrolledError(
                f"process {rank} of {devices} was killed by {signal.Signals(-code).name} (out of memory?). The others "
                "were stopped. The last checkpoint is whole: go on with --resume."
            )
    return next((code for _, code in sorted(codes.items()) if code > 0), 1)
