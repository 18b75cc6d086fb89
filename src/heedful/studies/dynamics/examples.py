"""Worked examples of the dynamics study: F1, F4, F5, F8, E3 and E4, which need no training."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from itertools import combinations
from typing import Any

import numpy as np
import pandas as pd
from scipy.sparse import csr_array

from heedful.dynamics.cooccurrence import (
    CorpusSide,
    cooccurrence,
    normalised,
    side,
    translation_table,
)
from heedful.dynamics.proxy import initial_rates
from heedful.report.panels import heatmap, lines
from heedful.reproduction.ledger import Parts
from heedful.reproduction.measures import exact
from heedful.reproduction.results import Results, Step, named
from heedful.reproduction.study import Made, Plan
from heedful.reproduction.view import View, Views
from heedful.runs import TABLE
from heedful.runs.randomness import numpy_generator
from heedful.statistics import Estimate, over_seeds
from heedful.statistics.estimates import per_cent
from heedful.studies.dynamics.printed import PAPER

TOY = "toy"
SOURCE = PAPER.source(TOY)
ONLY = (TOY,)

GERMAN = ("Dieser", "Film", "großartig", "ist", "schlecht")
ENGLISH = ("bad", "great", "is", "movie", "This")
FIGURE_1 = np.array(
    [
        [22, 26, 97, 13, 200],
        [4, 2, 15, 20, 21],
        [1, 43, 2, 3, 35],
        [18, 22, 100, 8, 54],
        [44, 1, 19, 3, 35],
    ],
    dtype=np.float64,
)
"""The drawn table has 12 for Film and This; only 21 gives the printed .32."""
SENTENCE = ("Dieser", "Film", "ist", "schlecht")


def _cells(
    values: np.ndarray, rows: Sequence[str], columns: Sequence[str], panel: str
) -> list[dict[str, Any]]:
    return [
        {"panel": panel, "source": rows[i], "target": columns[o], "value": float(values[i, o])}
        for i, o in np.ndindex(*values.shape)
    ]


def _drawn(cells: list[dict[str, Any]], said: str, digits: int = 2) -> Made:
    draw = partial(
        heatmap, x="target", y="source", value="value", panel="panel", digits=digits, share=False
    )
    return Made(pd.DataFrame(cells), draw, said)


def movie_example() -> tuple[float, float]:
    """Trans(movie | Film), and the weight of Film for `movie` from the rounded probabilities."""
    movie = normalised(csr_array(FIGURE_1)).toarray()[:, ENGLISH.index("movie")]
    chosen = movie[[GERMAN.index(word) for word in SENTENCE]].round(2)
    return float(movie[GERMAN.index("Film")]), float(chosen[1] / chosen.sum())


def _figure_1(views: Views) -> Made:
    table = normalised(csr_array(FIGURE_1)).toarray()
    places = [GERMAN.index(word) for word in SENTENCE]
    aligned = table[places] / table[places].sum(0)
    cells = _cells(FIGURE_1, GERMAN, ENGLISH, "counts")
    cells += _cells(table, GERMAN, ENGLISH, "Trans")
    cells += _cells(aligned, SENTENCE, ENGLISH, "alignment")
    film, weight = movie_example()
    exact = aligned[SENTENCE.index("Film"), ENGLISH.index("movie")]
    said = (
        f"Trans(movie | Film) = {film:.2f}; the alignment of movie with Film is {weight:.2f} from "
        f"the printed probabilities, {exact:.2f} from the exact ones."
    )
    return _drawn(cells, said)


def _permutations(vocabulary: int, length: int) -> CorpusSide:
    """Every set of so many symbols once: counts know no order, so that they are those expected."""
    return side(list(combinations(range(vocabulary), length)), vocabulary)


def _mixture(half: int) -> CorpusSide:
    """Both sets once."""
    return side([range(half), range(half, 2 * half)], 2 * half)


def _figure_4(views: Views) -> Made:
    cells = []
    for vocabulary, what in ((4, "4 of 4"), (6, "4 of 6")):
        data = _permutations(vocabulary, 4)
        names = [str(symbol) for symbol in range(1, vocabulary + 1)]
        cells += _cells(translation_table(data, data).toarray(), names, names, what)
    said = (
        "With all 4 of 4 symbols every entry is 1/4 and nothing is told; with 4 of 6 the diagonal "
        "is 5/3 of the rest."
    )
    return _drawn(cells, said)


def _figure_5(views: Views) -> Made:
    words, classes = ("great", "movie", "bad"), ("positive", "negative")
    sources, targets = side([[0, 1], [2, 1]], 3), side([[0], [1]], 2)
    counts = cooccurrence(sources, targets).toarray()
    cells = _cells(counts, words, classes, "counts")
    cells += _cells(translation_table(sources, targets).toarray(), words, classes, "Trans")
    return _drawn(cells, "Trans(positive | great) = 1, (positive | bad) = 0, (… | movie) = 1/2.")


def _figure_8(views: Views) -> Made:
    data = _mixture(3)
    names = [str(symbol) for symbol in range(1, 7)]
    table = translation_table(data, data).toarray()
    said = "1/3 inside a block and 0 across: only the block is told."
    return _drawn(_cells(table, names, names, "two disjoint sets of 3"), said)


DIMS = (256, 1_024, 4_096, 16_384, 65_536)


def toy_pairs(seed: int) -> tuple[CorpusSide, CorpusSide]:
    """40 random pairs over 12 and 10 words."""
    generator = numpy_generator(seed, "toy pairs")
    sizes = generator.integers(2, 8, (40, 2)).tolist()
    sources = [generator.integers(0, 12, size).tolist() for size, _ in sizes]
    targets = [generator.integers(0, 10, size).tolist() for _, size in sizes]
    return side(sources, 12), side(targets, 10)


def rates(plan: Plan) -> Step[pd.DataFrame]:
    """The error of the initial derivative by width, for several toy corpora."""
    seeds = range(plan.pick(4, 10))

    def compute(results: Results) -> pd.DataFrame:
        rows = []
        for seed in seeds:
            sources, answers = toy_pairs(seed)
            for dim in DIMS:
                found = initial_rates(sources, answers, dim, seed)
                size = np.abs(found.limit).max()
                moved = {
                    "logits": found.logits,
                    "probability × |O|": 10 * found.probabilities,
                    "probability as printed": found.probabilities,
                }
                for what, values in moved.items():
                    error = float(np.abs(values - found.limit).max() / size)
                    rows.append({"seed": seed, "width": dim, "rate of": what, "error": error})
        return pd.DataFrame(rows)

    inputs = {"dims": list(DIMS), "seeds": len(seeds)}
    return Step(named(TOY, "rates"), compute, inputs, TABLE)


def _errors(views: Views) -> Made:
    table = views[rates(views.plan)]
    table = table.assign(**{"log10 of error": np.log10(table["error"])})
    draw = partial(lines, x="width", y="log10 of error", hue="rate of", each="seed", log=True)
    last = table[(table["width"] == DIMS[-1]) & (table["rate of"] == "logits")]["error"].mean()
    said = f"At width {DIMS[-1]:,} the logits' rate is {per_cent(last, 2)} of the largest off."
    return Made(table, draw, said)


def derivative(view: View) -> Parts:
    """DYN-14."""
    table = view[rates(view.plan)]
    logits = table[table["rate of"] == "logits"]
    slopes, last = [], []
    for _, part in logits.groupby("seed"):
        slopes.append(float(np.polyfit(np.log(part["width"]), np.log(part["error"]), 1)[0]))
        last.append(float(part.loc[part["width"] == DIMS[-1], "error"].iloc[0]))
    return {"slope": over_seeds(slopes), "error at 65,536": over_seeds(last)}


def worked_example() -> dict[str, Estimate]:
    """DYN-15 on the figure."""
    film, weight = movie_example()
    return {
        "Trans(movie | Film)": exact(round(film, 2), 1),
        "alignment": exact(round(weight, 2), 1),
    }


def counterexample() -> dict[str, float]:
    """α^opt, its p and β of the three logit vectors of eqs. 28 to 30."""
    import torch

    from heedful.studies.dynamics.optimal_attention import optimal_attention

    said = torch.tensor([[[0.0, 0, 0], [0, -10, 5], [0, 5, -10]]])
    mask, target = torch.ones(1, 3, dtype=torch.bool), torch.tensor([0])
    found = optimal_attention(said, mask, torch.zeros(1, 3), target, tolerance=1e-10)
    cells = {f"α{unit + 1}": float(found.attention[0, unit]) for unit in range(3)}
    cells |= {f"β{unit + 1}": float(said[0, unit].softmax(-1)[0]) for unit in range(3)}
    return cells | {"p": float((-found.loss[0]).exp()), "gap": float(found.gap[0])}


def _counterexample(views: Views) -> Made:
    found = counterexample()
    printed = {"α1": 0.0, "α2": 0.5, "α3": 0.5, "β1": 1 / 3, "β2": 0.00669, "β3": 0.00669}
    printed["p"] = 0.859
    rows = [
        {"quantity": name, "ours": value, "paper": printed.get(name)}
        for name, value in found.items()
    ]
    return Made(
        pd.DataFrame(rows),
        sentence="Optimal attention leaves out the unit with the largest probe: "
        f"({found['α1']:.2f}, {found['α2']:.2f}, {found['α3']:.2f}).",
    )


EXAMPLES = (
    PAPER.artifact("F1", _figure_1, corpora=ONLY),
    PAPER.artifact("F4", _figure_4, corpora=ONLY),
    PAPER.artifact("F5", _figure_5, corpora=ONLY),
    PAPER.artifact("F8", _figure_8, corpora=ONLY),
    PAPER.artifact("E3", _counterexample, corpora=ONLY),
    PAPER.artifact("E4", _errors, lambda plan, corpus: [rates(plan)], ONLY),
)
