"""Frozen vectors of a two-direction language model in the place of an embedding, its layers mixed as suits the task."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional

from unrolled.base.errors import UsageError
from unrolled.base.protocol import BEGIN, END, PAD, SPECIALS, SPELLED_BEGIN, SPELLED_END, UNKNOWN
from unrolled.layers import CELLS, Embedding
from unrolled.models.two_ways import TwoWayReader

READING = ("character_size", "filters", "highways", "cell", "layers", "residual")
"""The settings of an `Elmo` that say how it reads; the others are of what it predicts and how it is trained."""


class Looked(NamedTuple):
    """What an encoder reads of a batch of symbols."""

    vectors: Tensor  # [batch, positions, size]
    mask: Tensor  # bool [batch, positions], True = real
    owner: Tensor | None = None  # int64 [batch, symbols]: the position of each symbol; None: each has its own
    places: Tensor | None = None  # int64 [batch, positions]: where each stands in its text; None: one after the other


def look_up(table: Embedding | Contextual, ids: Tensor, mask: Tensor) -> Looked:
    """Read ``ids`` int64 [batch, symbols] as ``mask`` has it: a position a symbol, or a word."""
    return table.read(ids, mask) if isinstance(table, Contextual) else Looked(table(ids), mask)


def size_of(settings: Mapping[str, Any]) -> int:
    """How many numbers the vectors of an `Elmo` of these settings have."""
    return 2 * CELLS.build(settings["cell"], 1).output_size


class Mixture(nn.Module):
    """γ/√size Σ_k s_k h_k with s = softmax(w)   (Peters et al. 2018, arXiv:1802.05365, eq. 1)

    Each h_k is normalised first, so that its numbers have mean 0 and variance 1 (ibid., §3.2): shares of layers are
    then comparable, and with γ = 1, where it starts, vectors are as large as those of a new embedding.
    """

    def __init__(self, layers: int, size: int, /) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.zeros(layers))
        self.gamma = nn.Parameter(torch.ones(()))
        self.scale = size**-0.5

    def forward(self, layers: Sequence[Tensor]) -> Tensor:
        """``layers``: each [..., size]."""
        shares = self.weight.softmax(dim=0)
        whole = sum(
            share * functional.layer_norm(layer, layer.shape[-1:])
            for share, layer in zip(shares.unbind(), layers, strict=True)
        )
        return self.gamma * self.scale * whole


class Contextual(nn.Module):
    """Vectors of words in their texts: a reader that does not learn, and a `Mixture` of its layers that does.

    ``settings`` are those of the `Elmo` that the reader is of, ``characters`` how many it knows. A symbol below that is
    a character inside a word; one from there on begins a word: ``characters`` itself with the unknown one, each after
    it with the next character from the first that is not special. Where rows end with END, that is a word too, which
    the reader reads as the end of its texts. ``word_dropout`` is how often a word is spelled as unknown in training;
    ``dropout`` is what its vector goes through.
    """

    def __init__(
        self,
        characters: int,
        settings: Mapping[str, Any],
        word_dropout: float = 0.0,
        /,
        *,
        dropout: nn.Module | None = None,
    ) -> None:
        super().__init__()
        self.word_dropout = word_dropout
        self.characters = characters
        chosen = {name: settings[name] for name in READING}
        self.reader = TwoWayReader(characters, **chosen)
        self.reader.requires_grad_(False)
        self.size = 2 * self.reader.size
        self.mixture = Mixture(self.reader.count, self.size)
        self.dropout = nn.Identity() if dropout is None else dropout

    def train(self, mode: bool = True) -> Contextual:
        """What does not learn has no dropout either."""
        super().train(mode)
        self.reader.eval()
        return self

    def forward(self, words: Tensor, mask: Tensor) -> Tensor:
        """Vectors [batch, words, size] of ``words`` int64 [batch, words, length], each its symbols and PAD behind, and
        ``mask`` bool [batch, words]. What stands at the beginning and the end of texts is put around them."""
        batch, count, length = words.shape
        letters = self._letters(words) * mask.unsqueeze(2)
        spellings = letters.new_full((batch, count + 2, length + 2), PAD)
        spellings[:, 1:-1, 1:-1] = letters
        sizes = (spellings != PAD).sum(dim=2, keepdim=True) + 1
        spellings = spellings.scatter(2, sizes, END)
        spellings[:, :, 0] = BEGIN
        rows, ends = torch.arange(batch, device=mask.device), mask.sum(dim=1) + 1
        for place, spelled in ((torch.zeros_like(ends), SPELLED_BEGIN), (ends, SPELLED_END)):
            spellings[rows, place, : len(spelled)] = letters.new_tensor(spelled)
        real = torch.arange(count + 2, device=mask.device) <= ends.unsqueeze(1)
        spellings = spellings.masked_fill(~real.unsqueeze(2), PAD)
        return self._mixed(spellings, real)[:, 1:-1].masked_fill(~mask.unsqueeze(2), 0.0)

    def _letters(self, ids: Tensor) -> Tensor:
        """The character of each symbol, whether it begins a word or not."""
        begun = torch.where(ids == self.characters, UNKNOWN, ids - self.characters + len(SPECIALS) - 1)
        return torch.where(ids >= self.characters, begun, ids)

    def read(self, ids: Tensor, mask: Tensor) -> Looked:
        """Rows of symbols, each ended by END, as words. UsageError for ids that are no symbols."""
        most = 2 * self.characters - len(SPECIALS) + 1
        if bool((ids >= most).any()) or bool((ids < 0).any()):
            raise UsageError(f"ids of contextual words are from 0 to {most - 1}; was the text encoded otherwise?")
        inside = mask & (ids < self.characters) & (ids != END)
        inside[:, 0] = False
        owner = (mask & ~inside).cumsum(dim=1).sub_(1)
        spellings, words = self._spelled(ids, mask, inside, owner)
        return Looked(self._mixed(spellings, words)[:, 1:], words[:, 1:], owner)

    def _spelled(self, ids: Tensor, mask: Tensor, inside: Tensor, owner: Tensor) -> tuple[Tensor, Tensor]:
        """Spellings [batch, 1 + words, length], the beginning of texts first, and which are real."""
        letters = self._letters(ids)
        if self.training and self.word_dropout:
            lost = torch.rand(ids.shape, device=ids.device) < self.word_dropout
            letters = torch.where(lost.gather(1, owner.clamp(min=0)) & (ids != END), UNKNOWN, letters)
        time = torch.arange(ids.shape[1], device=ids.device)
        start = torch.where(inside, 0, time).cummax(dim=1).values  # where each symbol's word begins
        within = time - start + 1
        counts = owner[:, -1] + 1
        length = int(within.max()) + 2
        spellings = ids.new_full((len(ids), int(counts.max()) + 1, length), PAD)
        rows = torch.arange(len(ids), device=ids.device).unsqueeze(1).expand_as(ids)
        spellings[rows[mask], owner[mask] + 1, within[mask]] = letters[mask]
        real = torch.arange(spellings.shape[1], device=ids.device) <= counts.unsqueeze(1)
        spellings[:, 0, : len(SPELLED_BEGIN)] = ids.new_tensor(SPELLED_BEGIN)
        spellings[:, :, 0] = real * BEGIN
        sizes = (spellings != PAD).sum(dim=2, keepdim=True)
        sizes[:, 0] = 0  # which is whole
        ended = spellings.scatter(2, sizes.clamp(max=length - 1), END)
        spellings[:, 1:] = torch.where(real[:, 1:].unsqueeze(2), ended[:, 1:], PAD)
        return spellings, real

    def _mixed(self, spellings: Tensor, mask: Tensor) -> Tensor:
        with torch.no_grad():
            layers = self.reader(spellings, mask).layers()
        mixed: Tensor = self.dropout(self.mixture(layers))
        return mixed.masked_fill(~mask.unsqueeze(2), 0.0)
