"""Language modelling: running text in, the probability of every next symbol out."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, cast

from annotated_types import Ge

from unrolled.base.errors import SettingsError
from unrolled.base.protocol import Loss
from unrolled.base.settings import Tree
from unrolled.data.documents import Documents, Piece, divide, pieces
from unrolled.data.parts import Part
from unrolled.data.table import Table
from unrolled.tasks.base import TASKS, Batches, Carried, Manual, Sized, Task, Validation
from unrolled.tasks.running import encoded_pieces, store_pieces
from unrolled.tasks.sizing import LOOKED_AT, Side
from unrolled.text.running import RunningText

if TYPE_CHECKING:
    from torch import nn

    from unrolled.data.store import Encoder, Store
    from unrolled.data.streams import Pieces
    from unrolled.models.language_model import LanguageModel

HEAD = 500
"""Rows that are looked at to tell what a document is."""

SIZES = ((300_000, 1000), (3_000_000, 4000), (30_000_000, 8000))
"""Up to so many characters of text, so many subwords; more text, twice as many as the last."""


@TASKS.register("language_model")
class LanguageModelling(Task[RunningText]):
    """Running text, symbol by symbol: p(w_1 … w_n) = Π_t p(w_t | w_1 … w_{t-1}).

    ``documents`` says what of plain text is read on: the whole ``file``, what stands between blank lines
    (``blank_line``), or each ``line``. The state begins anew at each document. A row of a table is a document.

    Trained by truncated backpropagation through time (Mikolov et al. 2010): the text is cut into streams that are read
    side by side, ``steps`` symbols of each an update; states go on from update to update, gradients do not.
    ``train.batch_sentences`` is the number of streams, else ``train.batch_tokens`` over ``steps``.
    """

    columns = ("text",)
    noun = "line"
    text = RunningText
    read_by = {"text": "text.tokenizer"}
    embedded = {"text": "embedding"}
    written = ("text",)
    frozen = {"model": {"tie": False}}
    models = ("language_model",)
    preset = "language-model"
    stop_on = "loss"
    measures = ("loss", "perplexity")
    unsized = {"text": {"tokenizer": {"kind": "bpe"}}}
    unused = dict.fromkeys(
        ("data.max_length", "data.too_long"),
        "a language model reads on through texts of any length, task.steps symbols at a time.",
    )
    plain = True
    manual = Manual(
        commands=(
            "unrolled generate {} --prompt 'Once'",
            "unrolled score {} lines.txt",
            "unrolled evaluate {} text.txt",
            "unrolled explain {} 'one line' --to picture.svg",
        ),
        python="generate('Once')",
        tags=("language-model", "rnn"),
        pipeline="text-generation",
    )

    def __init__(self, *, documents: Documents = "file", steps: Annotated[int, Ge(1)] = 64) -> None:
        self.documents, self.steps = documents, steps

    @property
    def ends(self) -> bool:
        """Whether the end of a document is learnt and predicted: that of a whole file is where somebody cut it."""
        return self.documents != "file"

    # --- settings and data ----------------------------------------------------------------------------------------

    @classmethod
    def recognises(cls, table: Table) -> str | None:
        if table.format in ("text", "running"):
            return f"{table.path}: running text."
        # A tab-separated file of one column is rather one whose tabs were lost.
        if table.columns == ("text",) and table.format not in ("tsv", "csv"):
            return f"{table.path}: one column, text."
        return None

    @classmethod
    def conclude(cls, table: Table) -> tuple[Tree, list[str]]:
        if table.format not in ("text", "running"):  # whose ends are known, as those between blank lines are
            return {"task": {"documents": "blank_line"}}, ["Each row is a document."]
        side = Side()
        for row in islice(table.rows(lambda _: None), HEAD):
            if row.fields[0].strip():
                side.see(row.fields[0])
        if side.words >= 1.5 * side.rows or side.rows < HEAD // 10:
            return {}, ["The whole file is one document, read on and on (others: task.documents=blank_line or line)."]
        tree: Tree = {"task": {"documents": "line"}}
        return tree, ["The lines are single words: each is a text of its own (task.documents=line)."]

    def check(self, settings: Mapping[str, Any]) -> None:
        super().check(settings)
        smoothing, softmax = settings["train"]["label_smoothing"], settings["model"]["softmax"]["kind"]
        if smoothing and softmax == "adaptive":
            raise SettingsError(
                f"[train.label_smoothing] {smoothing} was given, and an adaptive softmax has none. Set it to 0."
            )
        if settings["train"]["sampling"]:
            raise SettingsError(
                f"[train.sampling] {settings['train']['sampling']} was given, and a language model reads the text as "
                "it is. Set it to 0."
            )

    def size(self, part: Part) -> Sized:
        side, letters = Side(), 0
        for row in part.rows():
            letters += len(row.fields[0])
            if side.rows < LOOKED_AT and row.fields[0].strip():
                side.see(row.fields[0])
        kind: Tree = {"kind": "character"}
        if side.words >= 1.5 * side.rows:
            kind = {"kind": "bpe", "size": next((size for most, size in SIZES if letters <= most), 2 * SIZES[-1][1])}
        origin = f"sized to {letters} characters"
        how = f"up to {kind['size']:,} subwords" if "size" in kind else "characters"

        def said(origins: Mapping[str, str]) -> list[str]:
            mine = origins.get("text.tokenizer.kind") == origin
            return [f"{letters:,} characters to train on{f', read in {how}' if mine else ''}."]

        return Sized(origin, {"text": {"tokenizer": kind}}, said)

    def divide(self, part: Part, data: Mapping[str, Any]) -> tuple[Part, Part, str]:
        return divide(part, self.documents, data["valid_share"], data["valid_rows"])

    def learn(self, settings: Mapping[str, Any], part: Part) -> RunningText:
        return RunningText.learn(settings, lambda: ((piece.text,) for piece in pieces(part, self.documents)))

    def encoders(self, text: RunningText) -> dict[str, Encoder]:
        return {"text": text}

    def encoded(self, part: Part, text: RunningText) -> Iterator[tuple[Piece, list[int]]]:
        """Each piece of a part's text with its symbols, BEGIN before a document and END after one."""
        yield from encoded_pieces(part, self.documents, text.encode_ids, ends=self.ends)

    def store(self, folder: Path, part: Part, text: RunningText, mark: str) -> Store:
        return store_pieces(folder, self.encoded(part, text), text.vocabulary_size, mark)

    def batches(self, store: Store, settings: Mapping[str, Any], *, train: bool, name: str) -> Batches:
        from unrolled.data.streams import Streams

        training = settings["train"]
        streams = training["batch_sentences"] or max(1, training["batch_tokens"] // self.steps)
        return Streams(store, streams=streams, steps=self.steps, seed=training["seed"], shuffle=train, name=name)

    # --- the model ------------------------------------------------------------------------------------------------

    def network(self, settings: Mapping[str, Any], text: RunningText) -> nn.Module:
        from unrolled.models import MODELS

        return MODELS.build(settings, text.vocabulary_size, where="model")

    def sketch(self, settings: Mapping[str, Any], source: int, target: int) -> tuple[nn.Module, str]:  # noqa: ARG002
        from unrolled.models import MODELS

        return MODELS.build(settings["model"], target, where="model"), f"{target:,} symbols"

    def loss(
        self,
        network: nn.Module,
        batch: Pieces,
        smoothing: float = 0.0,
        sampling: float = 0.0,  # noqa: ARG002
        *,
        carried: Carried | None = None,
    ) -> Loss:
        """The state that a piece goes on from is what the batch before left in ``carried``, cut off from its graph."""
        from unrolled.data.streams import keep, resumed

        model = cast("LanguageModel", network)
        kept: Carried = {} if carried is None else carried
        state = resumed(batch, model.initial(len(batch.ids)), kept)
        total, after = model.loss(batch.ids, batch.mask, batch.targets, state, smoothing=smoothing)
        keep(batch, after, kept)
        return Loss(total, int(batch.mask.sum()))

    def validate(self, given: Validation) -> dict[str, float]:
        loss = self.mean_loss(given)
        return {"loss": loss, "perplexity": math.exp(loss) if loss < 700 else math.inf}
