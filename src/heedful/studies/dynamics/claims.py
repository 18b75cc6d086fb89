"""The claims of the dynamics paper as data (docs/studies/dynamics.md, "Claims")."""

from __future__ import annotations

from functools import partial
from typing import Any

from heedful.reproduction.ledger import (
    NotMeasurable,
    Parts,
)
from heedful.reproduction.measures import exact
from heedful.reproduction.study import Plan
from heedful.reproduction.view import View
from heedful.studies.dynamics import corpora, examples, measures, steps, translation
from heedful.studies.dynamics.printed import PAPER
from heedful.studies.dynamics.tables import ROWS, needs

DEV, BOTH = needs(), needs("train")
SEVEN = (*corpora.SIX, "sms")


def _with_vectors(plan: Plan, corpus: str) -> list[Any]:
    step = steps.with_vectors(plan, corpus)
    return [steps.compared(plan, corpus)] + ([] if step is None else [step])


def _tables_agree(view: View) -> Parts | NotMeasurable:
    if view.corpus == examples.TOY:
        return Parts(examples.worked_example())
    found = view.of(steps.tables)
    return {"largest difference": exact(found["largest difference"], found["entries"])}


def _optimal(view: View) -> Parts:
    if view.corpus != examples.TOY:
        return translation.sits_on_the_largest(view)
    found = examples.counterexample()
    wanted = {"α1": 0.0, "α2": 0.5, "α3": 0.5}
    distance = max(abs(found[name] - value) for name, value in wanted.items())
    return {"distance from (0, .5, .5)": exact(distance, 3)}


def _pairs(plan: Plan, corpus: str) -> int:
    """Pairs of trainings that share none."""
    return len(steps.runs(plan, corpus).uniforms)


_claim = partial(PAPER.claim, seeds=_pairs)
CLAIMS = (
    _claim("DYN-1", measures.above_chance("attention~uniform"), DEV, ROWS),
    _claim("DYN-2", measures.above_chance("attention~probe"), DEV, ROWS),
    _claim("DYN-3", measures.above_chance("proxy~uniform"), DEV, ROWS),
    _claim("DYN-4", measures.above_chance("saliency~uniform", "attention~saliency"), DEV, ROWS),
    _claim(
        "DYN-5",
        measures.well_into_training,
        DEV,
        ROWS,
        seeds=lambda plan, corpus: len(steps.runs(plan, corpus).comparisons),
    ),
    _claim("DYN-6", measures.ranks_agree, DEV, ROWS),
    _claim("DYN-7", measures.on_training_data, BOTH, ROWS),
    _claim("DYN-8", measures.frozen_differs, DEV, corpora.SIX),
    _claim("DYN-9", measures.rises_and_falls, DEV, ROWS),
    _claim(
        "DYN-10",
        measures.proxy_is_regression,
        lambda plan, corpus: [*DEV(plan, corpus), steps.words(plan, corpus)],
        corpora.SIX,
    ),
    PAPER.claim(
        "DYN-14", examples.derivative, lambda plan, corpus: [examples.rates(plan)], examples.ONLY
    ),
    PAPER.claim(
        "DYN-15",
        _tables_agree,
        lambda plan, corpus: [] if corpus == examples.TOY else [steps.tables(plan, corpus)],
        (examples.TOY, *ROWS),
    ),
    _claim(
        "DYN-20",
        _optimal,
        lambda plan, corpus: [] if corpus == examples.TOY else [translation.optimal(plan, corpus)],
        (examples.TOY, *translation.LINEAR_ON),
    ),
    _claim("DYN-21", translation.as_good, translation.needs_linear, translation.LINEAR_ON),
    PAPER.claim("DYN-22", None, DEV, SEVEN, measure_all=measures.seeds_disagree),
    _claim("DYN-A1", measures.chosen_elsewhere, DEV, ROWS),
    _claim("DYN-A2", measures.as_literally_written, DEV, ROWS),
    _claim("DYN-A3", measures.without_ties_and_marks, DEV, ROWS),
    _claim("DYN-A4", measures.vectors_and_sign, _with_vectors, corpora.SIX),
    PAPER.claim(
        "DYN-A7", measures.seeds_move, DEV, corpora.SIX, measure_all=measures.seeds_move_anywhere
    ),
)
