"""What a model is trained for: the batches it gets, what it should lower, how it is judged."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from heedful.corpora.batches import batches
from heedful.corpora.narrative_batches import EncodedNarratives, narrative_batches
from heedful.errors import InputError
from heedful.models.classifier import AttentionClassifier
from heedful.models.huggingface import PretrainedClassifier
from heedful.models.recipe import Penalties
from heedful.models.transformer import TransformerClassifier
from heedful.models.verbs import evaluating
from heedful.models.windows import NarrativeTransformer
from heedful.statistics.agreement import ccc
from heedful.training import fine_tuning, objectives
from heedful.training.config import DECISIONS
from heedful.training.evaluation import Metrics, evaluate

Trained: TypeAlias = (
    AttentionClassifier | TransformerClassifier | NarrativeTransformer | PretrainedClassifier
)
"""The models that the one loop trains."""


@dataclass(frozen=True)
class Agreement:
    """How well narratives are followed, as it is logged at every evaluation."""

    loss: float
    """Mean squared error over windows."""
    ccc: float
    """Concordance of each narrative's ratings with the model's, averaged over narratives."""

    def chosen(self, select: str) -> float:
        """The metric to select by, higher = better."""
        return -self.loss if select == "loss" else self.ccc


class Kind(NamedTuple):
    """One kind of training of a single model."""

    batches: Callable[..., Iterator[Any]]
    """(split, batch size, generator, bound on tokens) to batches."""
    loss: Callable[[Any, Any, Penalties, Tensor | None], Float[Tensor, ""]]
    """(model, batch, penalties, class weights) to what is lowered."""
    evaluate: Callable[[Any, Any, torch.device | str], Metrics | Agreement]
    selections: tuple[str, ...]
    """Metrics that may choose the kept weights."""
    check: Callable[[Any, Penalties], None]
    """Raises when the penalties do not fit the model."""
    described: Callable[[Any], Mapping[str, Any]] = lambda model: asdict(model.config)
    """What the model is before training, so that a checkpoint is known as its own."""


def own_loss(
    model: TransformerClassifier | NarrativeTransformer,
    batch: Any,
    penalties: Penalties,
    class_weights: Float[Tensor, "class"] | None = None,
) -> Float[Tensor, ""]:
    """What the model itself says it should lower."""
    if class_weights is not None:
        raise InputError("A Transformer is trained without class weights; set balanced to false.")
    return model.loss(batch)


def no_penalties(model: TransformerClassifier | NarrativeTransformer, penalties: Penalties) -> None:
    """Raises for any penalty."""
    if penalties != Penalties():
        raise InputError("A Transformer of our own is trained without penalties.")


def follow(
    model: NarrativeTransformer, encoded: EncodedNarratives, device: torch.device | str = "cpu"
) -> list[Float[np.ndarray, " window"]]:
    """The model's ratings of every narrative, without dropout, in the order of the split."""
    found = []
    with evaluating(model):
        for batch in narrative_batches(encoded, 64):
            ratings = model(batch.to(device)).ratings.double().cpu().numpy()
            counts = batch.windows.sum(-1).tolist()
            found += [row[:count] for row, count in zip(ratings, counts, strict=True)]
    return found


def narrative_ratings(encoded: EncodedNarratives) -> list[Float[np.ndarray, " window"]]:
    """The people's ratings of every narrative."""
    return np.split(encoded.ratings, np.cumsum(encoded.windows)[:-1])


def evaluate_narratives(
    model: NarrativeTransformer, encoded: EncodedNarratives, device: torch.device | str = "cpu"
) -> Agreement:
    """Squared error and mean concordance over a split; narratives without one count as 0."""
    guessed, rated = follow(model, encoded, device), narrative_ratings(encoded)
    agreement = [ccc(a, b) for a, b in zip(guessed, rated, strict=True)]
    wrong = np.concatenate(guessed) - np.concatenate(rated)
    return Agreement(float(np.mean(wrong**2)), float(np.mean(np.nan_to_num(agreement))))


CLASSIFYING = Kind(
    batches,
    objectives.loss,
    evaluate,
    DECISIONS,
    lambda model, penalties: objectives.check(model.config, penalties),
)
TRANSFORMING = Kind(batches, own_loss, evaluate, DECISIONS, no_penalties)
FOLLOWING = Kind(narrative_batches, own_loss, evaluate_narratives, ("ccc", "loss"), no_penalties)
TUNING = Kind(
    batches,
    fine_tuning.loss,
    evaluate,
    DECISIONS,
    fine_tuning.check,
    fine_tuning.described,
)


def kind_of(model: Trained) -> Kind:
    """What the model is trained for."""
    if isinstance(model, NarrativeTransformer):
        return FOLLOWING
    if isinstance(model, PretrainedClassifier):
        return TUNING
    return TRANSFORMING if isinstance(model, TransformerClassifier) else CLASSIFYING
