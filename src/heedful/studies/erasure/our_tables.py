"""Tables of our own: every ranking, equal numbers of items, what is left, how models learnt."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import product
from typing import Any

import numpy as np

from heedful.reproduction.study import Made
from heedful.reproduction.tables import row
from heedful.reproduction.view import View, Views
from heedful.statistics import draws
from heedful.statistics.estimates import per_cent
from heedful.studies.erasure.examination import LEFT, OURS, RANDOM_ORDERS, RANKINGS, Erased
from heedful.studies.erasure.measures import at_hand, mean, ratio
from heedful.studies.erasure.steps import erased

BINS = ((2, 2), (3, 4), (5, 8), (9, 16), (17, 64), (65, 256), (257, 10**9))
"""Numbers of units, first and last, at which fractions are compared (ours)."""


def all_rankings(views: Views) -> Made:
    """X1 (ours): every ranking, the centred and greedy ones and five random orders among them."""
    names = (*RANKINGS, *(f"random {k}" for k in range(2, RANDOM_ORDERS + 1)), *OURS)

    def rows(view: View) -> Iterable[dict[str, Any]]:
        for model in at_hand(view):
            for ranking in names:
                share = mean(view, model, Erased.fraction, ranking, 1.0)
                gained = mean(view, model, _beyond_random, ranking)
                yield row(
                    {"corpus": view.corpus, "model": model, "ranking": ranking},
                    **{"fraction, never = 1": share.estimate(), "minus random": gained.estimate()},
                )

    table = views.table(rows)
    means = table.groupby("ranking")["fraction, never = 1"].mean()
    shown = ("attention", "product", "centred", "greedy")
    listed = ", ".join(f"{name} {means[name]:.2f}" for name in shown)
    said = f"Mean over models of the items removed: {listed}."
    fewer = "Greedy orders are those of documents of at most 256 items: compare `minus random`."
    return Made(table, sentence=said, deviations=(fewer,))


def _beyond_random(one: Erased, ranking: str) -> np.ndarray:
    return np.asarray(one.fraction(ranking, never=1.0) - one.fraction("random", never=1.0))


def by_units(views: Views) -> Made:
    """X2 (ours): the fraction removed by attention and at random, at equal numbers of items."""

    def rows(view: View) -> Iterable[dict[str, Any]]:
        for model in at_hand(view):
            for first, last in BINS:
                ours = mean(view, model, _at_units, first, last, "attention")
                if not ours.n:
                    continue
                chance = mean(view, model, _at_units, first, last)
                yield row(
                    {"corpus": view.corpus, "model": model, "from": first, "to": min(last, 2_000)},
                    attention=ours.estimate(),
                    random=chance.estimate(),
                    **{"attention - random": draws.minus(ours, chance).estimate()},
                )

    table = views.table(rows)
    least = table["attention - random"].min()
    said = (
        f"At equal numbers of items attention removes up to {-least:.2f} less than random orders."
    )
    return Made(table, sentence=said)


def _at_units(one: Erased, first: int, last: int, ranking: str = "") -> np.ndarray:
    """Fractions of documents with so many units, by a ranking or in random orders."""
    values = one.fraction(ranking, never=1.0) if ranking else random_fraction(one)
    return np.where((one.units >= first) & (one.units <= last), values, np.nan)


def random_fraction(one: Erased) -> np.ndarray:
    """The mean over the random orders of a document: the expected fraction without knowledge."""
    names = ["random", *(f"random {k}" for k in range(2, RANDOM_ORDERS + 1))]
    return np.asarray(np.mean([one.fraction(name, never=1.0) for name in names], axis=0))


def what_is_left(views: Views) -> Made:
    """X3 (ours): the end of every ranking, by what the head reads when nothing is left."""

    def rows(view: View) -> Iterable[dict[str, Any]]:
        for model, left in product(at_hand(view), LEFT):
            found = {
                name: mean(view, model, _at_the_end, left, ranking, kind).estimate()
                for ranking in ("attention", "gradient")
                for name, kind in (
                    (f"{ranking}: items removed", "fraction"),
                    (f"{ranking}: flips only at the end", "end"),
                    (f"{ranking}: never flips", "never"),
                )
            }
            earlier = ratio(view, model, under=left).estimate()
            keys = {"corpus": view.corpus, "model": model, "left": left}
            yield row(keys, **found, **{"gradient over attention earlier": earlier})

    table = views.table(rows)
    ends = table.groupby("left", sort=False)["attention: flips only at the end"].mean()
    told = ", ".join(f"{left} {per_cent(share)}" for left, share in ends.items())
    return Made(table, sentence=f"By attention so many flip only at the end: {told}.")


def _at_the_end(one: Erased, left: str, ranking: str, kind: str) -> np.ndarray:
    changed = one.under(left)
    if kind == "fraction":
        return changed.fraction(ranking)
    return changed.at_end(ranking) if kind == "end" else changed.never(ranking)


def how_they_learnt(views: Views) -> Made:
    """X4 (ours): when each model stopped, and whether dev accuracy and attention had settled."""

    def rows(view: View) -> Iterable[dict[str, Any]]:
        for model in at_hand(view):
            whole = view.of(erased, model)["log"]
            for seed in view.seeds:
                log = whole[whole["seed"] == seed].reset_index(drop=True)
                best = log.iloc[int(log["dev_accuracy"].to_numpy().argmax())]
                last = log.iloc[-1]
                late = log.loc[log["step"] >= 2 * last["step"] / 3, "dev_entropy"]
                yield {
                    "corpus": view.corpus,
                    "model": model,
                    "seed": seed,
                    "epochs": len(log),
                    "updates": int(last["step"]),
                    "best epoch": round(best["epoch"]),
                    "updates to the best": int(best["step"]),
                    "dev accuracy": best["dev_accuracy"],
                    "rate at the best": best["learning_rate"],
                    "rate at the end": last["learning_rate"],
                    "entropy after one epoch": log["dev_entropy"].iloc[0],
                    "entropy at the best": best["dev_entropy"],
                    "entropy at the end": last["dev_entropy"],
                    "its range in the last third": late.max() - late.min(),
                }

    table = views.table(rows)
    moved = (table["entropy at the best"] < 0.95).mean()
    still = (table["its range in the last third"] < 0.02).mean()
    said = (
        f"Attention left uniform (entropy below 0.95) in {per_cent(moved)} of the trainings; in "
        f"{per_cent(still)} its entropy moved by less than 0.02 in the last third."
    )
    shown = table.groupby(["corpus", "model"], sort=False)[
        [
            "updates to the best",
            "dev accuracy",
            "entropy at the best",
            "its range in the last third",
        ]
    ].median()
    return Made(table, sentence=said, shown=shown.round(4).reset_index())
