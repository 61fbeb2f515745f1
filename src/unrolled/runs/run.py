"""One training run: from the user's file to a model that is scored, explained and saved."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any

from unrolled.base.errors import SettingsError, UnrolledError, UsageError
from unrolled.base.settings import leaves, merge
from unrolled.pipeline import TRAINED, Model, load
from unrolled.pipeline.model import fill
from unrolled.progress import Progress
from unrolled.runs import place
from unrolled.runs.choosing import before_data, choose, refuse_unknown_score
from unrolled.runs.corpus import Corpus
from unrolled.runs.ground import Ground
from unrolled.ship.folder import TRAINING
from unrolled.tasks import TASKS, Carried, Validation
from unrolled.tasks.base import texts_of
from unrolled.tasks.vectors import build_network
from unrolled.workshop import arguments
from unrolled.workshop.plan import Plan, layers_of, plan
from unrolled.workshop.sources import Sources, Tables, open_sources

if TYPE_CHECKING:
    from torch import nn

    from unrolled.train.reports import Report, Trial


class Run:
    """A run in ``out``. ``said`` tells in sentences what was guessed; ``plan`` holds the settings and their origins.

    ``layers`` are the settings' layers after the defaults (see ``workshop.plan.layers_of``). With ``resume`` the record
    in ``out`` gives sources and settings that are not given now. Raises UsageError or DataError before anything is
    written.
    """

    def __init__(
        self,
        sources: Sources,
        out: str | Path,
        *,
        preset: str | None = None,
        config: str | None = None,
        flags: Mapping[str, Any] | None = None,
        assignments: Sequence[str] = (),
        resume: bool = False,
        start: str | None = None,
    ) -> None:
        self.out = Path(out)
        self.folder = self.out / TRAINING
        self.resume = resume
        if sources.vectors and (resume or start):
            raise UsageError(
                "--vectors: a run that goes on (--resume, --from) keeps the vectors that its words have. Leave it out."
            )
        record = place.read_record(self.out) if resume else {}
        self.start = start or record.get("start")
        self.sources = sources if sources.files() else Sources(**record.get("sources", {}))
        resumed = record.get("settings") or (_settings_of(self.start) if self.start else None)
        given = layers_of(preset, config, flags, assignments, resumed)
        layers, tables, self.said = choose(given, self.sources, resumed=resumed is not None)
        if resumed is None:
            layers, first, self.task = before_data(layers, self.sources.vectors)
        else:
            first = plan(layers)
            self.task = TASKS.build(first.settings["task"])
        self.task.heed(first.settings)
        self.tables: Tables = open_sources(tables, self.task, first.settings["data"])
        self.said += self.tables.said
        if resume and not place.has_checkpoint(self.out):
            self.said.append(f"{self.out}: the run had no checkpoint yet; it begins at the first step.")
        sized = self.task.size(self.tables.train) if not resumed else None
        self.plan: Plan = plan([*([(sized.origin, sized.tree)] if sized else []), *layers])
        if sized is not None:
            self.said += sized.said(self.plan.origins)
        if "train.stop_on" not in self.plan.origins:
            self.plan.settings["train"]["stop_on"] = self.task.stop_on
        refuse_unknown_score(self.plan.settings["train"]["stop_on"], self.task)
        self.seconds = 0.0

    # --- before training ------------------------------------------------------------------------------------------

    def prepare(self, *, keep: bool = True) -> None:
        """Learn the vocabulary, encode the data, build the network; every process of a run calls it.

        Without ``keep`` nothing in ``out`` is written or removed; where it raises, ``out`` is as it was before.
        """

        from unrolled.train.devices import join

        train = self.plan.settings["train"]
        self.world = join(train["device"], train["timeout"])
        self.ground = Ground(self.out, self.world, keep=keep, resume=self.resume)
        self.folder = self.ground.folder
        with self.ground.given_up():
            self._make()
            if self.ground.settle():
                self.folder = self.ground.folder
                self._open_corpus()
                if self.world.first:
                    self._write_record()

    def _open_corpus(self) -> None:
        """What was made elsewhere, in ``folder``; the text stays the one that the network was built for."""
        self.corpus = Corpus(self.folder, self.tables, self.task, self.plan.settings)
        self.corpus.text = self.text

    def _take_weights(self, start: str) -> None:
        """The weights of the model in ``start``; SettingsError where the settings now describe another network."""
        model = load(start, device="cpu")
        if misfit := fill(self.network, model.network.state_dict()):
            own, other = (leaves(one.settings["model"], "model.") for one in (self.plan, model.plan))
            apart = [name for name in {**own, **other} if own.get(name, "") != other.get(name, "")]
            raise SettingsError(
                f"[model] {start}: its weights do not fit the network of these settings, which differ in "
                f"{', '.join(apart) or 'what the text is made of'} ({misfit.rstrip('.')}). A run that goes on "
                "from a model keeps that model's section 'model'; leave its sizes and parts out, or train anew."
            )

    def _make(self) -> None:
        """Text, rows and network, in ``folder``."""
        import torch

        self.corpus = Corpus(self.folder, self.tables, self.task, self.plan.settings)
        if self.world.first and not (self.resume and (self.folder / "text").is_dir()):
            self.corpus.learn_text(load(self.start, device="cpu").text if self.start else None)
        self.world.tell(None)
        self.text = self.corpus.open_text()
        if self.world.first:
            self.corpus.encode()
        self.world.tell(None)
        torch.manual_seed(self.plan.settings["train"]["seed"])
        self.network: nn.Module = build_network(self.task, self.plan.settings["model"], self.text)
        self.corpus.put_vectors(self.network)
        if self.start:
            self._take_weights(self.start)
        self.corpus.batches()  # refuses rows of which none is short enough

    def _write_record(self, *, finished: bool = False) -> None:
        record = {"sources": self.sources.files(), "settings": self.plan.settings, "start": self.start}
        place.write_record(self.out, record | {"finished": finished})

    # --- training -------------------------------------------------------------------------------------------------

    def trainer(self) -> Any:
        """The trainer of this run's network and settings."""
        from unrolled.train.settings import TrainSettings
        from unrolled.train.trainer import Trainer

        settings = TrainSettings(**self.plan.settings["train"])

        carried: Carried = {}

        def loss(network: nn.Module, batch: Any) -> Any:
            smoothing, sampling = (settings.label_smoothing, settings.sampling) if network.training else (0.0, 0.0)
            return self.task.loss(network, batch, smoothing, sampling, carried=carried)

        record = {name: value for name, value in self.plan.settings.items() if name not in ("train", "search")}
        record["rows"] = {name: self.corpus.store(name).fingerprint for name in ("train", "valid")}
        return Trainer(
            self.network,
            loss,
            settings,
            folder=self.folder / "checkpoints",
            record=record,
            world=self.world,
            carried=carried,
            update=self.task.updating(self.plan.settings),
        )

    def dry_run(self) -> Trial:
        """The longest batch through one update, the weights left as they were."""
        return self.trainer().dry_run(self.corpus.batches())

    def fit(self) -> Iterator[Report]:
        """Train to the end, report by report."""
        from unrolled.train.reports import Stopped

        with self.ground.given_up():
            trainer = self.trainer()
            validate = self._validation(trainer.autocast)
            reports = trainer.fit(self.corpus.batches(), validate, resume=self.resume)
            first = next(reports)
        self.ground.stay()
        noted = not self.resume
        for report in chain([first], reports):
            if not noted and self.world.first:  # not before the checkpoint was taken up: it may be refused
                self._write_record()
            noted = True
            if isinstance(report, Stopped):
                self.seconds, self.stopped = report.seconds, report
            yield report
        trainer.restore_best()

    def _validation(self, forward: Callable[[], Any]) -> Callable[[nn.Module], dict[str, float]]:
        """What scores a network on the validation rows, which are read once."""
        import torch

        @cache
        def rows(most: int) -> list[tuple[str, ...]]:
            return texts_of(self.tables.valid, most)

        batches = self.corpus.batches("valid")

        def validate(network: nn.Module) -> dict[str, float]:
            with torch.inference_mode():
                return self.task.validate(Validation(network, self.text, rows, batches, self.world.device, forward))

        return validate

    # --- after training -------------------------------------------------------------------------------------------

    def finish(self, *, device: str = "auto") -> Model:
        """The best weights as a model, scored on the test (or validation) rows, saved in ``out`` with its card."""
        model = TRAINED[self.plan.settings["task"]["kind"]](self.plan, self.text, self.network, device=device)
        part, name = (self.tables.test, "test") if self.tables.test else (self.tables.valid, "validation")
        started = time.monotonic()
        tested = model.test(part)
        model.scores = tested.scores
        model.record = {
            **self.facts(),
            "scored_on": {"part": name, "path": part.table.path.name, "rows": tested.rows},
            "scoring_seconds": round(time.monotonic() - started, 1),
            **model.measured(self.tables.valid),
        }
        model.save(self.out)
        self._write_record(finished=True)
        self.ground.close()
        return model

    def facts(self) -> dict[str, Any]:
        """How the model came about, for its card: data, time, machine, versions."""
        import platform

        import torch

        stopped = getattr(self, "stopped", None)
        return {
            "data": {name: Path(value).name for name, value in self.sources.files().items()},
            "rows": {"train": len(self.corpus.store("train")), "valid": len(self.corpus.store("valid"))},
            "train_seconds": round(self.seconds, 1),
            "steps": stopped.step if stopped else None,
            "stopped_by": stopped.reason if stopped else None,
            "seed": self.plan.settings["train"]["seed"],
            "processes": self.world.size,
            "machine": f"{platform.machine()}, {os.cpu_count()} cores, {self.world.device}",
            "versions": {"python": platform.python_version(), "torch": torch.__version__},
        }


def _settings_of(folder: str) -> dict[str, Any]:
    from unrolled.ship.folder import read

    return dict(read(folder).settings)


def train(
    data: str | Path | None = None,
    *,
    task: str | None = None,
    preset: str | None = None,
    out: str | Path | None = None,
    sources: Sources | None = None,
    config: str | Path | None = None,
    settings: Mapping[str, Any] | None = None,
    resume: bool = False,
    replace: bool = False,
    quiet: bool = False,
) -> Model:
    """Train on the user's data and return the saved model: the whole of ``unrolled train`` in one call.

    ``task`` is what the data look like where neither it nor a preset says. ``settings`` is a tree over the preset's,
    e.g. ``{"train": {"minutes": 3}}``. ``out`` is the model's folder, by default ``runs/NAME`` after the data;
    UsageError where it holds a trained model, unless ``replace``. Progress goes to stderr unless ``quiet``.
    """
    if not isinstance(settings, Mapping | None):
        raise UsageError("train: settings is a tree of settings, e.g. {'train': {'minutes': 3}}.")
    given = sources or Sources(data=str(data) if data is not None else None)
    where = Path(arguments.place("train", "out", out)) if out is not None else Path("runs") / default_name(given)
    if not (resume or replace):
        place.refuse_finished(where)
    flags = merge([("task", {"task": {"kind": task.replace("-", "_")}} if task else {}), ("settings", settings or {})])[
        0
    ]
    run = Run(given, where, preset=preset, config=str(config) if config else None, flags=flags, resume=resume)
    progress = Progress(quiet=quiet, unit=run.task.unit)
    for sentence in run.said:
        progress.line(sentence)
    run.prepare()
    for report in run.fit():
        progress.show(report)
    if run.stopped.reason == "interrupted":
        raise UnrolledError(f"{where}: interrupted; go on with resume=True.")
    return run.finish()


def default_name(sources: Sources) -> str:
    """A name for a run after its data: ``pairs`` for ``data/pairs.tsv.gz``."""
    path = sources.data or sources.source or "run"
    return Path(path).name.split(".")[0] or "run"
