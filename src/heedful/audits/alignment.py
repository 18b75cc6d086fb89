"""Whether a translator's attention lies on the source words that an alignment names.

The alignment (known by construction, or by `heedful align`) marks, for each output word, the source
units it goes with; for the audit they are the known evidence of that word.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pandas as pd
import torch
from jaxtyping import Bool, Float, Float64
from torch import Tensor

from heedful.audits.evidence import share_on
from heedful.audits.finding import Finding, Measure
from heedful.audits.tables import counted, per_ranking, percent
from heedful.corpora.pairs import pair_of
from heedful.corpora.parallel import Links
from heedful.importance import Importance
from heedful.models.reading import Reading
from heedful.models.verbs import AttentiveModel
from heedful.statistics.intervals import pooled

QUESTION = "Does attention lie on the source words that the alignment names?"
MEASURES = {"hit": "top unit is aligned", "mass": "mass on aligned units"}
CHANCE = "a unit drawn at random"


def with_links(reading: Reading, links: Sequence[Links]) -> Reading:
    """A translator's reading with the units that each output word is aligned with as evidence.

    `links[s]` are those of the reading's sentence s; source units count the start symbol as 0.
    """
    if reading.shared is None:
        raise ValueError("links are for a translator's reading, in which sentences are shared")
    marked = torch.zeros_like(reading.mask)
    rows = {
        (sentence, int(step)): row
        for row, (sentence, step) in enumerate(
            zip(reading.shared.tolist(), reading.state.step.tolist(), strict=True)
        )
    }
    for sentence, pairs in enumerate(links):
        for unit, step in pairs:
            if (sentence, step) in rows and unit < marked.shape[1]:
                marked[rows[sentence, step], unit] = True
    return replace(reading, batch=replace(reading.batch, evidence=marked & reading.mask))


def rows(
    model: AttentiveModel, reading: Reading, importance: Importance, seed: int
) -> pd.DataFrame:
    """For each output word and method: whether the top unit is aligned, and the mass that is.

    Of tied units the top one is drawn at random, so that even attention hits as often as chance: a
    hit is then a probability. A word without links has nan; `chance` is the share of units that are
    aligned. `sentence` is the pair that the word is of.
    """
    known = reading.evidence
    if known is None or not importance:
        return pd.DataFrame()
    mask, found = reading.mask, known & reading.mask
    has_links = found.any(-1)
    hits = [_share_of_top(score, found, mask) for score in importance.values()]
    masses = [share_on(score, found, mask) for score in importance.values()]
    table = per_ranking(
        reading.names,
        list(importance),
        units=reading.units[:, None],
        links=found.sum(-1, keepdim=True),
        hit=torch.stack([one.masked_fill(~has_links, torch.nan) for one in hits], 1),
        mass=torch.stack(masses, 1),
        chance=(found.sum(-1).double() / mask.sum(-1)).masked_fill(~has_links, torch.nan)[:, None],
    )
    return table.assign(sentence=table["instance"].map(pair_of))


def _share_of_top(
    score: Float[Tensor, "batch unit"],
    found: Bool[Tensor, "batch unit"],
    mask: Bool[Tensor, "batch unit"],
) -> Float64[Tensor, "batch"]:
    """The share of each row's largest units, one unless there are ties, that are aligned."""
    inside = score.double().masked_fill(~mask, -torch.inf)
    is_top = (inside == inside.amax(-1, keepdim=True)) & mask
    return (is_top & found).sum(-1).double() / is_top.sum(-1)


def summarise(rows: pd.DataFrame) -> Finding:
    """The finding over all output words with links, beside what a random unit would hit.

    Words of a sentence hang together: whole sentences are resampled, and n counts them.
    """
    of = int(rows["instance"].nunique()) if len(rows) else 0
    rows = rows[rows["links"] > 0] if of else rows
    kept = int(rows["instance"].nunique()) if len(rows) else 0
    notes = tuple(
        note.replace("documents", "output words")
        for note in counted(of - kept, of, "have no aligned source word and are left out.")
    )
    if not kept:
        nothing = "Nothing could be measured: no output word has an aligned source word."
        return Finding("alignment", QUESTION, nothing, (), "measures", {}, notes)
    methods = dict(iter(rows.groupby("ranking", sort=False)))
    measures = [
        Measure(name, pooled(own[column], own["sentence"].tolist()), str(method))
        for column, name in MEASURES.items()
        for method, own in methods.items()
    ]
    own = next(iter(methods.values()))
    chance = pooled(own["chance"], own["sentence"].tolist())
    measures.append(Measure(MEASURES["hit"], chance, CHANCE))
    shown = {m.method: m.estimate for m in measures if m.name == MEASURES["hit"]}
    first = "attention" if "attention" in shown else next(iter(shown))
    answer = (
        f"The unit with most {first} is aligned with {percent(shown[first])} of the output words; "
        f"{CHANCE} with {percent(chance)}."
    )
    return Finding("alignment", QUESTION, answer, tuple(measures), "measures", {}, notes)
