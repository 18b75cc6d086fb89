"""What width and what word vectors do: accuracy and the U beside the model as published."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import partial
from typing import Any

import numpy as np
from jaxtyping import Float64

from heedful.report.panels import bars
from heedful.reproduction.ledger import Parts
from heedful.reproduction.results import Step
from heedful.reproduction.study import Made, Plan
from heedful.reproduction.tables import row
from heedful.reproduction.view import View, Views
from heedful.statistics import over_seeds
from heedful.statistics.estimates import Estimate
from heedful.studies.tracing import corpora, models, printed, steps
from heedful.studies.tracing.measures import accuracies, bends
from heedful.studies.tracing.printed import PAPER

SHOWN = ("reduced-25", "reduced-50", models.PUBLISHED, *models.VECTORS)
CURVE = ("reduced-25", "reduced-50", models.PUBLISHED)
"""Vectors of one kind in more and more dimensions."""
PAPERS = 300
"""Dimensions of the published vectors."""


def _gain(view: View, variant: str, other: str = models.PUBLISHED) -> Estimate:
    """Accuracy minus that of another variant, seed by seed, points."""
    return over_seeds(np.subtract(accuracies(view, variant), accuracies(view, other)), -100, 100)


def at_the_papers_width(view: View) -> Float64[np.ndarray, " seed"]:
    """Accuracy where each seed's line of accuracy on log dimensions has 300, per cent."""
    dims = np.log([models.vectors(view.plan, variant).dim for variant in CURVE])
    slope, level = np.polyfit(dims, [accuracies(view, variant) for variant in CURVE], 1)
    ahead = np.log(PAPERS / corpora.DIM)  # at smoke scale the same step, from narrower vectors
    found: Float64[np.ndarray, " seed"] = level + slope * (dims[-1] + ahead)
    return found


def widths(views: Views) -> Made:
    """X-W: accuracy and the square term by width and vectors, minus 100 dimensions as they are."""

    def one(view: View) -> Iterator[dict[str, Any]]:
        for variant in dict.fromkeys(SHOWN):
            chosen = models.vectors(view.plan, variant)
            seeds = [view.of(models.decisions, variant, seed)["training"] for seed in view.seeds]
            about: dict[str, Any] = {"corpus": view.corpus, "vectors": variant, "who": "ours"}
            about |= {"dimensions": chosen.dim, "way": chosen.way, "missing words": chosen.missing}
            about |= {"parameters": int(seeds[0]["parameters"].iloc[0])}
            yield row(
                about,
                accuracy=over_seeds(accuracies(view, variant), 0, 100),
                **{"minus published": _gain(view, variant)},
                **{"dev accuracy": over_seeds([100 * s["best"].iloc[0] for s in seeds], 0, 100)},
                **{"best epoch": over_seeds([s["best_epoch"].iloc[0] for s in seeds], 0)},
                b2=bends(view, variant=variant)["b2"],
            )
        base = np.array(accuracies(view))
        ahead = {"corpus": view.corpus, "dimensions": PAPERS}
        line = at_the_papers_width(view)
        yield row(
            ahead | {"vectors": f"25, 50, 100: line to {PAPERS}", "who": "ours"},
            accuracy=over_seeds(line, 0, 100),
            **{"minus published": over_seeds(line - base, -100, 100)},
        )
        yield row(
            ahead | {"vectors": "GloVe 300", "who": "paper"},
            accuracy=over_seeds([printed.ACCURACY] * 2),
            **{"minus published": over_seeds(printed.ACCURACY - base)},
        )

    table = views.table(one)
    first = table[table["corpus"] == table["corpus"].iloc[0]].set_index("vectors")
    gains = first["minus published"]
    said = (
        f"Points over 100 dimensions: padded to 300 {gains[models.PADDED]:.1f}, rotated into 300 "
        f"{gains[models.ROTATED]:.1f}; the paper {gains['GloVe 300']:.1f}."
    )
    return Made(table, partial(bars, x="vectors", y="minus published", hue="who"), said)


def width_alone_helps(view: View) -> Parts:
    """A10: accuracy in 300 dimensions that say no more than 100, minus that of the 100."""
    return Parts({variant: _gain(view, variant) for variant in (models.PADDED, models.ROTATED)})


def missing_words_cost(view: View) -> Parts:
    """A11: random vectors minus zeros; all words' own vectors minus random ones for some."""
    return Parts(
        {
            "random minus zero": _gain(view, models.PUBLISHED, models.ZERO),
            "own minus random, 50-d": _gain(view, models.GLOVE_50, models.GLOVE_50_MISSING),
        }
    )


def needs_widths(plan: Plan, corpus: str) -> Iterable[Step[Any]]:
    """Decisions and word averages of every kind of vectors."""
    kinds = tuple(dict.fromkeys(SHOWN))
    return steps.needs("ratings", "words", "decisions", variants=kinds)(plan, corpus)


WIDTHS = (PAPER.artifact("X-W", widths, needs_widths, corpora.TEXTS),)
