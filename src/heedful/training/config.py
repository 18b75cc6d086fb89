"""How a model is trained."""

from __future__ import annotations

from dataclasses import dataclass

from heedful.errors import InputError, unknown

OPTIMISERS = ("adam", "amsgrad", "adamw", "adagrad", "sgd")
SELECTIONS = ("accuracy", "macro_f1", "f1", "loss")
DECAYED = ("all", "all but attention", "encoder", "additive map")


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
    """What weight decay acts on: all, all but attention, encoder, or the map inside additive
    attention."""
    clip_norm: float = 5.0
    """Global gradient norm is clipped here; 0 switches it off."""
    clip_value: float = 0.0
    """Each gradient entry is clipped here before the norm; 0 switches it off."""
    halve_on_plateau: bool = False
    """Halve the learning rate after every evaluation without gain."""
    patience: int = 3
    """Stop after this many evaluations without gain; 0 never stops early."""
    select: str = "accuracy"
    """The dev metric that chooses the kept weights: accuracy, macro_f1, f1 (last class), loss."""
    balanced: bool = False
    """Weigh each class by the inverse of its share, for corpora where one class is rare."""
    order_seed: int | None = None
    """Seed of the order of batches; none means the run's own. Stacked models share batches."""
    evaluate_at: tuple[int, ...] = ()
    """Extra steps at which dev is evaluated and observers are called; every epoch always is."""
    checkpoint_seconds: float = 60.0
    """Least time between checkpoints inside an epoch; every epoch ends with one."""

    def __post_init__(self) -> None:
        for kind, value, known in (
            ("optimiser", self.optimiser, OPTIMISERS),
            ("metric to select by", self.select, SELECTIONS),
            ("place for weight decay", self.decay, DECAYED),
        ):
            if value not in known:
                raise unknown(kind, value, known)
        for name, least in (("epochs", 1), ("batch_size", 1), ("patience", 0)):
            if getattr(self, name) < least:
                raise InputError(f"{name} must be at least {least}, got {getattr(self, name)}.")
        if self.rate_decay < 0 or (self.rate_decay and self.optimiser != "adagrad"):
            raise InputError(
                f"rate_decay is a number from 0 up and is adagrad's, got {self.rate_decay} with "
                f"{self.optimiser}."
            )
        if self.learning_rate <= 0:
            raise InputError(f"learning_rate must be above 0, got {self.learning_rate}.")
