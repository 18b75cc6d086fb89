"""What a classifier attends to and what each unit tells it: attention α, probe β, saliency Δ.

β of a unit is the probability of the right class if all attention lay on it, kept as its logarithm
(dynamics.md §3.1). With a linear head and one logit, p = σ(Σ α σ⁻¹(β)) holds exactly (eq. 12).
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import torch
from jaxtyping import Float32, Int
from torch import Tensor

from heedful.corpora.batches import Batch, collate
from heedful.corpora.encoded import Encoded
from heedful.corpora.vocabulary import END, START
from heedful.dynamics.agreement import starts_of
from heedful.dynamics.trajectory import Trajectory, keep_checkpoint
from heedful.models.classifier import AttentionClassifier
from heedful.models.likelihoods import differentiating
from heedful.models.verbs import evaluating
from heedful.runs.atomic import writing
from heedful.training.loop import Moment

TOKENS_AT_ONCE = 65_536
"""Documents × longest document of a batch."""


def groups(encoded: Encoded) -> Iterator[tuple[Int[np.ndarray, "batch"], Batch]]:
    """All documents once, by length, with their row numbers."""
    order = np.argsort(encoded.lengths, kind="stable")
    start = 0
    while start < len(order):
        longest = np.maximum.accumulate(encoded.lengths[order[start:]])
        fits = longest * np.arange(1, len(longest) + 1) <= TOKENS_AT_ONCE
        rows = order[start : start + max(int(fits.sum()), 1)]
        yield rows, collate(encoded, rows)
        start += len(rows)


def probed(
    model: AttentionClassifier,
    encoded: Encoded,
    device: torch.device | str = "cpu",
    step: int = 0,
) -> Trajectory:
    """The trajectory of this one moment: a row for each labelled document, in their order."""
    found: dict[int, tuple[Tensor, ...]] = {}
    with evaluating(model):
        for rows, batch in groups(encoded):
            here = batch.to(device)
            passed = model(here)
            attention = passed.attended.scores.softmax(-1)
            said = model.with_zero(model.head(passed.attended.values)).log_softmax(-1)
            label = here.labels.clamp_min(0)
            probe = said.gather(2, label[:, None, None].expand(*said.shape[:2], 1))[..., 0]
            special = torch.zeros_like(passed.mask)
            if model.words is None:
                special = (here.ids == START) | (here.ids == END)
            is_right = passed.logits.argmax(-1) == here.labels
            lengths = passed.mask.sum(-1).tolist()
            laid = (x[passed.mask].cpu() for x in (attention, probe, special))
            flat = [torch.split(x, lengths) for x in laid]
            for row, right, *units in zip(rows.tolist(), is_right.cpu(), *flat, strict=True):
                if encoded.labels[row] >= 0:
                    found[row] = (right, *units)
    kept = sorted(found)
    right, weights, probes, specials = zip(*(found[row] for row in kept), strict=True)
    return Trajectory(
        steps=np.array([step]),
        attention=torch.cat(weights).float().numpy()[None],
        probe=torch.cat(probes).float().numpy()[None],
        correct=torch.stack(right).numpy()[None],
        lengths=np.array([len(units) for units in weights]),
        item=np.array(kept),
        is_special=torch.cat(specials).numpy(),
    )


def saliency(
    model: AttentionClassifier, encoded: Encoded, device: torch.device | str = "cpu"
) -> Float32[np.ndarray, "flat"]:
    """Δ of every token of the labelled documents: ∂ log p(right class) / ∂ a gate on the token.

    Gradient times input; positive = supports the right class (§3.2; the release has the other
    sign, trap 2).
    """
    found: dict[int, Tensor] = {}
    with differentiating(model):
        for rows, batch in groups(encoded):
            here = batch.to(device)
            inputs = model.embed(here).detach().requires_grad_()
            logp = model.from_inputs(inputs, here).logits.log_softmax(-1)
            right = logp.gather(1, here.labels.clamp_min(0)[:, None]).sum()
            (slope,) = torch.autograd.grad(right, inputs)
            gated = (slope * inputs).sum(-1).detach()[here.mask].cpu()
            parts = torch.split(gated, batch.lengths.tolist())
            for row, units in zip(rows.tolist(), parts, strict=True):
                if encoded.labels[row] >= 0:
                    found[row] = units
    return np.asarray(torch.cat([found[row] for row in sorted(found)]).float().numpy())


def chosen(encoded: Encoded, rows: Int[np.ndarray, "row"]) -> Encoded:
    """Some documents of a split, in the order given."""
    lengths = encoded.lengths[rows]
    starts = starts_of(lengths)
    place = np.arange(int(lengths.sum())) + np.repeat(encoded.starts[rows] - starts, lengths)
    documents = encoded.documents
    return Encoded(
        ids=encoded.ids[place],
        starts=np.append(starts, lengths.sum()),
        labels=encoded.labels[rows],
        sentence=encoded.sentence[place],
        names=tuple(encoded.names[row] for row in rows.tolist()),
        evidence=None if encoded.evidence is None else encoded.evidence[place],
        documents=None if documents is None else [documents[row] for row in rows.tolist()],
    )


class ProbeLog:
    """An observer that keeps α, β and right answers of some documents at every evaluation.

    One file per split and evaluation, so that a killed run loses none. Where `saliency` is asked
    for, Δ is kept for the best evaluation so far of each split.
    """

    def __init__(self, folder: Path, splits: dict[str, Encoded], with_saliency: bool) -> None:
        self.folder, self.splits, self.with_saliency = folder, splits, with_saliency
        self.best: dict[str, float] = {}

    def __call__(self, moment: Moment) -> None:
        """Keeps the moment."""
        for name, encoded in self.splits.items():
            found = probed(moment.model, encoded, moment.device, moment.step)
            keep_checkpoint(self.folder, name, found)
            if self.with_saliency:
                self._keep_saliency(name, encoded, found, moment)

    def _keep_saliency(
        self, name: str, encoded: Encoded, found: Trajectory, moment: Moment
    ) -> None:
        from safetensors.numpy import load_file, save_file

        path = self.folder / f"saliency-{name}.safetensors"
        accuracy = float(found.performance()[0])
        if name not in self.best and path.is_file():  # resumed
            self.best[name] = float(load_file(str(path))["accuracy"][0])
        if accuracy > self.best.get(name, -1.0):
            self.best[name] = accuracy
            values = saliency(moment.model, encoded, moment.device)
            with writing(path) as temporary:
                save_file({"saliency": values, "accuracy": np.array([accuracy])}, str(temporary))


def kept_saliency(folder: Path, name: str) -> Float32[np.ndarray, "flat"]:
    """The Δ that a `ProbeLog` kept for a split."""
    from safetensors.numpy import load_file

    return np.asarray(load_file(str(folder / f"saliency-{name}.safetensors"))["saliency"])
