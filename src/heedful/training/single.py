"""Training one model, of any kind."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import AbstractContextManager
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from heedful.corpora.batches import collate, mixed_batches
from heedful.corpora.encoded import Encoded, EncodedCorpus
from heedful.corpora.narrative_batches import NarrativeCorpus
from heedful.errors import InputError, unknown
from heedful.models.recipe import Penalties
from heedful.training.config import Schedule, TrainConfig
from heedful.training.kinds import Trained, kind_of
from heedful.training.loop import History, Observer, train
from heedful.training.optimisers import clip_alone, optimiser_of
from heedful.training.refusals import refuse_empty


def fit(
    model: Trained,
    corpus: EncodedCorpus | NarrativeCorpus,
    config: TrainConfig = TrainConfig(),
    penalties: Penalties = Penalties(),
    *,
    seed: int = 0,
    device: torch.device | str = "cpu",
    observers: Sequence[Observer] = (),
    folder: Path | None = None,
    show: bool = False,
    schedule: Schedule | None = None,
    is_judged: bool = True,
) -> History:
    """Trains the model in place and leaves it with the weights of the best dev evaluation.

    A schedule counts steps in place of epochs and says where dev is evaluated. Where observers
    look at dev themselves, `is_judged` off saves its evaluation, and the last weights stay.

    With a folder, `checkpoint.safetensors` and `metrics.jsonl` are kept there; the same call after
    a kill goes on from the checkpoint and ends with the same numbers. The checkpoint stays:
    `remove_checkpoint` when the model is saved.
    """
    refuse_empty(corpus)
    kind = kind_of(model)
    if config.select not in kind.selections:
        raise unknown("metric to select this model by", config.select, kind.selections)
    kind.check(model, penalties)
    dev = corpus.splits["dev"]
    is_rare = isinstance(dev, Encoded) and not (dev.labels == len(model.classes) - 1).any()
    if is_judged and config.select == "f1" and is_rare:
        raise InputError(
            f"F1 of {model.classes[-1]!r} chooses the weights, but no dev document of "
            f"{corpus.name} has that label; add some, or set select to accuracy."
        )
    if not is_judged and (schedule is None or config.halve_on_plateau):
        raise ValueError("only a schedule with a steady rate goes without dev evaluations")
    if schedule is not None:
        config = replace(config, patience=0, evaluate_at=schedule.evaluate_at)
    described = {
        "model": kind.described(model),
        "train": config.described(),
        "penalties": asdict(penalties),
        "corpus": corpus.fingerprint,
        "words": len(corpus.vocabulary),
        "seed": seed,
    } | ({} if schedule is None else {"schedule": asdict(schedule)})
    task = SingleTask(model, corpus, config, penalties, seed, device, schedule is not None)
    (history,) = train(
        task,
        described,
        seed=seed,
        steps=None if schedule is None else schedule.steps,
        is_judged=is_judged,
        observers=observers,
        folder=folder,
        show=show,
    )
    return history


class SingleTask:
    """One model, on batches of similar length or, where they are mixed, of any."""

    generators: Sequence[torch.Generator] = ()
    count = 1

    def __init__(
        self,
        model: Trained,
        corpus: Any,
        config: TrainConfig,
        penalties: Penalties,
        seed: int,
        device: torch.device | str,
        is_mixed: bool,
    ) -> None:
        self.model, self.corpus, self.config = model.to(device), corpus, config
        self.penalties, self.seed, self.device, self.is_mixed = penalties, seed, device, is_mixed
        self.kind = kind_of(model)
        self.optimiser = optimiser_of(model, config)
        self.class_weights = _class_weights(model, corpus, device) if config.balanced else None
        # Some recipes drop out in the first epochs only.
        self.drops_until = getattr(getattr(model, "config", None), "dropout_epochs", None)

    def batches(self, epoch: int) -> Iterable[tuple[int, Any]]:
        """The training documents in batches."""
        train, config = self.corpus.splits["train"], self.config
        order = config.order(self.seed, epoch)
        if self.is_mixed:
            found = mixed_batches(train, config.batch_size, order)
        elif config.length_seed is not None:
            rows = config.groups(train, self.seed, epoch)
            found = (collate(train, group) for group in rows)
        else:
            found = self.kind.batches(train, config.batch_size, order, config.max_batch_tokens)
        return ((len(batch), batch) for batch in found)

    def learn(self, batch: Any, epoch: int) -> Float[Tensor, "1"]:
        """The gradient of the loss and of the penalties."""
        self.model.train(self.drops_until is None or epoch < self.drops_until)
        here = batch.to(self.device)
        with self._precision():
            loss = self.kind.loss(self.model, here, self.penalties, self.class_weights)
        loss.backward()  # type: ignore[no-untyped-call]
        clip_alone(self.model.parameters(), self.config)
        return loss.detach().double()[None]

    def evaluate(self) -> list[Any]:
        """The dev metrics of its kind."""
        return [self.kind.evaluate(self.model, self.corpus.splits["dev"], self.device)]

    def _precision(self) -> AbstractContextManager[Any]:
        """Half the bits for what a GPU computes, where that is asked for."""
        kind = torch.device(self.device).type
        is_lower = self.config.precision == "bfloat16" and kind == "cuda"
        return torch.autocast(kind, torch.bfloat16, enabled=is_lower)


def _class_weights(model: Trained, corpus: Any, device: torch.device | str) -> Tensor:
    """The inverse of each class's share of the training documents; 0 for one without any."""
    labels = torch.from_numpy(corpus.splits["train"].labels)
    counts = torch.bincount(labels[labels >= 0], minlength=len(model.classes)).float()
    return torch.where(counts > 0, counts.sum() / (len(counts) * counts), 0).to(device)
