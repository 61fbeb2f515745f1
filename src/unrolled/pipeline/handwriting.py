"""A trained pen: how probable drawings are, and new ones drawn, begun by the user or of a label."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from unrolled.base.errors import DataError, UnrolledError, UsageError, known
from unrolled.data.drawings import drawn
from unrolled.data.opening import from_file
from unrolled.data.parts import Part
from unrolled.data.readers import open_table
from unrolled.pipeline.drawing_tables import ScoredDrawing, beside, summed
from unrolled.pipeline.model import ROUND, TRAINED, Evaluated, Model, Shown, Tested
from unrolled.pipeline.numbered import Named, nth
from unrolled.tasks.drawing_scores import Tally, protocol_of
from unrolled.tasks.handwriting import HandwritingTask
from unrolled.text.drawings import END, Drawing, as_drawing, read_drawing
from unrolled.workshop import arguments
from unrolled.workshop.drawn import Drawn, check_ending, write_drawn
from unrolled.workshop.embedding import check_ending as check_vectors
from unrolled.workshop.embedding import tabbed, write_lines
from unrolled.workshop.handwriting import Draws, Found, Inked, draw, found_of, labels_drawn, mapped, vectors_of
from unrolled.workshop.handwriting_promises import check_promises
from unrolled.workshop.promises import Promise

if TYPE_CHECKING:
    from unrolled.explain.densities import Density
    from unrolled.tasks.scores import Score

LENGTH = 1000
"""Points that a drawing has at most, where nothing is said."""


@contextmanager
def _named(where: str) -> Iterator[None]:
    """What is wrong inside is said with ``where`` it is, once."""
    try:
        yield
    except UnrolledError as error:
        raise type(error)(f"{where}: {error}") from None


@TRAINED.register("handwriting")
class HandwritingModel(Model):
    """A trained model of drawings: ``generate``, ``score``, ``evaluate``, ``explain``, ``embed``.

    A drawing is an array [points, 3] of steps to the right and down and of the pen (1 where a stroke ends, else 0), or
    a list of strokes, each an array [points, 2] of places.
    """

    task: HandwritingTask
    lacks = {"predict": "it goes on from a drawing: generate --prompt FILE"}

    @property
    def labels(self) -> tuple[str, ...]:
        """What it can be told to draw."""
        names: tuple[str, ...] = self.text.labels.names
        return names

    # --- drawings that go on --------------------------------------------------------------------------------------

    def generate(
        self,
        samples: int = 1,
        *,
        label: str | None = None,
        prompt: Any = None,
        length: int = LENGTH,
        temperature: float = 1.0,
        bias: float = 0.0,
        seed: int = 0,
    ) -> list[Drawn]:
        """``samples`` drawings of at most ``length`` points, each going on from ``prompt`` where that is given: a
        drawing, or a beginning of one. ``label`` is what is drawn; None: of each label as often as training rows have
        it; "": of none.

        ``bias`` b, 0 or more, draws what is more probable: deviations times e^-b, weights of components to the power of
        1 + b (Graves 2013, eqs. 61 and 62). ``temperature`` τ above 0: deviations times √τ, weights and pen to the
        power of 1 / τ (Ha & Eck 2017). A sample depends on the seed and its number alone.
        """
        for name, value in (("temperature", temperature), ("bias", bias)):
            if not isinstance(value, int | float):
                raise UsageError(f"generate: {name} is {value!r}; a number is wanted.")
        if label is not None:
            arguments.text("generate", "label", label)
        if not 0 < temperature < np.inf or not 0 <= bias < 50:
            raise UsageError(
                f"generate: temperature {temperature:g} and bias {bias:g} were given; a temperature is above 0, a bias "
                "at least 0 and below 50."
            )
        names = labels_drawn(self.text.labels, arguments.count("generate", "samples", samples), label, seed)
        most = arguments.count("generate", "length", length)
        begin = np.zeros((0, 3), np.float32)
        if prompt is not None:
            with _named("generate: prompt"):
                begin = self.text.drawings.scaled(as_drawing(prompt, whole=False))
        numbers = [self._number("generate", name) for name in names]
        found = draw(self.network, begin, numbers, Draws(most, temperature, bias, seed), device=self.device)
        return [
            Drawn(
                points=self.text.drawings.unscaled(one.points),
                log_prob=float(one.log_probs.sum()),
                label=name,
                finished=len(one.points) > 0 and bool(one.points[-1, 2] == END),
            )
            for one, name in zip(found, names, strict=True)
        ]

    def _number(self, verb: str, label: str | None) -> int:
        """The number of a label, 0 for none; UsageError for one that training did not have."""
        if not label:
            return 0
        if label not in self.text.labels:
            hint = known(label, self.labels) if self.labels else "Training rows had none: leave it out."
            raise UsageError(f"{verb}: no label is called '{label}'. {hint}")
        return 1 + int(self.text.labels.number(label))

    # --- numbers --------------------------------------------------------------------------------------------------

    def score(self, drawings: Sequence[Any], labels: Sequence[str] | None = None) -> list[ScoredDrawing]:
        """Natural-log density of every point of each drawing, over squares of the user's unit, with the pen's
        log-probability; given its label, where ``labels`` are given ("" for none)."""
        rows, names = self._inked("score", drawings, labels)
        return [ScoredDrawing(one.log_probs, name) for one, name in zip(self._found(rows), names, strict=True)]

    def evaluate(self, drawings: Sequence[Any], labels: Sequence[str] | None = None) -> list[Score]:
        """Nats a point and a drawing, and how often the likeliest thing is what the pen does."""
        rows, _ = self._inked("evaluate", drawings, labels)
        tally = Tally()
        for row, one in zip(rows, self._found(rows), strict=True):
            tally.add(one.log_probs, one.pens, row.points[:, 2])
        return tally.scores(protocol_of(self.text.drawings))

    def embed(self, drawings: Sequence[Any], labels: Sequence[str] | None = None) -> np.ndarray:
        """Float32 [drawings, size]: the mean of what the model knows after each point of a drawing."""
        return vectors_of(self.network, self._inked("embed", drawings, labels)[0], device=self.device)

    def explain(self, drawing: Any, label: str | None = None) -> Density:
        """Where the model expected the pen, all its densities laid over the drawing (Graves 2013, fig. 10), and how
        surprising each point was."""
        from unrolled.explain.densities import Density

        (row,), _ = self._inked("explain", [drawing], None if label is None else [label])
        (one,) = self._found([row])
        field = mapped(self.network, row, device=self.device)
        points = self.text.drawings.unscaled(row.points)
        scale = self.text.drawings.scale
        return Density(
            points=points,
            log_probs=one.log_probs,
            pens=one.pens,
            ranks=field.ranks,
            field=field.values / (scale * scale),
            edges=tuple(edge * scale for edge in field.edges),
            label=label or "",
        )

    def _found(self, rows: Sequence[Inked]) -> list[Found]:
        return found_of(self.network, rows, device=self.device)

    def _inked(self, verb: str, drawings: Sequence[Any], labels: Sequence[str] | None) -> tuple[list[Inked], list[str]]:
        """Drawings and labels as the network reads them."""
        if isinstance(drawings, str) or not isinstance(drawings, Sequence | np.ndarray) or len(drawings) == 0:
            raise UsageError(f"{verb}: give a list of drawings, each an array [points, 3] or a list of strokes.")
        names = [""] * len(drawings) if labels is None else arguments.texts(verb, "labels", labels)
        if len(names) != len(drawings):
            raise UsageError(f"{verb}: {len(drawings)} drawings and {len(names)} labels; give as many of both.")
        rows = []
        for place, (one, name) in enumerate(zip(drawings, names, strict=True)):
            with _named(f"{verb}: drawing {place}"):
                points = self.text.drawings.scaled(as_drawing(one))
            rows.append(Inked(points, self._number(verb, name)))
        return rows, names

    # --- files ----------------------------------------------------------------------------------------------------

    def _blocks(self, part: Part) -> Iterator[tuple[list[int], list[str], list[Inked]]]:
        """Places, labels and drawings of a part's rows, a thousand at a time; DataError with the place of a wrong
        one."""
        rows = part.rows()
        while held := list(islice(rows, ROUND)):
            inked = []
            for row in held:
                try:
                    points = self.text.drawings.encode_ids([row.fields[0]])[0][1:].reshape(-1, 3)
                    (number,) = self.text.label_reader.encode_ids([row.fields[1]])[0] if self._labelled else (0,)
                except DataError as error:
                    raise DataError(f"{part.table.place(row.place)}: {error}") from None
                inked.append(Inked(points, number))
            yield [row.place for row in held], [row.fields[1] for row in held], inked

    @property
    def _labelled(self) -> bool:
        return len(self.text.labels) > 0

    def _part(self, file: str, *, whole: bool = True) -> Part:
        table = drawn(open_table(from_file(file, "drawings")), self.task.coordinates, whole=whole)
        return Part(table, (0, 1))

    def _tally(self, part: Part) -> Tally:
        tally = Tally()
        for _, _, rows in self._blocks(part):
            for row, one in zip(rows, self._found(rows), strict=True):
                tally.add(one.log_probs, one.pens, row.points[:, 2])
        return tally

    def test(self, part: Part) -> Tested:
        tally = self._tally(part)
        return Tested(tally.scores(protocol_of(self.text.drawings)), tally.count)

    def promises(self, file: str | None, count: int) -> list[Promise]:
        if file is None:
            return check_promises(self, None, count)
        part = self._part(file)
        return check_promises(self, [read_drawing(row.fields[0]) for row in islice(part.rows(), count)], count)

    # --- on the command line --------------------------------------------------------------------------------------

    def show_generate(
        self,
        prompt: str,
        *,
        length: int | None = None,
        samples: int = 1,
        temperature: float | None = None,
        bias: float | None = None,
        label: str | None = None,
        seed: int | None = None,
        to: str | None = None,
    ) -> Iterator[Shown]:
        """Drawings, one a line as JSON, or written ``to`` a page, a folder or a file of data."""
        if to is not None:
            check_ending(to)
        chosen: dict[str, Any] = {"temperature": temperature, "bias": bias, "seed": seed, "length": length}
        begin = self._numbered("generate", prompt, whole=False)[0] if prompt else None
        found = self.generate(
            samples, label=label, prompt=begin, **{name: one for name, one in chosen.items() if one is not None}
        )
        open_ = sum(not one.finished for one in found)
        remark = (f"{open_} of {len(found)} not finished within the length",) if open_ else ()
        if to is not None:
            write_drawn(found, to)
            tree = {"to": to, "drawings": len(found), "finished": len(found) - open_}
            yield Shown("", tree, (f"written: {to}, {len(found)} drawing{'' if len(found) == 1 else 's'}", *remark))
            return
        for number, one in enumerate(found):
            extra = {"number": number, "log_prob": one.log_prob, "finished": one.finished}
            yield Shown(json.dumps(one.tree(), ensure_ascii=False), one.tree() | extra, () if number else remark)

    def _numbered(self, verb: str, line: str, *, whole: bool = True) -> tuple[Drawing, str]:
        """A drawing and its label: ``line`` is a file and after a # the number of the drawing in it, from 1."""
        named = Named("drawing", "drawings.jsonl")
        row = nth(verb, line, named, lambda file: self._part(file, whole=whole).rows(), self.asides)
        return read_drawing(row.fields[0], whole=False), row.fields[1]

    def show_explain(self, line: str, *, target: str | None = None) -> Density:
        """``line`` is a file and after a # the number of the drawing in it; ``target`` is the label it is drawn as."""
        drawing, label = self._numbered("explain", line)
        return self.explain(drawing, target if target is not None else (label if self._labelled else None))

    def show_score(self, part: Part, *, tokens: bool = False) -> Iterator[Shown]:
        """One result a drawing, then one of all."""
        tally = Tally()
        for places, labels, rows in self._blocks(part):
            for place, label, row, one in zip(places, labels, rows, self._found(rows), strict=True):
                tally.add(one.log_probs, one.pens, row.points[:, 2])
                total, points = float(one.log_probs.sum()), len(one.log_probs)
                tree: dict[str, Any] = {"place": place, "log_prob": total, "points": points}
                tree |= {"label": label} if label else {}
                tree |= {"log_probs": one.log_probs.tolist()} if tokens else {}
                yield Shown(f"{total:.4f}\t{points}\t{-total / points:.4f}", tree)
        scores = tally.scores(protocol_of(self.text.drawings))
        yield Shown("", summed(tally, scores), tuple(f"{one.name} {one.value:.4f} ({one.protocol})" for one in scores))

    def show_evaluate(self, part: Part, *, compare: Model | None = None) -> Evaluated:
        """Scores; with ``compare`` another model's beside them, and the difference over the same drawings."""
        mine = self._tally(part)
        scores = mine.scores(protocol_of(self.text.drawings))
        if compare is None:
            return Evaluated(scores, mine.count)
        if not isinstance(compare, HandwritingModel):
            raise UsageError(f"evaluate: --compare is a model of the task '{compare.kind}', this one of drawings.")
        other = compare._tally(part)
        others = other.scores(protocol_of(compare.text.drawings))
        return Evaluated(scores, mine.count, tables=beside(mine, other, scores, others))

    def show_embed(
        self, file: str | None, *, to: str | None = None, kind: str | None = None, side: str | None = None
    ) -> Iterator[Shown]:
        """The vector of each drawing of a file."""
        if file is None or kind is not None or side is not None:
            raise UsageError(
                "embed: this model has vectors of drawings alone: embed MODEL FILE, without other options."
            )
        if to is not None:
            check_vectors(Path(to))
        blocks: Iterable[np.ndarray] = (
            vectors_of(self.network, rows, device=self.device) for _, _, rows in self._blocks(self._part(file))
        )
        if to is not None:
            count, size = write_lines(Path(to), blocks)
            tree: dict[str, Any] = {"drawings": count, "size": size, "to": to}
            yield Shown("", tree, (f"written: {to}, {count:,} drawings, {size} numbers each",))
            return
        for number, row in enumerate(row for block in blocks for row in block):
            yield Shown(tabbed(row), {"drawing": number, "vector": row.tolist()})
