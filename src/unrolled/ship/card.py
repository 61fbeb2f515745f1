"""The README of a saved model, filled in: what it is, what it learnt from, how good it is and what it cannot do."""

from __future__ import annotations

import math
import re
import shlex
import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple


class ScoreLine(NamedTuple):
    """A score with how it was taken, e.g. ``("BLEU", 37.2, "sacreBLEU nrefs:1|…, test.tsv, 1000 rows")``."""

    name: str
    value: float
    protocol: str = ""


class PartLine(NamedTuple):
    """A part of the network and the formula of its size."""

    name: str
    note: str
    parameters: int
    formula: str = ""


class TrustLine(NamedTuple):
    """A number that says how far the attention can be trusted, as shown, beside what chance gives."""

    value: str
    chance: str
    sentence: str


@dataclass(frozen=True, kw_only=True)
class Facts:
    """What the card says. Empty groups are left out; mappings are shown as tables in their order."""

    name: str
    task: str
    commands: Sequence[str] = ()  # shell lines that use it, "{}" where its folder stands
    python: str = ""  # an expression on ``model`` that uses it
    tags: Sequence[str] = ()
    pipeline: str | None = None  # the Hub's name of the task
    summary: str = ""
    languages: Sequence[str] = ()  # ISO 639 codes
    licence: str | None = None  # an identifier of the Hub, e.g. "apache-2.0"; None: the user has still to choose
    data: Mapping[str, Any] = field(default_factory=dict)  # file, columns, rows of each split, lengths, vocabulary
    parts: Sequence[PartLine] = ()
    training: Mapping[str, Any] = field(default_factory=dict)  # command, time, steps, seed, machine, versions
    scores: Sequence[ScoreLine] = ()
    test_data: str = ""  # what the scores were taken on
    trust: Sequence[TrustLine] = ()
    examples: Sequence[tuple[str, str]] = ()  # input, output
    limits: Sequence[str] = ()  # beside those that hold for every model


def card(facts: Facts) -> str:
    """A Hugging Face model card: YAML in front, then Markdown; no word of the data can become markup."""
    parts = [
        _front(facts),
        f"# {_plain(facts.name)}\n\n{_plain(facts.summary or _summary(facts))}",
        _use(facts),
        _examples(facts),
        _scores(facts),
        _trust(facts),
        _pairs("Data", facts.data),
        _parts(facts),
        _pairs("Training", facts.training),
        _limits(facts),
        _licence(facts),
    ]
    text = "\n\n".join(part for part in parts if part) + "\n"
    return text.encode("utf-8", "replace").decode("utf-8")


def _front(facts: Facts) -> str:
    import yaml

    tree: dict[str, Any] = {"license": facts.licence} if facts.licence else {}
    if facts.languages:
        tree["language"] = [str(language) for language in facts.languages]
    tree |= {"library_name": "unrolled"}
    if facts.pipeline:
        tree["pipeline_tag"] = facts.pipeline
    tree["tags"] = ["unrolled", *facts.tags, "safetensors"]
    finite = [score for score in facts.scores if math.isfinite(score.value)]
    if finite:
        tree["metrics"] = list(dict.fromkeys(_slug(score.name) for score in finite))
        dataset = _clean(facts.test_data) or "held-out data"
        measured = [
            {"type": _slug(score.name), "value": float(score.value), "name": _clean(score.name)} for score in finite
        ]
        result = {
            "task": {"type": tree.get("pipeline_tag", facts.task)},
            "dataset": {"name": dataset, "type": "custom"},
            "metrics": measured,
        }
        tree["model-index"] = [{"name": _clean(facts.name) or "model", "results": [result]}]
    return f"---\n{yaml.safe_dump(tree, sort_keys=False, allow_unicode=True, width=1000)}---"


def _summary(facts: Facts) -> str:
    parameters = sum(part.parameters for part in facts.parts)
    size = f" with {parameters:,} parameters" if parameters else ""
    return f"A sequence model{size} for the task '{facts.task}', trained with unrolled."


def _use(facts: Facts) -> str:
    folder = _argument(facts.name)
    lines = [line.replace("{}", folder) for line in facts.commands]
    lines.append(f"unrolled describe {folder}")
    python = f"import unrolled\n\nmodel = unrolled.load({_clean(facts.name)!r})"
    python += f"\nmodel.{facts.python}" if facts.python else ""
    return f"## Use\n\n{_block('sh', chr(10).join(lines))}\n\n{_block('python', python)}"


def _examples(facts: Facts) -> str:
    if not facts.examples:
        return ""
    rows = [(_plain(source), _plain(output)) for source, output in facts.examples]
    return f"## Examples\n\n{_table(('Input', 'Output'), rows)}"


def _scores(facts: Facts) -> str:
    if not facts.scores:
        return "## Scores\n\nNone were taken. Take them with `unrolled evaluate`."
    on = f"On {_plain(facts.test_data)}.\n\n" if facts.test_data else ""
    rows = [(_plain(score.name), f"{score.value:.4g}", _plain(score.protocol)) for score in facts.scores]
    return f"## Scores\n\n{on}{_table(('Score', 'Value', 'Protocol'), rows)}"


def _trust(facts: Facts) -> str:
    if not facts.trust:
        return ""
    rows = [(_plain(line.value), _plain(line.chance), _plain(line.sentence)) for line in facts.trust]
    return (
        "## How far to trust its attention\n\nParts of the source were taken out one at a time (words: replaced by the "
        "unknown symbol; stretches of a recording, regions of an image: by the mean), and what the output lost "
        "was compared with where the model looked.\n\n"
        f"{_table(('Value', 'Chance', 'Meaning'), rows)}"
    )


def _pairs(title: str, pairs: Mapping[str, Any]) -> str:
    if not pairs:
        return ""
    rows = [(_plain(name), _plain(_value(value))) for name, value in pairs.items()]
    return f"## {title}\n\n{_table(('What', 'Value'), rows)}"


def _parts(facts: Facts) -> str:
    if not facts.parts:
        return ""
    rows = [
        (_plain(part.name), _plain(part.note), f"{part.parameters:,}", _plain(part.formula)) for part in facts.parts
    ]
    rows.append(("**all**", "", f"**{sum(part.parameters for part in facts.parts):,}**", ""))
    return f"## Parts\n\n{_table(('Part', 'What', 'Parameters', 'Formula'), rows)}"


def _limits(facts: Facts) -> str:
    known = [
        *facts.limits,
        "It knows only what its training data holds: other words, longer lines or another domain give worse output, "
        "and it does not say so.",
        "Its output is as fair or unfair as its training data; nobody has examined that.",
    ]
    if facts.trust:
        known.append("Attention shows where the model looked, which is not always why it wrote what it wrote.")
    return "## Limits\n\n" + "\n".join(f"- {_plain(limit)}" for limit in known)


def _licence(facts: Facts) -> str:
    if facts.licence:
        return f"## Licence\n\n{_plain(facts.licence)}"
    return (
        "## Licence\n\nNot chosen yet. Before you share this model, look at the licence of its training data, then "
        "write `license: …` at the top of this file and the name here."
    )


def _table(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [heads, ["---"] * len(heads), *rows]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in lines)


def _value(value: Any) -> str:
    if isinstance(value, bool) or not isinstance(value, (int, float, list, tuple, Mapping)):
        return str(value)
    if isinstance(value, Mapping):
        return ", ".join(f"{name} {_value(one)}" for name, one in value.items())
    if isinstance(value, (list, tuple)):
        return ", ".join(_value(one) for one in value)
    return f"{value:,}" if isinstance(value, int) else f"{value:.4g}"


def _clean(text: str) -> str:
    """``text`` on one line, without control characters, lone surrogates and marks that turn a line round."""
    return " ".join("".join(_harmless(character) for character in text).split())


def _harmless(character: str) -> str:
    kind = unicodedata.category(character)
    if kind in ("Cc", "Zl", "Zp"):
        return " "
    if kind == "Cs":
        return "\ufffd"
    return "" if "\u202a" <= character <= "\u202e" or "\u2066" <= character <= "\u2069" else character


def _plain(text: str) -> str:
    """``text`` as Markdown that shows just these characters."""
    escaped = re.sub(r"([\\`*_\[\]<>#|~$&^])", r"\\\1", _clean(text))
    return re.sub(r"^(\d*)([-+=.)])", r"\1\\\2", escaped)  # what would begin a list or a rule


def _argument(name: str) -> str:
    """``name`` as one word of a shell."""
    return shlex.quote(_clean(name))


def _block(language: str, code: str) -> str:
    fence = "`" * max(3, 1 + max((len(run) for run in re.findall("`+", code)), default=0))
    return f"{fence}{language}\n{code}\n{fence}"


def _slug(name: str) -> str:
    """``name`` as the Hub writes metrics: "exact match" → "exact_match"."""
    return re.sub(r"\W+", "_", _clean(name).lower()).strip("_") or "score"
