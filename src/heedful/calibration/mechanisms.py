"""All mechanisms, by name."""

from __future__ import annotations

from heedful.calibration import (
    blind2_layers,
    blind2_streams,
    blind2_tables,
    blind2_trained,
    blind2_windows,
    blind_gates,
    blind_streams,
    blind_thresholds,
    blind_trained,
    blind_windows,
    blind_words,
    mechanisms_bypass,
    mechanisms_composition,
    mechanisms_conditions,
    mechanisms_counts,
    mechanisms_heads,
    mechanisms_recurrent,
    mechanisms_trained,
    mechanisms_words,
)
from heedful.calibration.mechanism import Mechanism

FAMILIES = (
    mechanisms_words,
    mechanisms_counts,
    mechanisms_conditions,
    mechanisms_heads,
    mechanisms_bypass,
    mechanisms_composition,
    mechanisms_recurrent,
    mechanisms_trained,
    blind_words,
    blind_windows,
    blind_thresholds,
    blind_streams,
    blind_gates,
    blind_trained,
    blind2_tables,
    blind2_windows,
    blind2_streams,
    blind2_layers,
    blind2_trained,
)

MECHANISMS: dict[str, Mechanism] = {
    mechanism.name: mechanism for family in FAMILIES for mechanism in family.MECHANISMS
}
