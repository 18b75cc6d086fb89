"""Whether one head alone may be shown where the mean over heads may not."""

from __future__ import annotations

import numpy as np
import pandas as pd
import torch

from heedful.audits.examination import Portion, joined, readings
from heedful.audits.exchange import SHARE, of_a_batch, share_of_texts
from heedful.audits.exchanges import rows as rows_of_head
from heedful.audits.finding import Audit, Finding, Measure
from heedful.audits.tables import percent
from heedful.corpora.encoded import Encoded
from heedful.corpora.samples import subset
from heedful.models.verbs import AttentiveModel


def rows(
    model: AttentiveModel,
    documents: Encoded,
    seed: int = 0,
    device: torch.device | str = "cpu",
    at_once: Portion = Portion(),
) -> pd.DataFrame:
    """The exchanges of `exchanges.rows` with the words that each head shows, from head 0 on."""
    first = next(
        iter(readings(model, subset(documents, np.zeros(1, dtype=np.int64)), device, at_once))
    )
    count = 0 if first.heads is None else first.heads.shape[1]
    if count < 2:
        return pd.DataFrame({"instance": []})
    found = [
        rows_of_head(model, documents, seed, device, at_once, head).assign(head=head)
        for head in range(count)
    ]
    return joined(found)


def summarise(rows: pd.DataFrame) -> Finding:
    """The share of texts in which all three tests hold, by head."""
    if not len(rows):
        return AUDIT.finding("There is one head, or nothing could be exchanged.")
    measures = []
    for head, some in rows.groupby("head"):
        measures.append(Measure(SHARE, share_of_texts(some), f"head {head}"))
    best = max(measures, key=lambda one: one.estimate.value)
    answer = (
        f"Of {len(measures)} heads, {best.method} does best: all three tests hold in "
        f"{percent(best.estimate)} of the texts."
    )
    return AUDIT.finding(answer, tuple(measures))


AUDIT = Audit(
    of_a_batch,
    summarise,
    name="single-heads",
    title="Single heads",
    question="Could the words that one head shows stand as the reason, instead of all heads' mean?",
    place=11,
    needs=("heads",),
    most=40,
    whole=rows,
)
