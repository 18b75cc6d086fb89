"""The claims of the faithful paper as data (docs/studies/faithful.md, "Claims")."""

from __future__ import annotations

from functools import partial

from heedful.studies.faithful.appendix import control_needs, query_needs
from heedful.studies.faithful.figures import ATTACKED, adversary_needs
from heedful.studies.faithful.measures import (
    dearer_adversary,
    deeper_is_flatter,
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
from heedful.studies.faithful.models import DEEP, DEPTH_VARIANTS, DEPTHS, MAIN, SMOKE
from heedful.studies.faithful.printed import PAPER
from heedful.studies.faithful.tables import few_seeds, many_seeds, models, steps_of

_DEPTH_NEEDS = steps_of(DEPTHS)

CLAIMS = (
    PAPER.claim(
        "FAI-1", small_changes, steps_of(models(("base",))), (SMOKE, "sst", "ag"), seeds=many_seeds
    ),
    PAPER.claim(
        "FAI-2",
        partial(larger_drops, ("tying",)),
        steps_of(models(("base", "tying"))),
        MAIN,
        seeds=many_seeds,
    ),
    PAPER.claim(
        "FAI-3",
        partial(larger_drops, ("mlm",)),
        steps_of(models(("base", "mlm"))),
        MAIN,
        seeds=many_seeds,
    ),
    PAPER.claim(
        "FAI-4",
        partial(larger_drops, ("concat", "residual")),
        steps_of(models(("base", "concat", "residual"))),
        MAIN,
        seeds=many_seeds,
    ),
    PAPER.claim(
        "FAI-5",
        partial(kept_quality, ("concat", "residual", "tying", "mlm")),
        steps_of(models()),
        MAIN,
        seeds=many_seeds,
    ),
    PAPER.claim(
        "FAI-6",
        residual_like_concat,
        steps_of(models(("concat", "residual"))),
        MAIN,
        seeds=many_seeds,
    ),
    PAPER.claim(
        "FAI-7", nothing_left, steps_of(models(DEPTH_VARIANTS)), ("diabetes",), seeds=many_seeds
    ),
    PAPER.claim(
        "FAI-8",
        partial(information_gain, ("residual", "tying", "mlm")),
        steps_of(models(attentions=("+",))),
        MAIN,
        seeds=few_seeds,
    ),
    PAPER.claim(
        "FAI-9",
        near_the_ceiling,
        steps_of(models(attentions=("+",))),
        MAIN,
        seeds=few_seeds,
    ),
    PAPER.claim(
        "FAI-10",
        less_sure_words,
        steps_of(models(("base", "tying", "mlm"))),
        MAIN,
        seeds=many_seeds,
    ),
    PAPER.claim(
        "FAI-11",
        words_near,
        steps_of(models(("base", "tying"), ("+",))),
        (SMOKE, "sst"),
        seeds=many_seeds,
    ),
    PAPER.claim(
        "FAI-12",
        leaks_when_sure,
        steps_of(models(("base", "tying"), ("+",))),
        DEEP,
        seeds=many_seeds,
    ),
    PAPER.claim(
        "FAI-13",
        rarely_surer,
        steps_of(models(("base", "tying", "mlm"), ("+",))),
        DEEP,
        seeds=many_seeds,
    ),
    PAPER.claim("FAI-14", dearer_adversary, adversary_needs, ATTACKED, seeds=few_seeds),
    PAPER.claim("FAI-15", deeper_is_flatter, _DEPTH_NEEDS, DEEP, seeds=few_seeds),
    PAPER.claim("FAI-16", weaker_when_deep, _DEPTH_NEEDS, DEEP, seeds=few_seeds),
    PAPER.claim("FAI-17", query_start, query_needs, DEEP, seeds=few_seeds),
    PAPER.claim(
        "FAI-18",
        longer_is_fragile,
        steps_of(models(("base",), ("+",))),
        MAIN,
        longer_corpora,
        seeds=many_seeds,
    ),
    PAPER.claim("FAI-19", query_of_instance, control_needs, DEEP, seeds=many_seeds),
)
