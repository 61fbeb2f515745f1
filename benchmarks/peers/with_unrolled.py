"""Ours: `Trainer.update` and `decode` over a `TorchStepper`."""

from __future__ import annotations

from functools import cache
from importlib.metadata import version

import numpy as np
import torch
from work import DROPOUT, EMBEDDING, ENCODER, HIDDEN, WORDS, padded, tell, work

from unrolled.base.protocol import BEGIN, END
from unrolled.data.batching import Pairs, Tokens
from unrolled.models import Seq2Seq, TorchStepper
from unrolled.search import SearchSettings, decode
from unrolled.tasks import TASKS
from unrolled.train.precision import has_bfloat16
from unrolled.train.settings import TrainSettings
from unrolled.train.trainer import Trainer

asked = work()
torch.set_num_threads(1)
torch.manual_seed(1)
network = Seq2Seq(
    asked.words + 4,
    asked.words + 4,
    embedding_size=EMBEDDING,
    dropout=DROPOUT,
    encoder={"kind": "rnn", "cell": {"kind": "lstm", "hidden_size": ENCODER}, "bidirectional": True},
    decoder={
        "kind": "query_after",
        "cell": {"kind": "lstm", "hidden_size": HIDDEN},
        "attention": "bilinear",
        "input_feeding": asked.feeding,
    },
)
trained_in = asked.precision if has_bfloat16(torch.device("cpu")) else "float32"  # which a search does not need
settings = TrainSettings(learning_rate=1e-4, schedule="constant", steps=1_000_000, precision=trained_in, device="cpu")
trainer = Trainer(network, TASKS.build("translate").loss, settings)


def tokens(rows: list[list[int]]) -> Tokens:
    ids = torch.tensor(padded(rows, 0))
    return Tokens(ids, ids != 0)


def update(batch: tuple[list[list[int]], list[list[int]]]) -> None:
    sources, targets = ([[word + 4 for word in row] for row in side] for side in batch)
    pairs = tokens([[*row, END] for row in sources]), tokens([[BEGIN, *row, END] for row in targets])
    trainer.update(Pairs(*pairs, torch.arange(len(sources))))


@cache
def stepper() -> TorchStepper:
    """What a loaded model searches with, made once after training."""
    return TorchStepper(network, precision="bfloat16" if asked.precision == "bfloat16" else "float32", trained=True)


def search(sentences: list[list[int]], beam: int) -> None:
    ids = np.array([[*(word + 4 for word in row), END] for row in sentences])
    words = WORDS - 1  # and the end: as many steps as the others take
    limits = {"min_length": words, "max_length_ratio": 0.0, "max_length_constant": words}
    rules = SearchSettings(kind="beam", beam=beam, **limits) if beam > 1 else SearchSettings(kind="argmax", **limits)
    decode(stepper(), ids, np.ones_like(ids, dtype=bool), rules)


tell(
    asked,
    f"{version('unrolled')} on torch {torch.__version__}",
    f"training in {trained_in}, search in {asked.precision}",
    update,
    search,
)
