"""The claims of the dynamics paper as data (docs/studies/dynamics.md, "Claims")."""

from __future__ import annotations

from functools import partial
from typing import Any

from heedful.reproduction.ledger import (
    NotMeasurable,
    Parts,
    above,
    at_least,
    at_most,
    below,
    between,
    within,
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
    return Parts({"largest difference": exact(found["largest difference"], found["entries"])})


def _optimal(view: View) -> Parts:
    if view.corpus != examples.TOY:
        return translation.sits_on_the_largest(view)
    found = examples.counterexample()
    wanted = {"α1": 0.0, "α2": 0.5, "α3": 0.5}
    distance = max(abs(found[name] - value) for name, value in wanted.items())
    return Parts({"distance from (0, .5, .5)": exact(distance, 3)})


_claim = partial(PAPER.claim, seeds=1)
CLAIMS = (
    _claim("DYN-1", above(0), measures.above_chance("attention~uniform"), DEV, ROWS),
    _claim("DYN-2", above(0), measures.above_chance("attention~probe"), DEV, ROWS),
    _claim("DYN-3", above(0), measures.above_chance("proxy~uniform"), DEV, ROWS),
    _claim(
        "DYN-4",
        above(0),
        measures.above_chance("saliency~uniform", "attention~saliency"),
        DEV,
        ROWS,
    ),
    _claim(
        "DYN-5",
        above(0),
        measures.well_into_training,
        DEV,
        ROWS,
        seeds=lambda plan, corpus: len(steps.runs(plan, corpus).comparisons),
    ),
    _claim("DYN-6", above(0), measures.ranks_agree, DEV, ROWS),
    _claim("DYN-7", above(0), measures.on_training_data, BOTH, ROWS),
    _claim("DYN-8", below(0), measures.frozen_differs, DEV, corpora.SIX),
    _claim(
        "DYN-9",
        {"highest inside": at_least(1), "last minus highest": below(0)},
        measures.rises_and_falls,
        DEV,
        ROWS,
    ),
    _claim(
        "DYN-10",
        {"difference": within(0.10), "word weights": above(0.8)},
        measures.proxy_is_regression,
        lambda plan, corpus: [*DEV(plan, corpus), steps.words(plan, corpus)],
        corpora.SIX,
    ),
    PAPER.claim(
        "DYN-14",
        {"slope": between(-0.6, -0.4), "error at 65,536": at_most(0.02)},
        examples.derivative,
        lambda plan, corpus: [examples.rates(plan)],
        examples.ONLY,
    ),
    PAPER.claim(
        "DYN-15",
        {
            "largest difference": within(1e-12),
            "Trans(movie | Film)": within(0, 0.32),
            "alignment": within(0, 0.74),
        },
        _tables_agree,
        lambda plan, corpus: [] if corpus == examples.TOY else [steps.tables(plan, corpus)],
        (examples.TOY, *ROWS),
    ),
    _claim(
        "DYN-20",
        {
            "distance from (0, .5, .5)": at_most(1e-4),
            "A(αopt,β) minus chance": above(0),
            "largest gap": at_most(1e-4),
        },
        _optimal,
        lambda plan, corpus: [] if corpus == examples.TOY else [translation.optimal(plan, corpus)],
        (examples.TOY, *translation.LINEAR_ON),
    ),
    _claim(
        "DYN-21", within(1.5), translation.as_good, translation.needs_linear, translation.LINEAR_ON
    ),
    PAPER.claim("DYN-22", above(0), None, DEV, SEVEN, measure_all=measures.seeds_disagree),
    _claim("DYN-A1", above(0), measures.chosen_elsewhere, DEV, ROWS),
    _claim("DYN-A2", above(0), measures.as_literally_written, DEV, ROWS),
    _claim("DYN-A3", above(0), measures.without_ties_and_marks, DEV, ROWS),
    _claim("DYN-A4", above(0), measures.vectors_and_sign, _with_vectors, corpora.SIX),
    PAPER.claim(
        "DYN-A7",
        at_least(7),
        measures.seeds_move,
        DEV,
        corpora.SIX,
        measure_all=measures.seeds_move_anywhere,
    ),
)
