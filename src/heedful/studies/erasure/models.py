"""The erasure study's six architectures and how each is trained."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from heedful.reproduction.study import Plan
from heedful.training import TrainConfig
from heedful.training.presets import PRESETS, Preset

FAMILIES = ("HAN", "FLAN")
ENCODERS = ("rnn", "conv", "noenc")
MODELS = tuple(family + encoder for family in FAMILIES for encoder in ENCODERS)
WITH_ENCODER = tuple(model for model in MODELS if not model.endswith("noenc"))
WITHOUT = tuple(model for model in MODELS if model.endswith("noenc"))

SMOKE_TRAIN = TrainConfig(epochs=8, batch_size=32, learning_rate=8e-3, patience=0)
SMOKE_MODEL: dict[str, Any] = {
    "embedding_dim": 20, "width": 20, "attention_dim": 20, "dropout": 0.1, "start": "orthogonal",
}  # fmt: skip
_VALUES: Mapping[str, str] = {
    "imdb-stars": "imdb", "imdb-ratings": "imdb", "amazon-stars": "amazon",
    "amazon-full": "amazon", "yelp-full": "yelp",
}  # fmt: skip
"""The published corpus whose dropouts, rates and schedules a corpus takes; else those of Yahoo."""


def preset_of(plan: Plan, corpus: str, model: str) -> Preset:
    """A model's recipe, sizes and training on a corpus: the paper's, or the smoke scale's."""
    family = "HAN" if model.startswith("HAN") else "FLAN"
    key = f"{family.lower()}-{model.removeprefix(family)}"
    found = PRESETS[f"erasure/{_VALUES.get(corpus, 'yahoo')}/{key}"]
    if plan.scale == "smoke":
        return replace(found, model=SMOKE_MODEL, train=SMOKE_TRAIN)
    return found
