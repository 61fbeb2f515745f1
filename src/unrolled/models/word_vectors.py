"""A vector for every word, learnt by telling the words beside it from noise."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Annotated, Literal

import numpy as np
import torch
from annotated_types import Ge, Interval
from torch import Tensor, nn

from unrolled.base.protocol import BEGIN, SPECIALS
from unrolled.layers import Embedding
from unrolled.models.kernels.word_vectors.plain import Chances, Learnt
from unrolled.models.ranges import Count
from unrolled.models.seq2seq import MODELS

LEAST = 2_000
"""Symbols below which a block is not divided among threads."""


@MODELS.register("word_vectors")
class WordVectors(nn.Module):
    """word2vec (Mikolov et al. 2013, arXiv:1301.3781 and arXiv:1310.4546) with negative sampling.

    maximise log σ(h · u_o) + Σ_k log σ(-h · u_k) for every word o, noise words k ~ count^noise_power, and

    skip_gram   h = v_w for each word w beside o
    cbow        h = the mean of v_w over the words beside o (its gradient divided by their number, as it is: İrsoy et
                al. 2021, arXiv:2012.15332)

    Beside is up to a distance that is drawn anew for each o, from 1 to ``window``. A word of the share f of the text
    is read with the probability √(t/f) + t/f, t = ``subsample``; 0: always. ``negative`` noise words a prediction. The
    vectors v are the embedding's; u start at 0.

    ``counts``: how often each symbol stands in the training text; the first four are no words.
    """

    def __init__(
        self,
        vocabulary_size: int,
        counts: Sequence[int],
        /,
        *,
        embedding_size: Count = 100,
        algorithm: Literal["skip_gram", "cbow"] = "skip_gram",
        window: Count = 5,
        negative: Count = 5,
        subsample: Annotated[float, Interval(ge=0, lt=1)] = 1e-3,
        noise_power: Annotated[float, Ge(0)] = 0.75,
    ) -> None:
        super().__init__()
        self.algorithm, self.window, self.negative = algorithm, window, negative
        self.embedding = Embedding(vocabulary_size, size=embedding_size)
        nn.init.uniform_(self.embedding.weight, -0.5 / embedding_size, 0.5 / embedding_size)
        self.outputs = nn.Parameter(torch.zeros(vocabulary_size, embedding_size))
        self.chances = chances(counts, subsample, noise_power)

    def forward(self, ids: Tensor) -> Tensor:
        """The vectors of ``ids`` int64 [batch, time]: [batch, time, size]."""
        vectors: Tensor = self.embedding(ids)
        return vectors

    @torch.no_grad()
    def learn(self, ids: Tensor, *, rate: float, seed: int, threads: int = 1) -> Learnt:
        """Read ``ids`` int32 [symbols] once, a BEGIN before each sentence, and step the weights in place.

        With one thread the same ``seed`` gives the same weights; several divide the text and write where they like.
        ``rate`` 0 only takes the loss. Weights are on a processor.
        """
        from unrolled.models.kernels.word_vectors.compiled import learn

        weights = self.embedding.weight.detach().numpy(), self.outputs.detach().numpy()
        bag = self.algorithm == "cbow"

        def read(number: int, part: np.ndarray) -> Learnt:
            own = (seed + number * 0x9E3779B97F4A7C15 + 1) % (1 << 63)
            chances = self.chances
            drawn = chances.keep, chances.first, chances.other
            return Learnt(*learn(part, *drawn, *weights, self.window, self.negative, bag, np.float32(rate), own))

        parts = divided(ids.numpy(), threads)
        if len(parts) == 1:
            return read(0, parts[0])
        with ThreadPoolExecutor(len(parts)) as pool:
            found = list(pool.map(read, range(len(parts)), parts))
        return Learnt(*(sum(each) for each in zip(*found, strict=True)))


def divided(ids: np.ndarray, threads: int) -> list[np.ndarray]:
    """The symbols in at most so many parts of like size, cut before sentences where there are some."""
    parts = max(1, min(threads, len(ids) // LEAST))
    begins = np.flatnonzero(ids == BEGIN)
    cuts = [len(ids) * part // parts for part in range(1, parts)]
    if len(begins) > 1:
        cuts = sorted({int(begins[np.searchsorted(begins, cut).clip(max=len(begins) - 1)]) for cut in cuts} - {0})
    return np.split(ids, cuts)


def chances(counts: Sequence[int], subsample: float, power: float) -> Chances:
    """What is drawn by chance, from how often each symbol stands in the text."""
    seen = np.array(counts, np.float64)
    seen[: len(SPECIALS)] = 0
    share = seen / max(seen.sum(), 1)
    with np.errstate(divide="ignore", invalid="ignore"):
        keep = np.where(share > 0, np.sqrt(subsample / share) + subsample / share, 1.0)
    first, other = alias(np.where(seen > 0, seen**power, 0.0))
    return Chances(np.minimum(keep, 1.0) if subsample else np.ones_like(keep), first, other)


def alias(weights: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Walker's tables (Vose 1991): place i, drawn evenly, stays i with the chance first[i], else becomes other[i]."""
    first = weights / weights.sum() * len(weights)
    other = np.arange(len(weights))
    few = np.flatnonzero(first < 1).tolist()
    many = np.flatnonzero(first >= 1).tolist()
    while few and many:
        low, high = few.pop(), many.pop()
        other[low] = high
        first[high] -= 1 - first[low]
        (few if first[high] < 1 else many).append(high)
    first[few + many] = 1.0
    return first, other
