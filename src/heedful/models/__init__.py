"""What attends, and the three verbs that ask it: read, decide, curve."""

from heedful.models.classifier import AttentionClassifier
from heedful.models.edits import Edit, Permute, Replace, Scale, erase, identity, keep, uniform
from heedful.models.reading import Reading
from heedful.models.recipe import ModelConfig, Penalties, Recipe, looks_like_recipe, parse
from heedful.models.saved import build, example, load_model, save_model
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

__all__ = [
    "AttentionClassifier",
    "AttentiveModel",
    "Edit",
    "ModelConfig",
    "Penalties",
    "Permute",
    "Reading",
    "Recipe",
    "Replace",
    "Scale",
    "alone",
    "build",
    "curve",
    "decide",
    "erase",
    "evaluating",
    "example",
    "identity",
    "keep",
    "load_model",
    "looks_like_recipe",
    "parse",
    "ranked",
    "read",
    "save_model",
    "uniform",
    "without_each",
]
