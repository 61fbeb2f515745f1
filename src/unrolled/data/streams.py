"""Running text as batches: documents end to end, cut into rows that are read side by side, piece after piece."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from unrolled.base.errors import SettingsError
from unrolled.base.protocol import BEGIN
from unrolled.data.batching import Rows


class Pieces(NamedTuple):
    """A batch of running text, int64. A row of it is a piece of one document; padding is at its end.

    A row of the text that goes on from batch to batch is called a stream. A batch holds several pieces of a stream
    where documents end in it; the first may go on with a document of the batch before, the last may go on in the next.
    """

    ids: Tensor  # [pieces, time]: the symbols that are read, BEGIN before a document's first
    targets: Tensor  # [pieces, time]: the symbol after each
    mask: Tensor  # bool [pieces, time], True = real
    comes: Tensor  # [pieces]: the stream whose last state this piece goes on from; -1: it begins anew
    goes: Tensor  # [pieces]: the stream whose next piece goes on from this one's state; -1: none does
    rows: Tensor  # [pieces]: the row number that it was loaded by
    streams: Tensor  # scalar: how many streams there are
    turn: Tensor  # scalar: the number of the batch in its epoch


BLOCK = 4096
"""Rows that are looked through together."""


class Documents:
    """The documents of a store, in which BEGIN stands before each: where they lie, and their symbols from anywhere."""

    def __init__(self, store: Rows) -> None:
        self.store, self.column = store, store.columns[0]
        lengths = store.lengths(self.column).astype(np.int64)
        self.offsets = np.concatenate([[0], np.cumsum(lengths)])  # of each row in the whole
        self.starts = self._begins()  # of each document in the whole
        self.sizes = np.diff(self.starts, append=self.offsets[-1]) - 1  # symbols of each, BEGIN not counted

    def __len__(self) -> int:
        return len(self.starts)

    def _begins(self) -> np.ndarray:
        found = []
        for first in range(0, len(self.store), BLOCK):
            rows = range(first, min(first + BLOCK, len(self.store)))
            symbols = np.concatenate([np.empty(0, np.int64), *self.store.take(self.column, rows)])
            found.append(np.flatnonzero(symbols == BEGIN) + self.offsets[first])
        return np.concatenate([np.empty(0, np.int64), *found])

    def take(self, start: int, stop: int) -> np.ndarray:
        """The symbols ``start`` to ``stop`` of the whole, int64."""
        first = int(np.searchsorted(self.offsets, start, side="right")) - 1
        last = int(np.searchsorted(self.offsets, stop, side="left"))
        symbols = np.concatenate(self.store.take(self.column, range(first, last))).astype(np.int64)
        begin = start - int(self.offsets[first])
        return symbols[begin : begin + stop - start]

    def row_of(self, place: int) -> int:
        """The store's row that the symbol ``place`` of the whole stands in."""
        return int(np.searchsorted(self.offsets, place, side="right")) - 1


class _Epoch(NamedTuple):
    """One order of the documents, laid end to end."""

    order: np.ndarray  # the document that comes as the n-th
    ends: np.ndarray  # symbols up to the end of the n-th
    skipped: int  # how much shorter the first batch is: cuts fall elsewhere in every epoch


class Streams:
    """Documents in batches for stateful training: ``streams`` rows side by side, ``steps`` symbols of each a batch.

    To ``shuffle``, the order of the documents is drawn anew for each epoch, and where pieces are cut too. Text that is
    too short for so many streams is read in fewer. A plan's row numbers hold epoch, batch and stream.
    """

    def __init__(
        self, store: Rows, *, streams: int, steps: int, seed: int = 0, shuffle: bool = True, name: str = "text"
    ) -> None:
        for setting, value in (("streams", streams), ("steps", steps)):
            if value < 1:
                raise SettingsError(f"{setting} = {value} was given; it must be at least 1.")
        self.documents, self.name = Documents(store), name
        self.steps, self._seed, self._shuffle = steps, seed, shuffle
        self.size = int(self.documents.sizes.sum())  # symbols that are predicted
        self.streams = max(1, min(streams, self.size // steps))
        self.length = -(-self.size // self.streams)  # symbols of a stream
        self.turns = -(-(self.length + (steps - 1 if shuffle else 0)) // steps)  # batches of an epoch, at most
        self._number, self._epoch = -1, _Epoch(np.empty(0), np.empty(0), 0)

    def __len__(self) -> int:
        """Symbols of an epoch."""
        return self.size

    def remarks(self) -> list[str]:
        return [f"{len(self.documents):,} document{'s' if len(self.documents) != 1 else ''}, {self.size:,} symbols."]

    def plan(self, epoch: int) -> Sequence[np.ndarray]:
        """The row numbers (int64) of each batch of ``epoch``: a function of the store, the seed and the epoch."""
        found = []
        for turn in range(self.turns if self.size else 0):
            streams = np.arange(self.streams)
            first, last = self._span(streams, turn, self._of(epoch).skipped)
            rows = (epoch * self.turns + turn) * self.streams + streams[last > first]
            if len(rows):
                found.append(rows)
        return found

    def load(self, rows: np.ndarray) -> Pieces:
        """The pieces of ``rows``, which are of one batch."""
        number, streams = np.divmod(np.asarray(rows, dtype=np.int64), self.streams)
        epoch, turn = divmod(int(number[0]), self.turns)
        spans = [
            (int(row), int(stream), *piece)
            for row, stream in zip(rows, streams, strict=True)
            for piece in self._pieces(epoch, turn, int(stream))
        ]
        lengths = np.array([stop - start for _, _, start, stop, _, _ in spans])
        ids = np.zeros((len(spans), int(lengths.max(initial=0))), dtype=np.int64)
        targets = np.zeros_like(ids)
        for place, (_, _, start, stop, _, _) in enumerate(spans):
            symbols = self.documents.take(start, stop + 1)
            ids[place, : stop - start], targets[place, : stop - start] = symbols[:-1], symbols[1:]
        mask = np.arange(ids.shape[1]) < lengths[:, None]
        comes = [stream if comes else -1 for _, stream, _, _, comes, _ in spans]
        goes = [stream if goes else -1 for _, stream, _, _, _, goes in spans]
        facts = [np.array(fact, dtype=np.int64) for fact in (comes, goes, [span[0] for span in spans])]
        arrays = [torch.from_numpy(array) for array in (ids, targets, mask, *facts)]
        return Pieces(*arrays, streams=torch.tensor(self.streams), turn=torch.tensor(turn))

    def places(self, rows: np.ndarray) -> list[str]:
        """Where ``rows`` begin in the user's file: ``text.txt:12``."""
        found = []
        for row in np.asarray(rows).tolist():
            number, stream = divmod(row, self.streams)
            epoch, turn = divmod(number, self.turns)
            start = next(self._pieces(epoch, turn, stream))[0]
            place = self.documents.store.places([self.documents.row_of(start)])[0]
            found.append(f"{self.name}:{place}")
        return found

    def longest(self) -> np.ndarray:
        """The rows of a whole batch."""
        plan = self.plan(0)
        return plan[min(1, len(plan) - 1)] if plan else np.empty(0, dtype=np.int64)

    def _of(self, epoch: int) -> _Epoch:
        if epoch != self._number:
            sizes, order, skipped = self.documents.sizes, np.arange(len(self.documents)), 0
            if self._shuffle:
                random = np.random.default_rng((self._seed, epoch))
                order, skipped = random.permutation(order), int(random.integers(self.steps))
            self._number, self._epoch = epoch, _Epoch(order, np.cumsum(sizes[order]), skipped)
        return self._epoch

    def _span(self, streams: np.ndarray, turn: int, skipped: int) -> tuple[np.ndarray, np.ndarray]:
        """From where to where each stream's part of a batch goes, in symbols of the documents laid end to end."""
        begin = streams * self.length
        end = np.minimum(begin + self.length, self.size)
        first = np.clip(begin + turn * self.steps - skipped, begin, end)
        last = np.clip(begin + (turn + 1) * self.steps - skipped, begin, end)
        return first, last

    def _pieces(self, epoch: int, turn: int, stream: int) -> Iterator[tuple[int, int, bool, bool]]:
        """(start, stop, comes, goes) of each piece: symbols start to stop of the whole are read, and each next one is
        predicted; whether it goes on from the batch before, and in the batch to come."""
        order, ends, skipped = self._of(epoch)
        spans = self._span(np.array([stream, stream]), turn, skipped)
        first, last = int(spans[0][0]), int(spans[1][0])
        begin = stream * self.length
        at = first
        while at < last:
            number = int(np.searchsorted(ends, at, side="right"))
            document, end = int(order[number]), int(ends[number])
            origin = end - int(self.documents.sizes[document])
            stop = min(last, end)
            start = int(self.documents.starts[document])
            # The state before is there unless the document begins here, or the stream does in the middle of one.
            comes = at == first and at > origin and at > begin
            goes = stop == last and stop < min(end, begin + self.length)
            yield start + at - origin, start + stop - origin, comes, goes
            at = stop


State = tuple[Tensor, ...]


def resumed(batch: Pieces, first: State, carried: Mapping[str, Tensor]) -> State:
    """The state that each piece goes on from: what the batch before left of it, or ``first`` [pieces, size]."""
    turn = (int(batch.turn) + 1) % 2
    kept = [carried.get(f"{turn}.{place}") for place in range(len(first))]
    goes_on = (batch.comes >= 0).unsqueeze(1)
    streams = batch.comes.clamp(min=0)
    return tuple(
        one
        if old is None or len(old) != int(batch.streams)
        else torch.where(goes_on, old.index_select(0, streams).to(one.dtype), one)
        for one, old in zip(first, kept, strict=True)
    )


def keep(batch: Pieces, state: State, carried: dict[str, Tensor]) -> None:
    """Leave each piece's last ``state`` for its stream, cut off from the graph.

    Batches write by turns to two places: a batch that is run again (in halves, where memory ran out) finds what it
    found before.
    """
    turn = int(batch.turn) % 2
    left = (batch.goes >= 0).nonzero().squeeze(1)
    streams = batch.goes.index_select(0, left)
    for place, tensor in enumerate(state):
        name, shape = f"{turn}.{place}", (int(batch.streams), tensor.shape[1])
        if name not in carried or carried[name].shape != shape:
            carried[name] = tensor.new_zeros(shape)
        carried[name].index_copy_(0, streams, tensor.detach().index_select(0, left).to(carried[name].dtype))
