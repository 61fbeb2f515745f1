"""A trained model with its text and settings: what models of every task share, and how one is loaded."""

from __future__ import annotations

import inspect
import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from copy import copy
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, Self

from unrolled.base.errors import DataError, UsageError, nearest
from unrolled.base.registry import Registry
from unrolled.data.parts import Part
from unrolled.data.vectors import Vectors, write_vectors
from unrolled.tasks import TASKS, Task
from unrolled.tasks.vectors import build_network
from unrolled.workshop import arguments
from unrolled.workshop.embedding import check_ending, kind_of, tabbed, word_vectors, write_lines
from unrolled.workshop.parts import PartRow, flat_parts
from unrolled.workshop.plan import Plan, plan
from unrolled.workshop.saving import save

if TYPE_CHECKING:
    from torch import nn

    from unrolled.tasks.scores import Score
    from unrolled.text.base import Text
    from unrolled.workshop.promises import Promise

VERBS = ("predict", "score", "evaluate", "explain", "generate", "embed")
"""What a trained model may be asked for. Which of them it has, its task decides."""

SHOW = "show_"
"""A verb of the command line is the method ``show_VERB``; its keyword-only parameters are the options that it takes."""


ROUND = 1024
"""Lines whose vectors are found together."""


class Shown(NamedTuple):
    """One result of a verb, for people and for machines."""

    text: str  # one line or more
    tree: dict[str, Any]  # the same, as JSON
    remarks: tuple[str, ...] = ()  # what to say of it on stderr; those that differ in numbers alone are said once
    end: str = "\n"  # what stands behind the text: nothing, where it is a piece of a file


class Tested(NamedTuple):
    """Scores, and on how many rows they were taken."""

    scores: list[Score]
    rows: int


class Evaluated(NamedTuple):
    """What ``unrolled evaluate`` shows: scores, and further tables by title, rows as mappings of column to cell."""

    scores: list[Score]
    rows: int
    tables: Mapping[str, tuple[str, list[dict[str, Any]]]] = {}  # JSON name → (title, rows)


PRECISIONS = ("float32", "bfloat16")
"""What the products of a search may be computed in."""

FEW_THREADS = "Give float32, or few threads, with which a search needs none: OMP_NUM_THREADS=4."
"""What to do where a processor has no bfloat16 instructions and torch more threads than our own products serve."""


class NoVerb(UsageError, AttributeError):
    """This model's task has no such verb."""


class Model(ABC):
    """A trained model. Its verbs are methods: those of ``VERBS`` that its task has; any other is a UsageError.

    A task's own class is final. It gives the verbs their Python form (``predict(lines)``) and their form for the
    command line (``show_predict``, which yields `Shown`), and the three abstract methods below.
    """

    lacks: ClassVar[Mapping[str, str]] = {}
    """Of a verb that the task does not have, why, and what does it."""

    engine: Any = None
    """The `Stepper` that searches drive; None where the task searches nothing."""

    exact: Any = None
    """Of a model that is `computing` in bfloat16, the one in float32."""

    def __init__(self, plan: Plan, text: Text, network: nn.Module, *, device: str = "auto") -> None:
        from unrolled.train.devices import choose_device

        self.plan = plan
        self.task: Task[Any] = TASKS.build(plan.settings["task"])
        self.task.heed(plan.settings)
        self.text: Any = text
        self.device = choose_device(device, "--device:")
        self.network: Any = network.to(self.device).eval()
        self.scores: list[Score] = []
        self.asides: list[str] = []  # what a verb on the command line has to say beside its result
        self.record: dict[str, Any] = {}  # how it came about: data, time, versions; what the card says

    # --- what a task's class gives --------------------------------------------------------------------------------

    @abstractmethod
    def test(self, part: Part) -> Tested:
        """The task's final scores on rows that were not trained on: what the card shows."""

    @abstractmethod
    def promises(self, file: str | None, count: int) -> list[Promise]:
        """What every model promises, checked on ``count`` lines of a file, or on made-up ones (None)."""

    def measured(self, valid: Part) -> dict[str, Any]:  # noqa: ARG002
        """What else is measured once after training, for the card."""
        return {}

    # --- verbs ----------------------------------------------------------------------------------------------------

    @property
    def kind(self) -> str:
        """The task's name."""
        return str(self.plan.settings["task"]["kind"])

    @classmethod
    def verbs(cls) -> list[str]:
        """The verbs that this model has."""
        return [verb for verb in VERBS if verb in dir(cls)]

    def vectors(self, side: str | None = None) -> Vectors:
        """The words of a model that has an embedding of them, and their vectors; ``side``: of which column, e.g.
        ``"target"``, the first if None. UsageError where there is none."""
        return word_vectors(self.task, self.text, self.network, side)

    def show_embed(
        self, file: str | None, *, to: str | None = None, kind: str | None = None, side: str | None = None
    ) -> Iterator[Shown]:
        """The vectors of the words; where the model has ``embed`` and is given a ``file``, of each of its lines.

        ``to`` is where they are written, else they are shown. A task whose ``embed`` gives something else than one
        vector a line (vectors of every word in its place, say) overrides this.
        """
        if not self.task.embedded and "embed" not in self.verbs():
            raise NoVerb(f"embed: a model of the task '{self.kind}' does not embed: {self.lacks['embed']}.")
        if file is None:
            yield from self._show_words(to, kind, side)
        elif kind is not None or side is not None:
            name = "kind" if kind is not None else "side"
            raise UsageError(f"embed: --{name} is for the vectors of words. Leave it out, or leave out the file.")
        elif "embed" not in self.verbs():
            raise NoVerb(
                f"embed: a model of the task '{self.kind}' has no one vector of a line. Leave out the file: then the "
                "vectors of its words are written."
            )
        else:
            yield from self._show_lines(file, None if to is None else Path(to))

    def _show_words(self, to: str | None, kind: str | None, side: str | None) -> Iterator[Shown]:
        vectors = self.vectors(side)
        tree: dict[str, Any] = {"words": len(vectors.words), "size": int(vectors.matrix.shape[1]), "to": to}
        if to is not None:
            write_vectors(to, vectors, kind=kind_of(Path(to), kind))
            yield Shown("", tree, (f"written: {to}, {tree['words']:,} words, {tree['size']} numbers each",))
            return
        for word, row in zip(*vectors, strict=True):
            yield Shown(f"{word} {' '.join(map(str, row))}", {"word": word, "vector": row.tolist()})

    def lines_in(self, file: str) -> Iterator[Any]:
        """What ``embed`` is given of a file: its lines."""
        from unrolled.data.lines import lines_of

        return iter(lines_of(file))

    def _show_lines(self, file: str, to: Path | None) -> Iterator[Shown]:
        if to is not None:
            check_ending(to)
        lines = self.lines_in(file)
        blocks = (self.embed(block) for block in iter(lambda: list(islice(lines, ROUND)), []))
        if to is not None:
            count, size = write_lines(to, blocks)
            tree: dict[str, Any] = {"lines": count, "size": size, "to": str(to)}
            yield Shown("", tree, (f"written: {to}, {count:,} lines, {size} numbers each",))
            return
        for number, row in enumerate(row for block in blocks for row in block):
            yield Shown(tabbed(row), {"line": number, "vector": row.tolist()})

    def describe(self) -> list[PartRow]:
        """The parts of the network, their parameters and the formula that gives them."""
        return flat_parts(self.network)

    def showing(self, verb: str, given: Mapping[str, Any]) -> tuple[Callable[..., Any], dict[str, Any]]:
        """The command line's form of a verb, and those of the options ``given`` that were set (not None, not False).

        UsageError for a verb that the task does not have, and for an option that is not the verb's.
        """
        show = getattr(self, SHOW + verb)
        known = [name for name, one in inspect.signature(show).parameters.items() if one.kind is one.KEYWORD_ONLY]
        chosen = {name: value for name, value in given.items() if value is not None and value is not False}
        for name in chosen:
            if name not in known:
                near = nearest(name, known)
                raise UsageError(
                    f"{verb}: {_option(name)} is not for the task '{self.kind}'. "
                    f"{f'Did you mean {_option(near)}? ' if near else ''}"
                    f"It takes: {', '.join(map(_option, known)) or 'no options'}."
                )
        return show, chosen

    def __getattr__(self, name: str) -> Any:
        verb = name.removeprefix(SHOW)
        if verb in VERBS:
            why = f" ({self.lacks[verb]})" if verb in self.lacks else ""
            raise NoVerb(
                f"{verb}: a model of the task '{self.kind}' does not {verb}{why}. It has: {', '.join(self.verbs())}."
            )
        raise AttributeError(f"'{type(self).__name__}' object has no attribute '{name}'")

    def computing(self, precision: str) -> Self:
        """This model with the products of its searches in ``bfloat16``, or again in ``float32``.

        The weights are shared, and must not be changed after the first search in ``bfloat16``.

        UsageError for a task that does not search, and for a device that computes no bfloat16.
        """
        from unrolled.models.stepper import TorchStepper, lays_out
        from unrolled.train.precision import resolve

        if precision not in PRECISIONS:
            raise UsageError(f"precision: {precision!r} was given. Give {' or '.join(PRECISIONS)}.")
        if precision == "float32":
            return self if self.exact is None else self.exact
        if self.engine is None:
            raise UsageError(
                f"precision: {precision} was given, and it is searches that it makes faster; a model of the task "
                f"'{self.kind}' searches nothing. Leave it out."
            )
        if not lays_out(self.device, "bfloat16"):
            cure = "Give float32." if self.device.type != "cpu" else FEW_THREADS
            resolve(precision, self.device, "precision:", cure)
        found = copy(self)
        found.engine, found.exact = TorchStepper(self.network, precision="bfloat16"), self.computing("float32")
        return found

    # --- files ----------------------------------------------------------------------------------------------------

    def save(self, folder: str | Path) -> Path:
        """Write the model folder: settings, weights, text, scores and a filled card; whole or not at all."""
        place = Path(arguments.place("save", "folder", folder))
        return save(place, self.plan, self.text, self.network, self.scores, self.record)

    @classmethod
    def load(cls, folder: str | Path, *, device: str = "auto") -> Self:
        """A saved model, on any device.

        DataError names the file that is missing or damaged; nothing is unpickled. Of ``Model`` itself any task's; of a
        task's class, UsageError for a model of another one.
        """
        found = load(folder, device=device)
        if not isinstance(found, cls):
            raise UsageError(f"{folder}: a model of the task '{found.kind}', no {cls.__name__}. Use unrolled.load.")
        return found


TRAINED: Registry[Model] = Registry("trained model")
"""The class of a trained model, by its task."""


def load(folder: str | Path, *, device: str = "auto") -> Model:
    """A saved model of any task, on any device (``auto``: a GPU where there is one)."""
    from unrolled.ship.folder import read
    from unrolled.tasks.scores import Score

    folder = Path(arguments.place("load", "folder", folder))
    saved = read(folder)
    loaded = plan([("saved model", saved.settings)])
    task = TASKS.build(loaded.settings["task"])
    text = task.text.load(saved.text)
    network = build_network(task, loaded.settings["model"], text)
    if misfit := fill(network, saved.tensors()):
        raise DataError(f"{folder}: the weights do not fit settings.yaml ({misfit}). Was one edited?")
    model = TRAINED[loaded.settings["task"]["kind"]](loaded, text, network, device=device)
    model.scores = [Score(**score) for score in saved.scores.get("scores", [])]
    model.scores = [one._replace(value=math.nan) if one.value is None else one for one in model.scores]
    model.record = dict(saved.scores.get("record", {}))
    return model


def fill(network: nn.Module, tensors: Mapping[str, Any]) -> str:
    """Load weights; which of them does not fit, "" where all do."""
    try:
        network.load_state_dict(dict(tensors))
    except RuntimeError as error:
        return str(error).splitlines()[-1].strip()
    return ""


def _option(name: str) -> str:
    return "--no-trust" if name == "untrusted" else f"--{name.replace('_', '-')}"
