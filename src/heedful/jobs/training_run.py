"""A training in its run folder: done and written down, gone on with, or given back."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any, TypeVar

import torch

from heedful.corpora import EncodedCorpus
from heedful.jobs.sources import DocumentSource
from heedful.jobs.subject import Decider
from heedful.models.saved import weights_digest
from heedful.runs import RunFolder
from heedful.training import History, evaluate
from heedful.training.checkpoints import remove_checkpoint

Model = TypeVar("Model", bound=Decider)


def kept(
    out: str | Path,
    configuration: Mapping[str, Any],
    encoded: EncodedCorpus,
    *,
    learn: Callable[[Path], tuple[Model, History]],
    save: Callable[[Model, Path], None],
    reopen: Callable[[Path], Model],
    seed: int,
    device: torch.device,
    source: DocumentSource | None = None,
    **noted: Any,
) -> Model:
    """The model that `learn` trains, kept in the run folder `out` with how well it decides.

    A folder that holds the same run already is gone on with, or its model is given back at once.
    `noted` is written into run.json beside the configuration.
    """
    run = RunFolder.create(
        out,
        {"kind": "train", **configuration, "corpus": encoded.name, "seed": seed},
        seeds={"all": seed},
        device=str(device),
        corpus=encoded.fingerprint,
    )
    if run.is_finished("train"):
        remove_checkpoint(run.path)
        return reopen(run.model)
    started = time.perf_counter()
    with run.locked():
        stored = None if source is None else source.to_json()
        run.update(notes=dict(encoded.notes), source=stored, **noted)
        model, history = learn(run.path)
        save(model, run.model)
        run.update(best_dev=history.best, best_step=history.best_step)
        run.update(weights=weights_digest(model))
        if "test" in encoded.splits:
            run.update(test=asdict(evaluate(model, encoded.splits["test"], device)))
        run.finish("train", time.perf_counter() - started)
        remove_checkpoint(run.path)
    return model
