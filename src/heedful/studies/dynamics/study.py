"""How single-head attention learns: first which words tell the answer, then where they stand.

    heedful reproduce dynamics                               smoke: planted reviews and pairs, tasks
    heedful reproduce dynamics --scale paper --device cuda   the real corpora

Steps are in `steps`, tables in `tables`, figures in `figures`, worked
examples in `examples`, tasks in `tasks`, claims in `claims`.
"""

from __future__ import annotations

from heedful.reproduction.study import Artifact, Claim, Plan, Study
from heedful.studies.dynamics import corpora, steps, task_claims, task_figures, tasks, translation
from heedful.studies.dynamics.claims import CLAIMS
from heedful.studies.dynamics.examples import EXAMPLES, SOURCE
from heedful.studies.dynamics.figures import FIGURES
from heedful.studies.dynamics.tables import TABLES


def _deviations(plan: Plan) -> tuple[str, ...]:
    found = (
        "Word vectors start random, as in the released model; GloVe is a variant (DYN-A4).",
        "Â is the exact probability of agreement by chance, not a shuffle.",
        "Δ has the sign of its definition; the release's other sign is shown in X7.",
        "A word is known when it is seen three times; the release also knows words with a vector.",
        "The proxy of translation counts neither padding nor the start symbol as target words.",
        "BLEU over training is of greedy translations; E1 and DYN-21 have a beam of 5.",
        "Validation documents are test documents, as published: fine to compare with the paper, "
        "not to claim accuracies.",
        "Intervals resample documents (sentences); the checkpoint is chosen anew in each resample. "
        "DYN-22 resamples runs too.",
        "Sizes and lengths of corpora that differ from the paper's by a tenth or more are told "
        "under T9.",
        f"The run on a frozen probe (T10, DYN-8) has seed {steps.REFERENCE}, that of run A.",
    )
    smoke = ("At smoke scale planted texts stand for all corpora, with tiny models.",)
    return found + (smoke if plan.scale == "smoke" else ())


SYMBOLS = {
    "α": "The attention of the trained model (run A, where it performs best): how much each word, "
    "or source piece, counts for the answer.",
    "β": "The probe: how probable the right answer becomes when the state of one word alone stands "
    "in the place of the attended mixture; in A(α,β) that of another trained run, B.",
    "βuf": "The probe of a run whose attention is kept uniform, so that it can only learn which "
    "words tell the answer, not where to look.",
    "βpx": "What a small proxy says of each word: a model that knows a text as the average of its "
    "word vectors, without order or attention.",
    "βlog": "What a logistic regression on counts of words says of each word.",
    "αfr": "The attention of a run in which all but attention stays random and frozen.",
    "Δ": "The gradient of the right answer's log-probability times the input: how much each word "
    "supports that answer in run A.",
    "A(u,v)": "Agreement: how often the word that is largest by u is among the top 5 per cent "
    "by v, at the checkpoint where that is most often.",
    "Â": "The agreement that chance gives: the same with v shuffled.",
    "ξ(u,v)": "How well other runs perform when their attention first agrees with run A's more "
    "often than A(u,v): the higher, the stronger that agreement.",
    "ξ*": "The best performance of run A, which stands for ξ where A(u,v) is never passed.",
}


def _order(one: Artifact) -> tuple[int, int, str]:
    digits = "".join(character for character in one.id[1:] if character.isdigit())
    return "TFEX".index(one.id[0]), int(digits or 0), one.id


def _number(one: Claim) -> tuple[bool, int]:
    short = one.id.removeprefix("DYN-")
    return short.startswith("A"), int(short.removeprefix("A"))


ARTIFACTS = (*TABLES, *FIGURES, *EXAMPLES, *task_figures.ARTIFACTS, translation.LINEAR)
STUDY = Study(
    name="dynamics",
    title="Approximating how single-head attention learns",
    reference="Snell, Zhong, Klein and Steinhardt, Approximating How Single Head Attention "
    "Learns, 2021.",
    sources=(*corpora.SOURCES, *translation.SOURCES, *tasks.SOURCES, SOURCE),
    artifacts=tuple(sorted(ARTIFACTS, key=_order)),
    claims=tuple(sorted((*CLAIMS, *task_claims.CLAIMS), key=_number)),
    seeds={"smoke": 2, "paper": 5},
    deviations=_deviations,
    symbols=SYMBOLS,
)
