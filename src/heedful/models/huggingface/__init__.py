"""Hugging Face classifiers and any module like them: read word by word, asked, traced."""

from heedful.models.huggingface.attending import attending
from heedful.models.huggingface.classifier import PretrainedClassifier
from heedful.models.huggingface.modules import classifier_of
from heedful.models.huggingface.opening import is_transformer, open_classifier
from heedful.models.huggingface.pieces import RULE, FastTokeniser, Pieces
from heedful.models.huggingface.spans import unit_spans

__all__ = [
    "RULE",
    "FastTokeniser",
    "Pieces",
    "PretrainedClassifier",
    "attending",
    "classifier_of",
    "is_transformer",
    "open_classifier",
    "unit_spans",
]
