"""What attends, and the three verbs that ask it: read, decide, curve."""

from heedful.models.classifier import AttentionClassifier
from heedful.models.edits import Edit, Permute, Replace, Scale, erase, identity, keep, uniform
from heedful.models.reading import Reading
from heedful.models.recipe import ModelConfig, Penalties, Recipe, looks_like_recipe, parse
from heedful.models.saved import (
    Classifier,
    build,
    build_narrator,
    example,
    load_classifier,
    load_model,
    save_model,
)
from heedful.models.tracing import lat, rollout, trace
from heedful.models.transformer import TransformerClassifier
from heedful.models.transformer_config import TransformerConfig, TransformerRecipe
from heedful.models.verbs import (
    AttentiveModel,
    alone,
    curve,
    decide,
    evaluating,
    ranked,
    read,
    without_each,
)
from heedful.models.windows import NarrativeTransformer

__all__ = [
    "AttentionClassifier",
    "AttentiveModel",
    "Classifier",
    "Edit",
    "ModelConfig",
    "NarrativeTransformer",
    "Penalties",
    "Permute",
    "Reading",
    "Recipe",
    "Replace",
    "Scale",
    "TransformerClassifier",
    "TransformerConfig",
    "TransformerRecipe",
    "alone",
    "build",
    "build_narrator",
    "curve",
    "decide",
    "erase",
    "evaluating",
    "example",
    "identity",
    "keep",
    "lat",
    "load_classifier",
    "load_model",
    "looks_like_recipe",
    "parse",
    "ranked",
    "read",
    "rollout",
    "save_model",
    "trace",
    "uniform",
    "without_each",
]
