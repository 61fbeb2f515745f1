"""What estimators share: rows in memory become a file, and that a model, by the same training as from any file."""

from __future__ import annotations

import json
import re
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any

from sklearn.base import BaseEstimator

from unrolled.base.errors import UnrolledError
from unrolled.base.settings import merge
from unrolled.runs.run import train


class Estimator(BaseEstimator):
    """An estimator of scikit-learn with these of its parameters: preset, settings, minutes, seed, out, quiet.

    (scikit-learn reads parameters off a class's own constructor, so each class lists them itself.)
    """

    preset: str | None
    settings: Mapping[str, Any] | None
    minutes: float | None
    seed: int | None
    out: str | Path | None
    quiet: bool

    def trained(
        self,
        rows: Iterable[Mapping[str, Any]],
        task: str,
        network: Mapping[str, Any],
        given: Mapping[str, Any] = MappingProxyType({}),
        *,
        argument: str = "X",
        places: Sequence[int] | None = None,
    ) -> Any:
        """The model that ``rows`` (written as JSON lines) train for ``task``. ``network``, ``given``: the estimator's
        own parameters of the sections ``model`` and ``task``. What is None is left as preset and settings have it. A
        model that ``out`` holds is replaced: an estimator that is fitted again forgets what it was.

        Errors name the ``argument`` of ``fit`` that rows come from, and of a row its place there (``places``; None:
        row n is n)."""
        laid = {
            "task": {"kind": task, **given},
            "train": _given({"minutes": self.minutes, "seed": self.seed}),
            "model": _given(network),
        }
        settings = merge([("settings", self.settings or {}), ("parameters", laid)])[0]
        with tempfile.TemporaryDirectory(prefix="unrolled-") as folder:
            path = Path(folder) / "train.jsonl"
            with path.open("w", encoding="utf-8") as file:
                for row in rows:
                    file.write(json.dumps(row) + "\n")
            out = Path(self.out) if self.out is not None else Path(folder) / "model"
            try:
                return train(path, preset=self.preset, out=out, settings=settings, replace=True, quiet=self.quiet)
            except UnrolledError as error:
                error.args = (f"fit: {_named(str(error), path, argument, places)}",)
                raise error from None


def _named(message: str, path: Path, argument: str, places: Sequence[int] | None) -> str:
    """A message in which the argument stands for the file that was made of it."""

    def place(found: re.Match[str]) -> str:
        row = int(found[1]) - 1
        return f"{argument}[{row if places is None else places[row]}]"

    return re.sub(rf"{re.escape(str(path))}:(\d+)", place, message).replace(str(path), argument)


def _given(values: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in values.items() if value is not None}
