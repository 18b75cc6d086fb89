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

from heedful.reproduction.study import Study
from heedful.studies.tracing import corpora
from heedful.studies.tracing.appendix import EXTRAS
from heedful.studies.tracing.claims import CLAIMS
from heedful.studies.tracing.collapse import COLLAPSE
from heedful.studies.tracing.figures import FIGURES
from heedful.studies.tracing.printed import PAPER
from heedful.studies.tracing.tables import TABLES
from heedful.studies.tracing.trainings import TRAININGS
from heedful.studies.tracing.widths import WIDTHS

ORDER = ("T1a", "T1b", "F1", "F2", "F3", "F4", "F5", "F6", "R1", "R2", "R3", "S1", "S2", "E1")
"""The checklist; what else there is follows."""
_FOUND = (*TRAININGS, *FIGURES, *TABLES, *EXTRAS, *WIDTHS, *COLLAPSE)


def _place(id: str) -> tuple[int, str]:
    return (ORDER.index(id) if id in ORDER else len(ORDER)), id


STUDY = Study(
    name="tracing",
    title="Structured self-attention weights encode semantics: tracing attention to words",
    reference=PAPER.reference,
    sources=corpora.SOURCES,
    seeds={"smoke": 2, "paper": 5},
    fills_card=True,
    artifacts=tuple(sorted(_FOUND, key=lambda one: _place(one.id))),
    claims=CLAIMS,
    deviations=PAPER.deviations,
)
