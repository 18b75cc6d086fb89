"""What attention flows among in the layers of a text: its words, and the special tokens."""

from __future__ import annotations

from typing import NamedTuple

import torch
from jaxtyping import Int
from torch import Tensor

from heedful.models.huggingface.pieces import Framed, Tokeniser
from heedful.models.reading import Reading


class Nodes(NamedTuple):
    """The nodes of each text, in the order in which they stand in it."""

    of_key: Int[Tensor, "batch key"]
    """The node of each key; -1 at padding."""
    names: tuple[tuple[str, ...], ...]
    """Words as they were written, special tokens as the tokenizer calls them."""


def nodes_of(reading: Reading, frame: Framed, tokeniser: Tokeniser) -> Nodes:
    """The pieces of a word as one node, every special token as another."""
    of_key, names = torch.full_like(frame.ids, -1), []
    for row, length in enumerate(reading.batch.lengths.tolist()):
        places = frame.place[row, :length].tolist()
        unit_at = dict(zip(places, reading.unit_of_token[row, :length].tolist(), strict=True))
        found: dict[int, int] = {}
        here: list[str] = []
        for key in frame.mask[row].nonzero()[:, 0].tolist():
            unit = unit_at.get(key, -1 - key)
            if unit not in found:
                found[unit] = len(found)
                special = tokeniser.name(int(frame.ids[row, key]))
                here.append(reading.texts[row][unit] if unit >= 0 else special)
            of_key[row, key] = found[unit]
        names.append(tuple(here))
    return Nodes(of_key, tuple(names))
