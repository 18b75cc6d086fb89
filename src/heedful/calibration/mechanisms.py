"""All mechanisms, by name; the part and kind of each and what decides in it: `mechanisms.toml`."""

from __future__ import annotations

import tomllib
from pathlib import Path

from heedful.calibration import (
    blind2_streams,
    blind2_tables,
    blind_gates,
    blind_streams,
    blind_windows,
    blind_words,
    mechanisms_composition,
    mechanisms_counts,
    mechanisms_heads,
    mechanisms_trained,
    mechanisms_words,
)
from heedful.calibration.mechanism import Build, Mechanism, Part

FAMILIES = (
    mechanisms_words,
    mechanisms_counts,
    mechanisms_heads,
    mechanisms_composition,
    mechanisms_trained,
    blind_words,
    blind_windows,
    blind_streams,
    blind_gates,
    blind2_tables,
    blind2_streams,
)
BUILDS: dict[str, Build] = {
    name: build for family in FAMILIES for name, build in family.MECHANISMS.items()
}
TOLD: dict[Part, dict[str, dict[str, str]]] = tomllib.loads(
    Path(__file__).with_suffix(".toml").read_text(encoding="utf-8")
)  # type: ignore[assignment]
"""Of the mechanisms of each part, in the order of the tables: kind, dial if any, and paragraph."""
MECHANISMS: dict[str, Mechanism] = {
    name: Mechanism(name, BUILDS[name], part, **told)
    for part, mechanisms in TOLD.items()
    for name, told in mechanisms.items()
}
