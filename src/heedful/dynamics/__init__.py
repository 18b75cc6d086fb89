"""How attention came to be: what words are worth to a model, and the flow that made them so."""

from heedful.dynamics.agreement import agrees, chance, contextualised
from heedful.dynamics.cooccurrence import alignments, cooccurrence, translation_table
from heedful.dynamics.flow import Flow, dot_product_rates, dot_products, flow, invariant_rates
from heedful.dynamics.flow_log import FlowLog, by_class, word_terms
from heedful.dynamics.probes import ProbeLog, ProbeLogs, probed, probed_together, saliency
from heedful.dynamics.proxy import initial_rates, logistic_sweep, train_proxy
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
from heedful.dynamics.trajectory import Trajectory
from heedful.dynamics.watch import Watch

__all__ = [
    "Flow",
    "FlowLog",
    "Occurrences",
    "ProbeLog",
    "ProbeLogs",
    "TokenClasses",
    "TokenRule",
    "Trajectory",
    "Watch",
    "WordScores",
    "agrees",
    "alignments",
    "by_class",
    "chance",
    "classify",
    "contextualised",
    "cooccurrence",
    "dot_product_rates",
    "dot_products",
    "flow",
    "initial_rates",
    "instance_polarity",
    "invariant_rates",
    "logistic_sweep",
    "occurrence_scores",
    "probed",
    "probed_together",
    "read_flat",
    "saliency",
    "token_classes",
    "train_proxy",
    "translation_table",
    "word_counts",
    "word_scores",
    "word_terms",
]
