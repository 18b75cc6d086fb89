"""How attention came to be: what words are worth to a model, and the flow that made them so."""

from heedful.dynamics.flow import FlowLog, by_class, flow, word_terms
from heedful.dynamics.scores import occurrence_scores, read_flat, word_scores
from heedful.dynamics.token_classes import TokenRule, classify, token_classes, word_counts

__all__ = [
    "FlowLog",
    "TokenRule",
    "by_class",
    "classify",
    "flow",
    "occurrence_scores",
    "read_flat",
    "token_classes",
    "word_counts",
    "word_scores",
    "word_terms",
]
