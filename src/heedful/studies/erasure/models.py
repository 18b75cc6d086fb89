"""The erasure study's six architectures and how each is trained."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any

from heedful.corpora import Encoded
from heedful.reproduction.study import Plan
from heedful.training import TrainConfig
from heedful.training.presets import PRESETS, Preset

FAMILIES = ("HAN", "FLAN")
ENCODERS = ("rnn", "conv", "noenc")
MODELS = tuple(family + encoder for family in FAMILIES for encoder in ENCODERS)
WITH_ENCODER = tuple(model for model in MODELS if not model.endswith("noenc"))
WITHOUT = tuple(model for model in MODELS if model.endswith("noenc"))

SMOKE_TRAIN = TrainConfig(batch_size=32, learning_rate=8e-3)
SMOKE_MODEL: dict[str, Any] = {
    "embedding_dim": 20, "width": 20, "attention_dim": 20, "dropout": 0.1, "start": "orthogonal",
}  # fmt: skip
_VALUES: Mapping[str, str] = {
    "imdb-stars": "imdb", "imdb-ratings": "imdb", "amazon-stars": "amazon",
    "amazon-full": "amazon", "yelp-full": "yelp",
}  # fmt: skip
"""The published corpus whose dropouts, rates and schedules a corpus takes; else those of Yahoo."""


@dataclass(frozen=True)
class UpdateSchedule:
    """How long a model learns, in updates: an epoch is 100 of them here and 47,000 in the paper."""

    most: int
    """Updates after which training ends."""
    patience: int
    """Updates without gain in dev accuracy after which it ends sooner."""
    halve_after: int
    """Updates without gain after which the rate is halved, and again after as many more."""

    def described(self) -> dict[str, Any]:
        """As plain data, for what a result was computed from."""
        return asdict(self)

    def of(self, published: TrainConfig, train: Encoded) -> TrainConfig:
        """The published training at this length: its epochs are those of the training documents."""
        config = replace(published, length_seed=0)
        epoch = len(config.groups(train, 0, 0))

        def epochs(updates: int) -> int:
            return max(math.ceil(updates / epoch), 1)

        return replace(
            config,
            epochs=epochs(self.most),
            patience=epochs(self.patience) if self.patience else 0,
            halve_after=epochs(self.halve_after),
        )


LONG = UpdateSchedule(most=12_000, patience=3_000, halve_after=1_000)
"""Of the paper scale. As published (the rate halved at every epoch without gain, five such end it)
20 Newsgroups learnt for 2,400 updates and stopped before its attention had settled."""
SMOKE = UpdateSchedule(most=240, patience=0, halve_after=1_000)


def schedule_of(plan: Plan) -> UpdateSchedule:
    """How long models learn at this scale."""
    return plan.pick(SMOKE, LONG)


def preset_of(plan: Plan, corpus: str, model: str) -> Preset:
    """A model's recipe, sizes and training on a corpus: the paper's, or the smoke scale's."""
    family = "HAN" if model.startswith("HAN") else "FLAN"
    key = f"{family.lower()}-{model.removeprefix(family)}"
    found = PRESETS[f"erasure/{_VALUES.get(corpus, 'yahoo')}/{key}"]
    if plan.scale == "smoke":
        return replace(found, model=SMOKE_MODEL, train=SMOKE_TRAIN)
    return found
