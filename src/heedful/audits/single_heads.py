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
from heedful.runs.kept_tables import Keep, keep_nothing


def heads(
    model: AttentiveModel,
    documents: Encoded,
    device: torch.device | str = "cpu",
    at_once: Portion = Portion(),
) -> int:
    """How many heads the audited attention has; 0 where there is no choice among them."""
    one = subset(documents, np.zeros(1, dtype=np.int64))
    found = next(iter(readings(model, one, device, at_once))).heads
    return 0 if found is None or found.shape[1] < 2 else int(found.shape[1])


def rows(
    model: AttentiveModel,
    documents: Encoded,
    seed: int = 0,
    device: torch.device | str = "cpu",
    at_once: Portion = Portion(),
    head: int | None = None,
    keep: Keep = keep_nothing,
) -> pd.DataFrame:
    """The exchanges of `exchanges.rows` with the words that a head shows; or each, from 0 on."""
    if head is not None:
        found = rows_of_head(model, documents, seed, device, at_once, head, keep)
        return found.assign(head=head)
    every = range(heads(model, documents, device, at_once))
    return joined([rows(model, documents, seed, device, at_once, one) for one in every])


def summarise(rows: pd.DataFrame) -> Finding:
    """The share of texts in which all three tests hold, by head."""
    if not len(rows):
        return AUDIT.finding("There is one head, or nothing could be exchanged.")
    measures = []
    for head, some in rows.groupby("head"):
        measures.append(Measure(SHARE, share_of_texts(some), f"head {head}"))
    most = max(one.estimate.value for one in measures)
    best = [one for one in measures if one.estimate.value == most]
    named = ", ".join(one.method for one in best)
    who = f"Of {len(measures)} heads, {named} {'does' if len(best) == 1 else 'do'} best"
    if len(best) == len(measures) > 1:
        who = f"All {len(measures)} heads do alike"
    shares = percent(best[0].estimate)
    answer = f"{who}: all three tests hold in {shares} of {best[0].estimate.n:,} texts."
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
    parts=heads,
)
