"""What decides each claim of the tracing study on one corpus (docs/studies/tracing.md, "Claims").

Intervals are over words (entries of the lexicon) or texts, as the claim says, and over seeds:
every replicate draws both.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import numpy as np
import pandas as pd
from scipy.stats import rankdata

from heedful.audits import head_shares, lexicon
from heedful.audits.head_shares import KINDS
from heedful.corpora.stop_words import STOP_WORDS
from heedful.errors import InputError
from heedful.reproduction.ledger import Measured, NotMeasurable, Parts
from heedful.reproduction.measures import exact
from heedful.reproduction.results import Skipped
from heedful.reproduction.study import Plan
from heedful.reproduction.view import View
from heedful.statistics import draws, over_seeds, proportion
from heedful.statistics.association import correlated, correlation
from heedful.statistics.draws import Draws
from heedful.statistics.estimates import Estimate
from heedful.statistics.regression import LINEAR, SQUARE, quadratic, resampled
from heedful.studies.tracing import corpora, models, printed, steps
from heedful.studies.tracing.texts import RANKED, TOGETHER, sums_of

VECTORS = 300
"""Dimensions of the published word vectors."""
STRICT, USUAL = 0.001, 0.05
TOP = 100
"""Words whose ratings are looked at, or a quarter of all where there are few."""
HIDDEN = 0.4
"""Scores from which the figure leaves a word out."""
SHARED = 4
"""Occurrences from which a word counts in E1: more than three."""


def rated(view: View, seed: int, variant: str = models.PUBLISHED) -> pd.DataFrame:
    """Word averages of rated words seen more than once."""
    try:
        matches = steps.matches_of(view.of(steps.ratings))
        return lexicon.rated(view.of(steps.words, seed, variant), matches)
    except InputError as error:
        raise Skipped(str(error)) from error


def accuracies(view: View, variant: str = models.PUBLISHED) -> list[float]:
    """Test accuracy of every seed, per cent."""
    found = [view.of(models.decisions, variant, seed)["training"] for seed in view.seeds]
    return [100 * float(one["accuracy"].iloc[0]) for one in found]


def good_accuracy(view: View) -> Measured:
    """TRA-1: mean test accuracy, per cent."""
    found = over_seeds(accuracies(view), 0, 100)
    return _with_vectors(view, Parts({"accuracy": found}))


def among_published(view: View) -> Measured:
    """TRA-2: mean accuracy minus that of the published models it should lie between."""
    found = np.array(accuracies(view))
    parts = {
        "minus BiLSTM": over_seeds(found - printed.BILSTM, -100, 100),
        "minus DiSAN": over_seeds(found - printed.DISAN, -100, 100),
    }
    return _with_vectors(view, Parts(parts))


def _with_vectors(view: View, found: Parts) -> Measured:
    """What was found, or why it cannot decide: other vectors make another model."""
    vectors = view.of(corpora.text).vectors
    said = ", ".join(f"{name} {value}" for name, value in found.items())
    if view.corpus in corpora.MADE:
        return NotMeasurable(f"speaks of SST-5 alone; on planted reviews: {said}")
    if vectors is not None and vectors.shape[1] == VECTORS:
        return found
    dim = "no" if vectors is None else f"{vectors.shape[1]}-d"
    return NotMeasurable(f"needs 300-d GloVe; with {dim} vectors: {said}")


def beats_people(view: View) -> Estimate:
    """TRA-3: mean CCC over test narratives and seeds."""
    return _by_narrative(models.narrative_ccc(view, models.WINDOWED))


def windows_help(view: View) -> Estimate:
    """TRA-4: CCC reading windows minus reading whole narratives, paired by narrative."""
    one, two = (models.narrative_ccc(view, reads) for reads in (models.WINDOWED, models.WHOLE))
    return _by_narrative(one - two)


def _by_narrative(table: pd.DataFrame) -> Estimate:
    """The mean with replicates over narratives and seeds."""
    names = [str(name) for name in table.index]
    return draws.over_seeds([draws.average(table[seed], names) for seed in table]).estimate()


def conserves(view: View) -> Estimate:
    """TRA-5: the most that any head and layer of any text lost of its unit."""
    lost = [float(view.of(steps.texts, seed)["lost"].max()) for seed in view.seeds]
    return exact(max(lost), sum(len(view.of(steps.texts, seed)) for seed in view.seeds))


def _layers(texts: pd.DataFrame) -> list[str]:
    return [str(column) for column in texts if str(column).startswith("entropy ")]


def _names(table: pd.DataFrame) -> list[str]:
    return [str(name) for name in table["instance"]]


def top_layer_is_even(view: View) -> Parts:
    """TRA-6: entropy of the top layer over its maximum, and how far above the next layer's."""

    def entropies(seed: int) -> list[Draws]:
        texts = view.of(steps.texts, seed)
        return [draws.average(texts[name], _names(texts)) for name in _layers(texts)]

    return {
        "entropy of the top layer": view.over_seeds(lambda seed: entropies(seed)[-1]),
        "minus the highest other": view.over_seeds(
            lambda seed: draws.minus(entropies(seed)[-1], draws.largest(entropies(seed)[:-1]))
        ),
    }


def gathers_and_spreads(view: View) -> Parts:
    """TRA-7: the cell that adds most to the largest share, and the one that takes most away."""

    def gains(seed: int) -> list[Draws]:
        texts = view.of(steps.texts, seed)
        cells = [column for column in texts if str(column).startswith("gain ")]
        return [draws.average(texts[cell], _names(texts)) for cell in cells]

    return {
        "largest gain": view.over_seeds(lambda seed: draws.largest(gains(seed))),
        "smallest gain": view.over_seeds(lambda seed: draws.smallest(gains(seed))),
    }


def feelings_first(view: View) -> Estimate:
    """TRA-8: mean place of strongly valued words within their text, by LAT; texts drawn whole."""

    def place(seed: int) -> Draws:
        texts = view.of(steps.texts, seed)
        names = _names(texts)
        summed = draws.average((texts["percentile"] * texts["tagged"]).fillna(0), names)
        return draws.over(summed, draws.average(texts["tagged"], names))

    return view.over_seeds(place)


def top_words_are_felt(view: View) -> Estimate:
    """TRA-9: distance of ratings from the middle, the highest words minus all rated words."""

    return view.over_seeds(lambda s: lexicon.top_gap(rated(view, s), "lat", steps.MIDDLE, TOP))


def stop_words_low(view: View) -> Measured:
    """TRA-10: median place of stop words among all words seen more than once."""

    def place(seed: int) -> Draws:
        words = view.of(steps.words, seed)
        words = words[words["count"] >= lexicon.LEAST_COUNT]
        percentile = (rankdata(words["lat"]) - 0.5) / len(words)
        is_stop = words["word"].isin(STOP_WORDS).to_numpy()
        return draws.quantile(np.where(is_stop, percentile, np.nan), 0.5, list(words["word"]))

    return view.over_seeds(place)


def share_of_seeds(hits: Sequence[bool]) -> Estimate:
    """How many seeds show something, with Wilson's interval."""
    return proportion(int(np.sum(hits)), len(hits))


def bends(
    view: View, score: str = "lat", has_length: bool = False, variant: str = ""
) -> dict[str, Estimate]:
    """The square term over words and seeds, and the share of seeds where it is up, p < .001."""
    variant = variant or models.PUBLISHED
    tables = {seed: rated(view, seed, variant) for seed in view.seeds}
    beside = {s: {lexicon.LENGTH: t[lexicon.LENGTH]} for s, t in tables.items() if has_length}
    terms = [
        quadratic(table["rating"], table[score], beside.get(seed)).term(SQUARE)
        for seed, table in tables.items()
    ]
    return {
        "b2": view.over_seeds(lambda s: lexicon.bend(tables[s], score, has_length)),
        "seeds with p < .001": share_of_seeds([t.b > 0 and t.p < STRICT for t in terms]),
    }


def is_u_shaped(view: View) -> Parts:
    """TRA-11, TRA-12."""
    return Parts(bends(view))


def flat_seeds(view: View, score: str, has_length: bool = False) -> Estimate:
    """The share of seeds whose square term has p > .05."""
    found = []
    for seed in view.seeds:
        words = rated(view, seed)
        beside = {lexicon.LENGTH: words[lexicon.LENGTH]} if has_length else None
        found.append(quadratic(words["rating"], words[score], beside).term(SQUARE).p > USUAL)
    return share_of_seeds(found)


def gradient_is_flat(view: View) -> Parts:
    """TRA-13: no bend of the gradient, and a smaller one than LAT's in residual s.d.s."""

    def apart(seed: int) -> Draws:
        words = rated(view, seed)
        one, two = (
            lexicon.bend(words, score, is_standardised=True) for score in ("gradient", "lat")
        )
        return draws.minus(one, two)

    return {
        "seeds with p > .05": flat_seeds(view, "gradient"),
        "b2 over s.d., gradient minus LAT": view.over_seeds(apart),
    }


def word_correlation(view: View, seed: int, is_ranked: bool, is_partial: bool = False) -> Draws:
    """LAT and gradient over rated words."""
    words = rated(view, seed)
    one, two = (words[score].to_numpy() for score in ("lat", "gradient"))
    if is_ranked:
        one, two = rankdata(one), rankdata(two)
    given = words[lexicon.LENGTH].to_numpy() if is_partial else None
    return draws.draws(correlation(one, two, given), lexicon.entries(words))


def token_correlation(view: View, seed: int, is_ranked: bool, is_partial: bool = False) -> Draws:
    """LAT and gradient over all tokens, texts drawn whole."""
    texts = view.of(steps.texts, seed)
    sums = sums_of(texts, RANKED if is_ranked else TOGETHER)
    if not is_ranked and not is_partial:  # the rows and columns of 1, LAT and gradient
        sums = sums.reshape(len(sums), 4, 4)[:, :3, :3].reshape(len(sums), 9)
    return draws.draws(correlated(sums), _names(texts))


def are_correlated(view: View) -> Parts:
    """TRA-14: correlations of LAT and gradient, tokens and word means."""
    return {
        f"{name}, {level}": view.over_seeds(partial(of, view, is_ranked=is_ranked))
        for name, is_ranked in (("Pearson", False), ("Spearman", True))
        for level, of in (("tokens", token_correlation), ("words", word_correlation))
    }


def heads_above_chance(view: View, is_published: bool = True) -> Parts:
    """TRA-15 (chance as published) and TRA-A3: the lowest head's share minus chance."""

    def lowest(kind: str, seed: int) -> Draws:
        return draws.smallest(
            head_shares.above_chance(view.of(steps.heads, seed), kind, is_published)
        )

    return {kind: view.over_seeds(partial(lowest, kind)) for kind in KINDS}


def heads_specialise(view: View) -> Parts:
    """TRA-16: the largest head's lead, and how far it is beyond that of relabelled heads."""

    def lead(kind: str, seed: int) -> Draws:
        return head_shares.lead(view.of(steps.heads, seed), kind)

    def beyond(kind: str, seed: int) -> Draws:
        found = lead(kind, seed)
        luck = float(
            np.quantile(head_shares.relabelled_leads(view.of(steps.heads, seed), kind), 0.95)
        )
        return Draws(found.value - luck, found.drawn - luck, found.n)

    parts = Parts()
    for kind in KINDS:
        parts[f"{kind}: lead"] = view.over_seeds(partial(lead, kind))
        parts[f"{kind}: lead minus luck"] = view.over_seeds(partial(beyond, kind))
    return parts


def partner(plan: Plan, corpus: str) -> str:
    """The corpus of sentences whose words are compared with those of narratives."""
    return "sst" if corpus == corpora.SEND else plan.pick("planted", "sst")


def shared_words(view: View, other: View, seed: int) -> pd.DataFrame:
    """Word averages of words that both corpora have often enough."""
    one, two = (
        table[table["count"] >= SHARED][["word", "lat", "count"]]
        for table in (view.of(steps.words, seed), other.of(steps.words, seed))
    )
    return one.merge(two, on="word", suffixes=(" here", " there"))


def same_words(view: View) -> Measured:
    """TRA-17: slope of sentences' word means on narratives' over shared words."""
    other = view.on(partner(view.plan, view.corpus))
    shared = len(shared_words(view, other, view.seeds[0]))
    if shared < lexicon.LEAST_WORDS:
        return NotMeasurable(
            f"{shared} words occur more than 3 times in both; {lexicon.LEAST_WORDS} are needed"
        )

    def rise(seed: int) -> Draws:
        words = shared_words(view, other, seed)
        statistic = resampled({LINEAR: words["lat here"]}, words["lat there"], LINEAR)
        return draws.draws(statistic, [str(word) for word in words["word"]])

    return view.over_seeds(rise)


def hides_few(view: View) -> Estimate:
    """TRA-18: the share of rated words that the figure leaves out."""

    def share(seed: int) -> Draws:
        words = rated(view, seed)
        return draws.average(words["lat"] >= HIDDEN, lexicon.entries(words))

    return view.over_seeds(share)
