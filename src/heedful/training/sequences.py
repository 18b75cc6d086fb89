"""Training a translator, watched at a grid of steps; a killed run ends with the same numbers."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor
from torch.nn import functional

from heedful.corpora.pairs import PAD, EncodedPairs, Pairs, PairSplit, pair_batches
from heedful.errors import InputError
from heedful.models.translator import Translator
from heedful.models.translator_walk import walked, walks
from heedful.models.verbs import evaluating
from heedful.training.config import TrainConfig
from heedful.training.loop import History, Observer, train
from heedful.training.optimisers import optimiser_for
from heedful.training.precision import reduced_precision

_START = (0, 50, 100, 500, 1_000, 1_500, 2_000, 4_000, 6_000, 8_000, 10_000)
_LONG = (*_START, 16_000, 22_000, 28_000, 34_000, 40_000)
_MULTI30K = (*range(12_000, 20_001, 2_000), *range(24_000, 36_001, 4_000))
GRIDS: dict[str, tuple[int, ...]] = {
    "multi30k": (*_START, *_MULTI30K),
    "iwslt14": (*_LONG, 60_000, 80_000, 100_000, 150_000, 200_000, 250_000, 300_000),
    "en-nl": (*_LONG, *range(50_000, 100_001, 10_000), 130_000),
    "en-pt": (*_LONG, *range(50_000, 90_001, 10_000)),
    "it-pt": (*_LONG, 50_000, 52_000),
}
"""Steps at which the published models were evaluated: so many updates are done
(docs/studies/dynamics.md, "Translator")."""
EPOCHS = {"multi30k": 20, "iwslt14": 30, "en-nl": 40, "en-pt": 30, "it-pt": 40}
SENTENCES = 128
"""Pairs of an evaluation's batch."""


@dataclass(frozen=True)
class SequenceConfig:
    """How a translator is trained: Adam on the mean loss of a batch's words."""

    epochs: int = 20
    batch_size: int = 16
    learning_rate: float = 1e-3
    grid: tuple[int, ...] = GRIDS["multi30k"]
    """Steps at which it is evaluated; those after the last update are left out."""
    checkpoint_seconds: float = 60.0

    def __post_init__(self) -> None:
        for option, count in {"--epochs": self.epochs, "--batch-size": self.batch_size}.items():
            if count < 1:
                raise InputError(f"{option} must be at least 1, got {count}.")
        if not 0 < self.learning_rate < math.inf:
            raise InputError(
                f"--learning-rate must be a positive number, got {self.learning_rate:g}."
            )
        if not self.grid or list(self.grid) != sorted(set(self.grid)) or self.grid[0] < 0:
            raise InputError(f"the grid must be rising steps from 0 on, got {self.grid}.")

    def steps(self, pairs: int) -> int:
        """Updates in all."""
        return self.epochs * -(-pairs // self.batch_size)

    def train(self) -> TrainConfig:
        """The same as a training of any model."""
        return TrainConfig(
            epochs=self.epochs,
            batch_size=self.batch_size,
            learning_rate=self.learning_rate,
            clip_norm=0.0,
            patience=0,
            evaluate_at=self.grid,
            checkpoint_seconds=self.checkpoint_seconds,
        )


def fit_translator(
    model: Translator,
    corpus: EncodedPairs,
    config: SequenceConfig = SequenceConfig(),
    *,
    seed: int = 0,
    device: torch.device | str = "cpu",
    observers: Sequence[Observer] = (),
    folder: Path | None = None,
    show: bool = False,
) -> History:
    """Trains the model in place and leaves it with the weights of its best dev token accuracy.

    With a folder, `checkpoint.safetensors` and `metrics.jsonl` are kept there; the same call after
    a kill goes on from the checkpoint. The checkpoint stays: `remove_checkpoint` when the model is
    saved. Observers must not draw random numbers.
    """
    for split in ("train", "dev"):
        if split not in corpus.splits or not len(corpus.splits[split]):
            raise InputError(f"Training needs {split} pairs; {corpus.name} has none.")
    if len(corpus.pieces) != model.config.vocabulary:
        raise InputError(
            f"The model has {model.config.vocabulary:,} words, {corpus.name} {len(corpus.pieces):,}"
            " pieces; build it for this corpus."
        )
    task = TranslatorTask(model, corpus, config, seed, torch.device(device))
    described = {
        "model": asdict(model.config),
        "train": asdict(config),
        "corpus": corpus.fingerprint,
        "seed": seed,
    }
    with reduced_precision(task.device):
        (history,) = train(
            task,
            described,
            seed=seed,
            steps=config.steps(len(corpus.splits["train"])),
            loss_over="evaluation",
            observers=observers,
            folder=folder,
            show=show,
        )
    return replace(history, entries=tuple(map(_told, history.entries)))


def _told(entry: dict[str, Any]) -> dict[str, Any]:
    """An entry without the rate, which is always the same; before any update there is no loss."""
    kept = {name: value for name, value in entry.items() if name != "learning_rate"}
    return kept | ({} if entry["step"] else {"loss": None})


class TranslatorTask:
    """One translator, on pairs in random order."""

    generators: Sequence[torch.Generator] = ()
    count = 1

    def __init__(
        self,
        model: Translator,
        corpus: EncodedPairs,
        config: SequenceConfig,
        seed: int,
        device: torch.device,
    ) -> None:
        self.model, self.corpus, self.config = model.to(device), corpus, config.train()
        self.seed, self.device = seed, device
        is_fused = device.type == "cuda"
        self.optimiser = optimiser_for(model.named_parameters(), self.config, is_fused=is_fused)
        self.walks = walks(model)

    def batches(self, epoch: int) -> Iterable[tuple[int, Pairs]]:
        """The training pairs in batches."""
        order = self.config.order(self.seed, epoch)
        for _, pairs in pair_batches(self.corpus.splits["train"], self.config.batch_size, order):
            yield len(pairs), pairs

    def learn(self, batch: Pairs, epoch: int) -> Float[Tensor, "1"]:
        """The gradient of the mean loss of the batch's words."""
        self.model.train()
        here = batch.to(self.device)
        logits = walked(self.model, here) if self.walks else self.model(here).logits
        loss = mean_loss(logits, here.target)
        loss.backward()  # type: ignore[no-untyped-call]
        return loss.detach().double()[None]

    def evaluate(self) -> list[TokenScores]:
        """Loss and token accuracy on dev."""
        return [evaluate_translator(self.model, self.corpus.splits["dev"], self.device)]


def mean_loss(logits: Tensor, target: Tensor) -> Tensor:
    """Negative log likelihood, the mean over the words of the batch (the paper writes a sum)."""
    return functional.cross_entropy(logits.flatten(0, 1), target.flatten(), ignore_index=PAD)


@dataclass(frozen=True)
class TokenScores:
    """How well the next words are told under teacher forcing, the end included."""

    loss: float
    """Nats per word."""
    accuracy: float

    def chosen(self, select: str) -> float:
        """The metric to select by, higher = better: always the accuracy."""
        return self.accuracy


def evaluate_translator(
    model: Translator, split: PairSplit, device: torch.device | str = "cpu"
) -> TokenScores:
    """Loss and token accuracy over a split, without dropout."""
    lost = torch.zeros((), dtype=torch.float64, device=device)
    right = torch.zeros((), dtype=torch.int64, device=device)
    words = 0
    with evaluating(model):
        for _, pairs in pair_batches(split, SENTENCES):
            here = pairs.to(device)
            logits = model(here).logits
            mask = here.target_mask
            count = int(pairs.target_lengths.sum())
            lost += mean_loss(logits, here.target).double() * count
            right += ((logits.argmax(-1) == here.target) & mask).sum()
            words += count
    return TokenScores(float(lost) / words, int(right) / words)
