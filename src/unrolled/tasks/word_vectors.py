"""Word vectors: running text in, a vector for every word out, by which words it stands beside."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from unrolled.base.errors import DataError, SettingsError
from unrolled.base.protocol import SPECIALS, Loss
from unrolled.data.documents import Documents, divide, pieces
from unrolled.data.parts import Part
from unrolled.tasks.base import TASKS, Batches, Carried, Manual, Sized, Task, Update, Validation
from unrolled.tasks.running import encoded_pieces, store_pieces
from unrolled.text.counted import CountedText

if TYPE_CHECKING:
    from torch import nn

    from unrolled.data.blocks import Block
    from unrolled.data.store import Encoder, Store
    from unrolled.models.word_vectors import WordVectors

ENOUGH = 10_000_000
"""Words that training reads in all, if that takes no more and no fewer epochs than these:"""

MOST, LEAST = 30, 5

STEPPED = {
    "optimizer": "sgd",
    "clip_norm": None,
    "clip_value": None,
    "accumulate": 1,
    "label_smoothing": 0.0,
    "sampling": 0.0,
    "device": "cpu",
}
"""Settings of training that the model's own update has no use for, as they must be."""


@TASKS.register("word_vectors")
class WordVectorsTask(Task[CountedText]):
    """Running text, each word predicted from those beside it, or these from it (word2vec).

    ``documents`` says what is read together, so that words on both sides of an end are not beside each other: the whole
    ``file``, what stands between blank lines (``blank_line``), or each ``line``. A row of a table is a document. Words
    that the vocabulary does not have are as if they were not there.

    The network steps its own weights, prediction by prediction, at the rate of the schedule: see `models.WordVectors`.
    With ``train.deterministic``, or one thread, a run gives the same vectors again.
    """

    columns = ("text",)
    noun = "line"
    unit = "predictions"
    text = CountedText
    read_by = {"text": "text.tokenizer"}
    embedded = {"text": "embedding"}
    written = ("text",)
    models = ("word_vectors",)
    preset = "skip-gram"
    stop_on = "loss"
    measures = ("loss",)
    unused = dict.fromkeys(
        ("data.max_length", "data.too_long"), "word vectors are learnt window by window, from lines of any length."
    )
    plain = True
    manual = Manual(
        commands=(
            "unrolled predict {} words.txt",
            "unrolled evaluate {} questions-words.txt",
            "unrolled explain {} 'one' --to picture.svg",
            "unrolled embed {} --to vectors.txt",
        ),
        python="neighbours('one')",
        tags=("word2vec", "word-embeddings"),
        pipeline="feature-extraction",
    )

    def __init__(self, *, documents: Documents = "line") -> None:
        self.documents = documents

    # --- settings and data ----------------------------------------------------------------------------------------

    def check(self, settings: Mapping[str, Any]) -> None:
        super().check(settings)
        train = settings["train"]
        for name, wanted in STEPPED.items():
            given = train[name]["kind"] if name == "optimizer" else train[name]
            if given != wanted:
                raise SettingsError(
                    f"[train.{name}] {given!r} was given, and word vectors step by plain gradient descent, prediction "
                    f"by prediction, on a processor. Set it to {'null' if wanted is None else wanted}."
                )
        if train["optimizer"]["momentum"] or train["optimizer"]["weight_decay"]:
            raise SettingsError("[train.optimizer] momentum and weight_decay of word vectors are 0. Leave them out.")
        vectors = settings["text"]["tokenizer"].get("vectors")
        if vectors is not None and (vectors["kind"] != "tuned" or vectors["joined"]):
            raise SettingsError(
                "[text.tokenizer.vectors] the words of this task are what is learnt: they can start from a file, as "
                "tuned, with none joined."
            )

    def size(self, part: Part) -> Sized:
        words = sum(len(row.fields[0].split()) for row in part.rows())
        epochs = min(MOST, max(LEAST, round(ENOUGH / max(words, 1))))
        origin = f"sized to {words} words"

        def said(origins: Mapping[str, str]) -> list[str]:
            mine = origins.get("train.epochs") == origin
            return [f"{words:,} words to train on{f', in {epochs} epochs' if mine else ''}."]

        return Sized(origin, {"train": {"epochs": epochs}}, said)

    def divide(self, part: Part, data: Mapping[str, Any]) -> tuple[Part, Part, str]:
        return divide(part, self.documents, data["valid_share"], data["valid_rows"])

    def learn(self, settings: Mapping[str, Any], part: Part) -> CountedText:
        text = CountedText.learn(settings, lambda: ((piece.text,) for piece in pieces(part, self.documents)))
        if len(text.words) < 2:
            found = f"only {text.words[0]!r}" if text.words else "none"
            least = settings["tokenizer"].get("min_count", 1)
            raise DataError(
                f"{part.table.path}: of its words, {found} stands there {least} times or more: there is nothing to "
                "stand beside. Give more text, or set text.tokenizer.min_count=1."
            )
        return text

    def encoders(self, text: CountedText) -> dict[str, Encoder]:
        return {"text": text}

    def store(self, folder: Path, part: Part, text: CountedText, mark: str) -> Store:
        encoded = encoded_pieces(part, self.documents, text.encode_ids, ends=False)
        return store_pieces(folder, encoded, text.vocabulary_size, mark)

    def batches(self, store: Store, settings: Mapping[str, Any], *, train: bool, name: str) -> Batches:
        from unrolled.data.blocks import Blocks

        training = settings["train"]
        return Blocks(store, size=training["batch_tokens"], seed=training["seed"], shuffle=train, name=name)

    # --- the model ------------------------------------------------------------------------------------------------

    def network(self, settings: Mapping[str, Any], text: CountedText) -> nn.Module:
        from unrolled.models import MODELS

        return MODELS.build(settings, text.vocabulary_size, text.counts, where="model")

    def sketch(self, settings: Mapping[str, Any], source: int, target: int) -> tuple[nn.Module, str]:  # noqa: ARG002
        from unrolled.models import MODELS

        network = MODELS.build(settings["model"], target, [1] * target, where="model")
        return network, f"{target - len(SPECIALS):,} words"

    def loss(
        self,
        network: nn.Module,
        batch: Block,
        smoothing: float = 0.0,  # noqa: ARG002
        sampling: float = 0.0,  # noqa: ARG002
        *,
        carried: Carried | None = None,  # noqa: ARG002
    ) -> Loss:
        return _read(network, batch, 0.0, 1)

    def updating(self, settings: Mapping[str, Any]) -> Update:
        import torch

        threads = 1 if settings["train"]["deterministic"] else torch.get_num_threads()
        return lambda network, batch, rate: _read(network, batch, rate, threads)

    def validate(self, given: Validation) -> dict[str, float]:
        return {"loss": self.mean_loss(given)}


def _read(network: nn.Module, batch: Block, rate: float, threads: int) -> Loss:
    import torch

    learnt = cast("WordVectors", network).learn(batch.ids, rate=rate, seed=int(batch.seed), threads=threads)
    return Loss(torch.tensor(learnt.loss), learnt.predictions)
