"""Keras as an oracle, where it is installed."""

import os
from types import ModuleType

import pytest


@pytest.fixture
def keras(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """Keras on its torch backend, in float64 where asked for it; skips where it is not there."""
    os.environ.setdefault("KERAS_BACKEND", "torch")
    found = pytest.importorskip("keras", reason="Keras is not installed: pip install 'unrolled[test]'")
    if found.backend.backend() != "torch":
        pytest.skip("Keras runs on another backend than torch: KERAS_BACKEND=torch")
    from keras.src.backend.common import dtypes

    # But for TensorFlow, Keras rounds the product of two float64 arrays to float32.
    monkeypatch.setitem(dtypes.BIT64_TO_BIT32_DTYPE, "float64", "float64")
    return found
