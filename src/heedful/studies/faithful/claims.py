"""The claims of the faithful paper as data (docs/studies/faithful.md, "Claims")."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from math import log
from typing import Any

import numpy as np
import pandas as pd

from heedful.reproduction.ledger import Parts, each_unchanged
from heedful.reproduction.measures import trained_contrast
from heedful.reproduction.results import Step
from heedful.reproduction.study import Plan
from heedful.reproduction.view import View
from heedful.statistics import over_seeds
from heedful.studies.faithful.appendix import control_needs, query_needs
from heedful.studies.faithful.figures import ATTACKED, adversary_needs
from heedful.studies.faithful.measures import (
    dearer_adversary,
    deeper_is_flatter,
    gap,
    information_gain,
    kept_quality,
    larger_drops,
    leaks_when_sure,
    less_sure_words,
    longer_corpora,
    longer_is_fragile,
    near_the_ceiling,
    nothing_left,
    query_of_instance,
    query_start,
    rarely_surer,
    residual_like_concat,
    small_changes,
    weaker_when_deep,
    words_near,
)
from heedful.studies.faithful.models import (
    DEEP,
    DEPTH_VARIANTS,
    DEPTHS,
    EDITS,
    EVIDENCE,
    MAIN,
    SMOKE,
    TUNED,
    VARIANTS,
    Setting,
    searched,
)
from heedful.studies.faithful.printed import PAPER
from heedful.studies.faithful.steps import chosen, imitated, instances, lower, minus, per_seed
from heedful.studies.faithful.tables import few_seeds, informed, many_seeds, models, steps_of

CLUSTERINGS = 3
INFORMED = ("residual", "tying", "mlm")
"""Remedies that keep information about the word (FAI-8)."""


def _other_scores(view: View) -> Parts:
    """A1: the drops by accuracy, by the other class's F1, and with the bias fitted again."""
    published = larger_drops(TUNED, view)
    found = Parts()
    for score in ("accuracy", "f1 of class 0", "macro_f1"):
        other = larger_drops(TUNED, view, score)
        found |= each_unchanged(published, other, f", {score}")
    refitted = larger_drops(TUNED, view, "macro_f1", ("refitted",))
    before = {name.replace("uniform", "refitted"): drop for name, drop in published.items()}
    found |= each_unchanged(Parts(before), refitted, "")
    return Parts(found)


def _drops(view: View, first: Setting, second: Setting) -> Parts:
    """In how many trainings both edits lower the first model's F1 more than the second's."""
    return {edit: lower(view, first, second, f"change {edit} f1") for edit in EDITS}


def _frozen_base(view: View) -> Parts:
    """A2: what freezing alone does to base, in points."""
    frozen = Setting(is_frozen=True)
    return {edit: minus(view, frozen, Setting(), f"change {edit} f1", 200) for edit in EDITS}


def _frozen_tying(view: View) -> Parts:
    """A3: FAI-2 and FAI-8 with frozen embeddings, which cannot move towards the states."""
    frozen = Setting(is_frozen=True)
    before = _drops(view, Setting("tying"), Setting())
    after = _drops(view, replace(frozen, variant="tying"), frozen)
    return each_unchanged(
        before | information_gain(("tying",), view),
        after | information_gain(("tying",), view, is_frozen=True),
    )


def _unbiased(view: View) -> Parts:
    """A4: FAI-8 without its bias, by word, and over three clusterings of the first seed."""
    published = information_gain(INFORMED, view)
    found = Parts()
    for name, columns in {
        "less shuffled": ("clustered", "shuffled"),
        "by word": ("by_word", None),
        "by word less shuffled": ("by_word", "shuffled_by_word"),
    }.items():
        other = information_gain(INFORMED, view, columns)
        found |= each_unchanged(published, other, f", {name}")
    seed = view.seeds[0]
    for variant in INFORMED:
        for sample in ("MF", "RS"):
            one, two = (
                [
                    informed(view, Setting(v), seed, sample, n)["clustered"]
                    for n in range(CLUSTERINGS)
                ]
                for v in (variant, "base")
            )
            gains = [a - b for a, b in zip(one, two, strict=True)]
            name = f"{variant} {sample}"
            clustered = {name: over_seeds(gains)}
            found |= each_unchanged(published, clustered, f", {CLUSTERINGS} clusterings")
    return Parts(found)


def _picked_by_outcome(view: View) -> Parts:
    """A5: strengths picked by the test drops against strengths picked on dev."""

    def lost(setting: Setting) -> float:
        return sum(float(np.mean(per_seed(view, setting, f"change {edit} f1"))) for edit in EDITS)

    before, after = Parts(), Parts()
    for variant in TUNED:
        by_outcome = min(searched(view.plan, variant), key=lost)
        kept = float(view.of(chosen, variant)["strength"])
        on_dev = replace(by_outcome, strength=kept)
        for parts, setting in ((before, by_outcome), (after, on_dev)):
            for edit, drop in _drops(view, setting, Setting()).items():
                parts[f"{variant} {edit}"] = drop
            parts[f"{variant} F1"] = minus(view, setting, Setting(), "points trained f1", 100)
    return each_unchanged(before, after)


def _chosen_needs(plan: Plan, corpus: str) -> list[Step[Any]]:
    found: list[Step[Any]] = []
    for variant in TUNED:
        found += steps_of([Setting(), *searched(plan, variant)])(plan, corpus)
        found.append(chosen(plan, corpus, variant))
    return found


def _words_erased(view: View) -> Parts:
    """A6: what deleting the most attended words adds to deleting random ones; and evidence."""

    def tables(variant: str) -> list[pd.DataFrame]:
        rows = instances(view, Setting(variant))
        return [t.assign(gain=t["flip_attention"] - t["flip_random"]) for t in rows]

    base = tables("base")
    found = Parts()
    for variant in TUNED:
        found[f"{variant}, words deleted"] = trained_contrast(tables(variant), base, "gain", 2)
        if "auprc_attention" in base[0]:
            found[f"{variant}, evidence"] = trained_contrast(
                tables(variant), base, "auprc_attention", 1
            )
    return found


def _random_vectors(view: View) -> Parts:
    """A7: FAI-2 and FAI-5 with vectors that start at random."""

    def parts(is_random: bool) -> Parts:
        base = Setting(is_random=is_random)
        tied = replace(base, variant="tying")
        cost = minus(view, tied, base, "points trained f1", 100)
        return Parts(_drops(view, tied, base) | {"F1": cost})

    return each_unchanged(parts(False), parts(True))


def _other_divergence(view: View) -> Parts:
    """A8: the order of base and masked words under KL and by the exact two-unit adversary."""
    base, masked = (instances(view, Setting(v)) for v in ("base", "mlm"))
    published = gap(view, "mlm")
    others = {
        "trained on KL": gap(view, "mlm", "kl"),
        "exact, base minus masked words": trained_contrast(base, masked, "exact_jsd", log(2)),
    }
    return each_unchanged(dict.fromkeys(others, published), others)


def _divergence_needs(plan: Plan, corpus: str) -> list[Step[Any]]:
    found = adversary_needs(plan, corpus)
    found += [imitated(plan, corpus, variant, "kl") for variant in ("base", "mlm")]
    return [*found, *steps_of(models(("base", "mlm"), ("+",)))(plan, corpus)]


_many = partial(PAPER.claim, seeds=many_seeds)
_few = partial(PAPER.claim, seeds=few_seeds)
REMEDIES = steps_of(models(("base", "tying", "mlm")))
ADDITIVE = steps_of(models(attentions=("+",)))
PENALISED = steps_of(models(("base", "tying", "mlm"), ("+",)))
TIED = steps_of(models(("base", "tying"), ("+",)))
DEEPER = steps_of(DEPTHS)


def _frozen_needs(plan: Plan, corpus: str) -> list[Step[Any]]:
    return [*control_needs(plan, corpus), *TIED(plan, corpus)]


CLAIMS = (
    _many("FAI-1", small_changes, steps_of(models(("base",))), (SMOKE, "sst", "ag")),
    _many("FAI-2", partial(larger_drops, ("tying",)), steps_of(models(("base", "tying"))), MAIN),
    _many("FAI-3", partial(larger_drops, ("mlm",)), steps_of(models(("base", "mlm"))), MAIN),
    _many(
        "FAI-4",
        partial(larger_drops, ("concat", "residual")),
        steps_of(models(("base", "concat", "residual"))),
        MAIN,
    ),
    _many("FAI-5", partial(kept_quality, VARIANTS[1:]), steps_of(models()), MAIN),
    _many("FAI-6", residual_like_concat, steps_of(models(("concat", "residual"))), MAIN),
    _many("FAI-7", nothing_left, steps_of(models(DEPTH_VARIANTS)), ("diabetes",)),
    _few("FAI-8", partial(information_gain, INFORMED), ADDITIVE, MAIN),
    _few("FAI-9", near_the_ceiling, ADDITIVE, MAIN),
    _many("FAI-10", less_sure_words, REMEDIES, MAIN),
    _many("FAI-11", words_near, TIED, (SMOKE, "sst")),
    _many("FAI-12", leaks_when_sure, TIED, DEEP),
    _many("FAI-13", rarely_surer, PENALISED, DEEP),
    _few("FAI-14", dearer_adversary, adversary_needs, ATTACKED),
    _few("FAI-15", deeper_is_flatter, DEEPER, DEEP),
    _few("FAI-16", weaker_when_deep, DEEPER, DEEP),
    _few("FAI-17", query_start, query_needs, DEEP),
    _many("FAI-18", longer_is_fragile, steps_of(models(("base",), ("+",))), MAIN, longer_corpora),
    _many("FAI-19", query_of_instance, control_needs, DEEP),
    _many("FAI-A1", _other_scores, REMEDIES, MAIN),
    _many("FAI-A2", _frozen_base, control_needs, DEEP),
    _few("FAI-A3", _frozen_tying, _frozen_needs, DEEP),
    _few("FAI-A4", _unbiased, ADDITIVE, MAIN),
    _few("FAI-A5", _picked_by_outcome, _chosen_needs, MAIN),
    _many("FAI-A6", _words_erased, PENALISED, (*DEEP, EVIDENCE, "eraser")),
    _few("FAI-A7", _random_vectors, control_needs, DEEP),
    _few("FAI-A8", _other_divergence, _divergence_needs, ATTACKED),
)
