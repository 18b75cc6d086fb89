"""The state of a training run in one file, so that a killed run ends with the same numbers.

A checkpoint lives until the result made from it stands on disk. Trainers only write it; who lent
them the folder takes it away (`remove_checkpoint`, or with the whole folder), so that what fails
between the last update and the saved model costs no more than a kill: what was trained since then.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Protocol

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import Tensor

from heedful.errors import InputError
from heedful.runs.atomic import writing

CHECKPOINT = "checkpoint.safetensors"
"""Its name in the folder that a training was lent."""


@dataclass
class Progressed:
    """How far training has come; plain numbers only."""

    epoch: int = 0
    batch: int = 0
    """Batches of this epoch already taken."""
    step: int = 0
    loss: float = 0.0
    """Summed loss of this epoch's batches."""
    learning_rate: float = 0.0
    best: float | None = None
    best_step: int = 0
    without_gain: int = 0
    stopped: bool = False
    history: list[dict[str, Any]] = field(default_factory=list)
    """One entry per evaluation; what metrics.jsonl holds."""


class Stateful(Protocol):
    """What is trained: a module, or anything that tells its state and takes it back."""

    def state_dict(self) -> dict[str, Any]:
        """The tensors that the next step depends on."""

    def load_state_dict(self, state: Mapping[str, Any], /) -> Any:
        """Puts them back."""


def save_checkpoint(
    path: Path,
    progressed: Progressed,
    model: Stateful,
    best: dict[str, Tensor],
    optimiser: torch.optim.Optimizer,
    fingerprint: str,
) -> None:
    """Writes everything that the next step depends on, atomically."""
    tensors: dict[str, Tensor] = {"random.cpu": torch.get_rng_state()}
    if torch.cuda.is_available():
        tensors["random.cuda"] = torch.cuda.get_rng_state()
    tensors |= {f"model.{name}": value for name, value in model.state_dict().items()}
    tensors |= {f"best.{name}": value for name, value in best.items()}
    for index, state in optimiser.state_dict()["state"].items():
        for name, value in state.items():
            if isinstance(value, Tensor):
                tensors[f"optimiser.{index}.{name}"] = value
    metadata = {"progressed": json.dumps(asdict(progressed)), "fingerprint": fingerprint}
    plain = {name: value.detach().cpu().clone() for name, value in tensors.items()}
    with writing(path) as temporary:
        save_file(plain, temporary, metadata)


def load_checkpoint(
    path: Path, model: Stateful, optimiser: torch.optim.Optimizer, fingerprint: str
) -> tuple[Progressed, dict[str, Tensor]] | None:
    """Puts the state of a checkpoint back; none when there is no checkpoint of this very run."""
    if not path.is_file():
        return None
    try:
        with safe_open(path, framework="pt") as file:
            metadata = file.metadata() or {}
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    except SafetensorError as error:
        raise InputError(
            f"The checkpoint {path} cannot be read ({error}); remove it to train from the start."
        ) from error
    if metadata.get("fingerprint") != fingerprint:
        raise InputError(
            f"The checkpoint {path} belongs to a run with other settings or data; "
            "choose another --out, or remove the folder to train from the start."
        )
    torch.set_rng_state(tensors["random.cpu"])
    if "random.cuda" in tensors and torch.cuda.is_available():
        torch.cuda.set_rng_state(tensors["random.cuda"])
    model.load_state_dict(_under("model.", tensors))
    stored: dict[int, dict[str, Tensor]] = {}
    for name, value in _under("optimiser.", tensors).items():
        index, _, key = name.partition(".")
        stored.setdefault(int(index), {})[key] = value
    optimiser.load_state_dict(optimiser.state_dict() | {"state": stored})
    progressed = Progressed(**json.loads(metadata["progressed"]))
    return progressed, _under("best.", tensors)


def remove_checkpoint(folder: Path) -> None:
    """Takes the checkpoint of a training away, once what came of it is saved."""
    (folder / CHECKPOINT).unlink(missing_ok=True)


def _under(prefix: str, tensors: dict[str, Tensor]) -> dict[str, Tensor]:
    return {n.removeprefix(prefix): value for n, value in tensors.items() if n.startswith(prefix)}
