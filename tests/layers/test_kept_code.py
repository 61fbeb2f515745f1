"""Machine code made now and machine code found kept say the same, bit for bit: the same seed trains the same model."""

import os
import subprocess
import sys

import pytest
import torch

from unrolled.layers.kernels.compiled.products import found

PROGRAM = """
import hashlib, torch
from unrolled.layers import LSTM

torch.manual_seed(1)
torch.set_num_threads(1)
layer = LSTM(5, 33)  # wide enough to be worked on many numbers at once, with a rest
x = torch.randn(7, 3, 5, requires_grad=True)
y = layer(x)[0]
(y * torch.linspace(-1, 1, y.numel()).view_as(y)).sum().backward()
for one in (y, x.grad, *(weight.grad for weight in layer.parameters())):
    print(hashlib.sha256(one.detach().numpy().tobytes()).hexdigest())
"""


@pytest.mark.skipif(not found(torch.float32), reason="torch's library offers no products here: loops are not compiled")
def test_a_process_that_makes_machine_code_and_one_that_finds_it_agree(tmp_path):
    given = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path)}
    said = []
    for _ in range(2):
        said.append(subprocess.run([sys.executable, "-c", PROGRAM], env=given, capture_output=True, check=True).stdout)
        assert list(tmp_path.rglob("*.nbc")), "it is kept"
    assert said[0] == said[1]
    assert len(said[0].split()) == 5, "output and gradients"


@pytest.mark.skipif(not found(torch.float32), reason="torch's library offers no products here: loops are not compiled")
def test_a_disk_that_is_full_costs_time_alone(tmp_path):
    full = "import numba.core.caching as kept\ndef save(*_): raise OSError(28, 'No space left on device')\n"
    full += "kept.IndexDataCacheFile.save = save\n"
    given = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path)}
    ran = subprocess.run([sys.executable, "-c", full + PROGRAM], env=given, capture_output=True, text=True)
    assert ran.returncode == 0 and len(ran.stdout.split()) == 5, ran.stderr
    assert not list(tmp_path.rglob("*.nbc"))


@pytest.mark.skipif(not found(torch.float32), reason="torch's library offers no products here: loops are not compiled")
@pytest.mark.parametrize("kind", ["nbi", "nbc"])
def test_kept_code_that_cannot_be_read_is_made_anew(kind, tmp_path):
    given = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path)}
    command = [sys.executable, "-c", PROGRAM]
    said = subprocess.run(command, env=given, capture_output=True, check=True).stdout
    files = list(tmp_path.rglob(f"*.{kind}"))
    whole = {file: file.read_bytes() for file in files}
    for number, file in enumerate(files):  # half a one, and one of a class that is gone
        file.write_bytes(
            whole[file][: len(whole[file]) // 2] if number % 2 else whole[file].replace(b"Steps", b"Stops")
        )
    ran = subprocess.run(command, env=given, capture_output=True, text=True)
    assert ran.returncode == 0, ran.stderr
    assert ran.stdout.encode() == said
    broken = [file for file in files if file.read_bytes() != whole[file]]
    assert len(broken) < len(files), "what could not be read was written again"
