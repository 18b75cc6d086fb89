"""The tables of the dynamics study: T2 to T11 (dynamics.md §1)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from heedful.dynamics.comparing import MAIN, RANKED, Compared
from heedful.jobs.beside import beside, gathered, row
from heedful.jobs.study import Artifact, Made, Plan
from heedful.papers import dynamics_measures as measures
from heedful.papers import dynamics_numbers as paper
from heedful.papers import dynamics_steps as steps
from heedful.papers.dynamics_numbers import COLUMNS
from heedful.papers.dynamics_translation import TRANSLATED
from heedful.statistics import Estimate

if TYPE_CHECKING:
    from heedful.jobs.results import Results, Step

ROWS = (*steps.SIX, *TRANSLATED)
"""Corpora of the main tables."""


def columns(found: Compared, measure: str = "top") -> dict[str, Any]:
    """The agreements, chance, ξ and ξ* of one row, × 100; an asterisk where none agrees more."""
    pairs = MAIN if measure == "top" else RANKED
    scale = 100.0 if found.facts["performance"] == "accuracy" else 1.0
    cells: dict[str, Any] = {}
    never = []
    for pair in pairs:
        if found.has(f"{measure}:{pair}"):
            name = measures.NAMED[pair]
            cells |= row({}, **{name: _scaled(measures.highest(found, pair, measure).estimate())})
    cells["Â"] = (
        0.0 if measure == "tau" else 100 * float(found.curve("chance:uniform").means.mean())
    )
    for pair in pairs:
        if found.has(f"{measure}:{pair}") and found.runs("top:attention~attention/"):
            passed = measures.xi(found, pair, measure)
            cells[f"ξ{measures.NAMED[pair][1:]}"] = scale * passed.performance
            never += [f"ξ{measures.NAMED[pair][1:]}"] if passed.is_never else []
    cells["ξ*"] = scale * float(found.performance["reference"][found.best])
    cells["never passed"] = ", ".join(never)
    cells["best step"] = int(found.steps[found.best])
    return cells


def _scaled(estimate: Estimate, scale: float = 100.0) -> Estimate:
    value, low, high = (scale * one for one in (estimate.value, estimate.low, estimate.high))
    return Estimate(value, low, high, estimate.n, estimate.method, estimate.undefined)


def _table(
    results: Results,
    plan: Plan,
    printed: pd.DataFrame,
    split: str,
    measure: str,
    performance: str = "accuracy",
    digits: int = 2,
    shown: Iterable[str] = (),
) -> Made:
    def one(corpus: str) -> list[dict[str, Any]]:
        found = results[steps.compared(plan, corpus, split, performance)]
        return [{"corpus": corpus} | columns(found, measure)]

    ours = gathered(results.each(plan.corpora, one))
    keep = [name for name in shown if name in ours] or list(ours.columns)
    theirs = printed[[name for name in printed if name in keep]]
    table = beside(ours[keep], theirs[theirs["corpus"].isin(plan.corpora)], ["corpus"])
    numeric = table.select_dtypes("number").columns
    table[numeric] = table[numeric].round(digits)
    brief = [c for c in table.columns if not c.endswith((" low", " high", " n", ", difference"))]
    return Made(table, shown=table[brief], sentence=_said(ours, measure))


def _said(ours: pd.DataFrame, measure: str) -> str:
    """How far agreement lies above chance, in a sentence."""
    named = [name for name in COLUMNS if name in ours]
    least = float(np.nanmin(ours[named].to_numpy(dtype=float)))
    kind = "Kendall's τ × 100" if measure == "tau" else "agreement"
    return f"The lowest {kind} is {least:.1f}; by chance it is {ours['Â'].max():.1f} at most."


def needs(
    split: str = "dev", performance: str = "accuracy"
) -> Callable[[Plan, str], list[Step[Any]]]:
    """The agreements of a split."""

    def wanted(plan: Plan, corpus: str) -> list[Step[Any]]:
        return [steps.compared(plan, corpus, split, performance)]

    return wanted


def _sizes(results: Results, plan: Plan) -> Made:
    def one(corpus: str) -> list[dict[str, Any]]:
        found = results[steps.sizes(plan, corpus)]
        cells: dict[str, Any] = {"corpus": corpus}
        for split, short in (("train", "train"), ("dev", "val")):
            medians = np.atleast_1d(found[split]["median"])
            cells |= {f"{short}-length": medians[0], short: found[split]["documents"]}
            cells |= {f"{short}-length of targets": medians[1]} if len(medians) > 1 else {}
        return [cells | {"vocabulary": found["vocabulary"]}]

    ours = gathered(results.each(plan.corpora, one))
    return Made(beside(ours, paper.SIZES[paper.SIZES["corpus"].isin(plan.corpora)], ["corpus"]))


def _of_pairs(
    results: Results,
    plan: Plan,
    printed: pd.DataFrame,
    named: Mapping[str, str],
    scale: float,
    digits: int,
) -> Made:
    """A table of a few agreements."""

    def one(corpus: str) -> list[dict[str, Any]]:
        found = results[steps.compared(plan, corpus)]
        cells: dict[str, Any] = {}
        for name, pair in named.items():
            estimate = found.curve(f"top:{pair}").highest().estimate()
            cells |= row({}, **{name: _scaled(estimate, scale)})
        return [{"corpus": corpus} | cells]

    ours = gathered(results.each(plan.corpora, one))
    table = beside(ours, printed[printed["corpus"].isin(plan.corpora)], ["corpus"])
    numeric = table.select_dtypes("number").columns
    table[numeric] = table[numeric].round(digits)
    return Made(table)


_INTEGERS = ("corpus", *COLUMNS, "Â", "ξ(α,βuf)", "ξ(α,β)", "ξ*")
_FROZEN = {"A(α,αfr)": "attention~frozen", "A(α,βuf)": "attention~uniform"}
_LOGISTIC = {"A(βuf,βpx)": "proxy~uniform", "A(βuf,βlog)": "logistic~uniform"}


def _main(id: str, title: str, where: str, said: str, **settings: Any) -> Artifact:
    split, performance = settings["split"], settings.get("performance", "accuracy")
    corpora = ROWS if performance == "accuracy" else TRANSLATED
    make = partial(_table, **settings)
    return Artifact(id, title, where, "table", make, needs(split, performance), corpora, said)


TABLES = (
    _main("T2", "Agreement of attention with what words tell, in whole per cent", "Table 2",
          "20 to 82 against 5 to 8 by chance", printed=paper.VALIDATION, split="dev",
          measure="top", digits=0, shown=_INTEGERS),
    _main("T3", "The same by Kendall's τ", "Table 3", "3.9 to 36.8 against 0",
          printed=paper.KENDALL, split="dev", measure="tau"),
    _main("T4", "Kendall's τ with BLEU as performance", "Table 4", "4.2 to 27.5",
          printed=paper.KENDALL_BLEU, split="dev", measure="tau", performance="bleu"),
    _main("T5", "Agreement with all four ξ", "Table 5", "17.6 to 81.6",
          printed=paper.VALIDATION, split="dev", measure="top"),
    _main("T6", "Agreement with BLEU as performance", "Table 6", "27.2 to 48.7",
          printed=paper.BLEU, split="dev", measure="top", performance="bleu"),
    _main("T7", "Agreement on a training subset", "Table 7", "11.2 to 80.1",
          printed=paper.TRAINING, split="train", measure="top"),
    _main("T8", "Agreement on a training subset with BLEU as performance", "Table 8",
          "28.4 to 34.7", printed=paper.TRAINING_BLEU, split="train", measure="top",
          performance="bleu"),
    Artifact("T9", "Corpora", "Table 9", "table", _sizes,
             lambda plan, corpus: [steps.sizes(plan, corpus)],
             (*steps.TEXTS, *TRANSLATED)),
    Artifact("T10", "Attention on a frozen random probe", "Table 10", "table",
             partial(_of_pairs, printed=paper.FROZEN, named=_FROZEN, scale=100, digits=0),
             needs(), steps.SIX, "8 to 19 against 18 to 65"),
    Artifact("T11", "Proxy and logistic regression", "Table 11", "table",
             partial(_of_pairs, printed=paper.LOGISTIC, named=_LOGISTIC, scale=1, digits=2),
             needs(), steps.SIX, "regression higher in six of six, by .01 to .07"),
)  # fmt: skip
