"""The call of torch.nn around a `Recurrent`: its shapes, its state layouts, its PackedSequence."""

from __future__ import annotations

import warnings
from collections.abc import Sequence as Several
from typing import Any, Literal, NamedTuple, cast

import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import PackedSequence

from unrolled.base.errors import SettingsError, UsageError
from unrolled.base.registry import Part
from unrolled.layers.cells import Cell, State
from unrolled.layers.cells.checks import check_like, check_type, whole
from unrolled.layers.packing import check_finite, moved, order_of_packed, prefix_mask
from unrolled.layers.recurrent import Recurrent
from unrolled.layers.surroundings import autocast_on, left_alone
from unrolled.layers.weights.torch_layout import rename_torch

Lengths = Tensor | Several[int]
Initial = Literal["zeros", "learned"]


class TorchOptions(NamedTuple):
    """What every recurrent layer of torch.nn takes, in its order."""

    num_layers: int
    bias: bool
    batch_first: bool
    dropout: float
    bidirectional: bool
    device: torch.device | str | None
    dtype: torch.dtype | None


class TorchLike(nn.Module):
    """What the three share: torch.nn's shapes and state layouts around a `Recurrent`, which is ``self.recurrent``.

    ``input`` is [time, batch, input], [batch, time, input] with ``batch_first``, [time, input] for one sequence
    alone, or a PackedSequence; the output is laid out as the input, exactly 0 at padding. States are
    [layers · directions, batch, size], without the batch axis for one sequence alone, and read at each row's true end.

    A state dict that was saved from the torch.nn layer loads as it is (`load_state_dict`).
    """

    states: tuple[str, ...]
    """Names of the tensors of ``hx``."""

    def __init__(
        self,
        input_size: int,
        cell: Part,
        options: TorchOptions,
        *,
        dropout_kind: Literal["plain", "locked"],
        residual: bool,
        initial: Initial,
    ) -> None:
        super().__init__()
        name = type(self).__name__
        for setting in ("bias", "batch_first", "bidirectional"):
            value = getattr(options, setting)
            if not isinstance(value, bool):
                raise SettingsError(f"{setting} of {name} is {value!r}; it must be True or False.")
        for setting, size in (("input_size", input_size), ("num_layers", options.num_layers)):
            if not whole(size):
                raise SettingsError(f"{setting} of {name} is {size!r}; it must be a whole number of at least 1.")
        if options.dtype is not None and not options.dtype.is_floating_point:
            raise SettingsError(f"dtype of {name} is {options.dtype}; weights are of a floating-point type.")
        if options.dropout and options.num_layers == 1:
            warnings.warn(f"dropout of {name} is between layers, and there is one: nothing is dropped.", stacklevel=3)
        self.recurrent = Recurrent(
            input_size,
            cell=cell,
            layers=options.num_layers,
            bidirectional=options.bidirectional,
            dropout=options.dropout,
            dropout_kind=dropout_kind,
            residual=residual,
            initial=initial,
        )
        if not options.bias:
            for built in self.recurrent.cells:
                _without_bias(cast(Cell, built))
        self.input_size, self.hidden_size = input_size, self.recurrent.hidden_size
        self.num_layers, self.dropout = options.num_layers, float(options.dropout)
        self.bias, self.batch_first, self.bidirectional = options.bias, options.batch_first, options.bidirectional
        self.to(device=options.device, dtype=options.dtype)
        self.register_load_state_dict_pre_hook(_rename)

    def flatten_parameters(self) -> None:
        """Nothing to do, weights lie as each call needs them; here so that code written for torch.nn runs."""

    def _run(
        self, given: Tensor | PackedSequence, state: list[Tensor] | None, mask: Tensor | None, lengths: Lengths | None
    ) -> tuple[Tensor | PackedSequence, list[Tensor]]:
        """The output laid out as the input, and the last states; ``state``: the tensors of ``hx``."""
        if isinstance(given, PackedSequence):
            if mask is not None or lengths is not None:
                raise UsageError(
                    f"a PackedSequence tells {type(self).__name__} its lengths; leave mask and lengths out."
                )
            return left_alone(self._run_packed, given, state)
        self._check(given, given.dim())
        real = self._mask(given, mask, lengths)
        if given.dim() == 2:
            output, ends = self.recurrent(given.unsqueeze(0), real, self._flat(state, 1, batched=False))
            return output.squeeze(0), [end.squeeze(1) for end in self._stacked(ends)]
        x = given if self.batch_first else given.transpose(0, 1)
        output, ends = self.recurrent(x, real, self._flat(state, x.shape[0], batched=True))
        return output if self.batch_first else output.transpose(0, 1).contiguous(), self._stacked(ends)

    def _run_packed(self, given: PackedSequence, state: list[Tensor] | None) -> tuple[PackedSequence, list[Tensor]]:
        """Rows that lie packed stay so; states are in the caller's order, which the PackedSequence knows."""
        self._check(given.data, 2)
        check_type(given.data, self._weight)
        if given.data.device.type == "cpu":
            check_finite(given)
        order = order_of_packed(given)
        first = self._flat(state, order.batch, batched=True)
        first = None if first is None else moved(first, given.sorted_indices)
        output, ends = self.recurrent.packed(given.data, order, first)
        return given._replace(data=output), self._stacked(moved(ends, given.unsorted_indices))

    def _check(self, given: Tensor, dimensions: int) -> None:
        name = type(self).__name__
        if dimensions not in (2, 3) or given.shape[-1] != self.input_size or 0 in given.shape:
            order = "[batch, time" if self.batch_first else "[time, batch"
            raise UsageError(
                f"input of {name} has the shape {list(given.shape)}; it must be {order}, {self.input_size}], or "
                f"[time, {self.input_size}] for one sequence alone, with at least one row and one step."
            )
        own = self._weight.dtype
        if not given.is_floating_point():
            raise UsageError(f"input of {name} is {given.dtype}; it must be {own}. Embed ids first.")
        if given.dtype is not own and not autocast_on(given):
            raise UsageError(f"input of {name} is {given.dtype}, its weights are {own}; make them alike.")

    def _mask(self, given: Tensor, mask: Tensor | None, lengths: Lengths | None) -> Tensor | None:
        """Mask [batch, time] of what was told about ``given``; None for all real."""
        if lengths is not None and mask is not None:
            raise UsageError(f"mask and lengths were both given to {type(self).__name__}; one of them says it all.")
        alone = given.dim() == 2
        if lengths is not None:
            time = 0 if alone or not self.batch_first else 1
            return prefix_mask(lengths, 1 if alone else given.shape[1 - time], given.shape[time], given.device)
        if mask is None:
            return None
        if not isinstance(mask, Tensor):
            raise UsageError(f"mask of {type(self).__name__} must be a tensor of torch.bool, not {described(mask)}.")
        if mask.dtype is not torch.bool or mask.shape != given.shape[:-1]:
            raise UsageError(
                f"mask of {type(self).__name__} is {mask.dtype} {list(mask.shape)}; it must be torch.bool "
                f"{list(given.shape[:-1])}, True = real, as this input lies."
            )
        if alone:
            return mask.unsqueeze(0)
        return mask if self.batch_first else mask.t()

    @property
    def _weight(self) -> Tensor:
        return cast(Cell, self.recurrent.cells[0]).input_weight

    def _flat(self, state: list[Tensor] | None, batch: int, *, batched: bool) -> State | None:
        """The tensors of ``hx`` as a state of `Recurrent`."""
        if state is None:
            return None
        cells = len(self.recurrent.cells)
        for name, tensor, size in zip(self.states, state, self.recurrent.state_sizes[: len(self.states)], strict=True):
            wanted = [cells, batch, size] if batched else [cells, size]
            if list(tensor.shape) != wanted:
                raise UsageError(
                    f"{name} of {type(self).__name__} has the shape {list(tensor.shape)}; for this input it must be "
                    f"{wanted}, [layers · directions, {'batch, ' if batched else ''}size]."
                )
            check_like(tensor, self._weight, f"{name} of {type(self).__name__}")
        rows = state if batched else [tensor.unsqueeze(1) for tensor in state]
        return tuple(tensor[index] for index in range(cells) for tensor in rows)

    def _stacked(self, ends: State) -> list[Tensor]:
        """A state of `Recurrent` as torch.nn has it."""
        count = len(self.states)
        return [torch.stack(ends[index::count]) for index in range(count)]

    def extra_repr(self) -> str:
        return f"{self.input_size}, {self.hidden_size}, batch_first={self.batch_first}, bias={self.bias}"


class OneState(TorchLike):
    """What has the state h alone: output, h_n = layer(input, h_0)."""

    states = ("h_0",)

    def forward(
        self,
        input: Tensor | PackedSequence,  # noqa: A002
        hx: Tensor | None = None,
        *,
        mask: Tensor | None = None,
        lengths: Lengths | None = None,
    ) -> tuple[Tensor | PackedSequence, Tensor]:
        """Output [time, batch, directions · hidden] and h_n, in the layouts of `TorchLike`.

        ``hx``: h_0; None is zeros. On padded input give ``lengths`` [batch], or a bool ``mask`` laid out as the input,
        True = real, real positions first; it is the packed result without packing. UsageError for what does not fit.
        """
        if hx is not None and not isinstance(hx, Tensor):
            raise UsageError(f"hx of {type(self).__name__} must be one tensor, h_0, not {described(hx)}.")
        output, (hidden,) = self._run(input, None if hx is None else [hx], mask, lengths)
        return output, hidden


def _without_bias(cell: Cell) -> None:
    """The bias as zeros that are neither learnt nor saved."""
    zeros = torch.zeros_like(cell.bias.data)
    del cell.bias
    cell.register_buffer("bias", zeros, persistent=False)


def _rename(layer: TorchLike, state: dict[str, Any], prefix: str, *_: Any) -> None:
    """Before loading: a state dict of the torch.nn layer gets our names."""
    rename_torch(layer.recurrent, state, prefix, f"{prefix}recurrent.")


def described(hx: object) -> str:
    if isinstance(hx, tuple | list):
        return f"a {type(hx).__name__} of {len(hx)}"
    return f"a {type(hx).__name__}" + (f" of shape {list(hx.shape)}" if isinstance(hx, Tensor) else "")
