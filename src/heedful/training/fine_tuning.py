"""What is asked of a pretrained Transformer while it is fine-tuned, and how it usually is."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from jaxtyping import Float
from torch import Tensor
from torch.nn import functional

from heedful.corpora.batches import Batch
from heedful.errors import InputError
from heedful.models.huggingface import PretrainedClassifier
from heedful.models.recipe import Penalties
from heedful.models.saved import weights_digest
from heedful.models.verbs import evaluating
from heedful.training.config import TrainConfig

FINE_TUNING = TrainConfig(
    epochs=3,
    optimiser="adamw",
    learning_rate=5e-5,
    weight_decay=0.01,
    decay="matrices",
    clip_norm=1.0,
    patience=0,
    warm_up=0.1,
    linear_decay=True,
)
"""How a pretrained model is trained unless other settings are given."""


def check(model: PretrainedClassifier, penalties: Penalties) -> None:
    """Raises for penalties that a pretrained model cannot have."""
    if penalties.masked_words or penalties.alignment:
        raise InputError("Of the penalties a model of transformers can have tying, and no other.")
    if penalties.tying and not ties(model):
        raise InputError(
            "tying compares the last states of a stack of layers with what enters the first, which "
            f"{type(model.model).__name__} does not show; train it without."
        )


def ties(model: PretrainedClassifier) -> bool:
    """Whether the model shows what enters its one stack of layers and what leaves it."""
    config: Any = getattr(model.model, "config", None)
    if config is None or config.is_encoder_decoder:
        return False
    try:
        with evaluating(model):
            model.ends(model.batch(["a"]))
    except (TypeError, AttributeError):  # a class of its own without `output_hidden_states`
        return False
    return True


def described(model: PretrainedClassifier) -> Mapping[str, Any]:
    """What the model is: its name and its weights, by their hash."""
    return {"recipe": model.recipe, "weights": weights_digest(model.model)}


def loss(
    model: PretrainedClassifier,
    batch: Batch,
    penalties: Penalties,
    class_weights: Float[Tensor, "class"] | None = None,
) -> Float[Tensor, ""]:
    """Mean cross-entropy, its classes weighed where asked for, plus the weighted tying."""
    if not penalties.tying:
        logits = model(batch).logits
        return functional.cross_entropy(logits.float(), batch.labels, class_weights)
    passed = model.ends(batch)
    decided = functional.cross_entropy(passed.logits.float(), batch.labels, class_weights)
    return decided + penalties.tying * tying(passed.first, passed.last, batch, penalties.tying_over)


def tying(
    first: Float[Tensor, "batch token dim"],
    last: Float[Tensor, "batch token dim"],
    batch: Batch,
    over: str = "mean",
) -> Float[Tensor, ""]:
    """Mean squared distance between what leaves the last layer and what enters the first.

    Over the pieces of the texts and over dimensions, as in `objectives.tying`; special tokens are
    left out, for somewhere the text must come together. What enters the first layer is compared and
    not the bare word vector: a place and a norm are no context, and where models norm their inputs
    (BERT) word vectors are several times shorter than states, so that their distance would mostly
    be the difference in length.
    """
    difference: Tensor = (last - first)[batch.mask].float()
    mean = difference.square().mean()
    return mean * difference.shape[-1] if over == "sum" else mean
