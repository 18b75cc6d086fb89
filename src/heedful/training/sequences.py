"""Training a translator, watched at a grid of steps; a killed run ends with the same numbers."""

from __future__ import annotations

import json
import math
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.nn import functional

from heedful.corpora.pairs import PAD, EncodedPairs, Pairs, PairSplit, pair_batches
from heedful.errors import InputError
from heedful.models.translator import Translator
from heedful.models.translator_walk import walked, walks
from heedful.models.verbs import evaluating
from heedful.runs.atomic import write_text
from heedful.runs.progress import ticking
from heedful.runs.randomness import numpy_generator, seeded
from heedful.runs.steps import fingerprint
from heedful.training.checkpoints import (
    CHECKPOINT,
    Progressed,
    load_checkpoint,
    save_checkpoint,
)
from heedful.training.loop import History
from heedful.training.seeds import reduced_precision

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
"""Steps at which the published models were evaluated: so many updates are done (§2.3)."""
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


class SequenceMoment(NamedTuple):
    """What an observer sees at a step of the grid."""

    step: int
    model: Translator
    corpus: EncodedPairs
    device: torch.device | str


SequenceObserver = Callable[[SequenceMoment], None]


def fit_translator(
    model: Translator,
    corpus: EncodedPairs,
    config: SequenceConfig = SequenceConfig(),
    *,
    seed: int = 0,
    device: torch.device | str = "cpu",
    observers: Sequence[SequenceObserver] = (),
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
    model.to(device)
    run = _Run(model, corpus, config, seed, torch.device(device), observers, folder)
    total = config.steps(len(corpus.splits["train"]))
    with (
        seeded(seed),
        reduced_precision(torch.device(device)),
        ticking("training", total, "updates", show=show) as ticker,
    ):
        run.resume()
        ticker.skip(run.done.step)
        while run.done.epoch < config.epochs:
            run.epoch(seed, ticker.advance)
        run.evaluate()  # where the grid asks for the step after the last update
    model.load_state_dict(run.best)
    best = float("nan") if run.done.best is None else run.done.best
    return History(tuple(run.done.history), best, run.done.best_step)


class _Run:
    """The state of one training run between two steps."""

    def __init__(
        self,
        model: Translator,
        corpus: EncodedPairs,
        config: SequenceConfig,
        seed: int,
        device: torch.device,
        observers: Sequence[SequenceObserver],
        folder: Path | None,
    ) -> None:
        self.model, self.corpus, self.config, self.device = model, corpus, config, device
        self.observers, self.folder = observers, folder
        self.optimiser = torch.optim.Adam(
            model.parameters(), config.learning_rate, fused=device.type == "cuda"
        )
        described: dict[str, Any] = {"model": asdict(model.config), "train": asdict(config)}
        described |= {"corpus": corpus.fingerprint, "seed": seed}
        self.described = fingerprint(described)
        self.done = Progressed(learning_rate=config.learning_rate)
        self.best = _copied(model)
        self.loss = torch.zeros((), dtype=torch.float64, device=device)
        self.saved = time.monotonic()
        self.walks = walks(model)

    def resume(self) -> None:
        """Goes on from the checkpoint, where there is one."""
        if self.folder is None:
            return
        path = self.folder / CHECKPOINT
        found = load_checkpoint(path, self.model, self.optimiser, self.described)
        if found is not None:
            self.done, best = found
            self.best = {name: value.to(self.device) for name, value in best.items()}
            self.loss += self.done.loss

    def epoch(self, seed: int, tell: Callable[[int], None]) -> None:
        """What is left of one pass over the training pairs, in random order."""
        train, done = self.corpus.splits["train"], self.done
        order = numpy_generator(seed, "epoch", done.epoch)
        for index, (_, pairs) in enumerate(pair_batches(train, self.config.batch_size, order)):
            if index < done.batch:
                continue
            self.evaluate()
            self.model.train()
            here = pairs.to(self.device)
            loss = mean_loss(self._logits(here), here.target)
            self.optimiser.zero_grad(set_to_none=True)
            loss.backward()  # type: ignore[no-untyped-call]
            self.optimiser.step()
            self.loss += loss.detach().double()  # a tensor: reading it here would stall a GPU
            done.batch, done.step = index + 1, done.step + 1
            if time.monotonic() - self.saved > self.config.checkpoint_seconds:
                self._save()
            tell(1)
        if not bool(torch.isfinite(self.loss)):
            raise InputError(
                f"Training diverged in epoch {done.epoch + 1} (the loss is not finite); lower "
                "learning_rate."
            )
        done.epoch, done.batch = done.epoch + 1, 0

    def _logits(self, pairs: Pairs) -> Tensor:
        return walked(self.model, pairs) if self.walks else self.model(pairs).logits

    def evaluate(self) -> None:
        """Dev loss and accuracy and all observers, where the grid asks for it and only once."""
        done = self.done
        seen = done.history[-1]["step"] if done.history else -1
        if done.step not in self.config.grid or seen == done.step:
            return
        found = evaluate_translator(self.model, self.corpus.splits["dev"], self.device)
        if done.best is None or found.accuracy > done.best:
            done.best, done.best_step = found.accuracy, done.step
            self.best = _copied(self.model)
        since = done.step - max(seen, 0)
        loss = float(self.loss) / since if since else None
        self.loss.zero_()
        for observer in self.observers:
            observer(SequenceMoment(done.step, self.model, self.corpus, self.device))
        entry: dict[str, Any] = {"step": done.step, "epoch": done.epoch, "loss": loss}
        done.history.append(entry | {"dev_loss": found.loss, "dev_accuracy": found.accuracy})
        if self.folder is not None:
            lines = "".join(json.dumps(line) + "\n" for line in done.history)
            write_text(self.folder / "metrics.jsonl", lines)

    def _save(self) -> None:
        if self.folder is None:
            return
        self.done.loss = float(self.loss)
        path = self.folder / CHECKPOINT
        save_checkpoint(path, self.done, self.model, self.best, self.optimiser, self.described)
        self.saved = time.monotonic()


def mean_loss(logits: Tensor, target: Tensor) -> Tensor:
    """Negative log likelihood, the mean over the words of the batch (the paper writes a sum)."""
    return functional.cross_entropy(logits.flatten(0, 1), target.flatten(), ignore_index=PAD)


class TokenScores(NamedTuple):
    """How well the next words are told under teacher forcing, the end included."""

    loss: float
    """Nats per word."""
    accuracy: float
    words: int


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
    return TokenScores(float(lost) / words, int(right) / words, words)


def _copied(model: Translator) -> dict[str, Tensor]:
    return {name: value.detach().clone() for name, value in model.state_dict().items()}
