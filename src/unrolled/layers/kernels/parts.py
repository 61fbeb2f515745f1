"""What kernels are put together from, step by step forward and back: products, normalisation, peepholes, zoneout."""

from __future__ import annotations

import abc
import weakref
from functools import cached_property

import torch
from torch import Tensor

from unrolled.layers.cells.norm import EPSILON
from unrolled.layers.kernels.base import Kernel
from unrolled.layers.kernels.gradients import Factors, weight_gradient


class Norm:
    """y = gain · (x - mean) / √(variance + ε) (+ shift) over [rows, width], step by step."""

    def __init__(self, kernel: Kernel, gain: Tensor, shift: Tensor | None = None) -> None:
        self.gain, self.shift, self.width = gain, shift, [len(gain)]
        self.given = kernel.empty(len(gain), kernel.work)
        self.moments = self.given.new_empty(2, kernel.places, 1)
        self.mean, self.spread = self.moments
        self.grad = kernel.empty(len(gain), kernel.work)
        self.steps = list(zip(*map(kernel.split, (self.given, self.grad, self.mean, self.spread)), strict=True))

    def forward(self, step: int, x: Tensor) -> Tensor:
        given, _, mean, spread = self.steps[step]
        given.copy_(x)
        y, *moments = torch.native_layer_norm(given, self.width, self.gain, self.shift, EPSILON)
        mean.copy_(moments[0])
        spread.copy_(moments[1])
        return y

    def backward(self, step: int, grad: Tensor) -> Tensor:
        """The gradient of x from that of y, in the work type."""
        given, own, mean, spread = self.steps[step]
        own.copy_(grad)
        return self._derive(own, given, (mean, spread), [True, False, False])[0]

    def gradients(self, skip: int) -> tuple[Tensor, Tensor]:
        """Of gain and shift, over all rows but the first ``skip``, which had no x."""
        if skip == len(self.given):
            return torch.zeros_like(self.gain), torch.zeros_like(self.gain)
        moments = (self.mean[skip:], self.spread[skip:])
        _, gain, shift = self._derive(self.grad[skip:], self.given[skip:], moments, [False, True, True])
        return gain, shift

    def _derive(
        self, grad: Tensor, given: Tensor, statistics: tuple[Tensor, Tensor], wanted: list[bool]
    ) -> tuple[Tensor, ...]:
        shift = torch.zeros_like(self.gain) if self.shift is None else self.shift
        return torch.ops.aten.native_layer_norm_backward(grad, given, self.width, *statistics, self.gain, shift, wanted)


class Product:
    """total += U (h * d) for some ``rows`` of the hidden weight, d the recurrent dropout where there is one.

    With a gain, the product is normalised before it is added, over each of ``widths`` by itself; their sum is the
    number of rows, and each has a total of its own to be added to.
    """

    def __init__(self, kernel: Kernel, rows: slice, widths: tuple[int, ...]) -> None:
        self.kernel: Kernel = weakref.proxy(kernel)  # whose part this is: what it holds must go when it goes
        self.widths = widths
        blocks = [kernel.weight] if kernel.directions == 1 else kernel.weight.chunk(kernel.directions)
        self.weights = [block[rows] for block in blocks]
        self.turned = [kernel.turned(weight) for weight in self.weights]
        self.seen = None if kernel.noise.seen is None else kernel.operand(kernel.noise.seen)
        gain = kernel.extras.hidden_gain
        self.norms: list[Norm] = []
        if gain is not None:
            self.norms = [Norm(kernel, own) for own in gain[rows].split(widths)]
            self.grad = kernel.empty(len(self.weights[0]), kernel.weight.dtype)
            self.grads = kernel.split(self.grad)
        self.bare = not self.norms and self.seen is None

    @cached_property
    def turns(self) -> list[tuple[Tensor, ...]]:
        """For each direction the turned weight's columns of each total."""
        return [turned.split(self.widths, 1) for turned in self.turned]

    def forward(self, step: int, h: Tensor, totals: tuple[Tensor, ...]) -> None:
        """Add to ``totals``, one [rows, width] for each width; ``h`` is in the products' type."""
        if self.bare and len(totals) == len(self.turned) == 1:
            self.kernel.add_product(totals[0], h, self.turned[0])
            return
        if self.seen is not None:
            h = h * self.seen[: len(h)]
        if len(self.turned) == 1:
            self._add(step, h, totals, 0)
            return
        for direction in (0, 1):
            self._add(step, h[direction::2], tuple(total[direction::2] for total in totals), direction)

    def _add(self, step: int, h: Tensor, totals: tuple[Tensor, ...], direction: int) -> None:
        if not self.norms and (len(totals) == 1 or not self.kernel.reduced):
            for total, turned in zip(totals, self.turns[direction], strict=True):
                self.kernel.add_product(total, h, turned)
            return
        products = torch.mm(h, self.turned[direction]).split(self.widths, 1)
        for number, (total, product) in enumerate(zip(totals, products, strict=True)):
            total += self.norms[number].forward(step, product) if self.norms else product

    def backward(self, step: int, grad: Tensor) -> Tensor:
        """The gradient of h from that of the totals, side by side [rows, Σ widths], both in the products' type."""
        if self.norms:
            own = self.grads[step]
            parts = zip(self.norms, grad.split(self.widths, 1), own.split(self.widths, 1), strict=True)
            for norm, given, part in parts:
                part.copy_(norm.backward(step, given))
            grad = own
        if len(self.weights) == 1:
            back = torch.mm(grad, self.weights[0])
        else:
            both = [torch.mm(grad[direction::2], weight) for direction, weight in enumerate(self.weights)]
            back = torch.stack(both, 1).flatten(0, 1)
        return back if self.seen is None else back * self.seen[: len(back)]

    def put(self, step: int, grad: Tensor, out: Tensor) -> None:
        """out = `backward`."""
        if not self.bare:
            out.copy_(self.backward(step, grad))
        elif len(self.weights) == 1:
            self.kernel.put_product(out, grad, self.weights[0])
        else:
            for direction, weight in enumerate(self.weights):
                self.kernel.put_product(out[direction::2], grad[direction::2], weight)

    def add(self, step: int, grad: Tensor, out: Tensor) -> None:
        """out += `backward`."""
        if not self.bare:
            out += self.backward(step, grad)
        elif len(self.weights) == 1:
            self.kernel.add_product(out, grad, self.weights[0])
        else:
            for direction, weight in enumerate(self.weights):
                self.kernel.add_product(out[direction::2], grad[direction::2], weight)

    def factors(self, grad: Tensor, given: Tensor) -> Factors:
        """Those of the weight's gradient, a pair for each direction: the totals' packed gradient, the h that they saw.

        ``given`` may lack the first step, which had none.
        """
        skip = len(grad) - len(given)
        if self.seen is not None:
            given = given * self.kernel.spread(self.seen)[skip:]
        grad = (self.grad if self.norms else grad)[skip:]
        if len(self.weights) == 1:
            return ((grad, given),)
        return tuple((grad[direction::2], given[direction::2]) for direction in (0, 1))

    def gain_gradient(self, skip: int) -> Tensor:
        return torch.cat([norm.gradients(skip)[0] for norm in self.norms])


class Peephole(abc.ABC):
    """total += what the gates see of the memory; ``weight`` is for the gates of one look."""

    def __init__(self, kernel: Kernel, weight: Tensor) -> None:
        self.kernel: Kernel = weakref.proxy(kernel)
        self.weight = weight

    @abc.abstractmethod
    def forward(self, total: Tensor, memory: Tensor) -> None:
        """Add to ``total`` [rows, gates * hidden]."""

    @abc.abstractmethod
    def backward(self, grad: Tensor, memory: Tensor) -> None:
        """Add to ``memory``, the memory's gradient, what comes from ``grad``, that of the total."""

    @abc.abstractmethod
    def gradient(self, at: int, memory: Tensor) -> Tensor:
        """The weight's gradient, from all steps at once; the look's gates begin ``at`` a column of the kernel's own."""


class Diagonal(Peephole):
    """p * C, with a vector p for each gate: ``weight`` [gates, hidden]."""

    def forward(self, total: Tensor, memory: Tensor) -> None:
        total.unflatten(1, self.weight.shape).addcmul_(self.weight, memory.unsqueeze(1))

    def backward(self, grad: Tensor, memory: Tensor) -> None:
        for part, weight in zip(grad.chunk(len(self.weight), 1), self.weight, strict=True):
            memory.addcmul_(part.to(memory.dtype), weight)

    def gradient(self, at: int, memory: Tensor) -> Tensor:
        grad = self.kernel.grad[:, at : at + self.weight.numel()]
        return torch.stack([(part * memory).sum(0) for part in grad.chunk(len(self.weight), 1)])


class Full(Peephole):
    """P C, with a matrix P: ``weight`` [gates * hidden, hidden]."""

    def __init__(self, kernel: Kernel, weight: Tensor) -> None:
        super().__init__(kernel, weight)
        self.turned = kernel.turned(weight)

    def forward(self, total: Tensor, memory: Tensor) -> None:
        self.kernel.add_product(total, self.kernel.operand(memory), self.turned)

    def backward(self, grad: Tensor, memory: Tensor) -> None:
        self.kernel.add_product(memory, grad, self.weight)

    def gradient(self, at: int, memory: Tensor) -> Tensor:
        return weight_gradient(((self.kernel.grad[:, at : at + len(self.weight)], self.kernel.operand(memory)),))


class Zone:
    """Zoneout of one tensor of the state: new ← kept · old + (1 - kept) · new, with ``kept`` packed."""

    def __init__(self, kernel: Kernel, kept: Tensor) -> None:
        self.kept = kernel.split(kept)

    def mix(self, step: int, new: Tensor, old: Tensor) -> Tensor:
        return torch.lerp(new, old, self.kept[step])

    def part(self, step: int, grad: Tensor) -> Tensor:
        """What of the gradient goes straight to the old one; ``grad`` keeps what goes to the new one."""
        stays = grad * self.kept[step]
        grad -= stays
        return stays
