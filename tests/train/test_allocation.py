"""Memory that is freed stays with a process that trains, so that the system need not clear it for each update."""

import os
import subprocess
import sys

import pytest

if "CS_GNU_LIBC_VERSION" not in getattr(os, "confstr_names", {}):
    pytest.skip("only the GNU C library is told what to keep", allow_module_level=True)

UPDATES = """
import resource, torch
torch.set_num_threads(1)
BEFORE
def update():
    kept = [torch.zeros(300_000) for _ in range(60)]  # 1.2 MB each
    del kept
for _ in range(5):
    update()
before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
for _ in range(5):
    update()
print((resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before) // 5)
"""

MADE = """
from unrolled.train.trainer import Trainer
from unrolled.train.settings import TrainSettings
Trainer(torch.nn.Linear(2, 2), lambda *_: None, TrainSettings(device="cpu"))
"""


def faults(before, **environment):
    """Pages that the system had to give for an update."""
    script = UPDATES.replace("BEFORE", before)
    found = subprocess.run(
        [sys.executable, "-c", script], env=os.environ | environment, capture_output=True, text=True, check=True
    )
    return int(found.stdout)


def test_an_update_gets_the_pages_that_the_one_before_freed():
    assert faults("") > 1000, "what the C library does unasked"
    assert faults(MADE) < 100


def test_what_the_environment_says_is_left_so():
    assert faults(MADE, MALLOC_TRIM_THRESHOLD_="1000000") > 1000
