"""The claims of the dynamics paper as data (docs/studies/dynamics.md, "Claims")."""

from __future__ import annotations

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
from heedful.reproduction.study import Claim, Plan
from heedful.reproduction.view import View
from heedful.studies.dynamics import corpora, examples, measures, steps, translation
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


CLAIMS = (
    Claim("DYN-1", "The probe of a model trained with uniform attention agrees with the attention "
          "of a normal model above chance.", "3.2, Tables 2, 5", "A(α,βuf) minus exact chance",
          "52.55, 17.55, 39.24, 65.08, 19.85, 52.02; translation 29.13-35.90 vs 5-8", above(0),
          measures.above_chance("attention~uniform"), DEV, ROWS, "all", seeds=1),
    Claim("DYN-2", "Attention and the probe of a normal model agree above chance.",
          "3.2, Tables 2, 5", "A(α,β) minus exact chance", "25.33-63.07; translation 48.78-65.49",
          above(0), measures.above_chance("attention~probe"), DEV, ROWS, "all", seeds=1),
    Claim("DYN-3", "The bag-of-words proxy approximates what is learnt under uniform attention.",
          "3.2, Tables 2, 5", "A(βuf,βpx) minus exact chance",
          "33.57-81.60; translation 34.43-41.72", above(0),
          measures.above_chance("proxy~uniform"), DEV, ROWS, "all", seeds=1),
    Claim("DYN-4", "Saliency agrees with the uniform-attention probe, which explains why attention "
          "follows saliency.", "5.1, Tables 2, 5",
          "A(Δ,βuf) minus chance, and A(α,Δ) minus chance", "22.45-64.82; translation 25.45-30.23",
          above(0), measures.above_chance("saliency~uniform", "attention~saliency"), DEV, ROWS,
          "all", seeds=1),
    Claim("DYN-5", "These agreements are as high as those between two normal runs well into "
          "training.", "3.1, 3.2", "ξ(α,βuf) and ξ(α,β) minus the performance at step 0, as shares",
          "ξ/ξ*: .91-.97 classification, .28-.66 translation", above(0),
          measures.well_into_training, DEV, ROWS, "all",
          seeds=lambda plan, corpus: len(steps.runs(plan, corpus).comparisons)),
    Claim("DYN-6", "The same holds for rank correlation over all positions.", "A.4, Table 3",
          "mean Kendall τ-b of three pairs", "4.5-26.3, 17.2-36.8, 1.6-21.0 (× 100)", above(0),
          measures.ranks_agree, DEV, ROWS, "all", seeds=1),
    Claim("DYN-7", "And on training data.", "A.4, Table 7",
          "DYN-1 to DYN-4 on a training subset", "11.15-72.36 for the first column", above(0),
          measures.on_training_data, BOTH, ROWS, "all", seeds=1),
    Claim("DYN-8", "Attention trained on top of a frozen random probe does not become the normal "
          "attention.", "3.3, A.6, Table 10", "best A(α,αfr) minus A(α,βuf)",
          "9/53, 17/39, 19/65, 14/20, 15/52, 8/18", below(0), measures.frozen_differs, DEV,
          corpora.SIX, "all", seeds=1),
    Claim("DYN-9", "Agreement of attention with the uniform-attention probe first rises, then "
          "falls during training.", "A.7",
          "whether the highest checkpoint is inside; the last one minus the highest, which the "
          "other half of the items chooses",
          "stated; no curve printed",
          {"highest inside": at_least(1), "last minus highest": below(0)},
          measures.rises_and_falls, DEV, ROWS, "all", seeds=1),
    Claim("DYN-10", "The proxy equals a bag-of-words logistic regression in classification.",
          "A.10, Table 11",
          "A(βuf,βlog) minus A(βuf,βpx); rank correlation of word weights (5,000 frequent words)",
          "differences .01-.07, logistic higher in 6 of 6",
          {"difference": within(0.10), "word weights": above(0.8)},
          measures.proxy_is_regression,
          lambda plan, corpus: [*DEV(plan, corpus), steps.words(plan, corpus)], corpora.SIX,
          "all", seeds=1),
    Claim("DYN-14", "At initialisation the proxy moves each word's logits by its centred "
          "co-occurrence counts.", "4.1, A.2, eq. 15",
          "slope of log error on log width; error at width 65,536 over the largest entry",
          "limit; eq. 15 misses a factor 1/|O| for the probability",
          {"slope": between(-0.6, -0.4), "error at 65,536": at_most(0.02)}, examples.derivative,
          lambda plan, corpus: [examples.rates(plan)], examples.ONLY),
    Claim("DYN-15", "The count table of the proxy is that of IBM Model 1's first step.",
          "4.2, Fig. 1", "largest difference of the two tables; the worked example",
          "Trans(movie | Film) .32, alignment .74",
          {"largest difference": within(1e-12), "Trans(movie | Film)": within(0, 0.32),
           "alignment": within(0, 0.74)},
          _tables_agree,
          lambda plan, corpus: [] if corpus == examples.TOY else [steps.tables(plan, corpus)],
          (examples.TOY, *ROWS), "all"),
    Claim("DYN-20", "Optimal attention need not sit on the largest probe value, but usually does.",
          "A.1, eqs. 26-36",
          "distance of the counterexample's optimum from (0, .5, .5); A(αopt,β) minus chance on a "
          "corpus, with the largest duality gap", "(0, .5, .5); A = 0.53",
          {"distance from (0, .5, .5)": at_most(1e-4), "A(αopt,β) minus chance": above(0),
           "largest gap": at_most(1e-4)},
          _optimal,
          lambda plan, corpus: [] if corpus == examples.TOY else [
              translation.optimal(plan, corpus)],
          (examples.TOY, *translation.LINEAR_ON), "all", seeds=1),
    Claim("DYN-21", "The linear-output translator is as good as the nonlinear one.", "A.1",
          "dev BLEU, linear minus main, points", "38.2 vs 37.9", within(1.5), translation.as_good,
          translation.needs_linear, translation.LINEAR_ON, seeds=1),
    Claim("DYN-22", "SMS: attention of two seeds hardly agrees.", "A.9",
          "lowest agreement of two final attentions on the other corpora minus that on SMS, means "
          "over runs; all pairs share run A, and the interval allows for another in its place",
          "text; median length 13, 3500 training items, 4691 types", above(0), None, DEV, SEVEN,
          measure_all=measures.seeds_disagree),
    Claim("DYN-A1", "Choosing among the checkpoints on the evaluation set does not make the "
          "agreement.", "ours",
          "DYN-1 to DYN-4 with the checkpoint chosen on one half and scored on the other",
          "called minimal inflation", above(0), measures.chosen_elsewhere, DEV, ROWS, "all",
          seeds=1),
    Claim("DYN-A2", "Swapped arguments and a second run do not change the verdict.", "ours",
          "A(βuf,βpx) as written and A(α,β) of one model, minus chance", "not reported", above(0),
          measures.as_literally_written, DEV, ROWS, "all", seeds=1),
    Claim("DYN-A3", "Ties, repeated words and start and end symbols do not carry the agreement.",
          "ours", "DYN-1 to DYN-4 without start and end, and with ties split", "not reported",
          above(0), measures.without_ties_and_marks, DEV, ROWS, "all", seeds=1),
    Claim("DYN-A4", "Random instead of pre-trained vectors do not make the effect, and the right "
          "sign of Δ does.", "ours",
          "DYN-1 and DYN-4 with GloVe vectors of 100 dimensions; Δ with both signs",
          "text says GloVe-6B, 300 dimensions", above(0), measures.vectors_and_sign,
          _with_vectors, corpora.SIX, "all", seeds=1),
    Claim("DYN-A7", "Seeds alone can move agreement by 20 points.", "ours",
          "largest s.d. of any agreement over reference, comparison or uniform runs, in points, "
          "its interval holding for all of them at once; from 7 on (ours) two runs differ by 20 "
          "points once in twenty", "Amazon A(βuf,βpx) 76.8 vs 53 on a retrain", at_least(7),
          measures.seeds_move, DEV, corpora.SIX, measure_all=measures.seeds_move_anywhere),
)  # fmt: skip
