"""What the study of fine-tuned encoders shows: tables, figures and the claims' statistics.

The rows of several seeds are averaged per document; intervals are over documents.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from heedful.audits import AUDITS, Finding, judge
from heedful.audits.ranking import FAITHFULNESS, Ranking, rank
from heedful.reproduction.ledger import Measured, NotMeasurable
from heedful.reproduction.measures import average, contrast
from heedful.reproduction.study import Made
from heedful.reproduction.tables import row, row_by_row
from heedful.reproduction.view import View, Views
from heedful.runs.randomness import key
from heedful.statistics import over_seeds
from heedful.studies.transformers import steps
from heedful.studies.transformers.steps import MODELS, PLAIN, TIED

if TYPE_CHECKING:
    from matplotlib.figure import Figure

METHOD = "leave-one-out"
RANKED = ("input-erasure", "violation", "randomisation")
"""Audits that a ranking of explanations rests on."""
KEYS: Mapping[str, tuple[str, ...]] = {
    "input-erasure": ("instance", "method", "share", "mode"),
    "violation": ("instance", "ranking"),
    "randomisation": ("instance", "ranking", "step", "down_to"),
}
"""What one row of an audit is about, so that the same rows of several seeds are averaged."""

Rows = Mapping[str, pd.DataFrame]


def corpora(views: Views) -> Made:
    """Documents, their lengths in pieces, and how many were cut."""

    def of(view: View) -> Iterator[dict[str, Any]]:
        found = view.of(steps.pieces)
        for split, encoded in found.splits.items():
            cut = sum(n for note, n in found.notes.items() if note.startswith(f"{split}: cut"))
            yield {"corpus": view.corpus, "split": split, "documents": len(encoded),
                 "classes": len(found.classes), "pieces": float(encoded.lengths.mean()),
                 "longest": int(encoded.lengths.max()), "cut": cut}  # fmt: skip

    table = views.table(of)
    total = int(table["documents"].sum())
    return Made(table, sentence=f"{total:,} documents, {table['cut'].sum():,} of them cut.")


def verdicts(views: Views) -> Made:
    """Accuracy on all test documents; the verdict of every seed, and the tests behind it."""

    def of(view: View) -> Iterator[dict[str, Any]]:
        strength = float(view.of(steps.chosen)["strength"])
        for model in MODELS:
            tables = _tables(view, model)
            tested = [
                view.of(steps.swept, strength if model == TIED else 0.0, seed)
                for seed in view.seeds
            ]
            right = [_right(one["substitution"]) for one in tested]
            judged = [judge(_findings(one), _documents(one)) for one in tables]
            keys = {"corpus": view.corpus, "model": model, "δ": strength if model == TIED else 0.0}
            tests = {
                test.name: over_seeds([v.tests[place].estimate.value for v in judged])
                for place, test in enumerate(judged[0].tests)
            }
            words = ", ".join(verdict.word for verdict in judged)
            yield row(keys, accuracy=average(right, "right"), verdicts=words, **tests)

    table = views.table(of)
    said = row_by_row(table, "{corpus}, {model}: {accuracy:.1%}, {verdicts}")
    return Made(table, sentence=f"{said}.")


def ranking(views: Views) -> Made:
    """The place of every method, with its distance from a random order."""
    found: dict[tuple[str, str], Ranking] = {}

    def of(view: View) -> Iterator[dict[str, Any]]:
        for model in MODELS:
            found[view.corpus, model] = _ranking(_tables(view, model))
            for place in found[view.corpus, model].places:
                keys: dict[str, Any] = {
                    "corpus": view.corpus,
                    "model": model,
                    "method": place.method,
                }
                keys |= {"place": place.place, "standing": place.standing, "best": place.is_best}
                measured = {FAITHFULNESS: place.faithfulness, "beyond random": place.beyond_random}
                yield row(keys, **measured, **place.beside)

    table = views.table(of)
    said = [f"{corpus}, {model}: {one.sentence}" for (corpus, model), one in found.items()]
    shown = table[[c for c in map(str, table.columns) if not c.endswith((" low", " high", " n"))]]
    return Made(table, sentence=" ".join(said), shown=shown)


def ranked(views: Views) -> Made:
    """Faithfulness of each method, the plain and the tied model beside each other."""

    def of(view: View) -> Iterator[dict[str, Any]]:
        for model in MODELS:
            for place in _ranking(_tables(view, model)).places:
                keys = {"corpus": view.corpus, "model": model, "method": place.method}
                yield row(keys, **{FAITHFULNESS: place.faithfulness})

    table = views.table(of)
    said = "The decision's loss without a method's words, less its loss with these alone."
    return Made(table, _bars, said)


def _bars(table: pd.DataFrame) -> Figure:
    from heedful.report.panels import bars

    return bars(table, x="method", y=FAITHFULNESS, hue="model", panel="corpus")


def sweep(views: Views) -> Made:
    """Accuracy, and decisions changed by flat and by shuffled attention, for every strength."""

    def of(view: View) -> Iterator[dict[str, Any]]:
        for strength in steps.strengths(view.plan):
            tables = [view.of(steps.swept, strength, seed)["substitution"] for seed in view.seeds]
            measured = {
                "accuracy": average([_right(t) for t in tables], "right"),
                "changed by flat": average([_flat(t) for t in tables], "changed"),
                "changed by shuffled": average(tables, "permuted_changes"),
            }
            for name, estimate in measured.items():
                yield row({"corpus": view.corpus, "δ": strength, "measure": name}, share=estimate)

    def kept(view: View) -> str:
        return f"{view.corpus}: δ = {view.of(steps.chosen)['strength']:g}"

    table = views.table(of)
    said = ", ".join(views.each(kept).values())
    from heedful.report.panels import lines

    draw = partial(_from_zero, partial(lines, x="δ", y="share", hue="measure", panel="corpus"))
    return Made(table, draw, f"The rule of the remedy keeps {said}.")


def _from_zero(draw: Callable[..., Figure], table: pd.DataFrame) -> Figure:
    """The picture on an axis that holds 0 and grows tenfold beyond."""
    figure = draw(table)
    least = float(table.loc[table["δ"] > 0, "δ"].min())
    for axes in figure.axes:
        axes.set_xscale("symlog", linthresh=least)
        axes.set_xticks(sorted(set(table["δ"])), [f"{one:g}" for one in sorted(set(table["δ"]))])
    return figure


def beyond_random(view: View) -> Measured:
    """The faithfulness of `METHOD` minus that of a random order, in the plain model."""
    place = _ranking(_tables(view, PLAIN)).of(METHOD)
    if place is None or place.beyond_random is None:
        return NotMeasurable(f"{METHOD} was not tried")
    return place.beyond_random


def beyond_attention(view: View) -> Measured:
    """The best other method's faithfulness minus attention's, paired, in the plain model.

    Which is best is decided on one half of the documents, and measured on the other: the best of
    many by the same documents would look better than it is. Below 0 where attention is the best.
    """
    tables = _tables(view, PLAIN)
    worth = [_worth(table["input-erasure"]) for table in tables]
    deciding, measuring = zip(*map(_halves, worth), strict=True)
    known = pd.concat(deciding).groupby("method")["worth"].mean()
    others = known.drop(["attention", "random"], errors="ignore").dropna()
    if others.empty:
        return NotMeasurable("no other method was tried")
    best = {"method": str(others.idxmax())}
    return contrast(measuring, measuring, "worth", best, {"method": "attention"})


def _halves(table: pd.DataFrame) -> tuple[pd.DataFrame, pd.DataFrame]:
    """The rows of two halves of the documents, drawn by name: the same for every seed."""
    names = sorted(set(table["instance"]), key=lambda name: key(0, "half", str(name)))
    is_first = table["instance"].isin(names[: len(names) // 2])
    return table[is_first], table[~is_first]


def reliance_gained(view: View) -> Measured:
    """Decisions changed by shuffled attention: the tied model's minus the plain one's."""
    plain, tied = ([one["substitution"] for one in _tables(view, model)] for model in MODELS)
    return contrast(tied, plain, "permuted_changes")


def faithfulness_gained(view: View) -> Measured:
    """Attention's faithfulness: in the tied model minus in the plain one."""
    plain, tied = (
        [_worth(one["input-erasure"]) for one in _tables(view, model)] for model in MODELS
    )
    return contrast(tied, plain, "worth", {"method": "attention"}, {"method": "attention"})


def _tables(view: View, model: str) -> list[Rows]:
    return [view.of(steps.audited, model, seed) for seed in view.seeds]


def _findings(rows: Rows) -> dict[str, Finding]:
    return {name: AUDITS[name].summarise(table) for name, table in rows.items()}


def _documents(rows: Rows) -> int:
    return int(rows["substitution"]["instance"].nunique())


def _ranking(seeds: Sequence[Rows]) -> Ranking:
    """The ranking by the rows' means over seeds."""
    findings = {}
    for name in RANKED:
        tables = pd.concat([rows[name] for rows in seeds], ignore_index=True)
        keys = list(KEYS[name])
        mean = tables.groupby(keys, sort=False).mean(numeric_only=True).reset_index()
        findings[name] = AUDITS[name].summarise(mean)
    found = rank(findings)
    assert found is not None  # words were deleted by several methods
    return found


def _worth(erased: pd.DataFrame) -> pd.DataFrame:
    """Comprehensiveness minus sufficiency of removed words, over shares, by document and method."""
    removed = erased[(erased["mode"] == "removed") & (erased["units"] > 1)]
    worth = removed.assign(worth=removed["comprehensiveness"] - removed["sufficiency"])
    return worth.groupby(["instance", "method"], sort=False)["worth"].mean().reset_index()


def _right(table: pd.DataFrame) -> pd.DataFrame:
    return table.assign(right=(table["decision"] == table["label"]).astype(np.float64))


def _flat(table: pd.DataFrame) -> pd.DataFrame:
    return table.assign(changed=(table["uniform"] != table["decision"]).astype(np.float64))
