"""A saved search with what is asked for once: no option is passed over, and none contradicts another."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from unrolled.base.errors import UsageError
from unrolled.search import SEARCHERS, SearchSettings

READ_BY = {"beam": "beam", "temperature": "sampling", "top_k": "sampling", "top_p": "sampling", "seed": "sampling"}
"""Settings of a search that one kind of it alone reads."""


def searched(saved: SearchSettings, given: Mapping[str, Any]) -> SearchSettings:
    """``saved`` with the settings ``given``. A beam alone chooses the kind too, 1 is argmax; several hypotheses ask
    argmax for a beam.

    UsageError for a setting that the search would not read, and for more hypotheses than it finds.
    """
    changed = dict(given)
    if "beam" in changed:
        changed.setdefault("kind", "beam" if changed["beam"] > 1 else "argmax")
    if changed.get("kind") == "argmax" or "beam" in changed:
        changed.setdefault("nbest", 1)
    if changed.get("nbest", 1) > 1 and saved.kind == "argmax":
        changed.setdefault("kind", "beam")
    kind = changed.get("kind", saved.kind)
    if kind in SEARCHERS:
        for name, value in changed.items():
            reader = READ_BY.get(name, kind)
            if reader != kind and not (name == "beam" and value == 1):
                raise UsageError(
                    f"predict: {_option(name)} {value} was given, and only the search '{reader}' reads it; this one is "
                    f"'{kind}'. Give --search {reader}, or leave {_option(name)} out."
                )
        _check_nbest(given, kind, changed.get("beam", saved.beam), changed.get("nbest", saved.nbest))
    return replace(saved, **changed)


def _check_nbest(given: Mapping[str, Any], kind: str, beam: int, nbest: int) -> None:
    """UsageError where the search finds fewer hypotheses than are wanted."""
    if "nbest" not in given or kind == "sampling" or nbest <= (1 if kind == "argmax" else beam):
        return
    more = f"--search sampling for {nbest} draws"
    if given.get("kind") == "argmax":
        raise UsageError(
            f"predict: --nbest {nbest} was given, and --search argmax finds one output a line. Give --search beam with "
            f"--beam {nbest} or more in its place, or {more}."
        )
    told = f"--beam {beam} was given" if "beam" in given else f"the saved search has a beam of {beam}"
    raise UsageError(
        f"predict: --nbest {nbest} needs --beam {nbest} or more, and {told}. Give --beam {nbest}, a lower --nbest, or "
        f"{more}."
    )


def _option(name: str) -> str:
    return "--" + name.replace("_", "-")
