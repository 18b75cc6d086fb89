"""Figures and further tables of the dynamics study: F2, E1 and what the paper did not print."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from heedful.report.panels import lines
from heedful.report.watch_charts import halfway
from heedful.reproduction.study import Made
from heedful.reproduction.tables import row
from heedful.reproduction.view import View, Views
from heedful.statistics.draws import minus
from heedful.studies.dynamics import corpora, measures, steps
from heedful.studies.dynamics.cells import span, written
from heedful.studies.dynamics.printed import COLUMNS, PAPER
from heedful.studies.dynamics.tables import ROWS, needs
from heedful.studies.dynamics.translation import TRANSLATED

if TYPE_CHECKING:
    from matplotlib.figure import Figure


CURVES = {
    "attention ~ uniform probe": "top:attention~uniform",
    "proxy ~ uniform probe": "top:proxy~uniform",
    "saliency ~ uniform probe": "top:saliency~uniform",
    "attention ~ probe of run B": "top:attention~probe",
    "chance (uniform probe)": "chance:uniform",
}
STAGES = {
    "probe ~ proxy": "top:proxy~own probe",
    "attention ~ probe": "top:own attention~own probe",
    "chance": "chance:own probe",
}
"""All of run A alone: whatever is looked for, it is looked for in run A's own probe."""
XI = "ξ"


BOTH = "agreement, performance"


def _contextualised(views: Views) -> Made:
    """F2: the comparison runs' agreement and performance, and where they pass A(α,βuf)."""

    def one(view: View) -> list[dict[str, Any]]:
        found = view.of(steps.compared)
        agreed = measures.highest(found, "attention~uniform").value
        performed = measures.performed(found)
        series = {
            "agreement with run A": measures.context(found).means,
            "performance": performed,
            "A(α,βuf)": np.full(len(performed), agreed),
        }
        rows = [
            {"corpus": view.corpus, "step": int(step), "curve": name, BOTH: float(value)}
            for name, values in series.items()
            for step, value in zip(found.steps, values, strict=True)
        ]
        passed = measures.xi(found, "attention~uniform")
        if not passed.is_never:
            step = int(found.steps[passed.checkpoint])
            for value in (agreed, passed.performance):
                rows.append({"corpus": view.corpus, "step": step, "curve": XI, BOTH: value})
        return rows

    table = views.table(one)
    never = _never_passed(table)
    told = []
    if len(never) < table["corpus"].nunique():
        told.append(_passed(table))
    if never:
        told.append(f"On {', '.join(never)} the runs' mean agreement never passes: ξ is then ξ*.")
    return Made(table, contextualised, " ".join(told))


def _passed(table: pd.DataFrame) -> str:
    """What the runs perform when they agree with run A more than the uniform probe does."""
    agreed = table[table["curve"] == "A(α,βuf)"].groupby("corpus")[BOTH].first()
    found = table[table["curve"] == XI].groupby("corpus", sort=False)
    each = [
        f"{corpus} {written(100 * rows[BOTH].iloc[-1])} (step {rows['step'].iloc[-1]:,})"
        for corpus, rows in found
    ]
    return (
        f"The other runs agree with run A more often than βuf does (A(α,βuf) is "
        f"{span(100 * agreed)} per cent) once they perform at ξ, which the vertical line reaches, "
        f"in per cent: {', '.join(each)}."
    )


def _never_passed(table: pd.DataFrame) -> list[str]:
    """The corpora without a ξ."""
    passed = set(table.loc[table["curve"] == XI, "corpus"])
    return [corpus for corpus in dict.fromkeys(table["corpus"]) if corpus not in passed]


def contextualised(table: pd.DataFrame) -> Figure:
    """F2 from its table; a panel without ξ says in its title that it was never passed."""
    figure = lines(table, x="step", y=BOTH, hue="curve", panel="corpus")
    never = _never_passed(table)
    for axes, corpus in zip(figure.axes, dict.fromkeys(table["corpus"]), strict=False):
        if corpus in never:
            axes.set_title(f"{corpus}: {XI} never passed")
    return figure


def _curves(views: Views, named: dict[str, str], quantity: str = "agreement") -> pd.DataFrame:
    """The curves of every corpus that has them."""

    def one(view: View) -> list[dict[str, Any]]:
        found = view.of(steps.compared)
        return [
            {"corpus": view.corpus, "step": int(step), "curve": name, quantity: float(value)}
            for name, key in named.items()
            if found.has(key)
            for step, value in zip(found.steps, found.curve(key).means, strict=True)
        ]

    return views.table(one)


_agreements = partial(lines, x="step", y="agreement", hue="curve", panel="corpus", log=True)


def _over_training(views: Views) -> Made:
    table = _curves(views, CURVES)
    tops, falls = [], []
    first = next(iter(CURVES))
    for corpus, rows in table[table["curve"] == first].groupby("corpus", sort=False):
        values = rows["agreement"].to_numpy()
        tops.append(f"{rows['step'].iloc[int(values.argmax())]} on {corpus}")
        falls.append(100 * float(values.max() - values[-1]))
    said = (
        f"A(α,βuf) is highest at step {', '.join(tops)}, and {span(falls)} points lower at the end."
    )
    return Made(table, _agreements, said)


def _two_stages(views: Views) -> Made:
    table = _curves(views, STAGES)
    halves = pd.DataFrame(
        {
            name: {
                corpus: halfway(rows.to_dict("records"), "agreement")
                for corpus, rows in table[table["curve"] == name].groupby("corpus", sort=False)
            }
            for name in list(STAGES)[:2]
        }
    )
    return Made(table, _agreements, _order_told(halves))


def _order_told(halves: pd.DataFrame) -> str:
    """Which of two curves is half way up first, by corpus; nothing where one did not rise."""
    risen = halves.dropna().astype(float)
    still = [str(corpus) for corpus in halves.index if corpus not in risen.index]
    flat = f" A curve does not rise on {', '.join(still)}." if still else ""
    if risen.empty:
        return flat.strip()
    probe, attention = (risen[name] for name in risen)
    return (
        f"In the median over corpora {probe.name} is half way up for good at step "
        f"{probe.median():,.0f}, {attention.name} at step {attention.median():,.0f}; attention is "
        f"the later one on {int((attention > probe).sum())} of {len(risen)} corpora.{flat}"
    )


def _entropy(views: Views) -> Made:
    quantity = "entropy (1: uniform)"
    table = _curves(views, {"entropy of attention": "entropy:attention"}, quantity)
    last = table.groupby("corpus", sort=False)[quantity].last()
    said = "At the end: " + ", ".join(f"{name} {value:.2f}" for name, value in last.items()) + "."
    return Made(table, partial(lines, x="step", y=quantity, hue="corpus", log=True), said)


def _counts_predict(views: Views) -> Made:
    """Count tables and expectation maximisation as predictors of attention."""

    def one(view: View) -> Iterator[dict[str, Any]]:
        found = view.of(steps.compared)
        for name in ("counts", "em", "proxy", "logistic"):
            if not found.has(f"top:attention~{name}"):
                continue
            attention = found.curve(f"top:attention~{name}")
            gained = attention - found.curve(f"chance:{name}")
            yield row(
                {"corpus": view.corpus, "predictor": name},
                **{
                    "A(α,·)": attention.at(0).estimate(),
                    "A(α,·) beyond chance": gained.at(0).estimate(),
                    "A(·,βuf)": measures.highest(found, f"{name}~uniform").estimate(),
                },
            )

    table = views.table(one)
    gained = 100 * table.set_index("predictor")["A(α,·) beyond chance"]
    told = ", ".join(f"{name} {span(gained[[name]])}" for name in dict.fromkeys(gained.index))
    return Made(table, sentence=f"Agreement with attention beyond chance, in points: {told}.")


def _seeds(views: Views) -> Made:
    """DYN-A7 as a table."""
    spreads: dict[str, list[float]] = {}

    def one(view: View) -> list[dict[str, Any]]:
        spread = measures.spread_of_seeds(view.of(steps.compared))
        spreads.update({f"{name} on {view.corpus}": values for name, values in spread.items()})
        return [
            {
                "corpus": view.corpus,
                "agreement": name,
                "runs": len(values),
                "mean": float(np.mean(values)),
                "s.d.": float(np.std(values, ddof=1)) if len(values) > 1 else None,
                "lowest": min(values),
                "highest": max(values),
            }
            for name, values in spread.items()
        ]

    table = views.table(one).round(2)
    largest = measures.largest_spread(spreads)
    said = "No run was repeated."
    if largest is not None:
        name, estimate = largest
        said = f"The largest s.d. is {written(estimate.value, 1)} points: {name}, which goes from "
        said += f"{span(spreads[name], 1)}."
    return Made(table, sentence=said)


def _two_seeds(views: Views) -> Made:
    """DYN-22 as a table: run A against each of the others."""

    def one(view: View) -> list[dict[str, Any]]:
        found = view.of(steps.compared)
        rows = []
        for run, agreed in measures.final_agreements(found).items():
            ranks = f"tau:attention~attention/{run}"
            tau = found.curve(ranks).at(-1).estimate() if found.has(ranks) else None
            rows.append(row({"corpus": view.corpus, "run": run}, A=agreed.estimate(), τ=tau))
        return rows

    table = views.table(one)
    told = []
    for corpus, rows in table.groupby("corpus", sort=False):
        values, ranks = (", ".join(written(one, 2) for one in rows[name]) for name in ("A", "τ"))
        told.append(f"{corpus}: A {values}; τ {ranks}")
    said = f"Run A against each other run. {'. '.join(told)}."
    return Made(
        table,
        sentence=said,
        deviations=("τ is of run A's attention at its best checkpoint, A of its last.",),
    )


def _checked_columns(views: Views) -> Made:
    """The main columns as published, chosen honestly, with ties split and without marks."""

    def one(view: View) -> list[dict[str, Any]]:
        found = view.of(steps.compared)
        rows = []
        ways: dict[str, Any] = {
            "as published": measures.all_columns(found),
            "checkpoint from the other half": measures.all_columns(found, crossed=True),
            "ties split": measures.all_columns(found, "split"),
            "without start and end": measures.all_columns(found, "inner"),
        }
        for way, columns in ways.items():
            rows.append(row({"corpus": view.corpus, "minus chance": way}, **columns))
        for name, share in found.facts["special"].items():
            rows[-1][f"largest {name} on start or end"] = share
        return rows

    table = views.table(one).round(3)
    first = 100 * table.set_index("minus chance")[COLUMNS[0]]
    told = "; ".join(f"{way} {span(first[[way]])}" for way in dict.fromkeys(first.index))
    return Made(table, sentence=f"{COLUMNS[0]} beyond chance, in points: {told}.")


def _signs(views: Views) -> Made:
    """Δ by its definition and with the release's sign."""

    def one(view: View) -> list[dict[str, Any]]:
        found = view.of(steps.compared)
        both = [measures.highests(found, f"{sign}saliency~uniform") for sign in ("", "-")]
        cells = dict(zip(("A(Δ,βuf)", "A(-Δ,βuf)"), map(measures.over_runs, both), strict=True))
        apart = measures.over_runs([minus(*each) for each in zip(*both, strict=True)])
        return [row({"corpus": view.corpus}, **cells, difference=apart)]

    table = views.table(one).round(3)
    right, wrong = (span(100 * table[name]) for name in ("A(Δ,βuf)", "A(-Δ,βuf)"))
    said = f"Δ agrees with the uniform probe in {right} per cent, with the other sign in {wrong}."
    return Made(table, sentence=said)


def _learning(views: Views) -> Made:
    """How every run learnt: a row per kind, the log itself being among the steps."""

    def one(view: View) -> list[dict[str, Any]]:
        log = view.of(steps.logged)
        rows = []
        for kind, part in log.groupby("kind", sort=False):
            runs = [run for _, run in part.groupby("run", sort=False)]
            cells: dict[str, Any] = {"corpus": view.corpus, "kind": kind, "runs": len(runs)}
            if kind == "proxy":
                at = int(part["loss"].to_numpy().argmin())
                cells |= {"best epoch": int(part["epoch"].iloc[at]), "epochs": len(part)}
                cells["dev loss"] = float(part["loss"].iloc[at])
            else:
                best = [run.iloc[int(run["dev"].to_numpy().argmax())] for run in runs]
                cells["best dev"] = float(np.mean([one["dev"] for one in best]))
                cells["best step"] = span([one["step"] for one in best])
                cells["last dev"] = float(np.mean([run["dev"].iloc[-1] for run in runs]))
                ends = [one["entropy"] for one in best], [run["entropy"].iloc[-1] for run in runs]
                cells |= {"entropy at best": np.mean(ends[0]), "entropy at last": np.mean(ends[1])}
            cells["seconds"] = float(max(run["seconds"].max() for run in runs))
            rows.append(cells)
        return rows

    table = views.table(one).round(3)
    return Made(table, sentence="Every run at its best and at its last checkpoint, on dev texts.")


FIGURES = (
    PAPER.artifact("F2", _contextualised, needs(), ROWS),
    PAPER.artifact("X1", _over_training, needs(), ROWS),
    PAPER.artifact("X2", _two_stages, needs(), ROWS),
    PAPER.artifact("X3", _entropy, needs(), ROWS),
    PAPER.artifact("X4", _counts_predict, needs(), ROWS),
    PAPER.artifact("X5", _seeds, needs(), ROWS),
    PAPER.artifact("X6", _checked_columns, needs(), ROWS),
    PAPER.artifact("X7", _signs, needs(), ROWS),
    PAPER.artifact("X8", _two_seeds, needs(), (*corpora.SIX, "sms")),
    PAPER.artifact(
        "X9",
        _learning,
        lambda plan, corpus: [steps.logged(plan, corpus)],
        (*corpora.SIX, "sms", *TRANSLATED),
    ),
)
