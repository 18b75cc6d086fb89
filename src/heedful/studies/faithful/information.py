"""How much of a word its state still holds: mutual information in nats, and a linear probe.

See docs/studies/faithful.md, "Mutual information" and "Controls of our own".

Pairs of a word's embedding and the value that attention sees there, over all occurrences of a
sample of word types. Both sides are clustered, and the information between the cluster labels is
the plug-in estimate; with the word itself as label one side is exact. Few pairs per cell bias it
upwards: the same estimate on shuffled pairs says by how much.

The probe is the best linear classifier when the states of a word scatter alike around each word's
mean (linear discriminant analysis): class means, one covariance and the words' shares, in closed
form. It is fitted on training texts and asked about texts the model has never seen.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple

import numpy as np
import torch
from jaxtyping import Float, Float64, Int

from heedful.corpora.batches import batches
from heedful.corpora.encoded import Encoded
from heedful.corpora.vocabulary import SPECIALS
from heedful.errors import InputError, unknown
from heedful.models.classifier import AttentionClassifier
from heedful.models.verbs import evaluating
from heedful.runs.randomness import key, numpy_generator
from heedful.statistics.estimates import Estimate
from heedful.statistics.intervals import bootstrap

TYPES = 1_000
"""Word types in a sample, and clusters on each side."""
PAIRS = 1_000_000
"""Most pairs; more are drawn from at random."""
MINI_BATCH = 100
RESTARTS = 3
FITTED = 100_000
"""Most vectors that clusters are fitted on, drawn at random; all are then put into them."""
TILE = 8_192
"""Rows assigned to their clusters at once."""

Kind = Literal["MF", "RS"]
KINDS: tuple[Kind, ...] = ("MF", "RS")
"""The most frequent words, or words drawn by their frequency to the power 3/4."""


class Sample(NamedTuple):
    """A fixed list of places of a corpus, the same for every model."""

    kind: str
    tokens: Int[np.ndarray, " pair"]
    """Places in the flat ids of the split, rising."""
    words: Int[np.ndarray, " pair"]
    """The word id at each place."""


@dataclass(frozen=True)
class Information:
    """What states tell about words on one sample, in nats."""

    clustered: float
    """Between clusters of embeddings and clusters of states, as published."""
    by_word: float
    """Between the words themselves and clusters of states."""
    ceiling: float
    """H(word): no state can tell more."""
    cluster_ceiling: float
    """H(cluster of embeddings): the ceiling of `clustered`."""
    shuffled: float
    """`clustered` on shuffled pairs, where there is none: the bias."""
    shuffled_by_word: float
    pairs: int
    types: int


def sample(
    encoded: Encoded,
    kind: str = "MF",
    types: int = TYPES,
    most: int = PAIRS,
    seed: int = 0,
) -> Sample:
    """The occurrences of some word types in a split, at most so many, drawn by the seed."""
    if kind not in KINDS:
        raise unknown("sample of words", kind, KINDS)
    counts = np.bincount(encoded.ids)
    counts[: len(SPECIALS)] = 0
    present = int((counts > 0).sum())
    if present < types:
        raise InputError(
            f"The sample needs {types} different words, as many as there are clusters, but the "
            f"split has {present}; take a larger corpus, or ask for at most {present} types."
        )
    generator = numpy_generator(seed, "information", kind)
    if kind == "MF":
        chosen = np.argsort(-counts, kind="stable")[:types]
    else:
        weights = counts**0.75
        chosen = generator.choice(len(counts), types, replace=False, p=weights / weights.sum())
    is_chosen = np.zeros(len(counts), dtype=bool)
    is_chosen[chosen] = True
    tokens = np.flatnonzero(is_chosen[encoded.ids])
    if len(tokens) > most:
        tokens = np.sort(generator.choice(tokens, most, replace=False))
    return Sample(kind, tokens, encoded.ids[tokens])


def states_at(
    model: AttentionClassifier,
    encoded: Encoded,
    tokens: Int[np.ndarray, " pair"],
    device: torch.device | str = "cpu",
) -> tuple[Float[np.ndarray, "pair input"], Float[np.ndarray, "pair dim"]]:
    """Embeddings and attended values at some places of a split, from one pass over it.

    The values are what attention averages: states, with the embedding added or appended where the
    model joins them.
    """
    if model.config.hierarchical:
        raise InputError("Information is measured between words and their own values; a "
                         "hierarchical model attends to sentences. Use a flat recipe.")  # fmt: skip
    row_of = {name: row for row, name in enumerate(encoded.names)}
    wanted = np.full(len(encoded.ids), -1)
    wanted[tokens] = np.arange(len(tokens))
    inputs = np.empty((len(tokens), model.config.embedding_dim), dtype=np.float32)
    values = np.empty((len(tokens), model.level.dim), dtype=np.float32)
    with evaluating(model):
        for batch in batches(encoded, 256, max_tokens=65_536):
            first = encoded.starts[[row_of[name] for name in batch.names]]
            places = first[:, None] + np.arange(batch.ids.shape[1])
            mask = batch.mask.numpy()
            pair = np.where(mask, wanted[np.where(mask, places, 0)], -1)
            if not (pair >= 0).any():
                continue
            here = batch.to(device)
            embedded = model.embed(here)
            seen = model.from_inputs(embedded, here).attended.values
            found = torch.from_numpy(pair >= 0).to(device)
            inputs[pair[pair >= 0]] = embedded[found].float().cpu().numpy()
            values[pair[pair >= 0]] = seen[found].float().cpu().numpy()
    return inputs, values


def clusters(
    vectors: Float[np.ndarray, "pair dim"],
    count: int,
    seed: int = 0,
    device: torch.device | str = "cpu",
) -> Int[np.ndarray, " pair"]:
    """A cluster label for each vector, by mini-batch k-means (batches of 100, 3 restarts).

    Whether a batch still improves is judged by a mean over so many as there are vectors, so that
    a million would be gone through for minutes: clusters are fitted on some of them.
    """
    from sklearn.cluster import MiniBatchKMeans

    if len(vectors) < count:
        raise InputError(
            f"{count} clusters need at least as many pairs, but there are {len(vectors)}; "
            "ask for fewer clusters or more pairs."
        )
    some = vectors
    if len(vectors) > FITTED:
        generator = numpy_generator(seed, "fitted clusters")
        some = vectors[np.sort(generator.choice(len(vectors), FITTED, replace=False))]
    # In float32 it would convert for every distance, and take twice as long.
    means = MiniBatchKMeans(
        count, batch_size=MINI_BATCH, n_init=RESTARTS, random_state=key(seed, "clusters") % 2**32,
        compute_labels=False,
    ).fit(some.astype(np.float64))  # fmt: skip
    centres = torch.from_numpy(means.cluster_centers_).to(device, torch.float32)
    half = centres.square().sum(-1) / 2
    labels = [
        (half - part.to(device, torch.float32) @ centres.T).argmin(-1).cpu()
        for part in torch.split(torch.from_numpy(vectors), TILE)
    ]
    return torch.cat(labels).numpy()


def mutual_information(u: Int[np.ndarray, " pair"], v: Int[np.ndarray, " pair"]) -> float:
    """Σ p(u, v) ln (p(u, v) / p(u) p(v)) over the pairs of labels that occur, in nats."""
    return label_entropy(u) + label_entropy(v) - label_entropy(_together(u, v))


def label_entropy(labels: Int[np.ndarray, " pair"]) -> float:
    """Entropy of the labels' shares, in nats."""
    counts = np.unique(labels, return_counts=True)[1]
    shares = counts / counts.sum()
    return float(-(shares * np.log(shares)).sum())


def _together(u: Int[np.ndarray, " pair"], v: Int[np.ndarray, " pair"]) -> Int[np.ndarray, " pair"]:
    """One label for each pair of labels."""
    return np.asarray(u.astype(np.int64) * (int(v.max(initial=0)) + 1) + v)


def word_labels(
    model: AttentionClassifier,
    chosen: Sample,
    count: int = TYPES,
    seed: int = 0,
    device: torch.device | str = "cpu",
) -> Int[np.ndarray, " pair"]:
    """Clusters of the embeddings at the places of a sample.

    A word has one vector, so only as many vectors as types are clustered, each as often as it
    occurs: drawn with weights instead of a million copies.
    """
    types, place = np.unique(chosen.words, return_inverse=True)
    table = model.embedding.weight.detach()[
        torch.from_numpy(types).to(model.embedding.weight.device)
    ]
    vectors = table.float().cpu().numpy()
    drawn = numpy_generator(seed, "occurrences").permutation(place)[: max(100 * count, 10_000)]
    fitted = clusters(np.concatenate([vectors, vectors[drawn]]), count, seed, device)
    return fitted[: len(types)][place]


def measure(
    model: AttentionClassifier,
    encoded: Encoded,
    chosen: Sample,
    count: int = TYPES,
    seed: int = 0,
    device: torch.device | str = "cpu",
) -> Information:
    """What the model's values tell about its words on a fixed sample, with ceiling and bias."""
    _, values = states_at(model, encoded, chosen.tokens, device)
    return of_values(model, chosen, values, count, seed, device)


def of_values(
    model: AttentionClassifier,
    chosen: Sample,
    values: Float[np.ndarray, "pair dim"],
    count: int = TYPES,
    seed: int = 0,
    device: torch.device | str = "cpu",
) -> Information:
    """The same from values that were read before: another clustering needs no other pass."""
    v = clusters(values, count, seed, device)
    u = word_labels(model, chosen, count, seed, device)
    shuffled = numpy_generator(seed, "shuffled pairs").permutation(v)
    return Information(
        clustered=mutual_information(u, v),
        by_word=mutual_information(chosen.words, v),
        ceiling=label_entropy(chosen.words),
        cluster_ceiling=label_entropy(u),
        shuffled=mutual_information(u, shuffled),
        shuffled_by_word=mutual_information(chosen.words, shuffled),
        pairs=len(v),
        types=len(np.unique(chosen.words)),
    )


SHRINKAGE = 1e-3
"""Share of the overall variance added to every direction: embeddings do not scatter at all."""


@dataclass(frozen=True, eq=False)
class Probe:
    """A linear map from a state to a score for each word."""

    words: Int[np.ndarray, type]
    weight: Float64[np.ndarray, "dim type"]
    offset: Float64[np.ndarray, type]
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


def occurrences(encoded: Encoded, words: Int[np.ndarray, type], most: int, seed: int = 0) -> Sample:
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

    def share(hits: Float64[np.ndarray, document]) -> Estimate:
        return bootstrap(lambda weights: (weights @ hits) / (weights @ counts), names.tolist())

    return Probed(share(right), share(common), share(right - common), len(words), len(probe.words))
