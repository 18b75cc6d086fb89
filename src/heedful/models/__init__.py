"""What attends, and the three verbs that ask it: read, decide, curve."""

from heedful.models.classifier import AttentionClassifier
from heedful.models.edits import Edit, Permute, Replace, Scale, erase, identity, keep, uniform
from heedful.models.likelihoods import likelihood
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
from heedful.models.saved_translator import SavedTranslator, load_translator, save_translator
from heedful.models.tracing import LayerStack, Trace, Traceable, lat, rollout, trace
from heedful.models.transformer import TransformerClassifier
from heedful.models.transformer_config import TransformerConfig, TransformerRecipe
from heedful.models.translator import Translator, TranslatorConfig, build_translator
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
    "LayerStack",
    "ModelConfig",
    "NarrativeTransformer",
    "Penalties",
    "Permute",
    "Reading",
    "Recipe",
    "Replace",
    "SavedTranslator",
    "Scale",
    "Trace",
    "Traceable",
    "TransformerClassifier",
    "TransformerConfig",
    "TransformerRecipe",
    "Translator",
    "TranslatorConfig",
    "alone",
    "build",
    "build_narrator",
    "build_translator",
    "curve",
    "decide",
    "erase",
    "evaluating",
    "example",
    "identity",
    "keep",
    "lat",
    "likelihood",
    "load_classifier",
    "load_model",
    "load_translator",
    "looks_like_recipe",
    "parse",
    "ranked",
    "read",
    "rollout",
    "save_model",
    "save_translator",
    "trace",
    "uniform",
    "without_each",
]
