"""Structured self-attention weights encode semantics (Wu, Nguyen & Ong 2020): tracing attention.

    heedful reproduce tracing                        # planted reviews and narratives
    heedful reproduce tracing --scale paper --data-root DATA --device cuda

**In two places.** Where the data and the lemmas (simplemma) are, `--scale paper --only X1
--no-figures` prepares: ids, leaf labels and vectors of the vocabulary under `steps/CORPUS/corpus`,
the matched words in `steps/CORPUS/ratings.parquet`. A machine with a GPU and nothing else computes
the rest from these with `--no-figures --device cuda`. What the figures and claims read are compact
tables (`words`, `heads`, `texts`, `decisions`, `followed`, `flow`); models and token tables can
stay. Bring the tables back and draw with `--no-compute`.

Planted narratives stand in for SEND, which is read from the data root where it is.
"""

from __future__ import annotations

from heedful.reproduction.study import Plan, Study
from heedful.studies.tracing import corpora
from heedful.studies.tracing.appendix import EXTRAS
from heedful.studies.tracing.claims import CLAIMS
from heedful.studies.tracing.figures import FIGURES
from heedful.studies.tracing.printed import REFERENCE
from heedful.studies.tracing.tables import TABLES
from heedful.studies.tracing.trainings import TRAININGS

ORDER = ("T1a", "T1b", "F1", "F2", "F3", "F4", "F5", "F6", "R1", "R2", "R3", "S1", "S2", "E1")
"""The checklist; what else there is follows."""
_FOUND = (*TRAININGS, *FIGURES, *TABLES, *EXTRAS)


def _place(id: str) -> tuple[int, str]:
    return (ORDER.index(id) if id in ORDER else len(ORDER)), id


def _deviations(plan: Plan) -> tuple[str, ...]:
    found = (
        "Dropout acts in every epoch and the loss is the code's sum of five binary ones; what the "
        "code did (dropout in the first epoch only) and what the paper says (cross-entropy) are "
        "variants (T1a, TRA-A7).",
        "Words are matched as they stand, then by simplemma's lemma; related forms and the "
        "authors' hand corrections are left out.",
        "Words that share an entry of the lexicon are drawn together in every interval.",
        "Head shares and chance are over the same texts; the published chance stands beside.",
    )
    if plan.scale == "smoke":
        return (
            "A small Transformer with random word vectors; ratings of planted words are those "
            "they were made with, from 1 to 9.",
            *found,
        )
    return found


STUDY = Study(
    name="tracing",
    title="Structured self-attention weights encode semantics: tracing attention to words",
    reference=REFERENCE,
    sources=corpora.SOURCES,
    seeds={"smoke": 2, "paper": 5},
    artifacts=tuple(sorted(_FOUND, key=lambda one: _place(one.id))),
    claims=CLAIMS,
    deviations=_deviations,
)
