"""From the keys of a pass (pieces, special tokens, padding) to the words of a text."""

from __future__ import annotations

import torch
from jaxtyping import Float, Int
from torch import Tensor

from heedful.corpora.batches import Batch
from heedful.models.huggingface.pieces import Framed


def unit_of_key(
    batch: Batch, frame: Framed, unit_of_token: Int[Tensor, "batch token"]
) -> Int[Tensor, "batch key"]:
    """The word that each key belongs to; -1 for special tokens and padding."""
    width = frame.ids.shape[1]
    units = torch.full((len(frame.ids), width + 1), -1, device=frame.ids.device)
    put = frame.place.masked_fill(~batch.mask, width)
    return units.scatter_(1, put, unit_of_token)[:, :width]


def per_unit(
    weights: Float[Tensor, "batch head key"], unit_of_key: Int[Tensor, "batch key"], units: int
) -> Float[Tensor, "batch head unit"]:
    """Sums over the keys of each unit; special tokens are left out."""
    index = torch.where(unit_of_key < 0, units, unit_of_key)[:, None].expand(weights.shape)
    total = weights.new_zeros(*weights.shape[:2], units + 1)
    return total.scatter_add(-1, index, weights)[..., :units]


def on_first(
    row: Float[Tensor, "batch key"], unit_of_key: Int[Tensor, "batch key"], frame: Framed
) -> Float[Tensor, " batch"] | None:
    """What the first token of each text holds of a row, where it belongs to no word."""
    start = frame.mask.argmax(-1, keepdim=True)
    if bool((unit_of_key.gather(1, start) >= 0).any()):
        return None
    return row.gather(1, start)[:, 0]
