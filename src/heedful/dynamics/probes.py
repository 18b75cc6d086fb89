"""What a classifier attends to and what each unit tells it: attention α, probe β, saliency Δ.

β of a unit is the probability of the right class if all attention lay on it, kept as its logarithm
(docs/studies/dynamics.md, "Probes"). With a linear head and one logit, p = σ(Σ α σ⁻¹(β)) holds
exactly (eq. 12).
"""

from __future__ import annotations

import time
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch
from jaxtyping import Bool, Float, Float32, Int, Shaped
from torch import Tensor

from heedful.corpora.batches import Batch, collate
from heedful.corpora.batches import groups as rows_of_batches
from heedful.corpora.encoded import Encoded
from heedful.corpora.vocabulary import END, START
from heedful.dynamics.agreement import starts_of
from heedful.dynamics.trajectory import SECONDS, Trajectory, keep_checkpoint
from heedful.models import clustered_stack
from heedful.models.classifier import AttentionClassifier
from heedful.models.classifier_stack import ClassifierStack
from heedful.models.clustered_stack import FlatBatch
from heedful.models.likelihoods import differentiating
from heedful.models.log_odds import log_odds
from heedful.models.verbs import evaluating
from heedful.runs.atomic import writing
from heedful.training.loop import Moment

TOKENS_AT_ONCE = 65_536
"""Documents × longest document of a batch."""
TOGETHER = 4 * TOKENS_AT_ONCE
"""The same times the models that read it side by side."""
MOST_TOGETHER = 512
"""Documents that they read at once: without padding, every one is asked about every token."""


def groups(encoded: Encoded, models: int = 1) -> Iterator[tuple[Int[np.ndarray, " batch"], Batch]]:
    """All documents once, by length, with their row numbers; so many models read them at once."""
    most, size = TOKENS_AT_ONCE, len(encoded)
    if models > 1:
        most, size = TOGETHER // max(models, 4), MOST_TOGETHER
    for rows in rows_of_batches(encoded, size, max_tokens=most):
        yield rows, collate(encoded, rows)


def probed(
    model: AttentionClassifier,
    encoded: Encoded,
    device: torch.device | str = "cpu",
    step: int = 0,
) -> Trajectory:
    """The trajectory of this one moment: a row for each labelled document, in their order."""
    with evaluating(model):
        return trajectories(_read(model, encoded, device), encoded, step)[0]


def probed_together(
    stack: ClassifierStack, encoded: Encoded, device: torch.device | str = "cpu", step: int = 0
) -> list[Trajectory]:
    """`probed` of every model of a stack, all of them in one pass."""
    with torch.no_grad():
        return trajectories(_read_together(stack, encoded, device), encoded, step)


class SeenBatch(NamedTuple):
    """What models did with a batch, padded and on their device."""

    rows: Int[np.ndarray, " batch"]
    attention: Float[Tensor, "model batch unit"]
    probe: Float[Tensor, "model batch unit"]
    is_right: Bool[Tensor, "model batch"]
    is_special: Bool[Tensor, "batch unit"]
    lengths: Int[Tensor, " batch"]


def _read(
    model: AttentionClassifier, encoded: Encoded, device: torch.device | str
) -> Iterator[SeenBatch]:
    for rows, batch in groups(encoded):
        here = batch.to(device)
        passed = model(here)
        attention = passed.attended.scores.softmax(-1)[None]
        said = model.with_zero(model.head(passed.attended.values))[None]
        is_right = (passed.logits.argmax(-1) == here.labels)[None]
        special = torch.zeros_like(passed.mask)
        if model.words is None:
            special = marks_of(here)
        lengths = passed.mask.sum(-1)
        yield SeenBatch(rows, attention, told_of(said, here), is_right, special, lengths)


class _Passed(NamedTuple):
    """One pass of a stack over a batch, padded."""

    logits: Float[Tensor, "model batch class"]
    said: Float[Tensor, "model batch unit class"]
    attention: Float[Tensor, "model batch unit"]
    inputs: Float[Tensor, "model token input"] | Float[Tensor, "model batch unit input"]
    place: Int[Tensor, "batch unit"] | None
    """Where the inputs of each unit are, if they are not padded."""

    def padded(self, values: Tensor) -> Tensor:
        """What every input has, unit by unit."""
        return values if self.place is None else values[:, self.place]


def _passed(stack: ClassifierStack, batch: Batch) -> _Passed:
    """The pass of all models over a batch, without padding where their recurrence can."""
    if not clustered_stack.fits(stack):
        found = stack.forward(batch)
        said = stack.head(found.values)
        return _Passed(found.logits, said, found.scores.softmax(-1), found.inputs, None)
    lengths = batch.lengths
    ids = batch.ids[batch.mask]
    first, owner = clustered_stack.flat_of(lengths[None], len(ids))
    models = len(stack)
    every = [one.expand(models, -1) for one in (ids, first[0], lengths, owner[0], batch.labels)]
    flat = clustered_stack.passed(stack, FlatBatch(*every))
    place = torch.arange(batch.ids.shape[1], device=ids.device).minimum(lengths[:, None] - 1)
    place = place + first[0][:, None]
    said = stack.head(flat.values)[:, place]
    attention = flat.attention[:, place] * batch.mask
    return _Passed(flat.logits, said, attention, flat.inputs, place)


def _read_together(
    stack: ClassifierStack, encoded: Encoded, device: torch.device | str
) -> Iterator[SeenBatch]:
    for rows, batch in groups(encoded, len(stack)):
        here = batch.to(device)
        passed = _passed(stack, here)
        is_right = passed.logits.argmax(-1) == here.labels
        told = told_of(passed.said, here)
        yield SeenBatch(rows, passed.attention, told, is_right, marks_of(here), here.lengths)


def saliency_together(
    stack: ClassifierStack, encoded: Encoded, device: torch.device | str = "cpu"
) -> Float32[np.ndarray, "model flat"]:
    """`saliency` of every model of a stack, all of them in one pass."""
    rows, lengths, gated = [], [], []
    with torch.enable_grad():
        for own, batch in groups(encoded, len(stack)):
            here = batch.to(device)
            passed = _passed(stack, here)
            labels = here.labels.clamp_min(0).expand(passed.logits.shape[:-1])
            right = log_odds(passed.logits, labels)
            (slope,) = torch.autograd.grad(right.sum(), passed.inputs)
            rows.append(own)
            lengths.append(batch.lengths)
            gated.append(passed.padded((slope * passed.inputs).sum(-1).detach()))
    laid = _Laid.of(rows, lengths, [values.shape[-1] for values in gated], encoded)
    return laid.cut(gated).astype(np.float32)


def told_of(
    said: Float[Tensor, "model batch unit class"], batch: Batch
) -> Float[Tensor, "model batch unit"]:
    """What each unit alone says of the right class, as the log-odds of β."""
    return log_odds(said, batch.labels.clamp_min(0)[:, None].expand(said.shape[:-1]))


def marks_of(batch: Batch) -> Bool[Tensor, "batch token"]:
    """Start and end symbols."""
    return (batch.ids == START) | (batch.ids == END)


def trajectories(seen: Iterable[SeenBatch], encoded: Encoded, step: int) -> list[Trajectory]:
    """One moment of every model; the device is waited for when all batches are read."""
    parts = list(seen)
    laid = _Laid.of([part.rows for part in parts], [part.lengths for part in parts],
                    [part.is_special.shape[-1] for part in parts], encoded)  # fmt: skip
    attention, probe, special = (
        laid.cut([getattr(part, name) for part in parts])
        for name in ("attention", "probe", "is_special")
    )
    right = torch.cat([part.is_right for part in parts], -1).cpu().numpy()[:, laid.place]
    return [
        Trajectory(
            steps=np.array([step]),
            attention=attention[row].astype(np.float32)[None],
            probe=probe[row].astype(np.float32)[None],
            correct=right[row][None],
            lengths=laid.lengths,
            item=laid.documents,
            is_special=special,
        )
        for row in range(len(right))
    ]


class _Laid(NamedTuple):
    """Where the units of the labelled documents, in their order, lie among padded batches."""

    documents: Int[np.ndarray, " row"]
    lengths: Int[np.ndarray, " row"]
    """Units of each."""
    place: Int[np.ndarray, " row"]
    """Its place in the order that documents were read in."""
    units: Int[np.ndarray, " flat"]

    @classmethod
    def of(
        cls,
        rows: Sequence[Int[np.ndarray, " batch"]],
        lengths: Sequence[Int[Tensor, " batch"]],
        widths: Sequence[int],
        encoded: Encoded,
    ) -> _Laid:
        """From the documents of each batch, the units of each document and those of its padding."""
        order = np.concatenate(rows)
        first = starts_of(np.repeat(widths, [len(own) for own in rows]))
        place = np.argsort(order)
        place = place[encoded.labels[order[place]] >= 0]
        counts = torch.cat(list(lengths)).cpu().numpy()[place]
        units = np.arange(counts.sum()) + np.repeat(first[place] - starts_of(counts), counts)
        return cls(order[place], counts, place, units)

    def cut(self, padded: Sequence[Tensor]) -> Shaped[np.ndarray, "*model flat"]:
        """The units of all batches, without padding and in the order of the documents."""
        flat = torch.cat([values.flatten(-2) for values in padded], -1)
        units = torch.from_numpy(self.units).to(flat.device)
        return np.asarray(flat.index_select(-1, units).cpu().numpy())


def saliency(
    model: AttentionClassifier, encoded: Encoded, device: torch.device | str = "cpu"
) -> Float32[np.ndarray, " flat"]:
    """Δ of every token of the labelled documents: the derivative by a gate on the token.

    Gradient times input; positive = supports the right class (the release has the other
    sign: docs/studies/dynamics.md, "Errata"). Of the log-odds: that of log p is 1 − p times as
    large, one factor for all tokens of a document, which rounds to 0 where the model is sure.
    """
    rows, lengths, gated = [], [], []
    with differentiating(model):
        for own, batch in groups(encoded):
            here = batch.to(device)
            inputs = model.embed(here).detach().requires_grad_()
            logits = model.from_inputs(inputs, here).logits
            right = log_odds(logits, here.labels.clamp_min(0))
            (slope,) = torch.autograd.grad(right.sum(), inputs)
            rows.append(own)
            lengths.append(batch.lengths)
            gated.append((slope * inputs).sum(-1).detach())
    laid = _Laid.of(rows, lengths, [values.shape[-1] for values in gated], encoded)
    return laid.cut(gated).astype(np.float32)


class ProbeLog:
    """An observer that keeps α, β and right answers of some documents at every evaluation.

    One file per split and evaluation, so that a killed run loses none, with the seconds since the
    observer was made. Where `saliency` is asked for, Δ is kept for the best evaluation so far of
    each split.
    """

    def __init__(self, folder: Path, splits: Mapping[str, Encoded], with_saliency: bool) -> None:
        self.folder, self.splits, self.with_saliency = folder, splits, with_saliency
        self.best: dict[str, float] = {}
        self.started = time.perf_counter()

    def __call__(self, moment: Moment) -> None:
        """Keeps the moment."""
        for name, encoded in self.splits.items():
            found = probed(moment.model, encoded, moment.device, moment.step)
            if self.keep(name, found):
                self.keep_saliency(name, saliency(moment.model, encoded, moment.device))

    def keep(self, name: str, found: Trajectory) -> bool:
        """Keeps what was found of a split, and says whether it is the best so far and Δ is due."""
        from safetensors.numpy import load_file

        seconds = np.array([time.perf_counter() - self.started])
        keep_checkpoint(self.folder, name, replace(found, scores={SECONDS: seconds}))
        if not self.with_saliency:
            return False
        path = self._saliency(name)
        accuracy = float(found.performance()[0])
        if name not in self.best and path.is_file():  # resumed
            self.best[name] = float(load_file(str(path))["accuracy"][0])
        is_best = accuracy > self.best.get(name, -1.0)
        self.best[name] = max(accuracy, self.best.get(name, -1.0))
        return is_best

    def keep_saliency(self, name: str, values: Float32[np.ndarray, " flat"]) -> None:
        """Keeps Δ of a split at its best so far."""
        from safetensors.numpy import save_file

        accuracy = np.array([self.best[name]])
        with writing(self._saliency(name)) as temporary:
            save_file({"saliency": values, "accuracy": accuracy}, str(temporary))

    def _saliency(self, name: str) -> Path:
        return self.folder / f"saliency-{name}.safetensors"


class ProbeLogs:
    """A `ProbeLog` for every model of a stack, in a folder of its name; one pass reads for all.

    Δ is kept for the models named in `with_saliency`.
    """

    def __init__(
        self,
        folder: Path,
        names: Sequence[str],
        splits: Mapping[str, Encoded],
        with_saliency: Collection[str] = (),
    ) -> None:
        self.splits = splits
        self.logs = [ProbeLog(folder / name, splits, name in with_saliency) for name in names]
        for log in self.logs:
            log.folder.mkdir(parents=True, exist_ok=True)

    def __call__(self, moment: Moment) -> None:
        """Keeps the moment of every model."""
        for name, encoded in self.splits.items():
            found = probed_together(moment.model, encoded, moment.device, moment.step)
            due = [log.keep(name, one) for log, one in zip(self.logs, found, strict=True)]
            if any(due):
                every = saliency_together(moment.model, encoded, moment.device)
                for row in np.flatnonzero(due):
                    self.logs[row].keep_saliency(name, every[row])


def kept_saliency(folder: Path, name: str) -> Float32[np.ndarray, " flat"]:
    """The Δ that a `ProbeLog` kept for a split."""
    from safetensors.numpy import load_file

    return np.asarray(load_file(str(folder / f"saliency-{name}.safetensors"))["saliency"])
