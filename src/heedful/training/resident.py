"""Documents that lie on the device, so that a step picks its batches out there."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import torch
from jaxtyping import Bool, Int
from torch import Tensor

from heedful.corpora.encoded import Encoded
from heedful.corpora.vocabulary import PAD
from heedful.models.clustered_stack import FlatBatch, flat_of


class OwnBatch(NamedTuple):
    """A batch of each model's own, padded to the longest document of all."""

    ids: Int[Tensor, "model batch token"]
    mask: Bool[Tensor, "model batch token"]
    labels: Int[Tensor, "model batch"]


@dataclass(frozen=True, eq=False)
class ResidentDocuments:
    """All documents of a split, one after the other; a last one of one token fills up batches."""

    ids: Int[Tensor, " flat"]
    starts: Int[Tensor, " document"]
    lengths: Int[Tensor, " document"]
    labels: Int[Tensor, " document"]

    @classmethod
    def of(cls, encoded: Encoded, device: torch.device | str) -> ResidentDocuments:
        """The documents of a split."""
        arrays = (
            np.append(encoded.ids, PAD),
            encoded.starts,
            np.append(encoded.lengths, 1),
            np.append(encoded.labels, 0),
        )
        return cls(*(torch.from_numpy(a.astype(np.int64)).to(device) for a in arrays))

    def batch(self, rows: Int[Tensor, "model batch"], longest: int) -> OwnBatch:
        """Some of them for each model, padded to a length that none exceeds."""
        lengths = self.lengths[rows][..., None]
        place = torch.arange(longest, device=rows.device)
        mask = place < lengths
        ids = self.ids[self.starts[rows][..., None] + place.minimum(lengths - 1)]
        return OwnBatch(ids.masked_fill(~mask, PAD), mask, self.labels[rows])

    def flat(self, rows: Int[Tensor, "model batch"], tokens: int) -> FlatBatch:
        """Some of them for each model, one after the other; no model has more than `tokens`."""
        lengths = self.lengths[rows]
        first, owner = flat_of(lengths, tokens)
        # Whoever belongs to none reads the last document's last token, and is then made padding.
        last = owner.clamp_max(rows.shape[1] - 1)
        offset = torch.arange(tokens, device=rows.device) - first.gather(1, last)
        place = self.starts[rows].gather(1, last) + offset.minimum(lengths.gather(1, last) - 1)
        ids = self.ids[place].masked_fill(owner == rows.shape[1], PAD)
        return FlatBatch(ids, first, lengths, owner, self.labels[rows])
