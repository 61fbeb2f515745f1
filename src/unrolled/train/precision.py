"""bfloat16 where the processor computes in it, float32 elsewhere. Weights are float32 always."""

from __future__ import annotations

import contextlib
import platform
from functools import lru_cache
from pathlib import Path

import torch

from unrolled.base.errors import SettingsError


def resolve(precision: str, device: torch.device, given_by: str = "[train.precision]") -> str:
    """``auto``, ``bfloat16`` or ``float32`` → ``bfloat16`` or ``float32``; SettingsError for what the device lacks.

    ``given_by``: what the message names as the place that chose.
    """
    if precision == "float32":
        return "float32"
    able = has_bfloat16(device)
    if precision == "bfloat16" and not able:
        what = "no bfloat16 instructions (avx512_bf16, amx_bf16 or Arm's bf16)"
        if device.type != "cpu":
            what = "no bfloat16 arithmetic"
        raise SettingsError(
            f"{given_by} bfloat16 was given, but the device '{device}' ({_name(device)}) has {what}. "
            "Give float32, or auto, which takes bfloat16 only where it is computed in hardware."
        )
    return "bfloat16" if able else "float32"


def has_bfloat16(device: torch.device) -> bool:
    """Whether products in bfloat16 run in hardware. A fixed property, not a timing, so that a run can be repeated."""
    if device.type == "cuda":
        return torch.cuda.is_bf16_supported(including_emulation=False)
    if device.type != "cpu" or not torch.backends.mkldnn.is_available():
        return False
    # oneDNN takes bfloat16 on any AVX-512 processor, but by slow emulation: the processor's own word counts.
    return bool({"avx512_bf16", "amx_bf16", "bf16"} & _processor_flags())


def autocast(precision: str, device: torch.device) -> contextlib.AbstractContextManager[object]:
    """The context of the forward pass: products in ``precision``; torch keeps softmax and losses in float32."""
    if precision == "float32":
        return contextlib.nullcontext()
    return torch.autocast(device.type, dtype=torch.bfloat16)


@lru_cache(maxsize=1)
def _processor_flags(path: str = "/proc/cpuinfo") -> frozenset[str]:
    try:
        lines = Path(path).read_text(errors="replace").splitlines()
    except OSError:
        return frozenset()
    for line in lines:
        name, _, value = line.partition(":")
        if name.strip() in ("flags", "Features"):
            return frozenset(value.split())
    return frozenset()


def _name(device: torch.device) -> str:
    if device.type == "cuda":
        return torch.cuda.get_device_name(device)
    return platform.processor() or platform.machine()
