"""What every trainer refuses: corpora that cannot be learnt from, and weights that ran away."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import torch
from torch import Tensor

from heedful.errors import InputError


def refuse_empty(corpus: Any) -> None:
    """Raises unless the corpus has documents to train on and to look at meanwhile."""
    for split in ("train", "dev"):
        if split not in corpus.splits or not len(corpus.splits[split]):
            raise InputError(f"Training needs {split} documents; {corpus.name} has none.")


def refuse_unfit(models: Sequence[Any], corpus: Any, seeds: Sequence[int]) -> None:
    """Raises unless each of several models has a seed, and every document a label to learn."""
    refuse_empty(corpus)
    if (corpus.splits["train"].labels < 0).any():
        raise InputError(f"Every training document of {corpus.name} needs a label.")
    if len(seeds) != len(models):
        raise InputError(f"one seed for each of {len(models)} models, got {len(seeds)}.")


def refuse_diverged(weights: Iterable[Tensor], epoch: int) -> None:
    """Raises if a weight is not finite: one question to the device, not one for every weight."""
    if not bool(torch.stack([torch.isfinite(weight).all() for weight in weights]).all()):
        raise InputError(
            f"Training diverged in epoch {epoch + 1} (weights are not finite); lower "
            "learning_rate or set clip_norm."
        )
