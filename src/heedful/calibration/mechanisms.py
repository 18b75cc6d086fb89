"""All mechanisms, by name."""

from __future__ import annotations

from heedful.calibration import mechanisms_heads, mechanisms_words
from heedful.calibration.mechanism import Mechanism

MECHANISMS: dict[str, Mechanism] = {
    mechanism.name: mechanism
    for family in (mechanisms_words, mechanisms_heads)
    for mechanism in family.MECHANISMS
}
