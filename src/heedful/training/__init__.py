"""How models learn: one loop, the tasks it trains, objectives, evaluation, checkpoints."""

from heedful.training import objectives
from heedful.training.config import TrainConfig
from heedful.training.evaluation import evaluate
from heedful.training.fine_tuning import FINE_TUNING
from heedful.training.loop import History, Moment, Observer
from heedful.training.single import fit

__all__ = [
    "FINE_TUNING",
    "History",
    "Moment",
    "Observer",
    "TrainConfig",
    "evaluate",
    "fit",
    "objectives",
]
