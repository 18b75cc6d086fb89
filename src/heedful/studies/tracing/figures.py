"""Figures of the tracing study: word clouds, ratings and scores, attention of heads."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np
import pandas as pd

from heedful.audits import head_shares, lexicon
from heedful.audits.head_shares import KINDS
from heedful.report.lexicon_charts import MOST_WORDS, clouds, rated_scatter
from heedful.report.panels import heatmap, lines
from heedful.reproduction.study import Made, Plan
from heedful.reproduction.view import View, Views
from heedful.statistics import draws
from heedful.studies.tracing import printed, steps
from heedful.studies.tracing.measures import HIDDEN, rated
from heedful.studies.tracing.printed import PAPER

LISTED = 8


def cloud(views: Views) -> Made:
    """F4: the words with the highest averages, first seed."""

    def one(view: View) -> list[dict[str, Any]]:
        words = view.of(steps.words, view.seeds[0])
        kept = words[(words["count"] >= lexicon.LEAST_COUNT) & ~words["word"].str.contains("'")]
        top = kept.nlargest(2 * MOST_WORDS, "lat")
        return [
            {"corpus": view.corpus, "word": r["word"], "count": r["count"], "score": r["lat"]}
            for r in top.to_dict("records")
        ]

    table = views.table(one)
    tops = table.groupby("corpus", sort=False)["word"].apply(lambda w: ", ".join(w.head(LISTED)))
    said = "; ".join(f"{corpus}: {words}" for corpus, words in tops.items())
    draw = partial(clouds, word="word", size="score", panel="corpus")
    return Made(table, draw, f"Highest, first seed: {said}.")


def scatter(views: Views) -> Made:
    """F5: LAT and gradient of rated words over their valence, first seed."""

    def one(view: View) -> pd.DataFrame:
        words = rated(view, view.seeds[0])
        names = {"word": "word", "count": "count", "rating": "valence", "lat": "LAT"}
        shown = words.rename(columns=names)[[*names.values(), "gradient"]]
        return shown.assign(corpus=view.corpus)

    parts = views.each(one)
    table = pd.concat(parts.values(), ignore_index=True)
    draw = partial(
        rated_scatter, x="valence", scores=("LAT", "gradient"), panel="corpus", below=HIDDEN,
        label="mean score",
    )  # fmt: skip
    counts = "; ".join(f"{corpus}: {len(part):,} words" for corpus, part in parts.items())
    said = f"First seed. {counts}; fits over all, only scores below {HIDDEN} drawn."
    return Made(table, draw, said)


def heads(views: Views) -> Made:
    """F6: each head's share on tagged words beside chance, first seed, and the paper's values."""

    def one(view: View) -> Iterator[dict[str, Any]]:
        for seed in view.seeds:
            table = view.of(steps.heads, seed)
            names = [str(name) for name in table["instance"]]
            for kind in KINDS:
                columns = {
                    "rand": head_shares.chance(table, kind),
                    "rand, published": head_shares.published_chance(table, kind),
                }
                held = head_shares.shares(table, kind).T
                columns |= {str(head + 1): share for head, share in enumerate(held)}
                for column, values in columns.items():
                    share = draws.average(values, names).estimate()
                    keys = {"panel": view.corpus, "seed": seed, "kind": kind, "column": column}
                    ends = {"low": share.low, "high": share.high, "n": share.n}
                    yield keys | {"share": share.value} | ends

    ours = views.table(one)
    told = printed.HEADS.melt(["corpus", "kind"], var_name="column", value_name="share")
    told = told.assign(panel=told["corpus"] + ", paper", seed=views.seeds[0]).drop(columns="corpus")
    table = pd.concat([ours, told], ignore_index=True)
    return Made(table, partial(_heatmap, seed=views.seeds[0]), _above(ours, views.plan))


def _heatmap(table: pd.DataFrame, seed: int) -> Any:
    shown = table[table["seed"] == seed].replace({"rand, published": "(publ.)"})
    return heatmap(shown, x="column", y="kind", value="share", panel="panel")


def _above(table: pd.DataFrame, plan: Plan) -> str:
    """How many heads of all seeds lie above chance in their own texts."""
    said = []
    for corpus, part in table.groupby("panel", sort=False):
        heads = part[~part["column"].str.startswith("rand")]
        chance = part[part["column"] == "rand"].set_index(["seed", "kind"])["share"]
        above = (
            heads["share"].to_numpy()
            > chance.reindex(pd.MultiIndex.from_frame(heads[["seed", "kind"]])).to_numpy()
        )
        counts = pd.Series(above).groupby(heads["kind"].to_numpy()).agg(["sum", "size"])
        told = ", ".join(f"{kind} {c['sum']} of {c['size']}" for kind, c in counts.iterrows())
        said.append(f"{corpus}: {told}")
    return (
        "Drawn is the first seed. Heads of all seeds above chance in their own texts: "
        f"{'; '.join(said)}."
    )


def entropies(views: Views) -> Made:
    """X2: how evenly each layer spreads, and how the largest share changes on the way down."""

    def one(view: View) -> Iterator[dict[str, Any]]:
        for seed in view.seeds:
            texts = view.of(steps.texts, seed)
            names = [str(name) for name in texts["instance"]]
            layers = [c for c in texts if str(c).startswith("entropy ")]
            for layer, column in enumerate(layers, 1):
                spread = draws.average(texts[column], names).estimate()
                gains = texts[[c for c in texts if str(c).startswith(f"gain {layer}.")]].mean()
                yield {"corpus": view.corpus, "seed": seed, "layer": layer, "entropy": spread.value,
                     "entropy low": spread.low, "entropy high": spread.high,
                     "largest gain": gains.max(), "smallest gain": gains.min()}  # fmt: skip

    table = views.table(one)
    top = table[table["layer"] == table.groupby("corpus")["layer"].transform("max")]
    means = top.groupby("corpus", sort=False)["entropy"].mean()
    said = "; ".join(f"{corpus} {value:.3f}" for corpus, value in means.items())
    draw = partial(_in_steps, x="layer", y="entropy", panel="corpus")
    return Made(table, draw, f"Entropy of the top layer over log N: {said}.")


def _in_steps(table: pd.DataFrame, x: str, **columns: Any) -> Any:
    """Lines over whole numbers, each with a tick of its own."""
    return lines(table.astype({x: str}), x=x, each="seed", **columns)


def sorted_heads(views: Views) -> Made:
    """X3: the shares of heads in order, every seed, since heads have no numbers to compare by."""

    def one(view: View) -> Iterator[dict[str, Any]]:
        for kind in KINDS:
            keys, panel = {"corpus": view.corpus, "kind": kind}, f"{view.corpus}, {kind}"
            for seed in view.seeds:
                shares = head_shares.shares(view.of(steps.heads, seed), kind)
                ordered = sorted(np.nanmean(shares, axis=0), reverse=True)
                yield from (
                    keys | {"seed": seed, "rank": rank, "share": share, "panel": panel}
                    for rank, share in enumerate(ordered, 1)
                )

    table = views.table(one)
    draw = partial(_in_steps, x="rank", y="share", panel="panel", share=False)
    ends = table.groupby("panel", sort=False)["share"].agg(["min", "max"])
    said = "; ".join(f"{name} {e['min']:.2f} to {e['max']:.2f}" for name, e in ends.iterrows())
    return Made(table, draw, f"Ranges over heads and seeds: {said}.")


FIGURES = (
    PAPER.artifact("F4", cloud, steps.needs("words")),
    PAPER.artifact("F5", scatter, steps.RATED),
    PAPER.artifact("F6", heads, steps.needs("heads")),
    PAPER.artifact("X2", entropies, steps.needs("texts")),
    PAPER.artifact("X3", sorted_heads, steps.needs("heads")),
)
