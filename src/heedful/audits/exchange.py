"""Whether a person who reads attention foresees what the model does when words are exchanged.

What is measured of each text stands in `exchanges`; here it becomes shares of texts.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pandas as pd
from jaxtyping import Bool

from heedful.audits.exchanges import MOST_OF, rows
from heedful.audits.finding import Audit, Finding, Measure
from heedful.audits.hybrids import HALF
from heedful.audits.tables import histogram, percent
from heedful.audits.text_groups import best_group
from heedful.importance import Importance
from heedful.models.reading import Reading
from heedful.models.verbs import AttentiveModel
from heedful.statistics.estimates import Estimate, per_cent
from heedful.statistics.intervals import mean, proportion

SHARE = "texts in which all three hold"
GOES = "the decision goes with the words shown"
MATTER = "most of the attention lies on words that matter"
PASSES = "their effect passes through attention"
READ = "forward passes"
MOST = 200
"""Texts that are exchanged at most: shares of texts are then known to about 7 points."""


FEWEST = 10
"""Where fewer texts were decided for a class, it is said."""


NONE = Estimate(np.nan, np.nan, np.nan, 0, "none")


class Outcomes(NamedTuple):
    """What the exchanges say of each text."""

    comes: Bool[np.ndarray, " text"]
    """Whether the decision comes with the words shown."""
    matters: Bool[np.ndarray, " text"]
    """Whether most of the attention lies on words that it needs."""
    passes: Bool[np.ndarray, " text"]
    """Whether most of their effect passes through attention."""

    @property
    def holds(self) -> Bool[np.ndarray, " text"]:
        """Whether all three hold."""
        return np.asarray(self.comes & self.matters & self.passes)


def outcomes(rows: pd.DataFrame) -> Outcomes:
    """Per text: does the decision come with what is shown, is that needed, does it pass.

    Where many units are shown only some are tried, and such texts are judged by their mean.
    """
    comes, mattering, around = (
        rows[name].to_numpy(dtype=np.float64) for name in ("comes", "mattering", "around")
    )
    came, is_few = comes >= MOST_OF, rows["is_few"].to_numpy(dtype=bool)
    many = came & ~is_few
    judged = np.where(many, mattering[many].mean() if many.any() else 0.0, mattering)
    return Outcomes(came, came & (judged >= HALF), came & (around < HALF))


def summarise(rows: pd.DataFrame) -> Finding:
    """The finding over all rows; texts without a partner or of one unit have none."""
    if not len(rows):
        return AUDIT.finding("There is no text whose words could be put into others.")
    names = [str(name) for name in rows["instance"]]
    found = outcomes(rows)
    estimated = [share_of_texts(rows), *_each(found)]
    measures = [
        Measure(name, one)
        for name, one in zip((SHARE, GOES, MATTER, PASSES), estimated, strict=True)
    ]
    cost = mean(rows["passes"].to_numpy(dtype=np.float64), names)
    around = rows["around"].to_numpy(dtype=np.float64)
    group = best_group(rows, found.holds)
    return AUDIT.finding(
        answer=f"The decision goes with the words shown in {percent(estimated[1])} of the texts, "
        f"most of the attention lies on words that matter in {percent(estimated[2])} of these, and "
        f"their effect passes through attention in {percent(estimated[3])}.",
        measures=(*measures, Measure(READ, cost)),
        drawn={
            "mattering": histogram(rows["mattering"].to_numpy(dtype=np.float64)[found.comes]),
            "around": histogram(around[~np.isnan(around)].clip(0, 1)),
            "group": None if group is None else group.to_json(),
            "overturned": sorted(set(rows["overturned"]) - {""}),
            "conditions": list(_conditions(rows)),
        },
        notes=_notes(rows, cost.value),
    )


def _conditions(rows: pd.DataFrame) -> tuple[str, ...]:
    """What a reader of the word should know of the decisions it is about."""
    decided, labels = rows["decided"].value_counts(), rows["label"]
    if len(decided) == 1:
        return (
            f"All texts were decided as {decided.idxmin()}, so that the words shown had to decide "
            "alone, and in texts decided alike.",
        )
    if (labels == "").all():
        return ("These texts have no labels: how often the decisions are right is not known.",)
    known = rows[labels != ""]
    right = proportion(int((known["decided"] == known["label"]).sum()), len(known))
    common = known["label"].value_counts()
    guessed = int(common.max()) / len(known)
    if right.low > guessed:
        return ()
    return (
        f"The model decides {percent(right)} of these texts rightly, where always saying "
        f"{common.idxmax()} would be right in {per_cent(guessed)}: the word is about the reasons "
        "of decisions that may be worth nothing.",
    )


def _notes(rows: pd.DataFrame, cost: float) -> tuple[str, ...]:
    """How much was read, and where few texts had to do for many."""
    notes = [
        f"{len(rows)} texts; each was read {cost:.1f} times, with others' words in it included."
    ]
    decided = rows["decided"].value_counts()
    if len(decided) > 1 and int(decided.min()) < FEWEST:
        notes.append(
            f"Only {int(decided.min())} texts were decided as {decided.idxmin()}: few contexts "
            "stand for that class."
        )
    return tuple(notes)


def share_of_texts(rows: pd.DataFrame) -> Estimate:
    """The share of texts in which all three hold."""
    holds = outcomes(rows).holds
    return proportion(int(holds.sum()), len(holds))


def _each(found: Outcomes) -> list[Estimate]:
    """The share of texts in which the first holds; of the others, among these."""
    came = int(found.comes.sum())
    return [
        proportion(came, len(found.comes)),
        *(proportion(int(one.sum()), came) if came else NONE for one in found[1:]),
    ]


def of_a_batch(
    model: AttentiveModel, reading: Reading, importance: Importance, seed: int
) -> pd.DataFrame:
    """No rows: texts are set against each other, so that all are read together."""
    return pd.DataFrame({"instance": []})


AUDIT = Audit(
    of_a_batch,
    summarise,
    name="exchange",
    title="Exchanged words",
    question="When words change places between texts, does the decision go with those that "
    "attention shows?",
    place=1,
    most=MOST,
    whole=rows,
)
