"""How far a second model's attention and output lie from the first one's.

See docs/studies/faithful.md, "Distances".
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd
import torch

from heedful.audits.examination import Portion, readings
from heedful.audits.finding import frame
from heedful.corpora.encoded import Encoded
from heedful.models.classifier import AttentionClassifier
from heedful.models.verbs import read
from heedful.statistics.divergence import js_divergence, total_variation


def distances(
    seconds: Sequence[AttentionClassifier],
    first: AttentionClassifier,
    encoded: Encoded,
    device: torch.device | str = "cpu",
) -> list[pd.DataFrame]:
    """For each second model JSD of the attentions and TVD of the outputs on every document.

    The first model reads every document once, however many imitate it. TVD is the whole definition,
    half the sum over all classes; the published code of the trained adversary has half of it.
    `decision` is the second model's, so that a collapse can be seen.
    """
    found: list[list[pd.DataFrame]] = [[] for _ in seconds]
    for one in readings(first, encoded, device, Portion(256)):
        attention, output = one.scores.log_softmax(-1), one.logits.softmax(-1)
        for parts, second in zip(found, seconds, strict=True):
            two = read(second, one.batch)
            jsd = js_divergence(attention, two.scores.log_softmax(-1))
            tvd = total_variation(output, two.logits.softmax(-1))
            columns = {"jsd": jsd, "tvd": tvd, "decision": two.decision, "label": two.labels}
            arrays = {name: np.asarray(column.cpu()) for name, column in columns.items()}
            parts.append(frame(one.names, **arrays))
    return [pd.concat(parts, ignore_index=True) for parts in found]
