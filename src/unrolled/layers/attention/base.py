"""Attention: a query scores every position of a memory, and reads their weighted mean."""

from __future__ import annotations

import abc
import math
from typing import ClassVar

import torch
from torch import Tensor, nn

from unrolled.base.errors import SettingsError, UsageError
from unrolled.base.registry import Registry
from unrolled.layers.attention.coverage import COVERAGES, Coverage, CoveragePart
from unrolled.layers.attention.memory import Asked, Attended, Memory
from unrolled.layers.attention.normalisers import NORMALISERS, NormaliserPart, Softmax
from unrolled.layers.attention.reach import REACHES, Global, ReachPart
from unrolled.layers.cells.checks import State
from unrolled.layers.kernels import steps
from unrolled.layers.surroundings import autocast_on, traced


class Attention(nn.Module, abc.ABC):
    """The base of all: α = normalise_j(e_j) over the real positions within reach, c = Σ_j α_j h_j.

    A kind writes only its score e. Three parts go with every kind: ``reach`` says which positions a step may look at,
    ``normaliser`` makes weights of scores, ``coverage`` lets a step know where the ones before have looked. What they
    carry from step to step is the attention's state, a flat tuple of tensors, batch first: first the reach's, then the
    normaliser's, then the coverage's.
    """

    heads: int | None = None
    """How many weightings a kind makes at once; None where it has no axis for them."""

    projects_values: ClassVar[bool] = False
    """Whether `values` are of the keys' size; else they are the memory itself."""

    def __init__(
        self,
        query_size: int,
        memory_size: int,
        key_size: int,
        /,
        *,
        reach: ReachPart,
        normaliser: NormaliserPart,
        coverage: CoveragePart,
    ) -> None:
        super().__init__()
        for name, size in (("query_size", query_size), ("memory_size", memory_size)):
            if size < 1:
                raise SettingsError(f"{name} of an attention is {size}; give a whole number of at least 1.")
        self.query_size = query_size
        self.memory_size = memory_size
        self.key_size = key_size
        self.reach = REACHES.build(reach, query_size, where="reach")
        self.normaliser = NORMALISERS.build(normaliser, where="normaliser")
        self.coverage: Coverage | None = None
        if coverage is not None:
            value_size = key_size if self.projects_values else memory_size
            self.coverage = COVERAGES.build(coverage, query_size, value_size, key_size, where="coverage")
        parts = (self.reach, self.normaliser, *([] if self.coverage is None else [self.coverage]))
        self._states = sum(part.states for part in parts)
        if self.normaliser.moves_forward and self.reach.turns_back:
            raise SettingsError(
                f"the normaliser {type(self.normaliser).__name__} only moves forward, and the window of the reach "
                f"{type(self.reach).__name__} may move back. Use the reach 'global' or 'local_m', or the normaliser "
                "'softmax'."
            )

    @property
    def context_size(self) -> int:
        """Size of the context that `forward` returns."""
        return self.memory_size

    @property
    def plain(self) -> bool:
        """Whether this is a softmax over all real positions, without a state: what a fused loop may do by hand."""
        return self._softmax and self.coverage is None

    @property
    def _softmax(self) -> bool:
        return type(self.reach) is Global and type(self.normaliser) is Softmax

    def remember(self, encoded: Tensor, mask: Tensor | None = None) -> Memory:
        """Prepare ``encoded`` [batch, source, memory] for queries; ``mask`` bool [batch, source], None = all real.

        UsageError where a size is wrong, a row has no real position, or a number is not finite.
        """
        if encoded.dim() != 3 or encoded.shape[2] != self.memory_size or 0 in encoded.shape:
            raise UsageError(
                f"encoded of the attention {type(self).__name__} has shape {list(encoded.shape)}; "
                f"it must be [batch, source, {self.memory_size}], with at least one row and one position."
            )
        self._check_type("encoded", encoded, encoded.dtype if encoded.is_floating_point() else torch.float32)
        given = mask
        if not isinstance(mask, Tensor | None):
            raise UsageError(
                f"mask of the attention {type(self).__name__} must be a tensor of torch.bool, not a "
                f"{type(mask).__name__}."
            )
        if mask is None:
            mask = torch.ones(encoded.shape[:2], dtype=torch.bool, device=encoded.device)
        if mask.dtype is not torch.bool or mask.shape != encoded.shape[:2]:
            raise UsageError(
                f"mask of the attention {type(self).__name__} is {mask.dtype} {list(mask.shape)}; "
                f"it must be torch.bool {list(encoded.shape[:2])}, True = real."
            )
        if not traced(encoded):
            if encoded.device.type == "cpu":  # elsewhere to look is to wait
                self._refuse_infinite("encoded", encoded, ", at padding too")  # read with weight 0: 0 · ∞ is no number
            if given is not None:
                self._refuse_empty(mask)
        return Memory(self.keys(encoded), self.values(encoded), mask)

    def keys(self, encoded: Tensor) -> Tensor:
        """The part of the score that needs no query, [batch, source, key]."""
        return encoded

    def values(self, encoded: Tensor) -> Tensor:
        """What is read, [batch, source, value]."""
        return encoded

    def initial(self, memory: Memory) -> State:
        """The state before the first step; empty where no step needs to know of another."""
        covered: State = () if self.coverage is None else self.coverage.initial(memory)
        mask = memory.mask if self.heads is None else memory.mask.unsqueeze(1).expand(-1, self.heads, -1)
        return (*self.reach.initial(memory), *self.normaliser.initial(mask), *covered)

    @abc.abstractmethod
    def score(self, query: Tensor, memory: Memory) -> Tensor:
        """Scores e [batch, time, source] of ``query`` [batch, time, query]; padding may have any score.

        A kind with ``heads`` gives [batch, heads, time, source].
        """

    def asks(self, _query: Tensor) -> Asked | None:
        """What a score is made of where it is q · k or vᵀ tanh(q + k) of the memory's keys k; None: it is another."""
        return None

    def read(self, weights: Tensor, memory: Memory) -> Tensor:
        """c = Σ_j α_j h_j, [batch, time, context], of ``weights`` shaped as the scores."""
        return torch.bmm(weights.to(memory.values.dtype), memory.values)

    def forward(self, query: Tensor, memory: Memory, state: State | None = None) -> Attended:
        """Context, weights and next state of ``query``, [batch, query] or [batch, time, query].

        ``state`` is what the step before returned, None at the first. All steps are taken at once, but where a score
        waits for the weights of the step before. Weights are float32 at least.
        """
        if query.dim() == 2:
            once = torch.is_inference_mode_enabled() and not state and self.plain and query.device.type == "cpu"
            if once and query.shape[1] == self.query_size:
                self._check_kind(query, memory)
                self._refuse_infinite("query", query.unsqueeze(1), "")
                found = self._look_once(query, memory)
                if found is not None:
                    return found
            context, weights, state, heads = self.forward(query.unsqueeze(1), memory, state)
            return Attended(context.squeeze(1), weights.squeeze(1), state, None if heads is None else heads.squeeze(1))
        if query.dim() != 3 or query.shape[2] != self.query_size or query.shape[0] != memory.mask.shape[0]:
            raise UsageError(
                f"query of the attention {type(self).__name__} has shape {list(query.shape)}; it must be "
                f"[{memory.mask.shape[0]}, {self.query_size}] or [{memory.mask.shape[0]}, time, {self.query_size}]."
            )
        self._check_kind(query, memory)
        if query.device.type == "cpu" and not traced(query):
            self._refuse_infinite("query", query, "")
        if state is None:
            state = self.initial(memory) if self._states else ()
        else:
            self._check(state, memory)
        if self.coverage is None:
            return self._look(query, memory, state)
        steps: list[Attended] = []
        for now in query.split(1, dim=1):
            steps.append(self._look_covered(now, memory, state))
            state = steps[-1].state
        by_head = [step.heads for step in steps if step.heads is not None]
        return Attended(
            torch.cat([step.context for step in steps], dim=1),
            torch.cat([step.weights for step in steps], dim=1),
            state,
            torch.cat(by_head, dim=1) if by_head else None,
        )

    def _look_covered(self, query: Tensor, memory: Memory, state: State) -> Attended:
        """One step [batch, 1, query] whose keys are moved by the coverage."""
        coverage = self.coverage
        if coverage is None:
            return self._look(query, memory, state)
        place = len(state) - coverage.states
        keys = memory.keys + coverage.shift(state[place:]).to(memory.keys.dtype)
        seen = self._look(query, memory._replace(keys=keys), state[:place])
        covered = coverage.update(query.squeeze(1), seen.weights.squeeze(1), state[place:])
        return seen._replace(state=(*seen.state, *covered))

    def _look(self, query: Tensor, memory: Memory, state: State) -> Attended:
        """All steps of ``query`` at once, without coverage."""
        if torch.is_inference_mode_enabled() and self._softmax and query.shape[1] == 1:
            found = self._look_once(query.squeeze(1), memory)
            if found is not None:
                return Attended(found.context.unsqueeze(1), found.weights.unsqueeze(1), ())
        scores = self.score(query, memory)
        if scores.dtype.itemsize < 4:
            scores = scores.float()
        near, reached = self.reach(query, memory, state[: self.reach.states])
        hidden = ~memory.mask.unsqueeze(1)
        if scores.dim() == 4:
            hidden, near = hidden.unsqueeze(1), None if near is None else near.unsqueeze(1)
        if near is not None:
            scores = scores + near
        scores = scores.masked_fill(hidden, float("-inf"))
        weights, normalised = self.normaliser(scores, state[self.reach.states :])
        context = self.read(weights, memory)
        if self.heads is None:
            return Attended(context, weights, (*reached, *normalised))
        return Attended(context, weights.mean(1), (*reached, *normalised), weights.transpose(1, 2))

    def _look_once(self, query: Tensor, memory: Memory) -> Attended | None:
        """One step of a search, ``query`` [batch, query], by compiled code; None where that is not possible."""
        asked = self.asks(query)
        if asked is None:
            return None
        given = (asked.query, memory.keys, memory.values)
        if not steps.plain(*given, *([] if asked.vector is None else [asked.vector])):
            return None
        if not _fit(asked.query, memory):
            return None
        weights, context = steps.look(*given, memory.mask.contiguous(), asked.vector)
        return Attended(context, weights)

    def _check_kind(self, query: Tensor, memory: Memory) -> None:
        """UsageError for a memory of another attention, or a query of another type than the weights."""
        sizes = self.key_size, self.key_size if self.projects_values else self.memory_size
        if (memory.keys.shape[2], memory.values.shape[2]) != sizes:
            raise UsageError(
                f"memory of the attention {type(self).__name__} has keys of size {memory.keys.shape[2]} and values of "
                f"size {memory.values.shape[2]}; they must be {sizes[0]} and {sizes[1]}. Take it from its own remember."
            )
        if query.dtype is not memory.values.dtype:
            self._check_type("query", query, memory.values.dtype)

    def _check_type(self, name: str, given: Tensor, like: torch.dtype) -> None:
        """UsageError where ``given`` has neither the type of the weights nor, where there are none, ``like``."""
        own = next((weight.dtype for weight in self.parameters()), like)
        if given.dtype is not own and not autocast_on(given):
            raise UsageError(
                f"{name} of the attention {type(self).__name__} is {given.dtype}; it must be {own}. Convert it, or run "
                "under torch.autocast."
            )

    def _check(self, state: State, memory: Memory) -> None:
        count, rows = self._states, memory.mask.shape[0]
        if len(state) != count or any(tensor.shape[:1] != (rows,) for tensor in state):
            raise UsageError(
                f"state of the attention {type(self).__name__} has shapes {[list(tensor.shape) for tensor in state]}; "
                f"it must be {count} tensors with {rows} rows each: None, initial(memory), or what the last step gave."
            )

    def _refuse_empty(self, mask: Tensor) -> None:
        empty = (~mask.any(1)).nonzero().flatten().tolist()
        if empty:
            raise UsageError(
                f"mask of the attention {type(self).__name__} has no real position in row {empty[0]}; "
                "every row needs at least one. Leave empty rows out."
            )

    def _refuse_infinite(self, name: str, given: Tensor, also: str) -> None:
        """Where ``given`` [batch, place, number] holds a number that is not finite."""
        if math.isfinite(given.detach().sum(dtype=torch.promote_types(given.dtype, torch.float32)).item()):
            return
        found = (~given.isfinite()).nonzero()
        if len(found):  # else only the sum ran over
            row, position, place = found[0].tolist()
            raise UsageError(
                f"{name} of the attention {type(self).__name__} holds {given[row, position, place].item()} at row "
                f"{row}, position {position}; its numbers must be finite{also}. Look at what made them."
            )


def _fit(query: Tensor, memory: Memory) -> bool:
    """Whether a query [batch, key] and the parts of a memory are of the same rows, places and size."""
    places = memory.mask.shape
    same = memory.keys.shape[:2] == places and memory.values.shape[:2] == places
    return same and query.shape == (places[0], memory.keys.shape[2])


ATTENTIONS: Registry[Attention] = Registry("attention")
