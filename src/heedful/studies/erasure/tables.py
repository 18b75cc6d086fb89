"""The erasure study's tables and numbers in the text: T1 to T3, N1 to N6."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import product
from typing import Any

import numpy as np
import pandas as pd

from heedful.reproduction.study import Made, Plan
from heedful.reproduction.tables import row, row_by_row
from heedful.reproduction.view import View, Views
from heedful.statistics.estimates import per_cent
from heedful.studies.erasure.corpora import counts
from heedful.studies.erasure.examination import OURS, RANKINGS, Erased
from heedful.studies.erasure.measures import at_hand, mean, pooled, ratio, rows_of
from heedful.studies.erasure.models import MODELS, WITH_ENCODER
from heedful.studies.erasure.printed import (
    LEAST_RATIO,
    MORE_THAN_HALF,
    PUBLISHED,
    TABLE_1,
    TABLE_2,
    TABLE_3,
)
from heedful.studies.erasure.single_claims import negative_share

CELLS = {"both": "both", "only top": "only_top", "only random": "only_random", "neither": "neither"}


def beside_published(ours: pd.DataFrame, paper: pd.DataFrame) -> pd.DataFrame:
    """Our rows, and the paper's of the corpus each one stands for; theirs alone at the end."""
    ours = ours.assign(published=ours["corpus"].map(PUBLISHED))
    theirs = paper.rename(columns={name: f"{name}, paper" for name in paper if name != "published"})
    found = ours.merge(theirs, on="published", how="outer", sort=False)
    order = {name: number for number, name in enumerate(dict.fromkeys(ours["corpus"]))}
    found = found.sort_values("corpus", key=lambda c: c.map(order), kind="stable")
    front = ["corpus", "published"]
    return found[front + [name for name in found if name not in front]].reset_index(drop=True)


def corpus_sizes(views: Views) -> Made:
    """T1: words and sentences per document, sizes, classes."""

    def rows(view: View) -> Iterable[dict[str, Any]]:
        found = view.of(counts)
        notes = "; ".join(f"{what}: {count}" for what, count in found["notes"].items())
        kept = ("words", "words s.d.", "sentences", "sentences s.d.", "train+dev", "test")
        sizes = {name: found[name] for name in kept} | {"classes": len(found["classes"])}
        more = {name: found[name] for name in ("vocabulary", "one sentence", "one word")}
        yield {"corpus": view.corpus} | sizes | more | {"notes": notes}

    paper = TABLE_1.rename(columns=lambda name: name.replace(",s.d.", " s.d."))
    table = beside_published(views.table(rows), paper)
    ours = table[table["words"].notna()]
    said = row_by_row(ours, "{corpus} {words:.0f} words, {sentences:.1f} sentences")
    return Made(table, sentence=f"Mean length: {said}.")


def single_flips(views: Views) -> Made:
    """T2: who flips the decision of HANrnn, under both rules for the random item."""

    def rows(view: View) -> Iterable[dict[str, Any]]:
        for rule, legacy in (("any other item", False), ("published", True)):
            yield contingency_row(view, "HANrnn", "attention", rule, legacy)

    table = views.table(rows)
    paper = TABLE_2.rename(columns={theirs: ours for ours, theirs in CELLS.items()})
    table = beside_published(table, paper)
    # The printed table was very probably made by the published rule: compared with nothing else.
    ours = table["rule"] == "any other item"
    table.loc[ours, [f"{name}, paper" for name in CELLS]] = np.nan
    for name in CELLS:
        table[f"{name}, difference"] = table[name] - table[f"{name}, paper"]
    said = row_by_row(table[ours], "{corpus} {only top:.1f} % against {only random:.1f} %")
    return Made(
        table,
        sentence=f"Only the top item flips, against only the random one: {said}.",
        deviations=(
            "Two rules for the random item: any other item (correct), and the published one, a "
            "position from 1 to n - 1, with which the paper's numbers are compared.",
        ),
    )


def contingency_row(
    view: View, model: str, ranking: str, rule: str, legacy: bool
) -> dict[str, Any]:
    """The four cells in percent, averaged over seeds, with the exact paired test of the first."""
    seeds = rows_of(view, model)
    tables = [one.contingency(ranking, legacy) for one in seeds]
    shares = np.mean([[100 * cell / max(t.n, 1) for cell in t] for t in tables], axis=0)
    if not tables[0].n:
        shares = np.full(4, np.nan)
    found: dict[str, Any] = {"corpus": view.corpus, "model": model, "rule": rule}
    found |= dict(zip(CELLS, shares.tolist(), strict=True))
    found |= {
        "top flips": float(shares[0] + shares[1]),
        "random flips": float(shares[0] + shares[2]),
    }
    return found | {"n": tables[0].n, "left out": len(seeds[0]) - tables[0].n, "p": tables[0].p}


def accuracies(views: Views) -> Made:
    """T3: test accuracy of every model, and how many classes it never decides for."""

    def rows(view: View) -> Iterable[dict[str, Any]]:
        classes = len(view.of(counts)["classes"])
        for model in at_hand(view):
            found = mean(view, model, lambda one: 100 * one.right).estimate()
            decided = set(pooled(view, model).table["decision"].tolist())
            keys = {"corpus": view.corpus, "model": model}
            yield row(keys, accuracy=found, **{"classes never decided": classes - len(decided)})

    table = views.table(rows)
    paper = TABLE_3.melt("published", var_name="model", value_name="accuracy, paper")
    table = table.assign(published=table["corpus"].map(PUBLISHED))
    table = table.merge(paper, on=["published", "model"], how="left")
    wide = table.pivot(index="corpus", columns="model", values="accuracy")
    wide = wide[[model for model in MODELS if model in wide]]
    shown = wide.loc[list(dict.fromkeys(table["corpus"]))].round(1).reset_index()
    ranges = [
        f"{name} {found.min():.0f} to {per_cent(found.max() / 100)}"
        for name, found in table.groupby("corpus", sort=False)["accuracy"]
    ]
    theirs = TABLE_3.rename(columns={"published": "corpus"})
    shown = pd.concat([shown, theirs.assign(corpus=theirs["corpus"] + ", paper")])
    return Made(table, sentence=f"Test accuracy: {'; '.join(ranges)}.", shown=shown)


def who_is_earlier(views: Views) -> Made:
    """N1: which ranking flips with fewer items, over comparable instances and over all."""

    def rows(view: View) -> Iterable[dict[str, Any]]:
        for model, ranking in product(at_hand(view), ("gradient", "product")):
            one = pooled(view, model)
            sign, both = one.earlier(ranking, "attention"), one.both_flip(ranking, "attention")
            words = (f"{ranking} earlier", 1), ("attention earlier", -1), ("equal", 0)
            for word, value in words:
                keys = {"corpus": view.corpus, "model": model, "compared": ranking, "outcome": word}
                counts = {
                    "count": int((sign == value).sum()),
                    "count where both flip": int((both & (sign == value)).sum()),
                }
                shares = {
                    name: mean(view, model, _compared, ranking, value, over).estimate()
                    for name, over in OVER.items()
                }
                yield row(keys | counts, **shares)

    table = views.table(rows)
    wins = table[(table["outcome"] == "gradient earlier") & table["model"].isin(WITH_ENCODER)]
    most = int((wins["share"] > 0.5).sum())
    said = f"The gradient is earlier on most instances of {most} of {len(wins)} encoder models."
    return Made(table, sentence=said, deviations=_all_seeds(views.plan))


OVER = {"share": "several", "share of the test set": "all", "share where both flip": "both"}
"""Documents of several items, all, and those that both rankings flip."""


def _compared(one: Erased, ranking: str, value: int, over: str) -> np.ndarray:
    is_so = one.earlier(ranking, "attention") == value
    kept = {
        "several": one.several,
        "all": np.ones(len(one), dtype=bool),
        "both": one.both_flip(ranking, "attention"),
    }[over]
    return np.where(kept, is_so, np.nan)


def how_often_earlier(views: Views) -> Made:
    """N2: (gradient earlier) / (attention earlier), and the least over encoder models."""

    def rows(view: View) -> Iterable[dict[str, Any]]:
        for model in at_hand(view):
            found = ratio(view, model).estimate()
            has = "no" if model.endswith("noenc") else "yes"
            yield row({"corpus": view.corpus, "model": model, "encoder": has}, ratio=found)

    table = views.table(rows)
    table["least of the paper"] = np.where(table["encoder"] == "yes", LEAST_RATIO, np.nan)
    least = table[table["encoder"] == "yes"].sort_values("ratio").iloc[0]
    said = (
        f"The least ratio of an encoder model is {least['ratio']:.2f} ({least['model']} on "
        f"{least['corpus']}); the paper's is {LEAST_RATIO}."
    )
    return Made(table, sentence=said)


def more_than_half(views: Views) -> Made:
    """N3: how often FLANnoenc needs more than half of the items, by ranking."""

    def rows(view: View) -> Iterable[dict[str, Any]]:
        for ranking in RANKINGS:
            found = mean(view, "FLANnoenc", _percent_late, ranking).estimate()
            is_amazon = PUBLISHED.get(view.corpus) == "Amazon"
            paper = MORE_THAN_HALF[ranking] if is_amazon else np.nan
            yield row({"corpus": view.corpus, "ranking": ranking}, percent=found, paper=paper)

    table = views.table(rows)
    said = row_by_row(table[table["ranking"] == "attention"], "{corpus} {percent:.1f} %")
    return Made(table, sentence=f"By attention, more than half removed: {said}.")


def _percent_late(one: Erased, ranking: str) -> np.ndarray:
    share = one.fraction(ranking)
    return np.where(np.isnan(share), np.nan, 100.0 * (share > 0.5))


def top_item_flips(views: Views) -> Made:
    """N4: how often the single top item flips, by ranking, and against attention's."""

    def rows(view: View) -> Iterable[dict[str, Any]]:
        for model in at_hand(view):
            found: dict[str, Any] = {}
            for ranking in ("attention", "gradient", "product"):
                found[ranking] = mean(view, model, _percent_flipped, ranking).estimate()
            for ranking in ("gradient", "product"):
                gap = mean(view, model, _flips_beyond_attention, ranking)
                found[f"{ranking} - attention"] = gap.estimate()
            yield row({"corpus": view.corpus, "model": model}, **found)

    table = views.table(rows)
    higher = int((table["product - attention"] > 0).sum())
    lower = int((table["gradient - attention"] < 0).sum())
    said = f"Product above attention on {higher} of {len(table)} models, gradient below on {lower}."
    return Made(table, sentence=said)


def _percent_flipped(one: Erased, ranking: str) -> np.ndarray:
    return np.asarray(100 * one.top_flips(ranking))


def _flips_beyond_attention(one: Erased, ranking: str) -> np.ndarray:
    return np.asarray(_percent_flipped(one, ranking) - _percent_flipped(one, "attention"))


def negatives(views: Views) -> Made:
    """N5: how often erasing the top item moves the output less than erasing the random one."""

    def rows(view: View) -> Iterable[dict[str, Any]]:
        for model in at_hand(view):
            for rule, legacy in (("any other item", False), ("published", True)):
                change = pooled(view, model).delta_js(legacy)
                keys = {"corpus": view.corpus, "model": model, "rule": rule}
                counts = {"count": int((change < 0).sum())}
                share = negative_share(view, model, legacy).estimate()
                yield row(keys | counts, share=share, **{"exactly 0": int((change == 0).sum())})

    table = views.table(rows)
    ours = table[table["rule"] == "any other item"]["share"]
    least, most = per_cent(ours.min(), 1), per_cent(ours.max(), 1)
    said = f"ΔJS is negative in {least} to {most} of the instances of a model."
    return Made(table, sentence=said, deviations=_all_seeds(views.plan))


def exclusions(views: Views) -> Made:
    """N6: instances left out: one item only, and never flipping, by ranking."""

    def rows(view: View) -> Iterable[dict[str, Any]]:
        classes = view.of(counts)["classes"]
        for model in at_hand(view):
            one = pooled(view, model)
            empty = dict.fromkeys(one.table["empty_decision"].tolist())
            for ranking in (*RANKINGS, *OURS):
                never, ends = one.never(ranking), one.at_end(ranking)
                yield {
                    "corpus": view.corpus,
                    "model": model,
                    "ranking": ranking,
                    "documents": len(one),
                    "one item": int((~one.several).sum()),
                    "never flips": int(np.nansum(never)),
                    "flips only at the end": int(np.nansum(ends)),
                    "not measured": int(np.isnan(never[one.several]).sum()),
                    "decided as by the bias": int(np.nansum(one.as_empty)),
                    "class of the bias": ", ".join(classes[number] for number in empty),
                    "underflow": int(one.table["underflow"].sum()),
                }

    table = views.table(rows)
    shown = table[table["ranking"] == "attention"]
    never = shown["never flips"].sum() / max((shown["documents"] - shown["one item"]).sum(), 1)
    said = f"By attention {per_cent(never, 1)} of the decisions never flip."
    return Made(table, sentence=said, deviations=_all_seeds(views.plan))


def _all_seeds(plan: Plan) -> tuple[str, ...]:
    return ("Counts are those of all seeds together.",) if len(plan.seeds) > 1 else ()
