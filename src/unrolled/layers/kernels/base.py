"""A kernel runs a cell over whole sequences and differentiates it by hand: one node of the graph, not ten a step."""

from __future__ import annotations

import abc
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, NamedTuple

import torch
from torch import Tensor
from torch.autograd import Function

from unrolled.layers.cells.base import SILENCE, Noise, State
from unrolled.layers.kernels import compiled
from unrolled.layers.kernels.gradients import Factors, weight_gradient
from unrolled.layers.kernels.order import Rows
from unrolled.layers.kernels.tiled import TiledWeight
from unrolled.layers.once import once_differentiable
from unrolled.layers.surroundings import without_autocast

if TYPE_CHECKING:
    from unrolled.layers.kernels.loops.base import Job, Loops, Room, Told


class Extras(NamedTuple):
    """The weights that options add to a step's equations, in the cell's own shapes; or their gradients."""

    hidden_gain: Tensor | None = None
    peephole: Tensor | None = None
    memory_gain: Tensor | None = None
    memory_shift: Tensor | None = None
    projection: Tensor | None = None


NO_EXTRAS = Extras()


class Between(abc.ABC):
    """What comes between two steps of a kernel where an input waits for the state before it, as an attention's does."""

    @abc.abstractmethod
    def forward(self, step: int, total: Tensor, hidden: Tensor) -> None:
        """Add to ``total`` [rows, gates * hidden], the projected input of ``step``, what follows from the state before.

        ``hidden`` [rows, hidden] is that state's output in the type of the products.
        """

    @abc.abstractmethod
    def backward(self, step: int, gradient: Tensor) -> Tensor:
        """From the gradient of ``total``, in the products' type, that of ``hidden``. The last step comes first."""


class Kernel(abc.ABC):
    """A cell's recurrence and its derivative over packed steps; an object serves one call and its backward.

    Step t takes the first ``counts[t]`` rows; "packed" tensors hold the steps one after the other, [Σ counts, size].
    Products are in the type of the hidden weight (bfloat16 under autocast); states and element-wise work are float32
    at least. What depends on no later step is computed for all steps at once, so that the loops over time hold
    only products and a few element-wise operations. ``between``, if set before `forward`, has its say in every step;
    ``noise`` is the `Noise` of the whole call, packed. With either, the first state must be given. ``directions`` 2:
    even rows are of one direction and odd rows of the other (see pair.py), and the hidden weight and the bias hold the
    second direction's rows below the first's.
    """

    gates: int
    """Number of gates: the hidden weight's rows are gates * hidden."""

    between: Between | None = None
    noise: Noise = SILENCE
    grad: Tensor
    """After `backward`: the packed gradient, in the type of products, of what is in the loop; see `of_total`."""
    directions: int = 1
    compiled: bool = True
    """Whether the loops may be the compiled ones; after `begin`, whether they are."""
    launched: bool = False
    """Whether the loops are those of kernels/launched/, on a GPU."""

    def __init__(self, counts: list[int]) -> None:
        self.counts, self.places = counts, sum(counts)

    @abc.abstractmethod
    def forward(self, projected: Tensor, state: State | None) -> tuple[Tensor, State]:
        """Packed outputs [Σ counts, output] and each row's last state.

        ``projected`` is packed, [Σ counts, gates * hidden], and is overwritten. ``state`` None is zeros, and cheaper.
        """

    @abc.abstractmethod
    def backward(self, grad_output: Tensor, grad_ends: State) -> tuple[Tensor, State]:
        """Gradients of the packed ``projected`` and of the first state; ``grad_ends`` is overwritten."""

    @abc.abstractmethod
    def factors(self) -> Factors:
        """After `backward`: what the hidden weight's gradient is the product of."""

    def bias_gradient(self) -> Tensor | None:
        """After `backward`: the gradient of the hidden bias, where the cell has one."""
        return None

    def extra_gradients(self) -> Extras:
        """After `backward`: the gradients of the extras that were given, in the work type."""
        return NO_EXTRAS

    def begin(self, weight: Tensor, bias: Tensor | None, extras: Extras = NO_EXTRAS) -> None:
        """Take the hidden weight [gates * hidden, output], what is added to the hidden product, and the extras."""
        self.weight, self.bias, self.extras = in_rows(weight), bias, extras
        self.size, self.output_size = weight.shape[0] // (self.gates * self.directions), weight.shape[1]
        self.reduced = weight.dtype in (torch.bfloat16, torch.float16)
        self.work = torch.float32 if self.reduced else weight.dtype
        self.compiled = self.compiled and self.directions == 1 and compiled.possible(weight)

    def split(self, tensor: Tensor) -> tuple[Tensor, ...]:
        """The steps of a packed tensor, as views."""
        return tensor.split(self.counts) if len(self.counts) > 1 else (tensor,)

    def empty(self, width: int, dtype: torch.dtype) -> Tensor:
        """A packed tensor to be filled."""
        return self.weight.new_empty(self.places, width, dtype=dtype)

    def turned(self, weight: Tensor) -> Tensor:
        """The weight for h·Wᵀ."""
        return turned(weight, len(self.counts))

    @abc.abstractmethod
    def loops_of(self, told: Told, threads: int, total: Room) -> Loops:
        """The cell's compiled loops."""

    def forward_compiled(self, projected: Tensor, state: State | None) -> tuple[Tensor, State]:
        """`forward` by them, step by step where something comes between two steps."""
        from unrolled.layers.kernels.compiled.arrays import held_each
        from unrolled.layers.kernels.compiled.threads import available, worthwhile
        from unrolled.layers.kernels.loops.base import Told, room_over

        bias = None if self.bias is None else self.bias.to(self.work).contiguous()
        extras = Extras(*(None if one is None else one.contiguous() for one in self.extras))
        told, between = Told(self.weight, bias, extras, self.noise, state), self.between is not None
        threads = 1 if between else worthwhile(self.places * self.weight.numel())
        self.loops = loops = self.loops_of(told, threads, room_over(projected.unsqueeze(0)))
        asked = [(weight, loops.steps) for weight in loops.weights(0)]
        jobs = loops.forward(0, held_each(asked, available() if between else 1))
        output, h = loops.output.tensor[0], loops.first_operand(0)
        if self.between is None:
            _do(jobs, 0, loops.steps)
        else:
            for step, (now, new) in enumerate(zip(self.split(projected), self.split(output), strict=True)):
                self.between.forward(step, now, h[: len(now)])
                _do(jobs, step, step + 1)
                h = new
        return output, tuple(self.last(loops.packed_state(number).tensor[0]) for number in range(loops.states))

    def backward_compiled(self, grad_output: Tensor, grad_ends: State) -> tuple[Tensor, State]:
        """`backward` by the compiled loops."""
        from unrolled.layers.kernels.compiled.arrays import array, held_each
        from unrolled.layers.kernels.compiled.threads import available

        loops, ends = self.loops, tuple(end.contiguous() for end in grad_ends[: self.loops.states])
        loops.begin_back()
        self.grad = loops.grad.tensor[0]
        asked = [(weight, loops.steps) for weight in loops.weights_back(0)]
        laid = held_each(asked, 1 if self.between is None else available())
        jobs = loops.backward(0, laid, array(grad_output.contiguous()), list(map(array, ends)))
        if self.between is None:
            _do(jobs, 0, loops.steps)
        else:
            for step, grad in reversed(list(enumerate(self.split(self.grad)))):
                _do(jobs, step, step + 1)
                ends[0][: len(grad)] += self.between.backward(step, self.of_total(grad))
        return self.of_total(self.grad), ends

    def of_total(self, grad: Tensor) -> Tensor:
        """The gradient of the projected input, from rows of ``grad``."""
        return grad

    def add_product(self, total: Tensor, x: Tensor, turned: Tensor) -> None:
        """total += x·turned, the product in its own type."""
        if self.reduced:
            total += torch.mm(x, turned)
        else:
            total.addmm_(x, turned)

    def put_product(self, out: Tensor, x: Tensor, weight: Tensor) -> None:
        """out = x·weight, the product in its own type."""
        if self.reduced:
            out.copy_(torch.mm(x, weight))
        else:
            torch.mm(x, weight, out=out)

    def operand(self, x: Tensor) -> Tensor:
        """``x`` in the type of the products."""
        return x.to(self.weight.dtype)

    @cached_property
    def rows(self) -> Rows:
        """Where rows lie; kernels of the same counts may share one."""
        return Rows(self.counts, self.weight.device)

    def shifted(self, packed: Tensor, first: Tensor | None) -> Tensor:
        """What each step saw of the one before: ``packed`` one step later, after ``first`` (None: without step 0)."""
        if len(self.counts) == 1:
            return packed[:0] if first is None else first
        later = packed.index_select(0, self.rows.before)
        return later if first is None else torch.cat((first, later))

    def last(self, packed: Tensor) -> Tensor:
        """Each row's last step [batch, size], in the work type."""
        if len(self.counts) == 1:
            return packed.detach().to(self.work)
        return packed.index_select(0, self.rows.last).to(self.work)

    def shown(self, ends: State) -> State:
        """Those of the last states that are the kernel's own memory: of one step, which is the last one of all rows."""
        return ends if len(self.counts) == 1 else ()

    def spread(self, rows: Tensor) -> Tensor:
        """One vector for each row [batch, size] → packed, the same at all steps of the row."""
        return rows.index_select(0, self.rows.each)

    def going_back(self, fresh: bool, *packed: Tensor) -> Any:
        """From the last step to the first: its number, whether a step before wants a gradient, its part of each."""
        wanted = [not fresh] + [True] * (len(self.counts) - 1)
        return reversed(list(enumerate(zip(wanted, *map(self.split, packed), strict=True))))


def _do(jobs: list[Job], begin: int, end: int) -> None:
    from unrolled.layers.kernels.compiled.threads import together

    together([partial(job.do, begin, end) for job in jobs])


def turned(weight: Tensor, steps: int) -> Tensor:
    """weightᵀ; float32 products are a fifth faster from a turned copy, which so many steps may pay for."""
    reduced = weight.dtype in (torch.bfloat16, torch.float16)
    if type(weight) is TiledWeight or steps <= 4 or (reduced and weight.numel() >= 1 << 19):
        return weight.t()
    return weight.t().contiguous()


def in_rows(weight: Tensor) -> Tensor:
    """A matrix, or a copy where neither its rows nor its columns lie side by side and apart from each other."""
    if type(weight) is TiledWeight or weight.is_contiguous():
        return weight
    below, beside = weight.stride()
    rows, columns = beside == 1 and below >= weight.shape[1], below == 1 and beside >= weight.shape[0]
    return weight if rows or columns else weight.contiguous()


def watch(ctx: Any, *tensors: Tensor | None) -> None:
    """Let autograd notice, on the way back, where one of what it reads was changed after the way forward."""
    ctx.save_for_backward(*(tensor for tensor in tensors if tensor is not None))


def check_unchanged(ctx: Any) -> None:
    """RuntimeError, in torch's words, where a tensor that is watched was changed, or a graph without more to give."""
    _ = ctx.saved_tensors


class WholeSequence(Function):
    """A kernel as one node of the graph: the weight's gradient is one product after the loop, not one per step."""

    @staticmethod
    def forward(
        ctx: Any,
        kernel: Kernel,
        projected: Tensor,
        weight: Tensor,
        bias: Tensor | None,
        hidden: Tensor | None,
        memory: Tensor | None,
        *extras: Tensor | None,
    ) -> tuple[Tensor, Tensor, Tensor | None]:
        state = None if hidden is None else (hidden,) if memory is None else (hidden, memory)
        ctx.kernel, ctx.types = kernel, (projected.dtype, weight.dtype)
        ctx.set_materialize_grads(False)
        with without_autocast(weight):
            kernel.begin(weight, bias, Extras(*extras))
            output, ends = kernel.forward(projected.to(kernel.work).contiguous(), state)
        said = output.detach()
        watch(ctx, weight, bias, hidden, memory, *extras, said, *kernel.shown(ends))
        return said, ends[0], ends[1] if len(ends) == 2 else None

    @staticmethod
    @once_differentiable
    def backward(
        ctx: Any, grad_output: Tensor | None, grad_hidden: Tensor | None, grad_memory: Tensor | None
    ) -> tuple[Tensor | None, ...]:
        kernel: Kernel = ctx.kernel
        check_unchanged(ctx)
        with without_autocast(kernel.weight):
            projected, state = run_backward(kernel, grad_output, grad_hidden, grad_memory)
            needs = ctx.needs_input_grad
            weight = weight_gradient(kernel.factors()) if needs[2] else None
            bias = kernel.bias_gradient() if needs[3] else None
            extras = kernel.extra_gradients() if any(needs[6:]) else NO_EXTRAS
        first = [*state, None][:2] if needs[4] or needs[5] else (None, None)
        return None, projected.to(ctx.types[0]), weight, bias, *first, *extras


def run_backward(
    kernel: Kernel, grad_output: Tensor | None, grad_hidden: Tensor | None, grad_memory: Tensor | None
) -> tuple[Tensor, State]:
    """``kernel.backward`` where autograd has no gradient for some outputs (None)."""
    rows = kernel.counts[0]
    if grad_output is None:
        grad_output = kernel.weight.new_zeros(kernel.places, kernel.output_size)
    ends = tuple(
        kernel.weight.new_zeros(rows, size, dtype=kernel.work) if grad is None else grad.to(kernel.work, copy=True)
        for grad, size in ((grad_hidden, kernel.output_size), (grad_memory, kernel.size))
    )
    return kernel.backward(grad_output, ends)
