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
from heedful.audits.examination import Portion, examine
from heedful.audits.ranking import FAITHFULNESS, Ranking, rank
from heedful.audits.substitution import rows as substituted
from heedful.corpora.samples import sampled
from heedful.models.huggingface import PretrainedClassifier
from heedful.report.panels import bars
from heedful.reproduction.ledger import Measured, NotMeasurable
from heedful.reproduction.measures import average, trained_average, trained_contrast
from heedful.reproduction.results import Results, Step
from heedful.reproduction.study import Made, Plan
from heedful.reproduction.tables import row, row_by_row
from heedful.reproduction.view import View, Views
from heedful.runs.randomness import key
from heedful.runs.steps import TABLE
from heedful.statistics import Estimate, over_seeds
from heedful.statistics.estimates import per_cent
from heedful.statistics.seeds import widened
from heedful.studies.transformers import steps
from heedful.studies.transformers.steps import MODELS, TIED

if TYPE_CHECKING:
    from matplotlib.figure import Figure


RANKED = ("input-erasure", "violation")
"""Audits that a ranking of explanations rests on."""
KEYS: Mapping[str, tuple[str, ...]] = {
    "input-erasure": ("instance", "method", "share", "mode"),
    "violation": ("instance", "ranking"),
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
            yield row(keys, accuracy=trained_average(right, "right"), verdicts=words, **tests)

    table = views.table(of)
    shown = table.assign(accuracy=[per_cent(one, 1) for one in table["accuracy"]])
    said = row_by_row(shown, "{corpus}, {model}: {accuracy}, {verdicts}")
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
                "accuracy": trained_average([_right(t) for t in tables], "right"),
                "changed by flat": trained_average([_flat(t) for t in tables], "changed"),
                "changed by shuffled": trained_average(tables, "permuted_changes"),
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


def half_as_good(view: View, model: str) -> Measured:
    """How far attention is beyond a random order, less half of how far the best other method is.

    Which is best is decided on one half of the documents, and measured on the other: the best of
    many by the same documents would look better than it is.
    """
    worth = [_worth(rows["input-erasure"]) for rows in _tables(view, model)]
    deciding, measuring = zip(*map(_halves, worth), strict=True)
    known = pd.concat(deciding).groupby("method")["worth"].mean()
    others = known.drop(["attention", "random"], errors="ignore").dropna()
    if others.empty:
        return NotMeasurable("no other method was tried")
    tables = []
    for table in measuring:
        wide = table.pivot(index="instance", columns="method", values="worth")
        ahead = wide["attention"] - (wide[str(others.idxmax())] + wide["random"]) / 2
        tables.append(ahead.rename("ahead").reset_index())
    return _over_both(tables, "ahead")


def _over_both(tables: Sequence[pd.DataFrame], column: str) -> Estimate:
    """The mean over documents and trainings."""
    return widened(average(tables, column), [float(table[column].mean()) for table in tables])


def _halves(table: pd.DataFrame) -> tuple[pd.DataFrame, pd.DataFrame]:
    """The rows of two halves of the documents, drawn by name: the same for every seed."""
    names = sorted(set(table["instance"]), key=lambda name: key(0, "half", str(name)))
    is_first = table["instance"].isin(names[: len(names) // 2])
    return table[is_first], table[~is_first]


def tied_reliance(view: View) -> Measured:
    """Decisions of all test documents changed by shuffled attention, in the tied models."""
    return trained_average([one["substitution"] for one in _swept(view)[1]], "permuted_changes")


def accuracy_kept(view: View) -> Measured:
    """Accuracy of the tied models minus that of the plain ones."""
    plain, tied = ([_right(one["substitution"]) for one in kind] for kind in _swept(view))
    return trained_contrast(tied, plain, "right")


def _swept(view: View) -> tuple[list[Rows], list[Rows]]:
    strength = float(view.of(steps.chosen)["strength"])
    return tuple(  # type: ignore[return-value]
        [view.of(steps.swept, one, seed) for seed in view.seeds] for one in (0.0, strength)
    )


def faithfulness_gained(view: View) -> Measured:
    """Attention's faithfulness: in the tied models minus in the plain ones."""
    plain, tied = (
        [
            table[table["method"] == "attention"]
            for table in (_worth(one["input-erasure"]) for one in _tables(view, model))
        ]
        for model in MODELS
    )
    return trained_contrast(tied, plain, "worth")


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


DOCUMENTS = 200
"""Test documents whose attention is edited layer by layer."""
DRAWS = 20
"""Shuffles of each of them."""
POOLED, ALL = "pooled", "all"


def layered(plan: Plan, name: str, strength: float, seed: int) -> Step[pd.DataFrame]:
    """Decisions of some test documents with the attention edited at each site, one after another:
    the pooled row, every layer with all its rows, all layers at once."""
    model, text = steps.tuned(plan, name, strength, seed), steps.pieces(plan, name)
    documents = min(DOCUMENTS, steps.AUDITED[name])

    def compute(results: Results) -> pd.DataFrame:
        opened, test = results[model].to(results.device), results[text].splits["test"]
        among = {"substitution": sampled(test.names, documents, 0)}
        found = []
        for site in sites_of(opened):
            read = PretrainedClassifier(
                opened.model, opened.subwords, opened.classes, site=site,
                max_pieces=opened.max_pieces,
            ).eval()  # fmt: skip
            table = examine(
                read, test, {"substitution": partial(substituted, draws=DRAWS)}, ("random",),
                device=results.device, among=among, at_once=Portion(tokens=steps.TOKENS),
            )["substitution"]  # fmt: skip
            flat = (table["uniform"] != table["decision"]).astype(float)
            kept = table[["instance", "permuted_changes"]]
            found.append(kept.assign(site=site, flat=flat))
        return pd.concat(found, ignore_index=True)

    inputs = {"documents": documents, "draws": DRAWS}
    return Step(model.beside("layers"), compute, inputs, TABLE, (text, model))


def sites_of(model: PretrainedClassifier) -> tuple[str, ...]:
    """The pooled row, each layer, all layers."""
    return (POOLED, *(f"layer:{k}" for k in range(len(model.layout.layers))), ALL)


def needs_layers(plan: Plan, name: str) -> list[Step[Any]]:
    """The plain models' layers, and those of the models tied with strength 1."""
    kinds = (0.0, steps.TIED_AT)
    return [layered(plan, name, strength, seed) for strength in kinds for seed in plan.seeds]


def _at(view: View, strength: float, site: str) -> list[pd.DataFrame]:
    tables = [view.of(layered, strength, seed) for seed in view.seeds]
    return [table[table["site"] == site] for table in tables]


def by_layer(views: Views) -> Made:
    """Decisions changed by flat and by shuffled attention at every site."""

    def of(view: View) -> Iterator[dict[str, Any]]:
        for strength in (0.0, steps.TIED_AT):
            sites = dict.fromkeys(view.of(layered, strength, view.seeds[0])["site"])
            for site in sites:
                tables = _at(view, strength, site)
                keys = {"corpus": view.corpus, "δ": strength, "site": site}
                keys |= {"model": f"δ = {strength:g}"}
                changed = trained_average(tables, "permuted_changes")
                yield row(
                    keys, **{"changed by flat": trained_average(tables, "flat")},
                    **{"changed by shuffled": changed},
                )  # fmt: skip

    table = views.table(of)
    plain = table[(table["δ"] == 0) & table["site"].isin([POOLED, ALL])]
    said = row_by_row(plain, "{corpus}, {site}: {changed by shuffled:.3f}")
    draw = partial(bars, x="site", y="changed by shuffled", hue="model", panel="corpus")
    return Made(table, draw, f"Shares of decisions that shuffled attention changes: {said}.")


def shuffled(view: View, strength: float, site: str) -> Measured:
    """The share of decisions that shuffled attention changes there."""
    return trained_average(_at(view, strength, site), "permuted_changes")
