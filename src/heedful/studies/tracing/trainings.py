"""Artifacts of the tracing study that show its models alone: accuracy, effort, one sentence."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any

import numpy as np
import pandas as pd

from heedful.report.drawing import standalone
from heedful.report.panels import lines
from heedful.reproduction.study import Made
from heedful.reproduction.tables import row
from heedful.reproduction.view import View, Views
from heedful.statistics import over_seeds
from heedful.statistics.estimates import per_cent
from heedful.studies.tracing import corpora, flow_diagram, models
from heedful.studies.tracing.learnt import Tables
from heedful.studies.tracing.printed import PAPER

COUNTS = {"SST-5 model": 3_993_222, "SEND model": 4_715_362}
"""Published numbers of trained parameters."""
TABLE_1A: tuple[tuple[str, float, float | None], ...] = (
    ("RNTN (Socher 2013)", 45.7, None),
    ("BiLSTM (Tai 2015)", 46.5, None),
    ("Transformer with positions (Ambartsoumian and Popowich 2018)", 45.0, 0.4),
    ("DiSAN (Shen 2018)", 51.7, None),
    ("theirs", 47.5, 0.2),
)
TABLE_1B: tuple[tuple[str, float, float | None, float | None], ...] = (
    ("LSTM (Ong 2019)", 0.40, None, 0.32),
    ("SFT (Wu 2019)", 0.34, None, 0.33),
    ("human (Ong 2019)", 0.50, None, 0.12),
    ("theirs", 0.54, 0.02, 0.36),
)


def _training(view: View, variant: str) -> pd.DataFrame:
    """One row per seed of how training went."""
    return _joined([view.of(models.decisions, variant, seed) for seed in view.seeds])


def _joined(seeds: Sequence[Tables]) -> pd.DataFrame:
    return pd.concat([one["training"] for one in seeds], ignore_index=True)


def accuracies(views: Views) -> Made:
    """T1a: test accuracy of every variant beside the paper's table."""

    def one(view: View) -> Iterator[dict[str, Any]]:
        for variant in models.variants_of(view.plan, view.corpus):
            share = 100 * _training(view, variant)["accuracy"]
            keys = {"corpus": view.corpus, "model": f"Transformer, {variant}"}
            yield row(keys, accuracy=over_seeds(share, 0, 100)) | {"SD over runs": share.std()}

    ours = views.table(one)
    paper = pd.DataFrame(
        [
            {"corpus": "paper, SST-5", "model": name, "accuracy": value, "SD over runs": spread}
            for name, value, spread in TABLE_1A
        ]
    )
    best = ours[ours["model"].str.endswith(models.PUBLISHED)].iloc[0]
    right = per_cent(best["accuracy"] / 100, 1)
    said = f"{right} on {best['corpus']} with the published recipe; paper 47.5."
    return Made(pd.concat([ours, paper], ignore_index=True), sentence=said)


def concordances(views: Views) -> Made:
    """T1b: CCC per narrative, averaged; windows and whole narratives, beside the paper's table."""

    def one(view: View) -> Iterator[dict[str, Any]]:
        for reads in (models.WINDOWED, models.WHOLE):
            table = models.narrative_ccc(view, reads)
            mean = over_seeds(table.mean(), -1, 1)
            # The code's spread over examples is that of a population, within one run: averaging
            # runs first would make it smaller.
            spread = {"SD_runs": table.mean().std(), "SD_eg": table.std(ddof=0).mean()}
            keys = {"corpus": view.corpus, "model": f"Transformer over each {reads.rstrip('s')}"}
            yield row(keys, CCC=mean) | spread

    ours = views.table(one)
    paper = pd.DataFrame(
        [
            {"corpus": "paper, SEND", "model": name, "CCC": value, "SD_runs": runs, "SD_eg": each}
            for name, value, runs, each in TABLE_1B
        ]
    )
    first, second = ours["CCC"].iloc[0], ours["CCC"].iloc[1]
    said = f"CCC {first:.2f} reading windows, {second:.2f} reading whole narratives; paper .54."
    return Made(pd.concat([ours, paper], ignore_index=True), sentence=said)


def counts(views: Views) -> Made:
    """S1: trained parameters, ours as trained and as published."""
    first = views.seeds[0]

    def one(view: View) -> list[dict[str, Any]]:
        if view.corpus in corpora.STORIES:
            found = view.of(models.followed, models.WINDOWED, first)
            name, width = "SEND model", models.narrator_config(view.plan).embedding_dim
        else:
            found = view.of(models.decisions, models.PUBLISHED, first)
            name, width = "SST-5 model", models.config(view.plan).embedding_dim
        number = int(found["training"]["parameters"].iloc[0])
        keys = {"corpus": view.corpus, "model": name, "width": width, "parameters": number}
        return [keys | {"published, width 300": COUNTS[name]}]

    said = "At width 300 the models have the published numbers exactly; a test counts them."
    return Made(views.table(one), sentence=said)


def efforts(views: Views) -> Made:
    """S2: epochs, epoch of the best dev score, wall time."""

    def one(view: View) -> list[dict[str, Any]]:
        if view.corpus in corpora.STORIES:
            tables = {
                reads: _joined([view.of(models.followed, reads, s) for s in view.seeds])
                for reads in (models.WINDOWED, models.WHOLE)
            }
        else:
            kinds = [
                k for k in models.variants_of(view.plan, view.corpus) if k not in models.BEFORE
            ]
            tables = {kind: _training(view, kind) for kind in kinds}
        return [
            row(
                {"corpus": view.corpus, "model": kind, "epochs": float(table["epochs"].iloc[0])},
                **{"best epoch": over_seeds(table["best_epoch"], 0)},
                seconds=over_seeds(table["seconds"], 0),
            )
            | {"models trained in that time": int(table["together"].iloc[0])}
            for kind, table in tables.items()
        ]

    table = views.table(one)
    said = f"The best dev score comes at epoch {table['best epoch'].iloc[0]:.0f} on average."
    return Made(table, sentence=said)


def flow_figure(views: Views) -> Made:
    """F3: attention traced through one sentence."""
    found = views.each(lambda view: view.of(models.flow))
    one = next(iter(found.values()))
    scores = np.asarray(one["shares"])[0]
    table = pd.DataFrame(scores.T, columns=[f"head {h}" for h in range(1, len(scores) + 1)])
    table.insert(0, "word", one["words"])
    table["total"] = scores.sum(0)
    top = table.sort_values("total", ascending=False)["word"].iloc[0]
    return Made(
        table,
        sentence=f"Of “{' '.join(one['words'])}” the word “{top}” gets the most.",
        svg=standalone(flow_diagram.draw(one, "F3: traced attention in one sentence")),
    )


def _drawn(picture: str) -> Made:
    return Made(svg=standalone(picture))


def story_figure(views: Views) -> Made:
    """X-N: rating and guess over time of the narrative with the median CCC."""

    def one(view: View) -> pd.DataFrame:
        tables = view.of(models.followed, models.WINDOWED, view.seeds[0])
        order = tables["narratives"].sort_values("ccc")
        middle = order.iloc[len(order) // 2]
        table = tables["windows"][tables["windows"]["narrative"] == middle["narrative"]]
        said = f"{view.corpus}: {middle['narrative']}, CCC {middle['ccc']:.2f}"
        found = table.assign(corpus=view.corpus, ccc=middle["ccc"], panel=said)
        keys = ["corpus", "panel", "narrative", "ccc", "seconds"]
        melted: pd.DataFrame = found.melt(keys, ["rating", "guess"], "who", "valence")
        return melted

    table = pd.concat(views.each(one).values(), ignore_index=True)
    said = f"The median narrative has a CCC of {table['ccc'].iloc[0]:.2f}; the paper's shows .734."
    draw = partial(lines, x="seconds", y="valence", hue="who", panel="panel", dashed="rating")
    return Made(table, draw, said)


TRAININGS = (
    PAPER.artifact("T1a", accuracies, models.needs_variants, corpora.TEXTS),
    PAPER.artifact("T1b", concordances, models.needs_followed, corpora.STORIES),
    PAPER.artifact("F1", lambda views: _drawn(flow_diagram.architecture())),
    PAPER.artifact("F2", lambda views: _drawn(flow_diagram.schematic())),
    PAPER.artifact("F3", flow_figure, models.needs_flow, corpora.TEXTS),
    PAPER.artifact("S1", counts, models.needs_efforts),
    PAPER.artifact("S2", efforts, models.needs_efforts),
    PAPER.artifact("X-N", story_figure, models.needs_followed, corpora.STORIES),
)
