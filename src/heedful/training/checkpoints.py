"""The state of a training run in one file, so that a killed run ends with the same numbers.

A checkpoint lives until the result made from it stands on disk. Trainers only write it; who lent
them the folder takes it away (`remove_checkpoint`, or with the whole folder), so that what fails
between the last update and the saved model costs no more than a kill: what was trained since then.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_type_hints

import torch
from safetensors import SafetensorError
from torch import Tensor

from heedful.errors import InputError
from heedful.models.recipe import fits
from heedful.models.saved import read_tensors, write_tensors

if TYPE_CHECKING:
    from heedful.training.loop import Task

CHECKPOINT = "checkpoint.safetensors"
"""Its name in the folder that a training was lent."""


@dataclass
class Standing:
    """How far one model has come; plain numbers only."""

    best: float | None = None
    """Its best dev metric so far."""
    best_step: int = 0
    without_gain: int = 0
    """Evaluations since then."""
    halvings: int = 0
    """How often its rate was halved."""
    is_done: bool = False
    """Whether its patience was over when an epoch ended: what follows no longer counts."""
    history: list[dict[str, Any]] = field(default_factory=list)
    """One entry per evaluation."""


@dataclass
class Progress:
    """How far training has come; plain numbers only."""

    epoch: int = 0
    batch: int = 0
    """Batches of this epoch already taken."""
    step: int = 0
    due: float | None = None
    """The epoch of an evaluation that is due after this step."""
    loss: list[float] = field(default_factory=list)
    """Each model's summed loss of some batches."""
    summed: int = 0
    """How many those are."""
    learning_rate: float = 0.0
    ramp: float = 1.0
    """The part of that rate which the last step was taken with."""
    models: list[Standing] = field(default_factory=list)


def save_checkpoint(
    path: Path, done: Progress, task: Task, best: dict[str, Tensor], mark: str
) -> None:
    """Writes everything that the next step depends on, atomically."""
    tensors: dict[str, Tensor] = {"random.cpu": torch.get_rng_state()}
    if torch.cuda.is_available():
        tensors["random.cuda"] = torch.cuda.get_rng_state()
    tensors |= {f"random.{n}": drawn.get_state() for n, drawn in enumerate(task.generators)}
    tensors |= {f"model.{name}": value for name, value in task.model.state_dict().items()}
    tensors |= {f"best.{name}": value for name, value in best.items()}
    for index, state in task.optimiser.state_dict()["state"].items():
        for name, value in state.items():
            if isinstance(value, Tensor):
                tensors[f"optimiser.{index}.{name}"] = value
    plain = {name: value.detach().cpu().clone() for name, value in tensors.items()}
    write_tensors(path, plain, {"done": json.dumps(asdict(done)), "fingerprint": mark})


def load_checkpoint(path: Path, task: Task, mark: str) -> tuple[Progress, dict[str, Tensor]] | None:
    """Puts the state of a checkpoint back; none when there is no checkpoint of this very run."""
    if not path.is_file():
        return None
    try:
        tensors, metadata = read_tensors(path)
    except SafetensorError as error:
        raise InputError(
            f"The checkpoint {path} cannot be read ({error}); remove it to train from the start."
        ) from error
    if metadata.get("fingerprint") != mark:
        raise InputError(
            f"The checkpoint {path} belongs to a run with other settings or data; "
            "choose another --out, or remove the folder to train from the start."
        )
    if "done" not in metadata:
        raise InputError(
            f"The checkpoint {path} was written by an older heedful; remove it to train from the "
            "start."
        )
    try:
        done = _done(metadata["done"], task.count)
        torch.set_rng_state(tensors["random.cpu"])
        if "random.cuda" in tensors and torch.cuda.is_available():
            torch.cuda.set_rng_state(tensors["random.cuda"])
        for number, generator in enumerate(task.generators):
            generator.set_state(tensors[f"random.{number}"])
        best = _under("best.", tensors)
        wanted = {name: value.shape for name, value in task.model.state_dict().items()}
        if best and {name: value.shape for name, value in best.items()} != wanted:
            raise ValueError("its best weights are another model's")
        task.model.load_state_dict(_under("model.", tensors))
        weights = [one for group in task.optimiser.param_groups for one in group["params"]]
        state = _optimiser_state(_under("optimiser.", tensors), weights)
        task.optimiser.load_state_dict(task.optimiser.state_dict() | {"state": state})
    except (KeyError, TypeError, AttributeError, ValueError, RuntimeError) as error:
        reason = str(error).splitlines()[0]
        raise InputError(
            f"The checkpoint {path} is not one of this training ({reason}); remove it to train "
            "from the start."
        ) from error
    return done, best


def _done(stored: str, count: int) -> Progress:
    """How far so many models had come, if that is what is stored."""
    kept = json.loads(stored)
    done = replace(Progress(**kept), models=[Standing(**one) for one in kept["models"]])
    for one in (done, *done.models):
        hints = get_type_hints(type(one))
        for name, hint in hints.items():
            if not fits(getattr(one, name), hint):
                raise ValueError(f"its {name} is {getattr(one, name)!r}")
    # Losses and rates may be any number: a training that diverged is told by its weights.
    counts = (done.epoch, done.batch, done.step, done.summed)
    others = [n for n in (*done.loss, done.learning_rate, done.ramp) if isinstance(n, int)]
    if not all(0 <= number < 1e15 for number in counts) or any(abs(n) > 1e15 for n in others):
        raise ValueError("it counts below 0 or without end")
    if not len(done.loss) == len(done.models) == count:
        raise ValueError(f"it holds {len(done.models)} models and not {count}")
    return done


def _optimiser_state(
    tensors: dict[str, Tensor], weights: Sequence[Tensor]
) -> dict[int, dict[str, Tensor]]:
    """What the optimiser keeps of each weight, which is of its shape or one number."""
    stored: dict[int, dict[str, Tensor]] = {}
    for name, value in tensors.items():
        index, _, key = name.partition(".")
        if value.shape not in (weights[int(index)].shape, ()):
            raise ValueError(f"{name} has the shape {tuple(value.shape)}")
        stored.setdefault(int(index), {})[key] = value
    if len({tuple(sorted(kept)) for kept in stored.values()}) > 1:
        raise ValueError("it does not keep the same of every weight")
    return stored


def remove_checkpoint(folder: Path) -> None:
    """Takes the checkpoint of a training away, once what came of it is saved, if it can be."""
    with suppress(OSError):
        (folder / CHECKPOINT).unlink()


def _under(prefix: str, tensors: dict[str, Tensor]) -> dict[str, Tensor]:
    return {n.removeprefix(prefix): value for n, value in tensors.items() if n.startswith(prefix)}
