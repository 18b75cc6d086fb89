"""How models learn: one loop, objectives, evaluation, checkpoints."""

from heedful.training import objectives
from heedful.training.config import TrainConfig
from heedful.training.evaluation import Metrics, evaluate
from heedful.training.loop import History, Moment, Observer, fit

__all__ = [
    "History",
    "Metrics",
    "Moment",
    "Observer",
    "TrainConfig",
    "evaluate",
    "fit",
    "objectives",
]
