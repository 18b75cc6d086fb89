"""Many seeds of a small translator as one stacked model (docs/studies/dynamics.md, "Shortcuts").

Every parameter has a leading model axis and one Adam updates all of them: Adam works element by
element, so each model ends as it would alone, up to rounding. On a GPU a whole step (sampling,
forward, backward, update) is recorded once and replayed, since launching it costs more than its
arithmetic.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import dataclass
from typing import Literal

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from heedful.corpora.tasks import Copying, Sequences
from heedful.errors import InputError
from heedful.models.classifier_stack import mean_losses
from heedful.models.translator_stack import SeedsPass, TranslatorStack
from heedful.training.optimisers import descend
from heedful.training.precision import reduced_precision

LEARNT, FAILED = 0.95, 0.6
"""Token accuracy above which a run has learnt its task, and below which at its end it failed."""


@dataclass(frozen=True)
class SeedsConfig:
    """How seeds of a copying task are trained and watched (docs/studies/dynamics.md, "Copying")."""

    steps: int = 300
    batch_size: int = 128
    learning_rate: float = 1e-3
    every: int = 10
    """Steps between evaluations; the first is before any step."""
    samples: int = 50
    """Sequences of an evaluation."""
    evaluated_on: Literal["fresh", "fixed"] = "fresh"
    """Fixed: the same sequences at every evaluation of every model, as the heads' code has it."""

    def __post_init__(self) -> None:
        if min(self.steps, self.batch_size, self.every, self.samples) < 1:
            raise InputError(f"steps, sizes and intervals must be at least 1, got {self}.")

    @property
    def grid(self) -> tuple[int, ...]:
        """Steps at which models are evaluated: so many updates are done."""
        return tuple(range(0, self.steps + 1, self.every))


@dataclass(frozen=True, eq=False)
class SeedCurves:
    """What training showed at every evaluation; nan after a model has been let go."""

    steps: Int[np.ndarray, " evaluation"]
    accuracy: Float[np.ndarray, "model evaluation"]
    """Token accuracy under teacher forcing, the end included."""
    loss: Float[np.ndarray, "model evaluation"]
    on_time: Float[np.ndarray, "model evaluation 3"]
    """Share of positions whose attention is largest one before, at, and one after its own."""

    def reached(self, threshold: float = LEARNT) -> Float[np.ndarray, " model"]:
        """The first step with an accuracy above the threshold; inf where there is none."""
        above = self.accuracy > threshold
        return np.where(above.any(1), self.steps[above.argmax(1)], np.inf)

    def last(self) -> Float[np.ndarray, " model"]:
        """Accuracy at the last evaluation a model took part in."""
        count = (~np.isnan(self.accuracy)).sum(1)
        return np.asarray(self.accuracy[np.arange(len(count)), count - 1])


def fit_seeds(
    stack: TranslatorStack,
    task: Copying,
    config: SeedsConfig = SeedsConfig(),
    *,
    seeds: Sequence[int],
    stop: Callable[[Float[np.ndarray, " model"]], bool] | None = None,
    is_recorded: bool | None = None,
) -> SeedCurves:
    """Trains a stack in place, each model on the data of its seed, and gives its curves.

    Models of one seed see the same data. `stop` sees every evaluation's accuracies and may end
    training early. `is_recorded` replays the step as a CUDA graph; by default on a GPU.
    """
    if len(seeds) != len(stack):
        raise InputError(f"one data seed for each of {len(stack)} models, got {len(seeds)}.")
    if task.vocabulary != stack.config.vocabulary:
        raise InputError(
            f"{task.name} has {task.vocabulary} symbols, the models read {stack.config.vocabulary}."
        )
    device = stack.weights["words.weight"].device
    recorded = device.type == "cuda" if is_recorded is None else is_recorded
    steps: list[int] = []
    found: list[tuple[Tensor, Tensor, Tensor]] = []
    with (
        reduced_precision(device),
        closing(_Stepper(stack, task, config, list(seeds), device, recorded)) as stepper,
    ):
        for step in range(config.steps + 1):
            if step % config.every == 0:
                seen = stepper.evaluate(step)
                steps.append(step)
                found.append(seen)
                if stop is not None and stop(seen[0].cpu().double().numpy()):
                    break
            if step < config.steps:
                stepper.learn(step)
    accuracy, loss, on_time = (
        torch.stack(part, 1).cpu().double().numpy() for part in zip(*found, strict=True)
    )
    if not np.isfinite(loss).all():
        raise InputError(f"training on {task.name} diverged; lower learning_rate.")
    return SeedCurves(np.array(steps), accuracy, loss, on_time)


class _Stepper:
    """One update and one evaluation of a stack; updates are recorded on a GPU."""

    WARM = 3
    """Real steps before recording, so that libraries have set themselves up."""

    def __init__(
        self,
        stack: TranslatorStack,
        task: Copying,
        config: SeedsConfig,
        seeds: list[int],
        device: torch.device,
        is_recorded: bool,
    ) -> None:
        self.stack, self.task, self.config, self.device = stack, task, config, device
        self.distinct = list(dict.fromkeys(seeds))
        self.seed_of_model = torch.tensor([self.distinct.index(s) for s in seeds], device=device)
        self.orders = task.orders(self.distinct, device)
        self.optimiser = torch.optim.Adam(
            list(stack.weights.values()), config.learning_rate, capturable=is_recorded
        )
        keys = [task.keys(self.distinct, step) for step in range(config.steps)]
        self.keys = torch.stack(keys).to(device)
        self.now = self.keys[0].clone()
        self.is_recorded = is_recorded
        self.graph: torch.cuda.CUDAGraph | None = None

    def learn(self, step: int) -> None:
        """One update on fresh sequences."""
        self.now.copy_(self.keys[step])
        if not self.is_recorded:
            self._update()
        elif step < self.WARM:
            aside = torch.cuda.Stream()  # type: ignore[no-untyped-call]
            aside.wait_stream(torch.cuda.current_stream())
            with torch.cuda.stream(aside):
                self._update()
            torch.cuda.current_stream().wait_stream(aside)
        else:
            if self.graph is None:
                self.optimiser.zero_grad(set_to_none=True)
                self.graph = torch.cuda.CUDAGraph()
                with torch.cuda.graph(self.graph):
                    self._update()
            self.graph.replay()

    def close(self) -> None:
        """Gives back the memory that a recording holds."""
        self.optimiser.zero_grad(set_to_none=True)
        if self.graph is not None:
            self.graph.reset()
            torch.cuda.empty_cache()

    def _update(self) -> None:
        sequences = self._sample(self.now, self.config.batch_size)
        logits = self.stack.forward(sequences).logits
        descend(self.optimiser, mean_losses(logits, sequences.target))

    def _sample(self, keys: Tensor, batch: int) -> Sequences:
        drawn = self.task.sample(keys, batch, self.orders)
        return Sequences(*(x[self.seed_of_model] for x in drawn))

    def evaluate(self, step: int) -> tuple[Tensor, Tensor, Tensor]:
        """Accuracy, loss and where attention lies, of every model."""
        is_fixed = self.config.evaluated_on == "fixed"
        seeds = [0] * len(self.distinct) if is_fixed else self.distinct
        keys = self.task.keys(seeds, 0 if is_fixed else step, "evaluate", self.device)
        sequences = self._sample(keys, self.config.samples)
        with torch.no_grad():
            found = self.stack.forward(sequences)
            right = (found.logits.argmax(-1) == sequences.target).double().mean((1, 2))
            return right, mean_losses(found.logits, sequences.target).double(), _on_time(found)


def _on_time(found: SeedsPass) -> Float[Tensor, "model 3"]:
    """Share of positions whose attention, summed over heads, is largest at t - 1, t, t + 1."""
    models, _, steps, _ = found.logits.shape
    if found.attention is None:
        return found.logits.new_full((models, 3), torch.nan).double()
    place = torch.arange(steps, device=found.logits.device)
    away = found.attention.sum(2).argmax(-1) - place
    return torch.stack([(away == off).double().mean((1, 2)) for off in (-1, 0, 1)], 1)
