"""The claims of the tracing study, with the sides that decide them.

See docs/studies/tracing.md, "Claims".
"""

from __future__ import annotations

from typing import Any

from heedful.audits.head_shares import KINDS
from heedful.reproduction.ledger import Side, above, below, within
from heedful.reproduction.results import Step
from heedful.reproduction.study import Plan
from heedful.studies.tracing import checks, collapse, corpora, measures, models, printed, widths
from heedful.studies.tracing.printed import PAPER
from heedful.studies.tracing.steps import EVERY, RATED, WITH_UNTRAINED, needs, words

TEXTS, STORIES = corpora.TEXTS, corpora.STORIES
TEXT_ROWS = needs("texts")
HEADS = needs("heads")
DECIDED = needs("decisions")
_MOST = above(0.5)
_BENDS = {"b2": above(0), "seeds with p < .001": _MOST}
_FLAT = {"seeds with p > .05": _MOST, "b2 over s.d., gradient minus LAT": below(0)}
_LENGTHS = {f"{name}: {part}": side for name in checks.LENGTHS for part, side in _BENDS.items()}
_ARMS = {
    f"{name} of {place}": side
    for place in ("5", "the vertex")
    for name, side in (("left", below(0)), ("right", above(0)))
}
_ACCURATE = within(1.5, printed.ACCURACY)


def _recipes() -> dict[str, Side]:
    sides = {"accuracy": _ACCURATE} | _BENDS
    others = models.CHECKED[1:]
    return {f"{name}, {v}": side for v in others for name, side in sides.items()}


def _with_text(plan: Plan, corpus: str) -> list[Step[Any]]:
    return [corpora.text(plan, corpus), *DECIDED(plan, corpus)]


def _followed(plan: Plan, corpus: str) -> list[Step[Any]]:
    return list(models.needs_followed(plan, corpus))


def _both(plan: Plan, corpus: str) -> list[Step[Any]]:
    other = measures.partner(plan, corpus)
    return [words(plan, name, seed) for name in (corpus, other) for seed in plan.seeds]


CLAIMS = (
    PAPER.claim("TRA-1", measures.good_accuracy, _with_text, TEXTS, side=_ACCURATE),
    PAPER.claim("TRA-2", measures.among_published, _with_text, TEXTS),
    PAPER.claim("TRA-3", measures.beats_people, _followed, STORIES, side=above(printed.HUMAN_CCC)),
    PAPER.claim("TRA-4", measures.windows_help, _followed, STORIES),
    PAPER.claim("TRA-5", measures.conserves, TEXT_ROWS, EVERY),
    PAPER.claim("TRA-6", measures.top_layer_is_even, TEXT_ROWS, EVERY),
    PAPER.claim("TRA-7", measures.gathers_and_spreads, TEXT_ROWS, EVERY),
    PAPER.claim("TRA-8", measures.feelings_first, TEXT_ROWS, EVERY),
    PAPER.claim("TRA-9", measures.top_words_are_felt, RATED, EVERY),
    PAPER.claim("TRA-10", measures.stop_words_low, needs("words"), EVERY),
    PAPER.claim("TRA-11", measures.is_u_shaped, RATED, TEXTS, side=_BENDS),
    PAPER.claim("TRA-12", measures.is_u_shaped, RATED, STORIES, side=_BENDS),
    PAPER.claim("TRA-13", measures.gradient_is_flat, RATED, EVERY, side=_FLAT),
    PAPER.claim("TRA-14", measures.are_correlated, needs("ratings", "words", "texts"), EVERY),
    PAPER.claim(
        "TRA-15", measures.heads_above_chance, HEADS, EVERY, side=dict.fromkeys(KINDS, above(0))
    ),
    PAPER.claim("TRA-16", measures.heads_specialise, HEADS, EVERY),
    PAPER.claim("TRA-17", measures.same_words, _both, STORIES),
    PAPER.claim("TRA-18", measures.hides_few, RATED, EVERY),
    PAPER.claim("TRA-A1", checks.survives_length, RATED, EVERY, side=_LENGTHS),
    PAPER.claim("TRA-A2", checks.gradients_stay_flat, RATED, EVERY, side=_MOST),
    PAPER.claim(
        "TRA-A3", checks.above_own_chance, HEADS, EVERY, side=dict.fromkeys(KINDS, above(0))
    ),
    PAPER.claim("TRA-A4", checks.has_two_arms, RATED, EVERY, side=_ARMS),
    PAPER.claim("TRA-A5", checks.beats_other_scores, WITH_UNTRAINED, EVERY),
    PAPER.claim(
        "TRA-A6", checks.correlated_beyond_length, needs("ratings", "words", "texts"), EVERY
    ),
    PAPER.claim(
        "TRA-A7",
        checks.same_under_recipes,
        needs("ratings", "words", "decisions", variants=models.CHECKED),
        TEXTS,
        side=_recipes(),
    ),
    PAPER.claim("TRA-A8", collapse.remembers_its_start, collapse.needs_collapse, TEXTS),
    PAPER.claim("TRA-A9", collapse.forgets_by_construction, collapse.needs_collapse, TEXTS),
    PAPER.claim("TRA-A10", widths.width_alone_helps, widths.needs_widths, TEXTS),
    PAPER.claim("TRA-A11", widths.missing_words_cost, widths.needs_widths, TEXTS),
    PAPER.claim("TRA-A12", checks.heads_need_not_be_apart, RATED, EVERY),
)
