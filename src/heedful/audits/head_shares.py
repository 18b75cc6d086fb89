"""How much of its traced attention each head puts on words of a kind, beside chance.

For a kind of word (very positive, very negative, either), a head's share is the mean over texts
with such a word of the attention that reaches them (eq. 14 of Wu et al. 2020: every text hands on
one unit, so the quotient of sums is that mean). Chance is what even attention would give in the
same texts. The published figure took chance over texts with either kind and swapped two cells of
it; `published_chance` computes that, for comparison only.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from jaxtyping import Bool, Float64, Shaped

from heedful.audits.finding import Finding, Measure
from heedful.runs.randomness import keys, uniform_noise
from heedful.statistics import draws
from heedful.statistics.draws import Draws

if TYPE_CHECKING:
    import pandas as pd

QUESTION = "Which heads turn to words that people rate high or low, more than chance would?"
KINDS = ("both", "v.pos", "v.neg")
SAID = {"both": "high or low", "v.pos": "high", "v.neg": "low"}
"""How the kinds are called where words are rated, not labelled."""
VERY_NEGATIVE, VERY_POSITIVE = 0, 4
"""The labels of single words that count, of five."""
HIGH, LOW = 6.5, 3.5
"""Ratings (1 to 9) from which, and below which, a word counts where words have no label."""
RELABELLINGS = 200


def tags(
    tokens: pd.DataFrame,
    ratings: pd.Series[float] | None = None,
    bounds: tuple[float, float] = (LOW, HIGH),
) -> Shaped[np.ndarray, " token"]:
    """1 for very positive tokens, -1 for very negative ones, 0 for others.

    By the words' own labels (`label_of_word`, 0 to 4), or where a corpus has none by `ratings` of
    words: below the first bound, from the second on.
    """
    if ratings is None:
        label = tokens["label_of_word"].to_numpy()
        return _signs(label == VERY_POSITIVE, label == VERY_NEGATIVE)
    rating = ratings.reindex(tokens["word"]).to_numpy(dtype=np.float64)
    with np.errstate(invalid="ignore"):
        return _signs(rating >= bounds[1], rating < bounds[0])


def masses(tokens: pd.DataFrame, kind_of_token: Shaped[np.ndarray, " token"]) -> pd.DataFrame:
    """One row per text: its length, its tagged words, and each head's attention on them.

    Columns `v.pos` and `v.neg` count the words, `v.pos 0`, `v.neg 0`, … hold the attention of each
    head (columns `head_0`, … of the token table).
    """
    import pandas as pd

    place, instances = pd.factorize(tokens["instance"])
    found: dict[str, object] = {"instance": instances, "length": np.bincount(place)}
    signs = {"v.pos": kind_of_token > 0, "v.neg": kind_of_token < 0}
    for name, is_tagged in signs.items():
        found[name] = np.bincount(place, is_tagged.astype(np.float64)).astype(np.int64)
    for head in range(heads_of(tokens)):
        held = tokens[f"head_{head}"].to_numpy(dtype=np.float64)
        for name, is_tagged in signs.items():
            found[f"{name} {head}"] = np.bincount(place, held * is_tagged)
    return pd.DataFrame(found)


def heads_of(table: pd.DataFrame) -> int:
    """How many heads a token table, or a table of masses, has."""
    return sum(str(c).startswith(("head_", "v.pos ")) for c in table)


def shares(table: pd.DataFrame, kind: str) -> Float64[np.ndarray, "text head"]:
    """Each head's attention on words of the kind; nan in texts that have none."""
    names = ("v.pos", "v.neg") if kind == "both" else (kind,)
    heads = range(heads_of(table))
    found = sum(table[[f"{name} {h}" for h in heads]].to_numpy(dtype=np.float64) for name in names)
    return np.where(_has(table, kind)[:, None], found, np.nan)


def chance(
    table: pd.DataFrame, kind: str, among: str | None = None
) -> Float64[np.ndarray, " text"]:
    """The share of words that are of the kind; nan in texts without one (or one of `among`)."""
    names = ("v.pos", "v.neg") if kind == "both" else (kind,)
    share = table[list(names)].sum(axis=1).to_numpy(dtype=np.float64) / table["length"].to_numpy()
    return np.where(_has(table, among or kind), share, np.nan)


def published_chance(table: pd.DataFrame, kind: str) -> Float64[np.ndarray, " text"]:
    """Chance as the figure shows it: over texts with either kind, the two kinds interchanged."""
    shown = {"v.pos": "v.neg", "v.neg": "v.pos"}.get(kind, kind)
    return chance(table, shown, among="both")


def above_chance(table: pd.DataFrame, kind: str, is_published: bool = False) -> list[Draws]:
    """Each head's share minus chance, with bootstrap replicates over texts."""
    names = _names(table)
    baseline = published_chance(table, kind) if is_published else chance(table, kind)
    even = draws.average(baseline, names)
    return [draws.minus(draws.average(held, names), even) for held in shares(table, kind).T]


def lead(table: pd.DataFrame, kind: str) -> Draws:
    """The largest head's share minus the mean of the others', the largest found anew each time."""
    held, names = shares(table, kind), _names(table)
    is_known = ~np.isnan(held[:, 0])
    counted = np.column_stack([np.nan_to_num(held), is_known])

    def statistic(
        weights: Float64[np.ndarray, "replicate text"],
    ) -> Float64[np.ndarray, " replicate"]:
        sums = weights @ counted
        with np.errstate(divide="ignore", invalid="ignore"):
            return _leads(sums[:, :-1] / sums[:, -1:])

    return draws.draws(statistic, names, int(is_known.sum()))


def relabelled_leads(
    table: pd.DataFrame, kind: str, relabellings: int = RELABELLINGS, seed: int = 0
) -> Float64[np.ndarray, " relabelling"]:
    """The lead when the heads of every text are given new numbers at random.

    What is left is how far the largest of so many equal heads lies ahead by luck.
    """
    held = shares(table, kind)
    is_known = ~np.isnan(held[:, 0])
    held, names = held[is_known], [n for n, k in zip(_names(table), is_known, strict=True) if k]
    if not len(held):
        return np.full(relabellings, np.nan)
    texts = keys(seed, names, "heads", kind)
    means = np.empty((relabellings, held.shape[1]))
    noise = uniform_noise(texts, relabellings, held.shape[1]).numpy()
    for number in range(relabellings):
        order = noise[:, number].argsort(1)
        means[number] = np.take_along_axis(held, order, axis=1).mean(0)
    return _leads(means)


def summarise(table: pd.DataFrame) -> Finding:
    """The finding over the heads of one model: each share beside chance, and who leads."""
    measures, rows, said, told = [], [], [], []
    for kind, called in SAID.items():
        held = shares(table, kind)
        texts = int((~np.isnan(held[:, 0])).sum())
        if not texts:
            told.append(f"No text has a word rated {called}.")
            continue
        even = draws.average(chance(table, kind), _names(table)).estimate()
        measures.append(Measure(f"share on words rated {called}", even, "chance"))
        rows.append({"kind": called, "head": "chance", "share": even.value})
        above = [one.estimate() for one in above_chance(table, kind)]
        for head, column in enumerate(held.T):
            share = draws.average(column, _names(table)).estimate()
            measures.append(Measure(f"share on words rated {called}", share, f"head {head}"))
            rows.append({"kind": called, "head": str(head), "share": share.value})
        ahead = lead(table, kind).estimate()
        luck = float(np.quantile(relabelled_leads(table, kind), 0.95))
        measures.append(Measure(f"lead on words rated {called}", ahead, "largest - others"))
        higher = sum(one.low > 0 for one in above)
        leads = f"one gives them more than the others do, by {ahead} of its attention"
        if not ahead.low > luck:
            leads = f"none stands out by more than luck (the first leads the others by {ahead})"
        joined = "yet" if ahead.low > luck and not higher else "and"
        said.append(
            f"words rated {called}: {higher} of {len(above)} heads give them more attention than "
            f"chance does, {joined} {leads}"
        )
        told.append(
            f"Words rated {called} stand in {texts:,} texts; by luck the largest head leads by "
            f"{luck:.3f}."
        )
    answer = f"{_capital('; '.join(said))}." if said else "Nothing could be measured."
    drawn = {"rows": rows}
    return Finding("heads", QUESTION, answer, tuple(measures), "heads", drawn, tuple(told))


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]


def _signs(
    is_high: Bool[np.ndarray, " token"], is_low: Bool[np.ndarray, " token"]
) -> Shaped[np.ndarray, " token"]:
    return np.asarray(is_high.astype(np.int8) - is_low.astype(np.int8))


def _leads(means: Float64[np.ndarray, "row head"]) -> Float64[np.ndarray, " row"]:
    heads = means.shape[1]
    largest = means.max(1)
    return np.asarray(largest - (means.sum(1) - largest) / max(heads - 1, 1))


def _has(table: pd.DataFrame, kind: str) -> Bool[np.ndarray, " text"]:
    names = ("v.pos", "v.neg") if kind == "both" else (kind,)
    return np.asarray((table[list(names)] > 0).any(axis=1))


def _names(table: pd.DataFrame) -> Sequence[str]:
    return [str(name) for name in table["instance"]]
