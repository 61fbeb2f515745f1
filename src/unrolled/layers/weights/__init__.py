"""Weights to and from other libraries' layouts, one file a library."""

from unrolled.layers.weights.keras_layout import load_keras, to_keras
from unrolled.layers.weights.onnx_layout import OnnxLayer, load_onnx, to_onnx
from unrolled.layers.weights.torch_layout import load_torch, to_torch

__all__ = ["OnnxLayer", "load_keras", "load_onnx", "load_torch", "to_keras", "to_onnx", "to_torch"]
