"""How a model is trained."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Int

from heedful.corpora.batches import groups, ranked_groups
from heedful.corpora.encoded import Encoded
from heedful.errors import InputError, unknown
from heedful.models.recipe import settings_without
from heedful.runs.randomness import numpy_generator

OPTIMISERS = ("adam", "amsgrad", "adamw", "adagrad", "sgd")
DECISIONS = ("accuracy", "macro_f1", "f1", "loss")
"""Metrics of a classifier."""
SELECTIONS = (*DECISIONS, "ccc")
DECAYED = ("all", "all but attention", "encoder", "additive map", "matrices")
PRECISIONS = ("float32", "bfloat16")
LATER = ("warm_up", "linear_decay", "precision", "halve_after", "length_seed")
"""Fields of TrainConfig that came after results were kept."""


@dataclass(frozen=True)
class Schedule:
    """Training counted in steps instead of epochs (docs/studies/dynamics.md, "Classifier").

    Batches hold documents of any length in random order, an epoch's incomplete last one is left
    out, nothing stops early, and dev is evaluated at the named steps alone.
    """

    steps: int
    """Updates in all."""
    evaluate_at: tuple[int, ...]
    """Updates done at each evaluation; 0 is the model before the first."""

    def __post_init__(self) -> None:
        if self.steps < 1:
            raise InputError(f"a schedule has at least 1 step, got {self.steps}.")
        outside = [step for step in self.evaluate_at if not 0 <= step <= self.steps]
        if outside or not self.evaluate_at:
            raise InputError(
                f"a schedule is evaluated at steps from 0 to {self.steps}, got {self.evaluate_at}."
            )


@dataclass(frozen=True)
class TrainConfig:
    """One loop for all models; a sentence under each knob."""

    epochs: int = 8
    """Most passes over the training documents."""
    batch_size: int = 32
    """Documents per step."""
    max_batch_tokens: int | None = None
    """Bound on documents × longest document, so that long texts come in smaller batches."""
    optimiser: str = "adam"
    """adam, amsgrad, adamw, adagrad or sgd."""
    learning_rate: float = 1e-3
    rate_decay: float = 0.0
    """Adagrad's: after n steps the rate is divided by 1 + n × this."""
    weight_decay: float = 0.0
    """Strength of L2 (decoupled for adamw)."""
    decay: str = "all"
    """What weight decay acts on: all, all but attention, encoder, the map inside additive
    attention, or matrices (all but biases and norms)."""
    clip_norm: float = 5.0
    """Global gradient norm is clipped here; 0 switches it off."""
    clip_value: float = 0.0
    """Each gradient entry is clipped here before the norm; 0 switches it off."""
    halve_on_plateau: bool = False
    """Halve the learning rate after every evaluation without gain."""
    halve_after: int = 1
    """Evaluations without gain after which that happens, and again after as many more."""
    patience: int = 3
    """Stop after this many evaluations without gain; 0 never stops early."""
    select: str = "accuracy"
    """The dev metric that chooses the kept weights: accuracy, macro_f1, f1 (last class), loss,
    or ccc for ratings over time."""
    balanced: bool = False
    """Weigh each class by the inverse of its share, for corpora where one class is rare."""
    order_seed: int | None = None
    """Seed of the order of batches; none means the run's own. Stacked models share batches."""
    length_seed: int | None = None
    """Seed of the order in which batches of short and of long texts come, while the run's own puts
    the texts into them; none means the run's own for both. Models trained side by side on batches
    of their own share it."""
    evaluate_at: tuple[int, ...] = ()
    """Extra steps at which dev is evaluated and observers are called; every epoch always is."""
    checkpoint_seconds: float = 60.0
    """Least time between checkpoints inside an epoch, 0 for one after every step; an epoch ends
    with one, unless it is much shorter than writing it."""
    warm_up: float = 0.0
    """Share of training in which the learning rate rises evenly from 0."""
    linear_decay: bool = False
    """Let the learning rate fall evenly to 0 from the end of the warm-up to that of training."""
    precision: str = "float32"
    """float32, or bfloat16: what a GPU computes the loss in; the weights stay as they are."""

    def __post_init__(self) -> None:
        for kind, value, known in (
            ("optimiser", self.optimiser, OPTIMISERS),
            ("metric to select by", self.select, SELECTIONS),
            ("place for weight decay", self.decay, DECAYED),
            ("precision", self.precision, PRECISIONS),
        ):
            if value not in known:
                raise unknown(kind, value, known)
        for name, least in (("epochs", 1), ("batch_size", 1), ("patience", 0), ("halve_after", 1)):
            if getattr(self, name) < least:
                raise InputError(f"{name} must be at least {least}, got {getattr(self, name)}.")
        if self.rate_decay < 0 or (self.rate_decay and self.optimiser != "adagrad"):
            raise InputError(
                f"rate_decay is a number from 0 up and is adagrad's, got {self.rate_decay} with "
                f"{self.optimiser}."
            )
        if not 0 < self.learning_rate < np.inf:
            raise InputError(f"learning_rate must be above 0, got {self.learning_rate}.")
        for name in ("weight_decay", "clip_norm", "clip_value", "checkpoint_seconds"):
            if not 0 <= getattr(self, name) < np.inf:
                raise InputError(f"{name} is a number from 0 up, got {getattr(self, name)}.")
        if self.max_batch_tokens is not None and self.max_batch_tokens < 1:
            raise InputError(f"max_batch_tokens must be at least 1, got {self.max_batch_tokens}.")
        if any(step < 0 for step in self.evaluate_at):
            raise InputError(f"evaluate_at lists steps from 0 up, got {self.evaluate_at}.")
        if not 0 <= self.warm_up < 1:
            raise InputError(
                f"warm_up is a share of training from 0 to below 1, got {self.warm_up}."
            )

    def rate(self, progress: float) -> float:
        """The learning rate's factor when this share of training is done."""
        rising = progress / self.warm_up if self.warm_up else 1.0
        falling = (1 - progress) / (1 - self.warm_up) if self.linear_decay else 1.0
        return max(min(rising, falling, 1.0), 0.0)

    def groups(self, encoded: Encoded, seed: int, epoch: int) -> list[Int[np.ndarray, " batch"]]:
        """The documents of each batch of an epoch, of similar length, for a model of this seed."""
        drawn, bound = self.order(seed, epoch), self.max_batch_tokens
        if self.length_seed is None:
            return groups(encoded, self.batch_size, drawn, bound)
        order = numpy_generator(self.length_seed, "order of lengths", epoch)
        return ranked_groups(encoded, self.batch_size, drawn, order, bound)

    def order(self, seed: int, epoch: int) -> np.random.Generator:
        """What draws the batches of an epoch, for a model of this seed."""
        return numpy_generator(seed if self.order_seed is None else self.order_seed, "epoch", epoch)

    def described(self) -> dict[str, Any]:
        """The configuration as plain data, for what a result was computed from.

        Fields of later versions count only where they are set: older results stay what they are.
        """
        return settings_without(self, LATER)


def refuse_unstacked(config: TrainConfig, *more: str) -> None:
    """Raises for what only a model that trains alone can have, and for other settings named."""
    alone = ("halve_on_plateau", "balanced", *LATER, *more)
    fields = TrainConfig.__dataclass_fields__
    changed = [name for name in alone if getattr(config, name) != fields[name].default]
    if changed:
        raise InputError(f"{' and '.join(changed)} cannot be stacked; train one by one.")
