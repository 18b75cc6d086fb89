"""All mechanisms, by name; the kind of each and what decides in it stand in `mechanisms.toml`."""

from __future__ import annotations

import tomllib
from pathlib import Path
from types import ModuleType

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
from heedful.calibration.mechanism import Mechanism, Part

FAMILIES: dict[Part, tuple[ModuleType, ...]] = {
    "open": (
        mechanisms_words,
        mechanisms_counts,
        mechanisms_conditions,
        mechanisms_heads,
        mechanisms_bypass,
        mechanisms_composition,
        mechanisms_recurrent,
        mechanisms_trained,
    ),
    "blind": (
        blind_words,
        blind_windows,
        blind_thresholds,
        blind_streams,
        blind_gates,
        blind_trained,
    ),
    "opponent": (
        blind2_tables,
        blind2_windows,
        blind2_streams,
        blind2_layers,
        blind2_trained,
    ),
}
"""Modules of mechanisms by the part that they are, in the order of the tables."""

TOLD: dict[str, dict[str, str]] = tomllib.loads(
    Path(__file__).with_suffix(".toml").read_text(encoding="utf-8")
)
"""Of each mechanism its kind, its dial if it has one, and its paragraph: fields of `Mechanism`."""
MECHANISMS: dict[str, Mechanism] = {
    name: Mechanism(name, build, part, **TOLD[name])
    for part, families in FAMILIES.items()
    for family in families
    for name, build in family.MECHANISMS.items()
}
