"""How attention came to be: what words are worth to a model, and the flow that made them so."""

from heedful.dynamics.flow import Flow, dot_product_rates, dot_products, flow, invariant_rates
from heedful.dynamics.flow_log import FlowLog, by_class, word_terms
from heedful.dynamics.scores import (
    Occurrences,
    WordScores,
    instance_polarity,
    occurrence_scores,
    read_flat,
    word_scores,
)
from heedful.dynamics.token_classes import (
    TokenClasses,
    TokenRule,
    classify,
    token_classes,
    word_counts,
)

__all__ = [
    "Flow",
    "FlowLog",
    "Occurrences",
    "TokenClasses",
    "TokenRule",
    "WordScores",
    "by_class",
    "classify",
    "dot_product_rates",
    "dot_products",
    "flow",
    "instance_polarity",
    "invariant_rates",
    "occurrence_scores",
    "read_flat",
    "token_classes",
    "word_counts",
    "word_scores",
    "word_terms",
]
