"""The tables of the dynamics study: T2 to T11 (docs/studies/dynamics.md, "Measures")."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np
import pandas as pd

from heedful.reproduction.results import Step
from heedful.reproduction.study import Artifact, Made, Plan
from heedful.reproduction.tables import beside, row
from heedful.reproduction.view import View, Views
from heedful.statistics import Estimate
from heedful.studies.dynamics import corpora, measures, steps
from heedful.studies.dynamics import printed as paper
from heedful.studies.dynamics.cells import NEVER, briefly, span, written
from heedful.studies.dynamics.comparisons import MAIN, RANKED, CorpusAgreements
from heedful.studies.dynamics.printed import COLUMNS, PAPER
from heedful.studies.dynamics.translation import TRANSLATED

ROWS = (*corpora.SIX, *TRANSLATED)
"""Corpora of the main tables."""
BRACKETS = "In brackets the paper's."
_ALL = (*COLUMNS, "Â", "ξ(α,βuf)", "ξ(βuf,βpx)", "ξ(Δ,βuf)", "ξ(α,β)", "ξ*")
_INTEGERS = (*COLUMNS, "Â", "ξ(α,βuf)", "ξ(α,β)", "ξ*")


def columns(found: CorpusAgreements, measure: str = "top") -> dict[str, Any]:
    """The agreements, chance, ξ and ξ* of one row, × 100, and which ξ was never passed.

    Chance is given twice: Â is its mean over checkpoints, as published, and each agreement has that
    of the checkpoint where it is highest.
    """
    pairs = MAIN if measure == "top" else RANKED
    least = 0.0 if measure == "top" else -1.0
    scale = 100.0 if found.facts["performance"] == "accuracy" else 1.0
    cells: dict[str, Any] = {}
    never = []
    for pair in pairs:
        if found.has(f"{measure}:{pair}"):
            name, agreed = measures.NAMED[pair], measures.highests(found, pair, measure)
            cells |= row({}, **{name: _scaled(measures.over_runs(agreed, pair, least))})
            if measure == "top":
                gained = measures.beyond(found, pair)
                there = [one.value - two.value for one, two in zip(agreed, gained, strict=True)]
                cells[f"{name}, chance there"] = 100 * float(np.mean(there))
    cells["Â"] = (
        0.0 if measure == "tau" else 100 * float(found.curve("chance:uniform").means.mean())
    )
    for pair in pairs:
        if found.has(f"{measure}:{pair}") and found.runs("top:attention~attention/"):
            passed = measures.xi(found, pair, measure)
            cells[f"ξ{measures.NAMED[pair][1:]}"] = scale * passed.performance
            never += [f"ξ{measures.NAMED[pair][1:]}"] if passed.is_never else []
    cells["ξ*"] = scale * float(found.performance["reference"][found.best])
    cells[NEVER] = "; ".join(never)
    cells["best step"] = int(found.steps[found.best])
    return cells


def _scaled(estimate: Estimate, scale: float = 100.0) -> Estimate:
    value, low, high = (scale * one for one in (estimate.value, estimate.low, estimate.high))
    return Estimate(value, low, high, estimate.n, estimate.method, estimate.undefined)


def _table(
    views: Views,
    printed: pd.DataFrame,
    split: str,
    measure: str,
    performance: str = "accuracy",
    digits: int = 2,
    shown: Sequence[str] = _ALL,
) -> Made:
    def one(view: View) -> list[dict[str, Any]]:
        found = view.of(steps.compared, split, performance)
        return [{"corpus": view.corpus} | columns(found, measure)]

    ours = views.table(one)
    theirs = printed[printed["corpus"].isin(views.corpora)]
    table = beside(ours, theirs.drop(columns=NEVER, errors="ignore"), ["corpus"])
    if NEVER in theirs:
        table[f"{NEVER}, paper"] = table["corpus"].map(theirs.set_index("corpus")[NEVER])
    return Made(
        _rounded(table, 2),
        sentence=f"{_said(ours, measure)} {BRACKETS} * never passed.",
        deviations=_BY_CHANCE if measure == "tau" else (),
        shown=briefly(table, shown, digits),
    )


def _rounded(table: pd.DataFrame, digits: int) -> pd.DataFrame:
    numeric = table.select_dtypes("number").columns
    return table.assign(**{name: table[name].round(digits) for name in numeric})


def _said(ours: pd.DataFrame, measure: str) -> str:
    """How far agreement lies above chance, in a sentence."""
    named = [name for name in COLUMNS if name in ours]
    least, corpus, name = min(
        (float(one[name]), str(one["corpus"]), name)
        for one in ours.to_dict("records")
        for name in named
        if not pd.isna(one[name])
    )
    place = f"({name} on {corpus})"
    if measure == "tau":
        return f"The lowest Kendall's τ × 100 is {written(least, 1)} {place}; by chance it is 0."
    chances = ours.set_index("corpus")[[f"{name}, chance there" for name in named]]
    there = chances[f"{name}, chance there"][corpus]
    return (
        f"The lowest agreement is {written(least, 1)} {place}, where chance gives "
        f"{written(there, 1)}. Chance is {span(chances.to_numpy().ravel(), 1)} at the chosen "
        f"checkpoints and {span(ours['Â'], 1)} averaged over all (Â)."
    )


def needs(
    split: str = "dev", performance: str = "accuracy"
) -> Callable[[Plan, str], list[Step[Any]]]:
    """The agreements of a split."""

    def wanted(plan: Plan, corpus: str) -> list[Step[Any]]:
        return [steps.compared(plan, corpus, split, performance)]

    return wanted


def _sizes(views: Views) -> Made:
    def one(view: View) -> list[dict[str, Any]]:
        found = view.of(steps.sizes)
        cells: dict[str, Any] = {"corpus": view.corpus}
        for split, short in (("train", "train"), ("dev", "val")):
            medians = np.atleast_1d(found[split]["median"])
            cells |= {f"{short}-length": medians[0], short: found[split]["documents"]}
            cells |= {_TARGETS[f"{short}-length"]: medians[1]} if len(medians) > 1 else {}
        return [cells | {"vocabulary": found["vocabulary"]}]

    ours = views.table(one)
    theirs = paper.SIZES[paper.SIZES["corpus"].isin(views.corpora)]
    table = beside(ours, theirs, ["corpus"])
    return Made(
        table,
        sentence=f"{len(ours)} corpora are at hand; lengths of pairs are source / target. "
        f"{BRACKETS}",
        deviations=tuple(_differing(table)),
        shown=briefly(
            table,
            [str(name) for name in theirs if name not in ("corpus", *_TARGETS.values())],
            0,
            seconds=_TARGETS,
        ),
    )


_TARGETS = {name: f"{name} of targets" for name in ("train-length", "val-length")}
"""What parallel corpora have beside the lengths of their sources."""
_COUNTED = {
    "texts": "texts in all",
    "train": "training texts",
    "train-length": "words in the median training text",
    "vocabulary": "words in the vocabulary",
}


def _differing(sizes: pd.DataFrame) -> Iterator[str]:
    """What each corpus has more or less of than the paper's, by a tenth or more."""
    for end in (", paper", ", difference"):
        sizes = sizes.assign(**{f"texts{end}": sizes[f"train{end}"] + sizes[f"val{end}"]})
    for _, one in sizes.assign(texts=sizes["train"] + sizes["val"]).iterrows():
        told = [
            f"{written(one[name])} {what} ({written(one[f'{name}, paper'])})"
            for name, what in _COUNTED.items()
            if abs(one.get(f"{name}, difference", np.nan)) >= one.get(f"{name}, paper", np.nan) / 10
        ]
        if told:
            yield f"{one['corpus']} has {', '.join(told)}; the paper's in brackets."


def _of_pairs(
    printed: pd.DataFrame,
    named: Mapping[str, str],
    said: Callable[[pd.DataFrame, pd.DataFrame], str],
    scale: float,
    digits: int,
) -> Callable[[Views], Made]:
    """A table of a few agreements."""

    def one(view: View) -> list[dict[str, Any]]:
        found = view.of(steps.compared)
        cells: dict[str, Any] = {}
        for name, pair in named.items():
            estimate = measures.over_runs(measures.highests(found, pair), least=0)
            cells |= row({}, **{name: _scaled(estimate, scale)})
        return [{"corpus": view.corpus} | cells]

    def make(views: Views) -> Made:
        ours = views.table(one)
        table = beside(ours, printed[printed["corpus"].isin(views.corpora)], ["corpus"])
        return Made(
            _rounded(table, digits + 2),
            sentence=f"{said(ours, printed)} {BRACKETS}",
            shown=briefly(table, list(named), digits, has_intervals=True),
        )

    return make


def _frozen_said(ours: pd.DataFrame, printed: pd.DataFrame) -> str:
    frozen, uniform = (
        f"{span(ours[name])} (the paper's six: {span(printed[name])})" for name in _FROZEN
    )
    return (
        f"In per cent, A(α,αfr) is {frozen} and A(α,βuf) {uniform}; the frozen runs have seeds of "
        "their own."
    )


def _logistic_said(ours: pd.DataFrame, printed: pd.DataFrame) -> str:
    first, second = _LOGISTIC
    gained = ours[second] - ours[first]
    return (
        f"A(βuf,βlog) minus A(βuf,βpx) is {span(gained, 2)}; the regression is higher on "
        f"{int((gained > 0).sum())} of {len(gained)} corpora."
    )


_FROZEN = {"A(α,αfr)": "attention~frozen", "A(α,βuf)": "attention~uniform"}
_LOGISTIC = {"A(βuf,βpx)": "proxy~uniform", "A(βuf,βlog)": "logistic~uniform"}
_BY_CHANCE: tuple[str, ...] = (
    "By chance τ is 0 because its sign is as often wrong as right; it is not measured.",
)


def _main(
    id: str, printed: pd.DataFrame, split: str, measure: str, performance: str, **shown: Any
) -> Artifact:
    corpora = ROWS if performance == "accuracy" else TRANSLATED
    if id == "T2":  # the paper's choice of rows; T5 has all
        corpora = (*paper.MAIN["corpus"], "planted", "planted-pairs")
    make = partial(
        _table, printed=printed, split=split, measure=measure, performance=performance, **shown
    )
    return PAPER.artifact(id, make, needs(split, performance), corpora)


TABLES = (
    _main("T2", paper.MAIN, "dev", "top", "accuracy", digits=0, shown=_INTEGERS),
    _main("T3", paper.KENDALL, "dev", "tau", "accuracy"),
    _main("T4", paper.KENDALL_BLEU, "dev", "tau", "bleu"),
    _main("T5", paper.VALIDATION, "dev", "top", "accuracy"),
    _main("T6", paper.BLEU, "dev", "top", "bleu"),
    _main("T7", paper.TRAINING, "train", "top", "accuracy"),
    _main("T8", paper.TRAINING_BLEU, "train", "top", "bleu"),
    PAPER.artifact(
        "T9",
        _sizes,
        lambda plan, corpus: [steps.sizes(plan, corpus)],
        (*corpora.TEXTS, *TRANSLATED),
    ),
    PAPER.artifact(
        "T10", _of_pairs(paper.FROZEN, _FROZEN, _frozen_said, 100, 0), needs(), corpora.SIX
    ),
    PAPER.artifact(
        "T11", _of_pairs(paper.LOGISTIC, _LOGISTIC, _logistic_said, 1, 2), needs(), corpora.SIX
    ),
)
