"""Yoyodyne: its attentive LSTM, which reads the context of the step, so it feeds; trained as its module is."""

from __future__ import annotations

import contextlib
from importlib.metadata import version

import lightning
import torch
from torch import nn
from work import DROPOUT, EMBEDDING, ENCODER, HIDDEN, WORDS, tell, work
from yoyodyne import data, special
from yoyodyne.models import SoftAttentionLSTMModel
from yoyodyne.models.modules import LSTMEncoder

SPECIALS = len(special.SPECIAL)

asked = work()
if not asked.feeding:
    raise SystemExit("every attentive decoder of Yoyodyne feeds")
torch.set_num_threads(1)
torch.manual_seed(1)
size = asked.words + SPECIALS


def build(beam: int) -> SoftAttentionLSTMModel:
    encoder = LSTMEncoder(dropout=DROPOUT, embedding_size=EMBEDDING, hidden_size=ENCODER, layers=1, bidirectional=True)
    return SoftAttentionLSTMModel(
        beam_width=beam,
        compute_accuracy=False,
        compute_ser=False,
        decoder_hidden_size=HIDDEN,
        decoder_layers=1,
        decoder_dropout=DROPOUT,
        embedding_size=EMBEDDING,
        source_encoder=encoder,
        target_vocab_size=size,
        vocab_size=size,
        max_target_length=WORDS,
    )


networks = {beam: build(beam) for beam in (1, 5)}
trainer = lightning.Trainer(accelerator="cpu", logger=False, enable_checkpointing=False)
for built in networks.values():
    built.trainer = trainer  # asked what it is doing: nothing
    built.classifier.bias.data[special.END_IDX] = -1e9  # so that what is decoded has the same length for all
network = networks[1]
network.log = lambda *_, **__: None  # no trainer listens
(optimizer,), _ = network.configure_optimizers()


def ids(rows: list[list[int]]) -> data.PaddedTensor:
    return data.PaddedTensor([torch.tensor([*(word + SPECIALS for word in row), special.END_IDX]) for row in rows])


def update(batch: tuple[list[list[int]], list[list[int]]]) -> None:
    network.train()
    half = asked.precision == "bfloat16"  # Lightning's bf16-mixed
    with torch.autocast("cpu", torch.bfloat16) if half else contextlib.nullcontext():
        loss = network.training_step(data.Batch(ids(batch[0]), target=ids(batch[1])), 0)
    optimizer.zero_grad()
    loss.backward()
    nn.utils.clip_grad_norm_(network.parameters(), 1.0)
    optimizer.step()


def decode(sentences: list[list[int]], beam: int) -> None:
    model = networks[beam].eval()
    with torch.inference_mode():
        model.predict_step(data.Batch(ids(sentences)), 0)


tell(
    asked,
    f"{version('yoyodyne')} on torch {torch.__version__}",
    f"{asked.precision} in training, float32 in decoding; soft attention LSTM",
    update,
    decode,
)
