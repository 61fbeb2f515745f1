"""Memory that is freed stays with a process that trains, so that the system need not clear it for each update."""

import ctypes
import os
import subprocess
import sys

import pytest

if "CS_GNU_LIBC_VERSION" not in getattr(os, "confstr_names", {}) or not hasattr(ctypes.CDLL(None), "mallinfo2"):
    pytest.skip("only the GNU C library, from 2.33 on, says what it keeps", allow_module_level=True)

KEPT = """
import ctypes, torch
BEFORE
class Held(ctypes.Structure):
    _fields_ = [(name, ctypes.c_size_t) for name in
                "arena ordblks smblks hblks apart usmblks fsmblks uordblks free keepcost".split()]
ask = ctypes.CDLL(None).mallinfo2
ask.restype = Held
before = ask()
held = torch.zeros(5_000_000)
apart = ask().apart - before.apart
del held
print(apart >= 20_000_000, ask().free - before.free >= 10_000_000)
"""

MADE = """
from unrolled.train.trainer import Trainer
from unrolled.train.settings import TrainSettings
Trainer(torch.nn.Linear(2, 2), lambda *_: None, TrainSettings(device="cpu"))
"""


def kept(before, **environment):
    """Whether 20 MB have pages of their own, and whether they stay with the process once they are freed."""
    script = KEPT.replace("BEFORE", before)
    found = subprocess.run(
        [sys.executable, "-c", script], env=os.environ | environment, capture_output=True, text=True, check=True
    )
    return found.stdout.split()


def test_what_an_update_frees_stays_with_the_process():
    assert kept("") == ["True", "False"], "what the C library does unasked"
    assert kept(MADE) == ["False", "True"]


def test_what_the_environment_says_is_left_so():
    assert kept(MADE, MALLOC_MMAP_THRESHOLD_="1000000") == ["True", "False"]
