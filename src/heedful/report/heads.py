"""What every head of every layer attends to in one text, in few bytes for the page."""

from __future__ import annotations

import base64
from typing import Any

import numpy as np
from jaxtyping import Float

from heedful.importance.layers import head_pairs, head_rows
from heedful.importance.traced import is_traceable
from heedful.models.reading import Reading
from heedful.models.verbs import AttentiveModel

MOST_UNITS = 160
"""Longer texts are shown without their heads: columns would be narrower than a pixel."""
MOST_PAIRS = 12_000
"""Weights of one text, over all layers, heads and pairs of words, that the page holds."""


def describe_heads(model: AttentiveModel, reading: Reading) -> dict[int, dict[str, Any]]:
    """The heads of the texts that are short enough, by row; none where the model has one row only.

    `rows` is what the deciding position gives to each unit, [layer head unit]; `pairs` what each
    unit gives to each unit, [layer head query key], where that is not too much. Both as the root of
    the weight in 256 shades.
    """
    short = [row for row, units in enumerate(reading.units.tolist()) if units <= MOST_UNITS]
    if not short or not is_traceable(model):
        return {}
    rows = head_rows(model, reading).cpu().numpy()
    layers, heads = rows.shape[1:3]
    few = [r for r in short if layers * heads * int(reading.units[r]) ** 2 <= MOST_PAIRS]
    pairs = head_pairs(model, reading, few)
    found = {}
    for row in short:
        units = int(reading.units[row])
        entry: dict[str, Any] = {"layers": layers, "heads": heads}
        entry["rows"] = packed(rows[row, :, :, :units])
        if row in pairs:
            entry["pairs"] = packed(pairs[row][:, :, :units, :units].cpu().numpy())
        found[row] = entry
    return found


def packed(weights: Float[np.ndarray, "..."]) -> str:
    """Weights from 0 to 1 as one byte each: small ones keep their differences under the root."""
    shades = np.round(255 * np.sqrt(np.clip(weights, 0, 1))).astype(np.uint8)
    return base64.b64encode(shades.tobytes()).decode("ascii")
