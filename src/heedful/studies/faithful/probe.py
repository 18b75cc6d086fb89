"""Whether a word can be read off its own state: a linear probe of word identity.

See docs/studies/faithful.md, "Controls of our own".

The probe is the best linear classifier when the states of a word scatter alike around each word's
mean (linear discriminant analysis): class means, one covariance and the words' shares, in closed
form. It is fitted on training texts and asked about texts the model has never seen.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Float, Float64, Int

from heedful.corpora.encoded import Encoded
from heedful.errors import InputError
from heedful.runs.randomness import numpy_generator
from heedful.statistics.estimates import Estimate
from heedful.statistics.intervals import bootstrap
from heedful.studies.faithful.information import TILE, Sample

SHRINKAGE = 1e-3
"""Share of the overall variance added to every direction: embeddings do not scatter at all."""


@dataclass(frozen=True, eq=False)
class Probe:
    """A linear map from a state to a score for each word."""

    words: Int[np.ndarray, "type"]
    weight: Float64[np.ndarray, "dim type"]
    offset: Float64[np.ndarray, "type"]
    commonest: int
    """The most frequent word among those it was fitted on."""

    def __call__(
        self, values: Float[np.ndarray, "place dim"], device: torch.device | str = "cpu"
    ) -> Int[np.ndarray, " place"]:
        """The likeliest word of each state."""
        weight, offset = (torch.from_numpy(x).to(device) for x in (self.weight, self.offset))
        found = [
            (part.to(device, torch.float64) @ weight + offset).argmax(-1).cpu()
            for part in torch.split(torch.from_numpy(values), TILE)
        ]
        return np.asarray(self.words[torch.cat(found).numpy()])


def fitted(values: Float[np.ndarray, "place dim"], words: Int[np.ndarray, " place"]) -> Probe:
    """The probe of states whose words are known."""
    types, kind = np.unique(words, return_inverse=True)
    if len(types) < 2:
        raise InputError(f"A probe tells words apart and needs at least two, got {len(types)}.")
    wide = values.astype(np.float64)
    counts = np.bincount(kind)
    means = np.zeros((len(types), wide.shape[1]))
    np.add.at(means, kind, wide)
    means /= counts[:, None]
    centred = wide - wide.mean(0)
    within = (wide - means[kind]).T @ (wide - means[kind]) / len(wide)
    within += SHRINKAGE * centred.var(0).mean() * np.eye(len(within))
    weight = np.linalg.solve(within, means.T)
    offset = np.log(counts / len(wide)) - (means.T * weight).sum(0) / 2
    return Probe(types, weight, offset, int(types[counts.argmax()]))


@dataclass(frozen=True)
class Probed:
    """How often the probe names the right word."""

    accuracy: Estimate
    baseline: Estimate
    """Always naming the word that was most frequent in the texts it was fitted on."""
    gain: Estimate
    """Accuracy minus baseline on the same documents."""
    places: int
    types: int


def occurrences(
    encoded: Encoded, words: Int[np.ndarray, "type"], most: int, seed: int = 0
) -> Sample:
    """Where some words stand in a split, at most so many places, drawn by the seed."""
    tokens = np.flatnonzero(np.isin(encoded.ids, words))
    if len(tokens) > most:
        drawn = numpy_generator(seed, "probed").choice(tokens, most, replace=False)
        tokens = np.sort(drawn)
    return Sample("probed", tokens, encoded.ids[tokens])


def probed(
    probe: Probe,
    values: Float[np.ndarray, "place dim"],
    words: Int[np.ndarray, " place"],
    documents: Sequence[str],
    device: torch.device | str = "cpu",
) -> Probed:
    """The probe's accuracy on states of other texts, its interval over documents.

    `documents` names the document of every place.
    """
    if not len(words):
        raise InputError("None of the probed words stands in these documents.")
    names, document = np.unique(np.asarray(documents), return_inverse=True)
    counts = np.bincount(document).astype(np.float64)
    is_right = probe(values, device) == words
    is_common = words == probe.commonest
    right, common = (np.bincount(document, weights=hits) for hits in (is_right, is_common))

    def share(hits: Float64[np.ndarray, "document"]) -> Estimate:
        return bootstrap(lambda weights: (weights @ hits) / (weights @ counts), names.tolist())

    return Probed(share(right), share(common), share(right - common), len(words), len(probe.words))
