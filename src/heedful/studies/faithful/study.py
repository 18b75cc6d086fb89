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
from heedful.studies.faithful.checks import CHECKS
from heedful.studies.faithful.claims import CLAIMS
from heedful.studies.faithful.figures import FIGURES
from heedful.studies.faithful.models import LONG_EPOCHS, SOURCES, sizes
from heedful.studies.faithful.tables import TABLES


def _deviations(plan: Plan) -> tuple[str, ...]:
    found = (
        "Tying is a mean over tokens and dimensions, so that δ of 10 to 30 are sensible; the "
        "literal sum is tried in X3, on one corpus.",
        "Masked words: the loss is summed over masked words and divided by documents; the mean "
        "over words is tried in X3, on one corpus.",
        "δ and η are chosen on dev with additive attention and trainable vectors by the rule of "
        "the study's page, and used with dot attention, at every depth and in the controls.",
        "All models of a corpus see the same batches, and those trained side by side the same "
        "masked words; seeds differ in the random start.",
        "T6 has the models of the paper's table: residual is trained with one layer.",
        "Start and end of a text are learnt vectors of the encoder, not rows of the vocabulary.",
        "Adversaries are kept by their dev objective and train at most "
        f"{sizes(plan).imitation.epochs} epochs, or until {sizes(plan).imitation.patience} bring "
        "no gain.",
        "Intervals run over trainings; where a row is a document (FAI-11 to 13, 18, A6, A8's exact "
        "part, X6) over documents and trainings both.",
        "Norms of X5 are of the 256 shortest dev texts, the first after one epoch.",
        "Splits are drawn by our keys: the published sizes, not the same documents.",
    )
    if plan.scale == "smoke":
        return found
    return (
        "100-dimensional GloVe vectors and states of 2 × 50 units instead of 300 and 2 × 150.",
        "At most 100,000 pairs in the mutual information; the sample RS then has fewer than 1,000 "
        "words on AG News and IMDB.",
        "SST keeps its punctuation, AG News and 20 Newsgroups their digits; a word is known by how "
        "often, not in how many texts, it occurs. Known words without a vector start at random.",
        "Adversaries: nine λ (3e-4 is left out) for base and masked words, four for the other "
        "remedies and under KL.",
        f"IMDB and clinical notes: adversaries train at most {LONG_EPOCHS} epochs, or until two "
        "bring no gain.",
        *found,
    )


STUDY = Study(
    name="faithful",
    title="Staying true to your word: can attention become explanation?",
    reference="Tutek & Snajder, Staying True to Your Word: (How) Can Attention Become "
    "Explanation?, RepL4NLP 2020.",
    sources=SOURCES,
    seeds={"smoke": 3, "paper": 5},
    artifacts=tuple(
        sorted(
            (*TABLES, *FIGURES, *EXTRAS),
            key=lambda one: ("TFX".index(one.id[0]), int(one.id[1:])),
        )
    ),
    claims=(*CLAIMS, *CHECKS),
    deviations=_deviations,
)
