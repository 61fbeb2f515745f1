"""A small one of every encoder and decoder, for tests that run over the registries."""

from __future__ import annotations

from typing import Any

GRU, LSTM = {"kind": "gru", "hidden_size": 3}, {"kind": "lstm", "hidden_size": 6}
STACK = {"layers": 2, "heads": 2, "hidden_size": 6, "feedforward_size": 7, "dropout": 0.0}

ENCODERS: dict[str, dict[str, Any]] = {
    "cnn": {"kind": "cnn", "layers": 2, "hidden_size": 4, "dropout": 0.0},
    "feedforward": {"kind": "feedforward", "reach": 1, "hidden_size": 7},
    "ngram": {"kind": "ngram", "widest": 2, "hidden_size": 3},
    "plain": {"kind": "plain"},
    "pyramidal": {"kind": "pyramidal", "cell": GRU},
    "rnn": {"kind": "rnn", "cell": LSTM, "layers": 3, "bidirectional": "first", "residual": 3},
    "transformer": {"kind": "transformer", **STACK},
}
DECODERS: dict[str, dict[str, Any]] = {
    "feedforward": {"kind": "feedforward", "window": 3, "hidden_size": 6},
    "fixed": {"kind": "fixed", "cell": LSTM, "layers": 2},
    "gnmt": {"kind": "gnmt", "cell": LSTM, "layers": 3, "residual": 3},
    "query_after": {"kind": "query_after", "cell": GRU},
    "query_before": {"kind": "query_before", "cell": LSTM},
    "transformer": {"kind": "transformer", **STACK},
}
ALIGNMENTS: dict[str, dict[str, Any]] = {
    "independent": {"kind": "independent", "hidden_size": 4},
    "monotonic": {"kind": "monotonic"},
}
