"""The state of a training run in one file, so that a killed run ends with the same numbers.

A checkpoint lives until the result made from it stands on disk. Trainers only write it; who lent
them the folder takes it away (`remove_checkpoint`, or with the whole folder), so that what fails
between the last update and the saved model costs no more than a kill: what was trained since then.
"""

from __future__ import annotations

import json
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from safetensors import SafetensorError
from torch import Tensor

from heedful.errors import InputError
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
    torch.set_rng_state(tensors["random.cpu"])
    if "random.cuda" in tensors and torch.cuda.is_available():
        torch.cuda.set_rng_state(tensors["random.cuda"])
    for number, generator in enumerate(task.generators):
        generator.set_state(tensors[f"random.{number}"])
    task.model.load_state_dict(_under("model.", tensors))
    stored: dict[int, dict[str, Tensor]] = {}
    for name, value in _under("optimiser.", tensors).items():
        index, _, key = name.partition(".")
        stored.setdefault(int(index), {})[key] = value
    task.optimiser.load_state_dict(task.optimiser.state_dict() | {"state": stored})
    kept = json.loads(metadata["done"])
    models = [Standing(**one) for one in kept.pop("models")]
    return Progress(**kept, models=models), _under("best.", tensors)


def remove_checkpoint(folder: Path) -> None:
    """Takes the checkpoint of a training away, once what came of it is saved, if it can be."""
    with suppress(OSError):
        (folder / CHECKPOINT).unlink()


def _under(prefix: str, tensors: dict[str, Tensor]) -> dict[str, Tensor]:
    return {n.removeprefix(prefix): value for n, value in tensors.items() if n.startswith(prefix)}
