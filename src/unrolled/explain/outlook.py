"""A forecast drawn behind its past: a band of quantiles, what each step ahead read, and what moves it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from unrolled.explain.erasure import rank_correlation
from unrolled.explain.explanation import Measure
from unrolled.explain.plotted import HEIGHTS, SHADES, Plotted, measured

if TYPE_CHECKING:
    from matplotlib.figure import Figure

BANDS = ("#f3d3d0", "#e3a39d", "#d07c74")
"""Of intervals, the widest first."""

TICKS = 6
"""Times that are written under a picture."""


@dataclass(frozen=True, eq=False, kw_only=True)
class Outlook(Plotted):
    """One target of one series: what was, what is forecast, and what of the past that rests on.

    past          float64 [time]; NaN: missing
    times         of the past and of the forecast, as the user writes them: [time + horizon]
    point         float64 [horizon]
    quantiles     float64 [horizon, levels], their ``levels`` rising
    naive         float64 [horizon]: the seasonal naive forecast, or the naive one, for comparison
    attention     float32 [horizon, time], what each step ahead read of each step of the past; a row sums to 1. None:
                  the model has none
    moves         float64 [horizon, time]: how far each forecast moves without the stretch around a step, as a share of
                  the deviation of the past
    faithfulness  name → Measure: how far attention can be trusted, or None where there is none
    """

    name: str
    past: np.ndarray
    times: Sequence[str]
    point: np.ndarray
    quantiles: np.ndarray
    levels: Sequence[float]
    naive: np.ndarray
    attention: np.ndarray | None
    moves: np.ndarray
    faithfulness: Mapping[str, Measure] | None

    @property
    def target_text(self) -> str:
        """The forecast in one line."""
        ahead = len(self.point)
        return (
            f"{self.name}: {self.point[0]:.6g} at {self.times[-ahead]} to {self.point[-1]:.6g} at {self.times[-1]}, "
            f"{self.band} {self.quantiles[-1, 0]:.6g} to {self.quantiles[-1, -1]:.6g}"
        )

    @property
    def band(self) -> str:
        """The outermost interval in words."""
        return f"{self.levels[-1] - self.levels[0]:.0%} interval"

    def to_dict(self) -> dict[str, Any]:
        """Everything, as JSON knows it; a missing number is null."""
        return {
            "name": self.name,
            "times": list(self.times),
            "past": _numbers(self.past),
            "forecast": _numbers(self.point),
            "levels": list(self.levels),
            "quantiles": [_numbers(row) for row in self.quantiles],
            "naive": _numbers(self.naive),
            "attention": None if self.attention is None else [_numbers(row, 6) for row in self.attention],
            "moves": [_numbers(row, 6) for row in self.moves],
            "faithfulness": measured(self.faithfulness),
        }

    def text(self, width: int = 80, color: Literal["none", "256", "24bit"] = "none") -> str:  # noqa: ARG002
        """The past and the forecast as heights, below them what is read and what moves the forecast; as many places as
        ``width`` allows."""
        whole = np.concatenate([self.past, self.point])
        places = np.unique(np.linspace(0, len(whole) - 1, max(2, min(width - 12, len(whole)))).astype(int))
        low, high = float(np.nanmin(whole)), float(np.nanmax(whole))
        shares = np.nan_to_num((whole[places] - low) / (high - low if high > low else 1.0))
        heights = "".join(HEIGHTS[int(share * (len(HEIGHTS) - 1))] for share in shares)
        border = int(np.searchsorted(places, len(self.past)))
        lines = [f"{self.name[:11]:<12}{heights[:border]}|{heights[border:]}"]
        for name, values in (("attention", self.attention), ("moves it", self.moves)):
            if values is not None:
                mean = values.mean(axis=0)[places[:border]]
                shade = mean / max(float(mean.max()), 1e-12)
                lines.append(f"{name:<12}" + "".join(SHADES[int(share * (len(SHADES) - 1))] for share in shade))
        lines += self.sentences_of_trust()
        return "\n".join(lines)

    def figure(self) -> Figure:
        return _figure(self)


def trust(attention: Sequence[np.ndarray], moves: Sequence[np.ndarray]) -> dict[str, Measure]:
    """How far attention over stretches says what a forecast rests on: ``attention`` and ``moves`` are [horizon,
    stretches], one pair a forecast; beside each number what chance gives."""
    rows = [
        (read, moved)
        for one, other in zip(attention, moves, strict=True)
        for read, moved in zip(one, other, strict=True)
        if len(read) > 1
    ]
    found = [rho for rho in (rank_correlation(read, moved) for read, moved in rows) if rho is not None]
    if not found:
        nothing = Measure(None, 0.0, 0, "No step ahead had more than one stretch of the past to choose from.")
        return {"rank_correlation": nothing}
    value = float(np.mean(found))
    top = float(np.mean([read.argmax() == moved.argmax() for read, moved in rows]))
    chance = float(np.mean([1 / len(read) for read, _ in rows]))
    return {
        "rank_correlation": Measure(
            value,
            0.0,
            len(found),
            "Attention orders the stretches of the past as taking them out moves the forecast with a rank correlation "
            f"of {value:z.2f} (0: no relation; 1: the same order).",
        ),
        "top_agreement": Measure(
            top,
            chance,
            len(rows),
            f"For {top:.0%} of the steps ahead the stretch that is read most is the one that moves them most (picking "
            f"at random: {chance:.0%}).",
            "%",
        ),
    }


def _numbers(values: np.ndarray, places: int | None = None) -> list[float | None]:
    found = values.astype(float) if places is None else np.round(values.astype(float), places)
    return [None if not np.isfinite(value) else value for value in found.tolist()]


def _figure(one: Outlook) -> Figure:
    from matplotlib.figure import Figure

    read = one.attention is not None
    figure = Figure(figsize=(9, 5.6 if read else 4.2), layout="constrained")
    ratios = (3.2, 1.6, 0.8) if read else (3.2, 0.8)
    all_axes = figure.subplots(len(ratios), 1, sharex=True, gridspec_kw={"height_ratios": ratios})
    _draw_forecast(all_axes[0], one)
    count, ahead = len(one.past), len(one.point)
    if one.attention is not None:
        all_axes[1].imshow(
            one.attention, aspect="auto", cmap="Blues", vmin=0, origin="lower", interpolation="nearest",
            extent=(-0.5, count - 0.5, 0.5, ahead + 0.5),
        )  # fmt: skip
        all_axes[1].set_ylabel("read by\nstep ahead", fontsize=8)
    all_axes[-1].bar(np.arange(count), one.moves.mean(axis=0), width=1.0, color="#8a8f98")
    all_axes[-1].set_ylabel("moves it", fontsize=8)
    ticks = np.unique(np.linspace(0, count + ahead - 1, TICKS).round().astype(int))
    all_axes[-1].set_xticks(ticks, [one.times[tick] for tick in ticks.tolist()])
    for axes in all_axes:
        axes.set_xlim(-0.5, count + ahead - 0.5)
        axes.axvline(count - 0.5, color="#444444", linewidth=0.7, linestyle=":")
        axes.tick_params(labelsize=7)
    figure.suptitle(_title(one), fontsize=9)
    return figure


def _title(one: Outlook) -> str:
    measure = (one.faithfulness or {}).get("rank_correlation")
    value = "" if measure is None or measure.value is None else f" (rank correlation of both {measure.value:z.2f})"
    below = "below: what was read, and" if one.attention is not None else "below:"
    return f"{one.name}; {below} how far the forecast moves without a stretch of the past{value}"


def _draw_forecast(axes: Any, one: Outlook) -> None:
    count, ahead = len(one.past), len(one.point)
    past, future = np.arange(count), np.arange(count, count + ahead)
    axes.plot(past, one.past, color="#333333", linewidth=1.2, label="past")
    last = np.flatnonzero(np.isfinite(one.past))
    start = ([last[-1]], [one.past[last[-1]]]) if len(last) else ([], [])
    x = np.concatenate([start[0], future])
    pairs = len(one.levels) // 2
    for place in range(pairs):
        low, high = (np.concatenate([start[1], one.quantiles[:, at]]) for at in (place, len(one.levels) - 1 - place))
        share = one.levels[len(one.levels) - 1 - place] - one.levels[place]
        axes.fill_between(x, low, high, color=BANDS[place % len(BANDS)], linewidth=0, label=f"{share:.0%} interval")
    axes.plot(x, np.concatenate([start[1], one.point]), color="#b03a2e", linewidth=1.4, label="forecast")
    axes.plot(future, one.naive, color="#5b7aa6", linewidth=0.9, linestyle="--", label="seasonal naive")
    axes.legend(loc="upper left", fontsize=7, frameon=False)
