"""What a prompt alone makes likely, and three ways to deal with it.

A language model may say "positive" to nearly everything. `none` takes its answers as they are;
`empty` subtracts what it says to texts without content; `dev` adds one number to each label, fitted
to the labels of dev documents (maximum likelihood), which are then not audited; `auto` is `dev`
where there are enough of these, else `none`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import NamedTuple

import numpy as np
import torch
from jaxtyping import Float64, Int
from scipy.special import log_softmax

from heedful.corpora.batches import batches
from heedful.corpora.encoded import Encoded, EncodedCorpus
from heedful.corpora.samples import drawn, sampled, subset
from heedful.errors import InputError, unknown
from heedful.models.huggingface import PretrainedClassifier
from heedful.models.huggingface.label_choice import LabelChoice
from heedful.models.huggingface.prompts import FREE
from heedful.statistics.estimates import Estimate, per_cent
from heedful.statistics.intervals import proportion

PRIORS = ("auto", "none", "empty", "dev")
MOST_DEV = 200
"""Documents that the numbers of `dev` are fitted to, where the data has no dev split."""
FEWEST_DEV = 20
NOT_CALIBRATED = (
    "The rule behind the word was tried on classifiers, not on language models that answer a "
    "prompt: it is not calibrated for this kind."
)


class Settled(NamedTuple):
    """A corpus whose dev documents are set apart, and how well each correction decides."""

    corpus: EncodedCorpus
    accuracy: dict[str, Estimate]
    """Of the audited documents that have labels, by correction."""
    prior: str
    """The correction in force."""

    def lines(self) -> Iterator[str]:
        """How well the model decides under each correction."""
        for name, share in self.accuracy.items():
            used = ", which is audited" if name == self.prior else ""
            low, high = 100 * share.low, 100 * share.high
            said = f"{per_cent(share.value, 1)} [{low:.1f}, {high:.1f}] of {share.n}"
            yield f"accuracy, prior {name}{used}: {said}"


def settle(
    model: PretrainedClassifier, corpus: EncodedCorpus, split: str, prior: str, seed: int, most: int
) -> Settled:
    """The model corrected as `prior` says, and what it decides under each correction.

    Where there are too few labelled dev documents and some are asked for, a quarter of the audited
    split stands in for them, drawn by key and taken out of it.
    """
    if prior not in PRIORS:
        raise unknown("correction for the prior", prior, PRIORS)
    choice = model.model
    assert isinstance(choice, LabelChoice)
    choice.offset.zero_()
    corpus, dev = _set_apart(corpus, split, seed, prior in ("auto", "dev"))
    offsets = {"none": np.zeros(len(model.classes)), "empty": -said_to_nothing(model)}
    if dev is not None:
        offsets["dev"] = fitted(_logits(model, dev), dev.labels)
    elif prior == "dev":
        raise InputError(
            f"The correction dev needs {FEWEST_DEV} labelled documents beside the audited ones; "
            "give labels, more documents, or --prior none."
        )
    if prior == "auto":
        prior = "none" if dev is None else "dev"
    documents = corpus.splits[split]
    audited = subset(documents, sampled(documents.names, most, seed))
    labelled = subset(audited, np.flatnonzero(audited.labels >= 0))
    accuracy = {}
    if len(labelled):
        logits = _logits(model, labelled)
        for name, offset in offsets.items():
            hits = int(((logits + offset).argmax(1) == labelled.labels).sum())
            accuracy[name] = proportion(hits, len(labelled))
    choice.offset.copy_(torch.from_numpy(offsets[prior]))
    choice.prior = prior
    return Settled(corpus, accuracy, prior)


def said_to_nothing(model: PretrainedClassifier) -> Float64[np.ndarray, "class"]:
    """The log-probabilities of the labels for texts without content, on average."""
    with torch.no_grad():
        logits = model(model.like(FREE)).logits.double().cpu().numpy()
    mean: Float64[np.ndarray, "class"] = log_softmax(logits, axis=1).mean(0)
    return mean


def fitted(
    logits: Float64[np.ndarray, "document class"], labels: Int[np.ndarray, " document"]
) -> Float64[np.ndarray, "class"]:
    """The number added to each label that makes the right ones likeliest; they sum to 0.

    One pseudo-count of every class keeps them finite where a class never occurs.
    """
    counts = np.bincount(labels, minlength=logits.shape[1]) + 1.0

    def loss(
        offset: Float64[np.ndarray, "class"],
    ) -> tuple[float, Float64[np.ndarray, "class"]]:
        said = log_softmax(logits + offset, axis=1)
        even = log_softmax(offset)
        right = said[np.arange(len(labels)), labels].sum() + even.sum()
        slope = np.exp(said).sum(0) + len(offset) * np.exp(even) - counts
        return -float(right), slope

    from scipy.optimize import minimize  # takes long to import

    found = minimize(loss, np.zeros(logits.shape[1]), jac=True, method="L-BFGS-B").x
    offset: Float64[np.ndarray, "class"] = found - found.mean()
    return offset


def _set_apart(
    corpus: EncodedCorpus, split: str, seed: int, takes_audited: bool
) -> tuple[EncodedCorpus, Encoded | None]:
    """The corpus without documents to fit on, and these; none where there are too few."""
    dev = corpus.splits.get("dev") if split != "dev" else None
    if dev is not None:
        labelled = np.flatnonzero(dev.labels >= 0)
        if len(labelled) >= FEWEST_DEV:
            return corpus, subset(dev, drawn(dev.names, labelled, MOST_DEV, seed))
    documents = corpus.splits[split]
    labelled = np.flatnonzero(documents.labels >= 0)
    taken = drawn(documents.names, labelled, min(MOST_DEV, len(documents) // 4), seed + 1)
    if not takes_audited or len(taken) < FEWEST_DEV:
        return corpus, None
    kept = np.setdiff1d(np.arange(len(documents)), taken)
    notes = dict(corpus.notes) | {f"{split}: set apart to correct the prior": len(taken)}
    splits = dict(corpus.splits) | {split: subset(documents, kept)}
    return replace(corpus, splits=splits, notes=notes), subset(documents, taken)


def _logits(
    model: PretrainedClassifier, documents: Encoded
) -> Float64[np.ndarray, "document class"]:
    """The model's plain answers, in the order of the documents."""
    found = np.zeros((len(documents), len(model.classes)))
    place = {name: row for row, name in enumerate(documents.names)}
    for names, logits in _passes(model, documents):
        found[[place[name] for name in names]] = logits
    is_zero = ~np.isfinite(found)
    if is_zero.any():
        label = model.classes[int(is_zero.sum(0).argmax())]
        raise InputError(
            f"The label of {label!r} has a probability of 0, or none, behind "
            f"{is_zero.any(1).sum()} of {len(found)} prompts; choose other words for it."
        )
    return found


@torch.no_grad()
def _passes(
    model: PretrainedClassifier, documents: Encoded
) -> Iterator[tuple[tuple[str, ...], Float64[np.ndarray, "document class"]]]:
    for batch in batches(documents, 64, max_tokens=model.batch_tokens):
        given = batch.to(model.device)
        yield batch.names, model(given).logits.double().cpu().numpy()
