"""A training in its run folder: done and written down, gone on with, or given back."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any, TypeVar

import torch

from heedful.corpora import EncodedCorpus
from heedful.corpora.narrative_batches import NarrativeCorpus
from heedful.jobs.decider import Decider
from heedful.models import NarrativeTransformer
from heedful.models.saved import weights_digest
from heedful.runs import RunFolder, held
from heedful.training import History
from heedful.training.checkpoints import remove_checkpoint

Model = TypeVar("Model", bound=Decider | NarrativeTransformer)


def kept(
    out: str | Path | None,
    configuration: Mapping[str, Any],
    corpus: EncodedCorpus | NarrativeCorpus,
    *,
    learn: Callable[[Path | None], tuple[Model, History]],
    save: Callable[[Model, Path], None],
    reopen: Callable[[Path], Model],
    measure: Callable[[Model, Any, torch.device], Any],
    seed: int,
    device: torch.device,
    **noted: Any,
) -> Model:
    """The model that `learn` trains; with `out`, kept in that run folder, `measure`d on test.

    A folder that holds the same run already is gone on with, or its model is given back at once.
    `noted` is written into run.json beside the configuration.
    """
    if out is None:
        return learn(None)[0]
    asked = {"kind": "train", **configuration, "corpus": corpus.name, "seed": seed}
    started = time.perf_counter()
    with held(out):
        run = RunFolder.create(
            out, asked, seeds={"all": seed}, device=str(device), corpus=corpus.fingerprint
        )
        if run.is_finished("train"):
            model = None
        else:
            run.update(**noted)
            model, history = learn(run.path)
            save(model, run.model)
            run.update(best_dev=history.best, best_step=history.best_step)
            run.update(weights=weights_digest(model))
            if "test" in corpus.splits:
                run.update(test=asdict(measure(model, corpus.splits["test"], device)))
            run.finish("train", time.perf_counter() - started)
        remove_checkpoint(run.path)
    return reopen(run.model) if model is None else model
