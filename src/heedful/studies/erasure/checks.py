"""Checks of the erasure study, ERA-A1 to ERA-A7: is the published effect what it seems?"""

from __future__ import annotations

import numpy as np

from heedful.reproduction.ledger import Measured, NotMeasurable, Parts, above, each_unchanged
from heedful.reproduction.view import View
from heedful.statistics.draws import Draws
from heedful.studies.erasure.examination import LEFT, Erased, coarsened
from heedful.studies.erasure.measures import estimates, mean, ratio, rows_of, share_of_models
from heedful.studies.erasure.models import MODELS, WITH_ENCODER
from heedful.studies.erasure.printed import PAPER
from heedful.studies.erasure.several_claims import gaps, late, ordered
from heedful.studies.erasure.single_claims import mirrors, top_beats_random
from heedful.studies.erasure.steps import needs

FEWEST = 8
"""Sentences from which on steps of 1/n are no longer coarse (ours)."""
LEAST_DOCUMENTS = 30
"""Fewer documents than that are no sample (ours)."""


def prefixed(prefix: str, parts: Parts) -> Parts:
    """The parts under longer names."""
    return {f"{prefix}, {name}": one for name, one in parts.items()}


def both_rules(view: View) -> Parts:
    """ERA-A1: ERA-5 to ERA-7 with the correct random item, and with the published one."""

    def under(legacy: bool) -> Parts:
        found = prefixed("ERA-5", top_beats_random(view, legacy))
        # ERA-6 speaks of the top item alone: the same under both rules, by construction.
        stays = mean(view, "HANrnn", lambda one: 1 - one.top_flips("attention")).estimate()
        found["ERA-6"] = stays
        return Parts(found | prefixed("ERA-7", mirrors(view.alone, legacy)))

    return each_unchanged(under(False), under(True))


def never_flipping(view: View) -> Parts:
    """ERA-A2: ERA-8 and ERA-10 where never-flips need everything, and where they are left out."""

    def left_out(one: Erased, ranking: str) -> np.ndarray:
        return one.fraction(ranking, never=np.nan)

    def where_all_flip(one: Erased, ranking: str) -> np.ndarray:
        return np.where(one.all_flip(), one.fraction(ranking), np.nan)

    def both(one: Erased) -> np.ndarray:
        return one.both_flip("gradient", "attention")

    found = Parts()
    for suffix, fraction in ((", left out", left_out), (", all flip", where_all_flip)):
        before, after = (
            {n: d for model in WITH_ENCODER for n, d in gaps(view, model, how).items()}
            for how in (Erased.fraction, fraction)
        )
        found |= each_unchanged(estimates(before), estimates(after), suffix)
    every = {f"{model}: ratio": ratio(view, model) for model in WITH_ENCODER}
    kept = {f"{model}: ratio": ratio(view, model, both) for model in WITH_ENCODER}
    return Parts(found | each_unchanged(estimates(every), estimates(kept), ", both flip"))


def without_the_end(one: Erased, ranking: str) -> np.ndarray:
    """k*/n of what flips before nothing is left."""
    share = one.fraction(ranking)
    return np.where(share >= 1, np.nan, share)


def before_the_end(one: Erased) -> np.ndarray:
    """Where both the gradient and attention flip before nothing is left."""
    return np.asarray((one.fraction("gradient") < 1) & (one.fraction("attention") < 1))


def bias_speaking(view: View) -> Parts:
    """ERA-A3: ERA-8, ERA-10 and ERA-12 with and without flips at k = n."""

    def found(is_cut: bool) -> Parts:
        fraction = without_the_end if is_cut else Erased.fraction
        parts: dict[str, Draws] = {}
        for model in WITH_ENCODER:
            parts |= {f"ERA-8, {n}": d for n, d in gaps(view, model, fraction).items()}
            # Both must flip earlier: the winner always does, so it would leave nothing out.
            both = ratio(view, model, before_the_end) if is_cut else ratio(view, model)
            parts[f"ERA-10, {model}"] = both
        return estimates(parts | {f"ERA-12, {n}": d for n, d in late(view, fraction).items()})

    return each_unchanged(found(False), found(True))


def matched_lengths(view: View) -> Measured:
    """ERA-A4: ERA-12 and ERA-13 with as coarse steps in FLANs as in HANs, and many sentences.

    A FLAN's fraction is rounded up to the steps that the same document's sentences allow; only
    documents of at least 8 sentences count in both.
    """
    sentences = {
        name: count
        for one in rows_of(view, "HANrnn")[:1]
        for name, count in zip(one.names, one.units.tolist(), strict=True)
    }
    enough = sum(count >= FEWEST for count in sentences.values())
    if enough < LEAST_DOCUMENTS:
        return NotMeasurable(f"{enough} test documents have {FEWEST} sentences or more")

    def matched(one: Erased, ranking: str) -> np.ndarray:
        steps = np.array([sentences[name] for name in one.names])
        steps = np.where(steps >= FEWEST, steps, np.nan)
        return coarsened(one.fraction(ranking), steps)

    def found(is_matched: bool) -> Parts:
        fraction = matched if is_matched else Erased.fraction
        parts = {f"ERA-12, {name}": one for name, one in late(view, fraction).items()}
        parts |= {f"ERA-13, {name}": one for name, one in ordered(view, fraction).items()}
        return estimates(parts)

    return each_unchanged(found(False), found(True))


def centred_gain(view: View) -> Parts:
    """ERA-A5: paired difference of k*/n, centred product minus product."""
    return estimates(
        {
            model: mean(view, model, lambda one: one.fraction("centred") - one.fraction("product"))
            for model in MODELS
        }
    )


def both_denominators(view: View) -> Parts:
    """ERA-A6: ERA-9 over all test instances, and over those of several items that flip."""

    def of_all(model: str) -> Draws:
        return mean(view, model, lambda one: one.earlier("gradient", "attention") == 1)

    def of_flipping(model: str) -> Draws:
        def is_earlier(one: Erased) -> np.ndarray:
            flips = np.minimum(one.removed("gradient"), one.removed("attention")) < np.inf
            return np.where(flips, one.earlier("gradient", "attention") == 1, np.nan)

        return mean(view, model, is_earlier)

    def most(shares: list[Draws]) -> Parts:
        return {"models": share_of_models(shares, above(0.5))}

    return each_unchanged(
        most([of_all(model) for model in WITH_ENCODER]),
        most([of_flipping(model) for model in WITH_ENCODER]),
    )


def nothing_left(view: View) -> Parts:
    """ERA-A7: ERA-8, ERA-10 and ERA-12 with the head's bias, and without it.

    Whether a zero vector or the training mean is left makes no difference to them: what flips only
    at the end needs everything, as what never flips does.
    """

    def found(left: str) -> Parts:
        def fraction(one: Erased, ranking: str) -> np.ndarray:
            return one.under(left).fraction(ranking)

        parts: dict[str, Draws] = {}
        for model in WITH_ENCODER:
            parts |= {f"ERA-8, {n}": d for n, d in gaps(view, model, fraction).items()}
            parts[f"ERA-10, {model}"] = ratio(view, model, under=left)
        return estimates(parts | {f"ERA-12, {n}": d for n, d in late(view, fraction).items()})

    return each_unchanged(found(LEFT[0]), found(LEFT[2]))


ALL, ENCODED = needs(*MODELS), needs(*WITH_ENCODER)
CLAIMS = (
    PAPER.claim("ERA-A1", both_rules, ALL),
    PAPER.claim("ERA-A2", never_flipping, ENCODED),
    PAPER.claim("ERA-A3", bias_speaking, ENCODED),
    PAPER.claim("ERA-A4", matched_lengths, ALL),
    PAPER.claim("ERA-A5", centred_gain, ALL),
    PAPER.claim("ERA-A6", both_denominators, ENCODED),
    PAPER.claim("ERA-A7", nothing_left, ENCODED),
)
