"""The toy corpus, model and loss of ``toy_run.py``, for tests in this process and in others."""

import importlib.util
import os
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent


@pytest.fixture(scope="session")
def toy():
    spec = importlib.util.spec_from_file_location("toy_run", HERE / "toy_run.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="session")
def toy_command():
    """The start of a command line that trains the toy."""
    return [sys.executable, str(HERE / "toy_run.py")]


@pytest.fixture(scope="session")
def quiet_environment():
    """The environment of a child process: one thread, no launcher's leftovers."""
    away = ("RANK", "WORLD_SIZE", "LOCAL_RANK", "MASTER_ADDR", "MASTER_PORT")
    return {**{name: value for name, value in os.environ.items() if name not in away}, "OMP_NUM_THREADS": "1"}
