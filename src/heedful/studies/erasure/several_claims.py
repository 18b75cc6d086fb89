"""Claims of the erasure study about removing items until a flip: ERA-8 to ERA-16, 19 and 21."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import product

import numpy as np

from heedful.reproduction.ledger import (
    Measured,
    NotMeasurable,
    Parts,
    Side,
    above,
    at_least,
    at_most,
)
from heedful.reproduction.measures import exact
from heedful.reproduction.view import View, Views, alone
from heedful.statistics import Estimate, draws
from heedful.statistics.draws import Draws
from heedful.studies.erasure.examination import RANKINGS, Erased
from heedful.studies.erasure.measures import (
    estimates,
    mean,
    measured,
    median,
    ratio,
    share_of_models,
)
from heedful.studies.erasure.models import FAMILIES, MODELS, WITH_ENCODER, WITHOUT
from heedful.studies.erasure.printed import PAPER
from heedful.studies.erasure.steps import needs

PAIRS = (("attention", "random"), ("gradient", "attention"), ("product", "attention"))
"""Of ERA-8: the first is claimed to flip earlier."""
Fraction = Callable[[Erased, str], np.ndarray]


def gaps(view: View, model: str, fraction: Fraction = Erased.fraction) -> dict[str, Draws]:
    """Paired differences of k*/n between rankings; what never flips needs everything."""

    def gap(one: Erased, first: str, second: str) -> np.ndarray:
        return fraction(one, first) - fraction(one, second)

    return {f"{model}: {a} - {b}": mean(view, model, gap, a, b) for a, b in PAIRS}


def earlier_than_attention(view: View) -> Parts:
    """ERA-8: paired differences of k*/n in encoder models."""
    found = {name: one for model in WITH_ENCODER for name, one in gaps(view, model).items()}
    return estimates(found)


def of_models(
    views: Views,
    models: Sequence[str],
    statistic: Callable[[View, str], Draws],
    side: Side,
) -> Estimate | NotMeasurable:
    """The share of models on these corpora whose statistic lies on a side."""
    return share_of_models((statistic(view, m) for view in views for m in models), side)


def gradient_share(view: View, model: str) -> Draws:
    """Share of instances that the gradient flips with fewer items."""

    def is_earlier(one: Erased) -> np.ndarray:
        sign = one.earlier("gradient", "attention")
        return np.where(np.isnan(sign), np.nan, sign == 1)

    return mean(view, model, is_earlier)


def gradient_mostly(views: Views) -> Measured:
    """ERA-9: share of encoder models in which the gradient is earlier for most instances."""
    return of_models(views, WITH_ENCODER, gradient_share, above(0.5))


def fewest(one: Erased) -> np.ndarray:
    """k* of the gradient or of attention, whichever is smaller."""
    return np.asarray(np.minimum(one.removed("gradient"), one.removed("attention")))


def ratios(view: View) -> Parts:
    """ERA-10: the ratio of each encoder model; all of them must reach it, so the least does."""
    return estimates({model: ratio(view, model) for model in WITH_ENCODER})


def product_gap(view: View, model: str) -> Draws:
    """Paired difference of k*/n, product minus gradient."""
    return mean(view, model, lambda one: one.fraction("product") - one.fraction("gradient"))


def product_mostly(views: Views) -> Measured:
    """ERA-11: share of models in which product needs no more items than gradient."""
    return of_models(views, MODELS, product_gap, at_most(0))


def medians(view: View, model: str, fraction: Fraction = Erased.fraction) -> dict[str, Draws]:
    """Median k*/n by ranking."""
    return {ranking: median(view, model, fraction, ranking) for ranking in RANKINGS}


def means(view: View, model: str, fraction: Fraction = Erased.fraction) -> dict[str, Draws]:
    """Mean k*/n by ranking: what compares models, where medians would tie at 1."""
    return {ranking: mean(view, model, fraction, ranking) for ranking in RANKINGS}


def late(view: View, fraction: Fraction = Erased.fraction) -> dict[str, Draws]:
    """Medians that ERA-12 speaks of."""
    found = {"HANrnn: attention": median(view, "HANrnn", fraction, "attention")}
    return found | {f"FLANrnn: {r}": m for r, m in medians(view, "FLANrnn", fraction).items()}


def late_flips(view: View) -> Parts:
    """ERA-12: median k*/n of the recurrent models."""
    return estimates(late(view))


def ordered(view: View, fraction: Fraction = Erased.fraction) -> dict[str, Draws]:
    """Differences of means that ERA-13 speaks of, between encoders and then families."""
    middle = {model: means(view, model, fraction) for model in MODELS}
    found: dict[str, Draws] = {}
    for family, ranking in product(FAMILIES, RANKINGS):
        rnn, conv, noenc = (middle[family + e][ranking] for e in ("rnn", "conv", "noenc"))
        found[f"{family}, {ranking}: rnn - conv"] = draws.minus(rnn, conv)
        found[f"{family}, {ranking}: conv - noenc"] = draws.minus(conv, noenc)
    for ranking in RANKINGS:
        gap = [found[f"{family}, {ranking}: rnn - conv"] for family in ("FLAN", "HAN")]
        found[f"{ranking}: rnn - conv, FLAN - HAN"] = draws.minus(*gap)
    return found


def wider_is_later(view: View) -> Parts:
    """ERA-13: mean k*/n ordered by how far the encoder sees."""
    return estimates(ordered(view))


def lower_end(several: Sequence[Draws]) -> Estimate:
    """The largest lower end of several intervals as a number of its own; nan if one has none."""
    found = [one.estimate() for one in several]
    return exact(float(np.max([one.low for one in found])), min(one.n for one in found))


def on_par_without_encoder(views: Views) -> Parts:
    """ERA-14: the ratio's lower end in noenc models; where product has the lowest mean."""
    found: dict[str, Estimate | NotMeasurable] = {}
    for model in WITHOUT:
        end = lower_end([ratio(view, model) for view in views])
        found[f"{model}: ratio, lower end"] = measured(end)

    def lead(view: View, model: str) -> Draws:
        middle = means(view, model)
        rest = draws.smallest(m for ranking, m in middle.items() if ranking != "product")
        return draws.minus(middle["product"], rest)

    best = of_models(views, WITHOUT, lead, at_most(0))
    return Parts(found | {"models with product lowest": best})


def random_is_early(view: View) -> Parts:
    """ERA-15: mean k*/n in random order, noenc against the others."""
    middle = {model: mean(view, model, Erased.fraction, "random") for model in MODELS}
    return estimates(
        {
            f"{family}: noenc - {e}": draws.minus(middle[f"{family}noenc"], middle[family + e])
            for family, e in product(FAMILIES, ("rnn", "conv"))
        }
    )


def large_mass(views: Views) -> Parts:
    """ERA-16: median attention mass removed, and how much less by gradient and product."""

    def mass(view: View, model: str) -> Draws:
        return median(view, model, Erased.mass, "attention")

    def less(ranking: str) -> Callable[[View, str], Draws]:
        def paired(one: Erased) -> np.ndarray:
            return np.asarray(one.mass("attention") - one.mass(ranking))

        return lambda view, model: mean(view, model, paired)

    return {
        "median mass above 0.5": of_models(views, MODELS, mass, above(0.5)),
        "0.25 above gradient": of_models(views, MODELS, less("gradient"), at_least(0.25)),
        "0.25 above product": of_models(views, MODELS, less("product"), at_least(0.25)),
    }


def where_the_gain_lies(view: View) -> Parts:
    """ERA-19: the ratio where both rankings need several items, and where one needs one."""

    def several(one: Erased) -> np.ndarray:
        return np.asarray(fewest(one) >= 2)

    found = {}
    for model in WITH_ENCODER:
        many, single = ratio(view, model, several), ratio(view, model, lambda one: ~several(one))
        found[f"{model}: several"] = many
        found[f"{model}: several - one"] = draws.minus(many, single)
    return estimates(found)


def accuracy(view: View, model: str) -> Draws:
    """Test accuracy."""
    return mean(view, model, lambda one: one.right)


def accuracy_gaps(views: Views) -> dict[str, Draws]:
    """Accuracy of rnn - conv and conv - noenc in each family; the smallest over corpora."""
    return {
        f"{family}: {wide} - {narrow}": draws.smallest(
            draws.minus(accuracy(view, family + wide), accuracy(view, family + narrow))
            for view in views
        )
        for family, (wide, narrow) in product(FAMILIES, (("rnn", "conv"), ("conv", "noenc")))
    }


def accuracy_order(views: Views) -> Parts:
    """ERA-21: accuracy by encoder; ERA-8 and ERA-10 in the more and in the less accurate half."""
    cells = [(view, model) for view in views for model in WITH_ENCODER]
    accurate = [accuracy(view, model).value for view, model in cells]
    found = accuracy_gaps(views)
    for half, is_in in (("above", np.greater), ("below", np.less_equal)):
        chosen = [c for c, a in zip(cells, accurate, strict=True) if is_in(a, np.median(accurate))]
        worst = [draws.largest(gaps(view, model).values()) for view, model in chosen]
        found[f"ERA-8, accuracy {half} the median"] = draws.largest(worst)
        least = draws.smallest(ratio(view, model) for view, model in chosen)
        found[f"ERA-10, accuracy {half} the median"] = least
    return estimates(found)


ALL, ENCODED = needs(*MODELS), needs(*WITH_ENCODER)
CLAIMS = (
    PAPER.claim("ERA-8", earlier_than_attention, ENCODED),
    PAPER.claim("ERA-9", alone(gradient_mostly), ENCODED, measure_all=gradient_mostly),
    PAPER.claim("ERA-10", ratios, ENCODED),
    PAPER.claim("ERA-11", alone(product_mostly), ALL, measure_all=product_mostly),
    PAPER.claim("ERA-12", late_flips, needs("HANrnn", "FLANrnn")),
    PAPER.claim("ERA-13", wider_is_later, ALL),
    PAPER.claim(
        "ERA-14",
        alone(on_par_without_encoder),
        needs(*WITHOUT),
        measure_all=on_par_without_encoder,
    ),
    PAPER.claim("ERA-15", random_is_early, ALL),
    PAPER.claim("ERA-16", alone(large_mass), ALL, measure_all=large_mass),
    PAPER.claim("ERA-19", where_the_gain_lies, ENCODED),
    PAPER.claim("ERA-21", alone(accuracy_order), ALL, measure_all=accuracy_order),
)
