"""How far a second model's attention and output lie from the first one's (faithful.md §3.2)."""

from __future__ import annotations

import numpy as np
import pandas as pd
import torch

from heedful.audits.finding import frame
from heedful.corpora.batches import batches
from heedful.corpora.encoded import Encoded
from heedful.models.classifier import AttentionClassifier
from heedful.models.verbs import read
from heedful.statistics.divergence import js_divergence, total_variation


def distances(
    second: AttentionClassifier,
    first: AttentionClassifier,
    encoded: Encoded,
    device: torch.device | str = "cpu",
) -> pd.DataFrame:
    """JSD between the attentions and TVD between the outputs on every document.

    TVD is the whole definition, half the sum over all classes; the published code of the trained
    adversary has half of it. `decision` is the second model's, so that a collapse can be seen.
    """
    parts = []
    for batch in batches(encoded, 256, max_tokens=32_768):
        here = batch.to(device)
        one, two = read(first, here), read(second, here)
        jsd = js_divergence(one.scores.log_softmax(-1), two.scores.log_softmax(-1))
        tvd = total_variation(one.logits.softmax(-1), two.logits.softmax(-1))
        columns = {"jsd": jsd, "tvd": tvd, "decision": two.decision, "label": two.labels}
        arrays = {name: np.asarray(column.cpu()) for name, column in columns.items()}
        parts.append(frame(batch.names, **arrays))
    return pd.concat(parts, ignore_index=True)
