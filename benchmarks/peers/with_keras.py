"""What a user writes with the layers of Keras: BiLSTM, LSTM, `Attention`, `Dense`; no feeding, and no search."""

from __future__ import annotations

import os
import sys

os.environ["KERAS_BACKEND"] = sys.argv[1]

import keras
import numpy as np
from work import DROPOUT, EMBEDDING, ENCODER, HIDDEN, padded, tell, work

BEGIN, END = 2, 3

asked = work()
if asked.feeding:
    raise SystemExit("Keras has no decoder that feeds")
keras.utils.set_random_seed(1)
if asked.precision == "bfloat16":
    keras.mixed_precision.set_global_policy("mixed_bfloat16")
if sys.argv[1] == "torch":
    import torch

    torch.set_num_threads(1)

size = asked.words + 4
layers = keras.layers
source = keras.Input((None,), dtype="int32")
target = keras.Input((None,), dtype="int32")
read = layers.Dropout(DROPOUT)(layers.Embedding(size, EMBEDDING, mask_zero=True)(source))
encoder = layers.Bidirectional(layers.LSTM(ENCODER, return_sequences=True, return_state=True))
memory, *states = encoder(read)
state = [layers.Concatenate()([states[place], states[place + 2]]) for place in (0, 1)]
fed = layers.Dropout(DROPOUT)(layers.Embedding(size, EMBEDDING, mask_zero=True)(target))
hidden = layers.LSTM(HIDDEN, return_sequences=True)(fed, initial_state=state)
context = layers.Attention()([layers.Dense(HIDDEN, use_bias=False)(hidden), memory])
mixed = layers.Dense(HIDDEN, activation="tanh")(layers.Concatenate()([hidden, context]))
logits = layers.Dense(size, dtype="float32")(layers.Dropout(DROPOUT)(mixed))
network = keras.Model([source, target], logits)
network.compile(
    optimizer=keras.optimizers.Adam(1e-4, global_clipnorm=1.0),
    loss=keras.losses.SparseCategoricalCrossentropy(from_logits=True),
    jit_compile="auto" if sys.argv[1] == "jax" else False,
)


def update(batch: tuple[list[list[int]], list[list[int]]]) -> None:
    sources, targets = ([[word + 4 for word in row] for row in side] for side in batch)
    said = np.array(padded([[*row, END] for row in targets], 0))
    given = [
        np.array(padded([[*row, END] for row in sources], 0)),
        np.array(padded([[BEGIN, *row] for row in targets], 0)),
    ]
    network.train_on_batch(given, said, sample_weight=(said != 0).astype("float32"))


backend = sys.argv[1]
under = __import__(backend).__version__
tell(asked, f"{keras.__version__} on {backend} {under}", f"{asked.precision}; layers as they are", update, None)
