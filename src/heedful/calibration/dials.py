"""The picture of a calibration: what each audit measures as the known reliance is turned up."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

import numpy as np
from matplotlib.axes import Axes

from heedful.report.drawing import (
    ACCENT,
    GREY,
    LINE,
    SOFT,
    WARM,
    WIDTH,
    PageFigure,
    page_style,
    plain_text,
    standalone,
    svg,
)

COLUMNS = 3
PANEL = 118
"""Height of a panel."""
BAND = (0.05, 0.95)
"""The share of the models between the edges of a band."""
DIALS = {"leak": ACCENT, "crowd": WARM}


class Dialled(Protocol):
    """A constructed model: where its dial stands and what the audits said."""

    @property
    def construction(self) -> str: ...  # noqa: D102
    @property
    def kind(self) -> str: ...  # noqa: D102
    @property
    def reliance(self) -> float: ...  # noqa: D102
    @property
    def estimates(self) -> Mapping[str, Any]: ...  # noqa: D102


def draw_dials(models: Sequence[Dialled], measures: Mapping[str, Any]) -> str:
    """An SVG file: one panel per measure, a line with a band for each dial, crosses for deceivers.

    `measures` gives for each key what is measured (`measure`, and `audit` for the title).
    """
    lines = -(-len(measures) // COLUMNS)
    with page_style("chart-dials"):
        figure = PageFigure(figsize=(WIDTH / 72, lines * PANEL / 72 + 0.45), layout="constrained")
        panels = figure.subplots(lines, COLUMNS, squeeze=False)
        for axes, (key, measure) in zip(panels.flat, measures.items(), strict=False):
            _panel(axes, models, key)
            title = key if key == measure.audit else f"{measure.audit}: {key}"
            axes.set_title(plain_text(title, 34), fontsize=7.5)
        for axes in list(panels.flat)[len(measures) :]:
            axes.set_axis_off()
        for axes in panels[-1]:
            axes.set_xlabel("known reliance", fontsize=7.5)
        handles = [
            *(figure.axes[0].plot([], [], color=c, lw=1.6, label=f"dial: {d}")[0]
              for d, c in DIALS.items()),
            figure.axes[0].plot([], [], "x", color=GREY, ms=4, lw=0, label="deceiving models")[0],
        ]  # fmt: skip
        figure.legend(handles=handles, loc="outside upper left", ncols=3, fontsize=8)
        told = (
            "Each panel shows one audit's measure against the reliance known by construction: mean "
            "and the range of 90 % of the models; crosses at the right edge are deceiving models."
        )
        return standalone(svg(figure, "chart-dials", "Audits along the dials", told))


def _panel(axes: Axes, models: Sequence[Dialled], key: str) -> None:
    for dial, colour in DIALS.items():
        points: dict[float, list[float]] = {}
        for model in models:
            estimate = model.estimates.get(key)
            if model.construction == dial and estimate is not None and np.isfinite(estimate.value):
                points.setdefault(model.reliance, []).append(estimate.value)
        if not points:
            continue
        x = sorted(points)
        low, high = np.array([np.quantile(points[place], BAND) for place in x]).T
        axes.fill_between(x, low, high, color=colour, alpha=0.18, lw=0)
        axes.plot(x, [float(np.mean(points[place])) for place in x], color=colour, lw=1.6)
    # Rounded, since hundreds of crosses on one another are only bytes.
    deceiving = sorted(
        {
            round(float(m.estimates[key].value), 2)
            for m in models
            if m.kind == "deceiving" and key in m.estimates and np.isfinite(m.estimates[key].value)
        }
    )
    axes.plot([1.07] * len(deceiving), deceiving, "x", color=GREY, ms=3, mew=0.7, alpha=0.6)
    for border in (0.25, 0.75):
        axes.axvline(border, color=LINE, lw=0.8, zorder=0)
    axes.set_xlim(-0.03, 1.12)
    axes.set_xticks([0, 0.5, 1])
    axes.tick_params(labelsize=7, colors=SOFT)
