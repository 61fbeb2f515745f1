"""The flow: text → ids → encode → step by step, attending → search → text; and back, to see where it looked."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from unrolled.base.errors import DataError, UsageError
from unrolled.search import SearchSettings
from unrolled.tasks import TASKS
from unrolled.tasks.translate import Translation, translate, translation_scores
from unrolled.workshop import arguments
from unrolled.workshop.plan import Plan, plan
from unrolled.workshop.saving import save
from unrolled.workshop.seeing import Forced, Span, align, check_line, explain_translation, force, trust

if TYPE_CHECKING:
    from torch import nn

    from unrolled.explain.explanation import Explanation
    from unrolled.tasks.scores import Score
    from unrolled.text.texts import TextPair

READ_BY = {"beam": "beam", "temperature": "sampling", "top_k": "sampling", "top_p": "sampling", "seed": "sampling"}
"""Settings of a search that one kind of it alone reads."""


class Model:
    """A trained model with its text and settings: ``predict``, ``explain``, ``evaluate``, ``score``, ``save``."""

    def __init__(self, plan: Plan, text: TextPair, network: Any, *, device: str = "auto") -> None:
        from unrolled.models.stepper import TorchStepper
        from unrolled.train.devices import choose_device

        self.plan = plan
        self.text = text
        self.device = choose_device(device, "--device:")
        self.network: Any = network.to(self.device).eval()
        self.engine = TorchStepper(self.network, self.device)
        self.search = SearchSettings(**plan.settings["search"])
        self.scores: list[Score] = []
        self.record: dict[str, Any] = {}  # how it came about: data, time, versions; what the card says

    # --- text to text ---------------------------------------------------------------------------------------------

    def predict(self, lines: Sequence[str], *, beam: int | None = None, batch: int = 64) -> list[str]:
        """The best output of each line, in order; an empty line gives an empty line.

        ``beam`` overrides the saved search. The result of a line does not depend on the others.
        """
        search = self.searching(beam=beam)
        found = self.translations(lines, search, batch=batch)
        return [one[0].text if one else "" for one in found]

    def translations(
        self,
        lines: Sequence[str],
        search: SearchSettings | None = None,
        *,
        batch: int = 64,
        prefixes: Sequence[str] | None = None,
    ) -> list[list[Translation]]:
        """The n best outputs of each line with their scores and attention; [] for an empty line."""
        lines = arguments.texts("predict", "lines", lines)
        found: list[list[Translation]] = [[] for _ in lines]
        for line, best in self.stream(lines, search or self.search, batch=batch, prefixes=prefixes):
            found[line] = best
        return found

    def stream(
        self,
        lines: Sequence[str],
        search: SearchSettings,
        *,
        batch: int = 64,
        prefixes: Sequence[str] | None = None,
    ) -> Iterator[tuple[int, list[Translation]]]:
        """As ``translations``, one by one as they are found, each with the index of its line."""
        size = arguments.count("predict", "batch", batch)
        return translate(self.engine, self.text, lines, search, sentences=size, prefixes=prefixes)

    def searching(self, *, beam: int | None = None, changes: Mapping[str, Any] | None = None) -> SearchSettings:
        """The saved search with some settings changed. ``beam`` alone chooses the kind too: 1 is argmax.

        UsageError for a change that the search would not read.
        """
        changed = dict(changes or {})
        if beam is not None:
            arguments.count("predict", "beam", beam)
            changed |= {"beam": beam, "kind": changed.get("kind", "beam" if beam > 1 else "argmax")}
        if changed.get("kind") == "argmax" or "beam" in changed:
            changed.setdefault("nbest", 1)
        if changed.get("nbest", 1) > 1 and changed.get("kind", self.search.kind) == "argmax" and "kind" not in changed:
            changed["kind"] = "beam"
        search = replace(self.search, **changed)
        for name in changed:
            reader = READ_BY.get(name, search.kind)
            if reader != search.kind and not (name == "beam" and changed[name] == 1):
                raise UsageError(
                    f"predict: {name} {changed[name]} was given, and only the search '{reader}' reads it; this one is "
                    f"'{search.kind}'. Add --search {reader}, or leave it out."
                )
        return search

    # --- seeing ---------------------------------------------------------------------------------------------------

    def explain(self, line: str, target: str | None = None, *, trusted: bool = True) -> Explanation:
        """Which source words each target word looked at: of the model's own output, or of a given ``target``.

        ``trusted`` erases source words one by one to say how far the picture can be trusted. UsageError for a model
        without attention, DataError for an empty line.
        """
        check_line(arguments.text("explain", "line", line))
        if target is None:
            found = self.translations([line], replace(self.search, nbest=1))[0]
            if not found or not found[0].hypothesis.ids:
                raise DataError(f"explain: the model writes nothing for {line!r}. Give the output with --target.")
            one = explain_translation(self.text, line, found[0])
        else:
            check_line(arguments.text("explain", "target", target), "target")
            one = self.align([line], [target])[0]
        return replace(one, faithfulness=trust(self.network, self.text, [one], device=self.device)) if trusted else one

    def align(
        self,
        sources: Sequence[str],
        targets: Sequence[str],
        source_words: Sequence[Sequence[Span]] | None = None,
        target_words: Sequence[Sequence[Span]] | None = None,
        *,
        read_at: int = 0,
    ) -> list[Explanation]:
        """Attention over given pairs (forced decoding), on words given by their spans or the tokenizer's own."""
        sources, targets = arguments.pairs("align", sources, targets)
        return align(
            self.network,
            self.text,
            sources,
            targets,
            source_words=source_words,
            target_words=target_words,
            read_at=read_at,
            device=self.device,
        )

    # --- numbers --------------------------------------------------------------------------------------------------

    def evaluate(self, sources: Sequence[str], references: Sequence[str], *, beam: int | None = None) -> list[Score]:
        """The task's scores of the model's outputs against references, each with its protocol."""
        sources, references = arguments.pairs("evaluate", sources, references, "references")
        return translation_scores(self.predict(sources, beam=beam), references)

    def score(self, sources: Sequence[str], targets: Sequence[str], *, batch: int = 64) -> list[Forced]:
        """Natural log-probability of each target symbol and the end, of each pair (forced decoding)."""
        sources, targets = arguments.pairs("score", sources, targets)
        size = arguments.count("score", "batch", batch)
        return force(self.network, self.text, sources, targets, device=self.device, batch=size)

    # --- files ----------------------------------------------------------------------------------------------------

    def save(self, folder: str | Path) -> Path:
        """Write the model folder: settings, weights, text, scores and a filled card; whole or not at all."""
        place = Path(arguments.place("save", "folder", folder))
        return save(place, self.plan, self.text, self.network, self.scores, self.record)

    @classmethod
    def load(cls, folder: str | Path, *, device: str = "auto") -> Model:
        """A saved model, on any device. DataError names the file that is missing or damaged; nothing is unpickled."""
        from unrolled.ship.folder import read
        from unrolled.tasks.scores import Score
        from unrolled.text.texts import TextPair

        folder = Path(arguments.place("load", "folder", folder))
        saved = read(folder)
        loaded = plan([("saved model", saved.settings)])
        text = TextPair.load(saved.text)
        network = TASKS.build(loaded.settings["task"]).network(loaded.settings["model"], text)
        _fill(network, saved.tensors(), folder)
        model = cls(loaded, text, network, device=device)
        model.scores = [Score(**score) for score in saved.scores.get("scores", [])]
        model.record = dict(saved.scores.get("record", {}))
        return model


def _fill(network: nn.Module, tensors: Mapping[str, Any], folder: Path) -> None:
    """Load weights, or say which one does not fit the settings."""
    try:
        network.load_state_dict(dict(tensors))
    except RuntimeError as error:
        first = str(error).splitlines()[-1].strip()
        raise DataError(f"{folder}: the weights do not fit settings.yaml ({first}). Was one edited?") from None
