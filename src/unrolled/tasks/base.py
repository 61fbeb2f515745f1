"""A task says what an example is, its loss and its scores; everything else is shared."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Generic, NamedTuple, Protocol, TypeVar

from unrolled.base.errors import SettingsError, known
from unrolled.base.protocol import Loss
from unrolled.base.registry import Registry
from unrolled.base.settings import Tree
from unrolled.data.parts import Part, hold_out
from unrolled.data.table import Table
from unrolled.text.base import Text

if TYPE_CHECKING:
    from torch import Tensor, nn

    from unrolled.data.store import Encoder, Store

T = TypeVar("T", bound=Text)

Carried = dict[str, "Tensor"]
"""What a loss keeps from one batch to the next, by name; each process has its own, and checkpoints hold it."""


Update = Callable[["nn.Module", Any, float], Loss]
"""Steps a network's weights on a batch in place, at a rate; the loss before."""


class Batches(Protocol):
    """How rows fall into batches, epoch by epoch: what training asks for (see `unrolled.train.corpus.Batches`), and
    ``remarks``."""

    def plan(self, epoch: int) -> Sequence[Any]: ...

    def load(self, rows: Any) -> Any: ...

    def places(self, rows: Any) -> list[str]: ...

    def longest(self) -> Any: ...

    def remarks(self) -> list[str]:
        """Sentences about what is not used of the rows."""
        ...


class Validation(NamedTuple):
    """What a task validates: the network as it would be kept, and the validation rows."""

    network: nn.Module
    text: Any  # the task's own
    rows: Callable[[int], list[tuple[str, ...]]]  # the first so many rows as text, read once
    batches: Batches  # the rows as batches
    device: Any
    forward: Callable[[], AbstractContextManager[object]]  # the context of a forward pass: its precision


class Sized(NamedTuple):
    """A layer of settings below all others, and what it rests on."""

    origin: str
    tree: Tree
    said: Callable[[Mapping[str, str]], list[str]]  # what to say of it, given where each setting came from in the end


class Manual(NamedTuple):
    """How a card says that models of a task are used, and how a hub finds them."""

    commands: tuple[str, ...]  # shell lines, "{}" where the model's folder stands
    python: str  # an expression on ``model``
    attending: tuple[str, ...] = ()  # more shell lines for models with attention
    tags: tuple[str, ...] = ()
    pipeline: str | None = None  # the hub's name of the task


class Task(ABC, Generic[T]):
    """One kind of example, from a row of the user's table to a loss and to scores.

    Keyword-only parameters of a task's constructor are its settings (the section ``task``).
    """

    columns: tuple[str, ...]
    """Columns of a row, in order; a task whose settings add some sets its own."""

    noun: ClassVar[str]
    """What one row is: a pair, a text, a sentence."""

    text: ClassVar[type[Text]]
    """What turns rows into ids and back."""

    read_by: ClassVar[Mapping[str, str]]
    """Of each column of running text, the setting of its tokenizer: ``{"source": "text.source"}``."""

    embedded: ClassVar[Mapping[str, str]] = {}
    """Of each column that ``read_by`` names, where the network has the `Embedding` of its symbols (see
    `tasks.vectors`): ``{"source": "source_embedding"}``."""

    contextual: ClassVar[Mapping[str, str]] = {}
    """Of each setting of a tokenizer that may be ``contextual``, where the network has what reads the words:
    ``{"text.source": "source_embedding"}``."""

    written: ClassVar[tuple[str, ...]] = ()
    """Columns whose symbols the network also writes: no words that training never sees join these by themselves."""

    frozen: ClassVar[Tree] = {}
    """Settings that follow where some words keep the vectors that they are given, below all that is set."""

    models: ClassVar[tuple[str, ...]]
    """Kinds of model that it trains, the usual one first."""

    preset: ClassVar[str]
    """The preset where none is named."""

    stop_on: ClassVar[str]
    """The validation score that decides which weights are the best, where the settings name none."""

    measures: tuple[str, ...]
    """The scores that ``validate`` gives."""

    manual: Manual

    unit: str = "symbols"
    """What the ``count`` of its loss counts, for the rate that training shows."""

    unsized: ClassVar[Tree] = {}
    """What stands in the place of a Sized tree while the data are not opened yet, so that a size alone can be set."""

    instead: ClassVar[str] = ""
    """Ends the sentence about a table that has too few columns: what else can be given."""

    unused: ClassVar[Mapping[str, str]] = {}
    """Settings that every task has and that mean nothing here, each with the reason: who sets one is told."""

    plain: ClassVar[bool] = False
    """A file whose name tells no format is read as running text, whatever it looks like."""

    # --- settings and data ----------------------------------------------------------------------------------------

    @classmethod
    def recognises(cls, table: Table) -> str | None:  # noqa: ARG003
        """A sentence that says why ``table`` looks like data of this task; None where it does not."""
        return None

    @classmethod
    def conclude(cls, table: Table) -> tuple[Tree, list[str]]:  # noqa: ARG003
        """Settings of the task itself that the head of the training table tells, and what to say of them."""
        return {}, []

    def heed(self, settings: Mapping[str, Any]) -> None:
        """Takes note of what other sections of a whole settings tree say of how rows are read."""

    def refuse(self, table: Table) -> None:
        """SettingsError or DataError where the training table, as it was opened, is none of this task's."""

    def adapt(self, table: Table) -> Table:
        """The table with a row for each example, where one example stands in several rows."""
        return table

    def for_evaluation(self, table: Table) -> Table:
        """The table as `adapt` gives it, for rows that are only evaluated."""
        return self.adapt(table)

    def follow(self, tables: Mapping[str, Table]) -> dict[str, Table]:
        """The adapted tables of the splits, where one goes on from another."""
        return dict(tables)

    def named(self, columns: Sequence[str]) -> tuple[int, ...] | None:
        """Which of a table's columns are the task's, in its order, by their names; None where these do not tell."""
        if not all(name in columns for name in self.columns):
            return None
        return tuple(columns.index(name) for name in self.columns)

    def picked(self, columns: Sequence[str]) -> tuple[int, ...] | None:  # noqa: ARG002
        """As ``named``, of ``columns`` that the user chose, in that order; None: they are the task's, one after the
        other."""
        return None

    def check(self, settings: Mapping[str, Any]) -> None:
        """SettingsError where complete settings of several sections do not fit together."""
        kind = settings["model"]["kind"]
        if kind not in self.models:
            raise SettingsError(
                f"[model] the model '{kind}' is not for the task '{settings['task']['kind']}'. "
                f"{known(kind, self.models)}"
            )
        for setting in self.read_by.values():
            section, _, name = setting.partition(".")
            if settings[section][name]["kind"] == "contextual" and setting not in self.contextual:
                raise SettingsError(
                    f"[{setting}] contextual vectors are for text that is read, and this one is written too or has its "
                    "words elsewhere. Take another tokenizer, e.g. bpe."
                )

    def size(self, part: Part) -> Sized | None:  # noqa: ARG002
        """Settings that follow from the data; None where none do."""
        return None

    def divide(self, part: Part, data: Mapping[str, Any]) -> tuple[Part, Part, str]:
        """Training and validation rows where no validation data are given, and a sentence about it."""
        return hold_out(part, data, self.columns[0])

    def learn(self, settings: Mapping[str, Any], part: Part) -> T:
        """The text side (``settings``: the section ``text``), learnt on training rows."""
        learnt: Any = self.text.learn(settings, lambda: (row.fields for row in part.rows()))
        return learnt

    @abstractmethod
    def encoders(self, text: T) -> Mapping[str, Encoder]:
        """What turns each column's text into ids, by column."""

    def store(self, folder: Path, part: Part, text: T, mark: str) -> Store:
        """The rows of ``part`` as ids in ``folder``; those that are there with the same ``mark`` are kept."""
        from unrolled.data.store import Store

        table = part.table
        name = table.place if table.named else str(table.path)
        return Store.encode(folder, part.rows, self.encoders(text), fingerprint=mark, name=name)

    @abstractmethod
    def batches(self, store: Store, settings: Mapping[str, Any], *, train: bool, name: str) -> Batches:
        """How rows are batched: anew each epoch to ``train``, else the same always. ``settings`` are a run's whole
        tree, ``name`` is the file that messages name."""

    # --- the model ------------------------------------------------------------------------------------------------

    @abstractmethod
    def network(self, settings: Mapping[str, Any], text: T) -> nn.Module:
        """The network that ``settings`` (the section ``model``) describe, sized to the text."""

    @abstractmethod
    def sketch(self, settings: Mapping[str, Any], source: int, target: int) -> tuple[nn.Module, str]:
        """The network of a whole settings tree for ``source`` symbols in and ``target`` out; a sentence on the sizes.
        ``settings`` are complete."""

    @abstractmethod
    def loss(
        self,
        network: nn.Module,
        batch: Any,
        smoothing: float = 0.0,
        sampling: float = 0.0,
        *,
        carried: Carried | None = None,
    ) -> Loss:
        """The summed loss of a batch; calls ``network(...)`` once, so that it may be wrapped for many processes.

        ``carried`` is what the loss may read of the batch before and writes for the batch to come; None: nothing.
        """

    def updating(self, settings: Mapping[str, Any]) -> Update | None:  # noqa: ARG002
        """How a batch changes the weights where it is not by an optimiser that is given the gradients of ``loss``.

        ``settings`` are a run's whole tree.
        """
        return None

    @abstractmethod
    def validate(self, given: Validation) -> dict[str, float]:
        """The scores called ``measures`` on the validation rows. Gradients are off, the network evaluates."""

    def mean_loss(self, given: Validation) -> float:
        """The loss over all validation rows, a symbol."""
        total, count = 0.0, 0
        carried: Carried = {}
        with given.forward():
            for rows in given.batches.plan(0):
                batch = moved(given.batches.load(rows), given.device)
                found = self.loss(given.network, batch, carried=carried)
                total, count = total + float(found.total), count + int(found.count)
        return total / max(count, 1)


def moved(batch: Any, device: Any) -> Any:
    """A batch (a tree of named tuples and tensors) on ``device``."""
    if isinstance(batch, tuple):
        return type(batch)(*(moved(part, device) for part in batch))
    return batch.to(device) if hasattr(batch, "to") else batch


TASKS: Registry[Task[Any]] = Registry("task")
"""What is an example, its loss and its scores: one file a task."""


def recognise(tables: Mapping[str, Table], usual: str) -> tuple[str, str]:
    """(task, sentence) of the data: the first that recognises the training table, else the ``usual`` one."""
    table = tables.get("train") or next(iter(tables.values()))
    for kind in TASKS:
        found = TASKS[kind].recognises(table)  # type: ignore[attr-defined]
        if found is not None:
            return kind, f"{found} The task is {kind} (another: --task)."
    return usual, ""


def texts_of(part: Part, most: int | None = None) -> list[tuple[str, ...]]:
    """The fields of the first rows."""
    return [row.fields for row in islice(part.rows(), most)]
