"""bfloat16 where the processor gains by it, float32 elsewhere. Weights are float32 always."""

from __future__ import annotations

import contextlib
import platform
from functools import lru_cache
from pathlib import Path

import torch

from unrolled.base.errors import SettingsError

MATRICES = frozenset({"amx_bf16", "bf16"})
"""What a processor calls its instructions for products of matrices in bfloat16: Intel's AMX, Arm's BFMMLA."""

PAIRS = frozenset({"avx512_bf16", "AuthenticAMD"})
"""What a processor says whose instructions for pairs of bfloat16 numbers are as many a cycle as those of float32."""


def resolve(
    precision: str,
    device: torch.device,
    given_by: str = "[train.precision]",
    cure: str = "Give float32, or auto, which takes bfloat16 only where it is faster.",
) -> str:
    """``auto``, ``bfloat16`` or ``float32`` → ``bfloat16`` or ``float32``; SettingsError for what the device lacks.

    ``given_by``: what the message names as the place that chose; ``cure``: what it says to do.
    """
    if precision == "float32":
        return "float32"
    if precision == "auto":
        return "bfloat16" if gains_by_bfloat16(device) else "float32"
    if not has_bfloat16(device):
        what = "no bfloat16 instructions (avx512_bf16, amx_bf16 or Arm's bf16)"
        if device.type != "cpu":
            what = "no bfloat16 arithmetic"
        raise SettingsError(
            f"{given_by} bfloat16 was given, but the device '{device}' ({_name(device)}) has {what}. {cure}"
        )
    return "bfloat16"


def has_bfloat16(device: torch.device) -> bool:
    """Whether products in bfloat16 run in hardware. A fixed property, not a timing, so that a run can be repeated."""
    # oneDNN takes bfloat16 on any AVX-512 processor, but by slow emulation: the processor's own word counts.
    return _computes(device, MATRICES | {"avx512_bf16"})


def gains_by_bfloat16(device: torch.device) -> bool:
    """Whether training in bfloat16 is faster: on instructions that multiply matrices, or AMD's for pairs.

    Intel's for pairs are half as many a cycle, no faster than two products of float32 (decisions/0033).
    """
    return _computes(device, MATRICES) or (
        device.type == "cpu" and _processor_flags() >= PAIRS and has_bfloat16(device)
    )


def _computes(device: torch.device, flags: frozenset[str]) -> bool:
    if device.type == "cuda":
        return torch.cuda.is_bf16_supported(including_emulation=False)
    return device.type == "cpu" and torch.backends.mkldnn.is_available() and bool(flags & _processor_flags())


def autocast(precision: str, device: torch.device) -> contextlib.AbstractContextManager[object]:
    """The context of the forward pass: products in ``precision``; torch keeps softmax and losses in float32."""
    if precision == "float32":
        return contextlib.nullcontext()
    return torch.autocast(device.type, dtype=torch.bfloat16)


@lru_cache(maxsize=1)
def _processor_flags(path: str = "/proc/cpuinfo") -> frozenset[str]:
    """What the first processor says it has, and who made it."""
    found: set[str] = set()
    try:
        lines = Path(path).read_text(errors="replace").splitlines()
    except OSError:
        return frozenset()
    for line in lines:
        name, _, value = line.partition(":")
        if name.strip() in ("flags", "Features", "vendor_id"):
            found.update(value.split())
        elif found and not line.strip():  # the next processor
            break
    return frozenset(found)


def _name(device: torch.device) -> str:
    if device.type == "cuda":
        return torch.cuda.get_device_name(device)
    return platform.processor() or platform.machine()
