"""A trained model as a folder: settings, weights, text, scores and a card that is filled in."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from unrolled.ship.folder import TRAINING, write

if TYPE_CHECKING:
    from unrolled.tasks.scores import Score
    from unrolled.text.base import Text
    from unrolled.workshop.plan import Plan


def save(folder: Path, plan: Plan, text: Text, network: Any, scores: Sequence[Score], record: dict[str, Any]) -> Path:
    """Write the model folder, whole or not at all."""
    from unrolled.ship.card import card

    content = {"scores": [score._asdict() for score in scores], "record": record}
    facts = facts_of(folder.resolve().name, plan, text, network, scores, record)
    return write(
        folder,
        settings=plan.settings,
        tensors=network.state_dict(),
        text=text.save,
        scores=content,
        card=card(facts),
        keep=(TRAINING,),
    )


def facts_of(name: str, plan: Plan, text: Text, network: Any, scores: Sequence[Score], record: dict[str, Any]) -> Any:
    """What the card says of a model."""
    from unrolled.ship.card import Facts, PartLine, ScoreLine, TrustLine
    from unrolled.tasks import TASKS
    from unrolled.workshop.parts import flat_parts

    manual = TASKS.build(plan.settings["task"]).manual
    rows = record.get("rows", {})
    files = ", ".join(f"{kind} {value}" for kind, value in record.get("data", {}).items())
    data = {
        "files": files,
        "training rows": rows.get("train"),
        "validation rows": rows.get("valid"),
        **text.about(),
    }
    shown = ("train_seconds", "steps", "stopped_by", "seed", "processes", "machine")
    training = {key.replace("_", " "): record[key] for key in shown if record.get(key) is not None}
    training |= {f"{key} version": value for key, value in record.get("versions", {}).items()}
    scored = record.get("scored_on", {})
    return Facts(
        name=name,
        task=plan.settings["task"]["kind"],
        commands=manual.commands + (manual.attending if record.get("faithfulness") else ()),
        python=manual.python,
        tags=manual.tags,
        pipeline=manual.pipeline,
        data={key: value for key, value in data.items() if value not in (None, "")},
        parts=[PartLine(part.path, part.note, part.own, part.formula) for part in flat_parts(network) if part.own],
        training=training,
        scores=[ScoreLine(score.name, score.value, score.protocol) for score in scores],
        test_data=f"{scored['rows']} rows of {scored['path']} ({scored['part']})" if scored else "",
        trust=[
            TrustLine(_number(one["value"]), _number(one["chance"]), one["sentence"])
            for one in (record.get("faithfulness") or {}).values()
        ],
    )


def _number(value: float | None) -> str:
    return "–" if value is None else f"{value:.2f}"
