"""Figures and further tables of the dynamics study: F2, E1 and what the paper did not print."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from heedful.jobs.beside import gathered, row
from heedful.jobs.study import Artifact, Made, Plan
from heedful.papers import dynamics_measures as measures
from heedful.papers import dynamics_steps as steps
from heedful.papers.dynamics_tables import ROWS, needs
from heedful.report.panels import lines
from heedful.statistics.draws import minus

if TYPE_CHECKING:
    from heedful.jobs.results import Results

CURVES = {
    "attention ~ uniform probe": "top:attention~uniform",
    "proxy ~ uniform probe": "top:proxy~uniform",
    "saliency ~ uniform probe": "top:saliency~uniform",
    "attention ~ probe of run B": "top:attention~probe",
}
STAGES = {
    "probe ~ proxy": "top:proxy~own probe",
    "attention ~ probe": "top:own attention~own probe",
}


def _contextualised(results: Results, plan: Plan) -> Made:
    """F2: the comparison runs' agreement and performance, and where they pass A(α,βuf)."""

    def one(corpus: str) -> list[dict[str, Any]]:
        found = results[steps.compared(plan, corpus)]
        agreed = measures.highest(found, "attention~uniform").value
        performed = measures.performed(found)
        series = {
            "agreement with run A": measures.context(found).means,
            "performance": performed,
            "A(α,βuf)": np.full(len(performed), agreed),
        }
        rows = [
            {"corpus": corpus, "step": int(step), "curve": name, "value": float(value)}
            for name, values in series.items()
            for step, value in zip(found.steps, values, strict=True)
        ]
        passed = measures.xi(found, "attention~uniform")
        step = int(found.steps[passed.checkpoint])
        for value in (agreed, passed.performance):
            rows.append({"corpus": corpus, "step": step, "curve": "ξ", "value": value})
        return rows

    table = gathered(results.each(plan.corpora, one))
    draw = partial(lines, x="step", y="value", hue="curve", panel="corpus")
    return Made(table, draw, "Read ξ where the vertical line meets the performance.")


def _curves(
    results: Results, plan: Plan, named: dict[str, str], has_chance: bool = True
) -> pd.DataFrame:
    def one(corpus: str) -> list[dict[str, Any]]:
        found = results[steps.compared(plan, corpus)]
        keys = {name: key for name, key in named.items() if found.has(key)}
        keys |= {"chance": "chance:uniform"} if has_chance else {}
        return [
            {"corpus": corpus, "step": int(step), "curve": name, "value": float(value)}
            for name, key in keys.items()
            for step, value in zip(found.steps, found.curve(key).means, strict=True)
        ]

    return gathered(results.each(plan.corpora, one))


def _over_training(results: Results, plan: Plan) -> Made:
    table = _curves(results, plan, CURVES)
    return Made(table, partial(lines, x="step", y="value", hue="curve", panel="corpus"))


def _two_stages(results: Results, plan: Plan) -> Made:
    table = _curves(results, plan, STAGES)
    halves = {}
    for name, part in table.groupby("curve"):
        steps_to = [_halfway(rows) for _, rows in part.groupby("corpus")]
        halves[name] = float(np.median(steps_to))
    said = ", ".join(f"{name} is half way up at step {halves[name]:.0f}" for name in STAGES)
    return Made(table, partial(lines, x="step", y="value", hue="curve", panel="corpus"), said + ".")


def _halfway(rows: pd.DataFrame) -> float:
    """The first step at which a curve is half way from its start to its highest value."""
    values = rows["value"].to_numpy()
    middle = (values[0] + values.max()) / 2
    return float(rows["step"].to_numpy()[int(np.argmax(values >= middle))])


def _entropy(results: Results, plan: Plan) -> Made:
    table = _curves(results, plan, {"entropy of attention": "entropy:attention"}, has_chance=False)
    last = table.groupby("corpus")["value"].last()
    said = "At the end: " + ", ".join(f"{name} {value:.2f}" for name, value in last.items()) + "."
    return Made(table, partial(lines, x="step", y="value", hue="corpus"), said)


def _counts_predict(results: Results, plan: Plan) -> Made:
    """Count tables and expectation maximisation as predictors of attention."""

    def one(corpus: str) -> list[dict[str, Any]]:
        found = results[steps.compared(plan, corpus)]
        rows = []
        for name in ("counts", "em", "proxy", "logistic"):
            if not found.has(f"top:attention~{name}"):
                continue
            attention = found.curve(f"top:attention~{name}")
            gained = attention - found.curve(f"chance:{name}")
            rows.append(
                row(
                    {"corpus": corpus, "predictor": name},
                    **{
                        "A(α,·)": attention.at(0).estimate(),
                        "A(α,·) beyond chance": gained.at(0).estimate(),
                        "A(·,βuf)": measures.highest(found, f"{name}~uniform").estimate(),
                    },
                )
            )
        return rows

    return Made(gathered(results.each(plan.corpora, one)))


def _seeds(results: Results, plan: Plan) -> Made:
    """DYN-A7 as a table."""

    def one(corpus: str) -> list[dict[str, Any]]:
        spread = measures.spread_of_seeds(results[steps.compared(plan, corpus)])
        return [
            {
                "corpus": corpus,
                "agreement": name,
                "runs": len(values),
                "mean": 100 * float(np.mean(values)),
                "s.d.": 100 * float(np.std(values, ddof=1)) if len(values) > 1 else None,
                "lowest": 100 * min(values),
                "highest": 100 * max(values),
            }
            for name, values in spread.items()
        ]

    return Made(gathered(results.each(plan.corpora, one)).round(2))


def _artefacts(results: Results, plan: Plan) -> Made:
    """The main columns as published, chosen honestly, with ties split and without marks."""

    def one(corpus: str) -> list[dict[str, Any]]:
        found = results[steps.compared(plan, corpus)]
        rows = []
        ways: dict[str, Any] = {
            "as published": measures.all_columns(found),
            "checkpoint from the other half": measures.all_columns(found, crossed=True),
            "ties split": measures.all_columns(found, "split"),
            "without start and end": measures.all_columns(found, "inner"),
        }
        for way, columns in ways.items():
            rows.append(row({"corpus": corpus, "minus chance": way}, **columns))
        for name, share in found.facts["special"].items():
            rows[-1][f"largest {name} on start or end"] = share
        return rows

    return Made(gathered(results.each(plan.corpora, one)).round(3))


def _signs(results: Results, plan: Plan) -> Made:
    """Δ by its definition and with the release's sign."""

    def one(corpus: str) -> list[dict[str, Any]]:
        found = results[steps.compared(plan, corpus)]
        right, wrong = (measures.highest(found, f"{sign}saliency~uniform") for sign in ("", "-"))
        cells = {"A(Δ,βuf)": right.estimate(), "A(-Δ,βuf)": wrong.estimate()}
        return [row({"corpus": corpus}, **cells, difference=minus(right, wrong).estimate())]

    return Made(gathered(results.each(plan.corpora, one)).round(3))


FIGURES = (
    Artifact("F2", "How ξ reads off an agreement", "Fig. 2", "figure", _contextualised, needs(),
             ROWS, "illustration"),
    Artifact("X1", "Agreement over training", "ours (A.7, trap 4)", "figure", _over_training,
             needs(), ROWS, "said to rise, then fall"),
    Artifact("X2", "Two stages: the probe learns from counts, attention follows it",
             "ours (section 6)", "figure", _two_stages, needs(), ROWS, "argued, not shown"),
    Artifact("X3", "Entropy of attention over training", "ours (section 6)", "figure", _entropy,
             needs(), ROWS, "not measured"),
    Artifact("X4", "Counts as direct predictors of attention", "ours (section 6)", "table",
             _counts_predict, needs(), ROWS, "not measured"),
    Artifact("X5", "Agreements over seeds", "section 4", "table", _seeds, needs(), ROWS,
             "Amazon moved from 76.8 to 53 on a retrain"),
    Artifact("X6", "Checkpoints chosen honestly, ties, marks", "traps 4 and 8", "table",
             _artefacts, needs(), ROWS, "not reported"),
    Artifact("X7", "Both signs of Δ", "trap 2", "table", _signs, needs(), ROWS,
             "the release has the wrong one"),
)  # fmt: skip
