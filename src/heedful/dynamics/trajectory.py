"""What a run attended to, and what each unit told, at every checkpoint: flat, ragged, on disk."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import NamedTuple, TypeVar

import numpy as np
from jaxtyping import Bool, Float, Float32, Int

from heedful.errors import InputError
from heedful.runs.atomic import writing
from heedful.runs.steps import Form

T = TypeVar("T")

ARRAYS = {
    "steps": (np.int64, np.int64),
    "attention": (np.float32, np.float32),
    "probe": (np.float32, np.float32),
    "correct": (np.uint8, np.bool_),
    "lengths": (np.int32, np.int64),
    "item": (np.int32, np.int64),
    "is_special": (np.uint8, np.bool_),
}
"""The arrays of a trajectory: how they lie on disk, and how they are used."""
SECONDS = "seconds"
"""A score of runs whose observer kept the time: seconds since it began to look."""
ACCURACY = "accuracy"
"""The performance that every trajectory has: the share of rows that are answered rightly."""


@dataclass(frozen=True, eq=False)
class Trajectory:
    """Attention and probe of every row at every checkpoint of a run.

    A row is a document of a classifier, or one output word of a translated sentence; its units are
    the document's tokens, or those of the source sentence, start and end symbols included. The
    units of all rows lie one after the other: row r has `lengths[r]` of them.
    """

    steps: Int[np.ndarray, " checkpoint"]
    """Updates done at each checkpoint."""
    attention: Float32[np.ndarray, "checkpoint flat"]
    probe: Float32[np.ndarray, "checkpoint flat"]
    """β: what the model would say of the right answer from this unit alone, as log-odds; only its
    order within a row has a meaning."""
    correct: Bool[np.ndarray, "checkpoint row"]
    """Whether the model answers the row rightly (a translator: under teacher forcing)."""
    lengths: Int[np.ndarray, " row"]
    item: Int[np.ndarray, " row"]
    """The document or sentence that the row belongs to; what is resampled together."""
    is_special: Bool[np.ndarray, " flat"]
    """Start and end symbols."""
    scores: Mapping[str, Float[np.ndarray, " checkpoint"]] = field(default_factory=dict)
    """Other measures of performance, e.g. `bleu`."""

    def __post_init__(self) -> None:
        if (self.lengths < 1).any():
            raise ValueError("a row of a trajectory has at least one unit")
        flat = int(self.lengths.sum())
        for name in ("attention", "probe"):
            if getattr(self, name).shape != (len(self.steps), flat):
                raise ValueError(f"{name} must be {len(self.steps)} checkpoints × {flat} units")

    def performance(self, name: str = ACCURACY) -> Float[np.ndarray, " checkpoint"]:
        """How well the run does at each checkpoint: accuracy, or one of `scores`."""
        if name == ACCURACY:
            return np.asarray(self.correct.mean(1, dtype=np.float64))
        return np.asarray(self.scores[name], dtype=np.float64)

    def best(self, name: str = ACCURACY) -> int:
        """The checkpoint of the best performance, the first of equal ones."""
        return int(self.performance(name).argmax())

    def at(self, checkpoint: int) -> Trajectory:
        """The trajectory with one checkpoint alone."""
        chosen = slice(checkpoint, checkpoint + 1) if checkpoint != -1 else slice(-1, None)
        return replace(
            self,
            steps=self.steps[chosen],
            attention=self.attention[chosen],
            probe=self.probe[chosen],
            correct=self.correct[chosen],
            scores={name: values[chosen] for name, values in self.scores.items()},
        )


def save_trajectory(path: Path, trajectory: Trajectory) -> None:
    """Writes a trajectory as one safetensors file; 8 bytes per unit and checkpoint."""
    from safetensors.numpy import save_file

    scores = {name: [float(v) for v in values] for name, values in trajectory.scores.items()}
    arrays = {
        name: np.ascontiguousarray(getattr(trajectory, name).astype(kept, copy=False))
        for name, (kept, _) in ARRAYS.items()
    }
    save_file(arrays, str(path), {"scores": json.dumps(scores)})


def load_trajectory(path: Path) -> Trajectory:
    """The trajectory of a file."""
    from safetensors import SafetensorError, safe_open

    try:
        with safe_open(str(path), framework="numpy") as file:
            arrays = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
            scores = json.loads((file.metadata() or {}).get("scores", "{}"))
    except (OSError, SafetensorError) as error:
        raise InputError(f"{path} holds no trajectory ({error}); compute it again.") from error
    found = {name: arrays[name].astype(used, copy=False) for name, (_, used) in ARRAYS.items()}
    return Trajectory(**found, scores={name: np.array(values) for name, values in scores.items()})


def joined(parts: Mapping[int, Trajectory]) -> Trajectory:
    """One trajectory of the checkpoints of several that share their rows, in the order of steps."""
    order = [parts[step] for step in sorted(parts)]
    if not order:
        raise ValueError("a trajectory has at least one checkpoint")
    names = set.intersection(*(set(part.scores) for part in order))
    return replace(
        order[0],
        steps=np.concatenate([part.steps for part in order]),
        attention=np.concatenate([part.attention for part in order]),
        probe=np.concatenate([part.probe for part in order]),
        correct=np.concatenate([part.correct for part in order]),
        scores={name: np.concatenate([part.scores[name] for part in order]) for name in names},
    )


def keep_checkpoint(folder: Path, name: str, moment: Trajectory) -> None:
    """Keeps one checkpoint in a folder of its own file, so that a killed run loses none."""
    with writing(folder / f"{name}-{int(moment.steps[0]):08d}.safetensors") as temporary:
        save_trajectory(temporary, moment)


def kept_checkpoints(folder: Path, name: str) -> Trajectory:
    """The checkpoints that `keep_checkpoint` left in a folder, as one trajectory."""
    found = [load_trajectory(path) for path in sorted(folder.glob(f"{name}-*.safetensors"))]
    return joined({int(part.steps[0]): part for part in found})


class OnDisk(Mapping[str, T]):
    """Results by name that are read when asked for: all runs of long texts take gigabytes."""

    def __init__(
        self, paths: Mapping[str, Path], read: Callable[[Path], T], *, is_kept: bool
    ) -> None:
        self.paths, self.read, self.is_kept = paths, read, is_kept
        self.kept: dict[str, T] = {}

    def __getitem__(self, name: str) -> T:
        """One of them."""
        found = self.kept[name] if name in self.kept else self.read(self.paths[name])
        if self.is_kept:
            self.kept[name] = found
        return found

    def __contains__(self, name: object) -> bool:
        return name in self.paths

    def __iter__(self) -> Iterator[str]:
        return iter(self.paths)

    def __len__(self) -> int:
        return len(self.paths)


class FollowedRun(NamedTuple):
    """A run as it was followed on some documents (pairs)."""

    splits: Mapping[str, Trajectory]
    """By split: `dev`, and `train` for a subset of the training documents."""
    saliency: Mapping[str, Float32[np.ndarray, " flat"]]
    """Δ at each split's best checkpoint, where it was asked for; see `saliency_name`."""


def saliency_name(split: str, performance: str = ACCURACY) -> str:
    """How Δ of a split at its best checkpoint by that performance is named: `dev`, `dev bleu`."""
    return split if performance == ACCURACY else f"{split} {performance}"


def save_followed(folder: Path, followed: FollowedRun) -> None:
    """Writes each split's trajectory, and the saliency in a file of its own."""
    from safetensors.numpy import save_file

    for name, trajectory in followed.splits.items():
        save_trajectory(folder / f"{name}.safetensors", trajectory)
    if followed.saliency:
        save_file(dict(followed.saliency), str(folder / _SALIENCY))


def load_followed(folder: Path) -> FollowedRun:
    """What `save_followed` wrote; a trajectory is read when it is first asked for."""
    from safetensors.numpy import load_file

    paths = [path for path in sorted(folder.glob("*.safetensors")) if path.name != _SALIENCY]
    saliency = load_file(str(folder / _SALIENCY)) if (folder / _SALIENCY).is_file() else {}
    splits = OnDisk({path.stem: path for path in paths}, load_trajectory, is_kept=True)
    return FollowedRun(splits, saliency)


_SALIENCY = "saliency.safetensors"


def save_crew(folder: Path, runs: Mapping[str, FollowedRun]) -> None:
    """Writes each run into a folder of its name."""
    for name, run in runs.items():
        (folder / name).mkdir()
        save_followed(folder / name, run)


def load_crew(folder: Path) -> Mapping[str, FollowedRun]:
    """What `save_crew` wrote; a run is read whenever it is asked for, and not kept."""
    folders = [path for path in sorted(folder.iterdir()) if path.is_dir()]
    return OnDisk({path.name: path for path in folders}, load_followed, is_kept=False)


CREW: Form[Mapping[str, FollowedRun]] = Form("", save_crew, load_crew)
"""How runs that were trained together lie on disk as the result of a step."""
