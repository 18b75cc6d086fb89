"""Staying true to your word: can attention become explanation? (Tutek & Snajder, 2020)

Encoders leak the answer from the words that hold it into all others, so that it no longer matters
where attention lies. Remedies keep a state about its own word: concat, residual, tying, masked
words. No code of the paper exists; every choice is written down in docs/studies/faithful.md.

Paper scale on a machine with a GPU, from prepared texts. Models of one shape (seeds, strengths) are
trained as one stack, and several processes take the stacks and the measurements:

    heedful reproduce faithful --scale paper --only T5 --out DIR            (here: prepares)
    heedful reproduce faithful --scale paper --corpora sst --out DIR --device cuda --jobs 10
    heedful reproduce faithful --scale paper --out DIR                      (here: draws)

Clinical notes (Diabetes, Anemia) are read from `mimic/diabetes.csv` and `mimic/anemia.csv` in the
data root, with the columns text, label (0 or 1) and split (train, dev, test).
"""

from __future__ import annotations

from heedful.reproduction.study import Plan, Study
from heedful.studies.faithful.appendix import EXTRAS
from heedful.studies.faithful.claims import CLAIMS
from heedful.studies.faithful.figures import FIGURES
from heedful.studies.faithful.models import LONG_EPOCHS, SOURCES, sizes
from heedful.studies.faithful.printed import PAPER
from heedful.studies.faithful.tables import TABLES


def _deviations(plan: Plan) -> tuple[str, ...]:
    imitation = sizes(plan).imitation
    return PAPER.deviations(
        plan,
        epochs=imitation.epochs,
        patience=imitation.patience,
        long_epochs=LONG_EPOCHS,
        updates=f"{sizes(plan).updates:,}",
    )


STUDY = Study(
    name="faithful",
    title="Staying true to your word: can attention become explanation?",
    reference=PAPER.reference,
    sources=SOURCES,
    seeds={"smoke": 3, "paper": 10},
    artifacts=tuple(
        sorted(
            (*TABLES, *FIGURES, *EXTRAS),
            key=lambda one: ("TFX".index(one.id[0]), int(one.id[1:])),
        )
    ),
    claims=CLAIMS,
    deviations=_deviations,
)
