"""Why this text: the importance of its words by every method."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from heedful.errors import InputError
from heedful.importance import METHODS
from heedful.importance import explain as importance_of
from heedful.jobs.opening import load
from heedful.models import AttentionClassifier, read


@dataclass(frozen=True)
class Explanation:
    """One text, its decision and what each method says mattered."""

    units: tuple[str, ...]
    """Words, or sentences in a hierarchical model."""
    decision: str
    probabilities: dict[str, float]
    importance: dict[str, tuple[float, ...]]
    """One number per unit by each method, higher = more important."""

    def to_json(self) -> dict[str, Any]:
        """The explanation as plain data."""
        return {
            "decision": self.decision,
            "probabilities": self.probabilities,
            "units": list(self.units),
            "importance": {name: list(values) for name, values in self.importance.items()},
        }


def explain(
    model: AttentionClassifier | str | Path,
    text: str,
    methods: Sequence[str] = tuple(METHODS),
    *,
    seed: int = 0,
) -> Explanation:
    """What each importance method says of each word of a text.

    >>> import heedful
    >>> from heedful.jobs.settings import settings_of
    >>> corpus = heedful.load_corpus("planted:2:short", sizes={"train": 200, "dev": 50})
    >>> small = settings_of({"train": {"epochs": 1}})
    >>> model = heedful.train("none+additive", corpus, settings=small)
    >>> explanation = heedful.explain(model, "The soup was dreadful.", ["attention"])
    >>> explanation.units
    ('the', 'soup', 'was', 'dreadful', '.')
    """
    if not text.strip():
        raise InputError("Expected a text to explain, got an empty one.")
    if not isinstance(model, AttentionClassifier):
        model = load(model)
    reading = read(model, model.batch([text]))
    probabilities = reading.logits[0].softmax(-1).tolist()
    found = importance_of(model, reading, methods, seed)
    return Explanation(
        units=reading.texts[0],
        decision=model.classes[int(reading.decision[0])],
        probabilities=dict(zip(model.classes, probabilities, strict=True)),
        importance={name: tuple(values[0].tolist()) for name, values in found.items()},
    )
