"""The bag-of-words proxy: what a model can learn while attention is uniform.

See docs/studies/dynamics.md, "Proxy".

    p = softmax(W · 1/L Σₗ e_{xₗ} + b),   β^px of unit l: the log-odds of softmax(W e_{xₗ})ₒ

One embedding-bag mean and one dense product per batch, whatever the number of target words: a
document's loss is -Σₒ Y[o] log p[o] with Y the counts of its target words (its class, for a
classifier). Logistic regression on the same shares of words is its convex form.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import torch
from jaxtyping import Float, Float64, Int
from scipy.sparse import csr_array
from torch import Tensor, nn
from torch.nn import functional

from heedful.dynamics.cooccurrence import CorpusSide
from heedful.models.log_odds import log_odds
from heedful.runs.randomness import numpy_generator, seeded
from heedful.training.optimisers import descend

PENALTIES = (*(one * 10.0**e for e in range(-5, 4) for one in (1, 5)), 1e4)
"""The 19 strengths C of the logistic regressions."""
PAIRS_AT_ONCE = 2**16
"""Pairs of a word and an answer that are looked up together."""


@dataclass(frozen=True)
class ProxyConfig:
    """How a proxy is trained; the losses of a batch are summed."""

    dim: int = 256
    """Width of the word vectors."""
    epochs: int = 60
    batch_size: int = 64
    learning_rate: float = 1e-3
    counts_padding: bool = False
    """Whether the target's start symbol and the padding of its batch count as target words, as in
    the released translation proxy (docs/studies/dynamics.md, "Errata")."""
    start: int = 1
    """Id of the target's start symbol, where padding counts; padding is id 0."""
    most: int = 0
    """Epochs that it may go on for, while the held-out loss has fallen in the last `patience`."""
    patience: int = 10


class Proxy(NamedTuple):
    """A trained proxy."""

    vectors: Float[Tensor, "type dim"]
    weight: Float[Tensor, "answer dim"]
    bias: Float[Tensor, " answer"]
    losses: tuple[float, ...]
    """Per target word of the held-out documents, after each epoch."""
    seconds: tuple[float, ...]
    """Since the training began, after each epoch."""

    @property
    def epoch(self) -> int:
        """The epoch that was kept: the lowest held-out loss, the first of equal ones."""
        return int(np.argmin(self.losses))

    def probe(
        self, words: Int[np.ndarray, " pair"], answers: Int[np.ndarray, " pair"]
    ) -> Float64[np.ndarray, " pair"]:
        """The log-odds of the answer in softmax(W e_word), without bias, for each pair."""
        vectors, weight = self.vectors.double(), self.weight.double()
        # Never the whole [type answer] table: it has 64 million entries for 8,000 pieces. What the
        # others say of an answer is the sum without it: kept for the likeliest, where subtracting
        # would leave nothing, and subtracted for the rest.
        told = [_normalisers(some @ weight.T) for some in torch.split(vectors, 1024)]
        first, whole, others = (torch.cat(parts) for parts in zip(*told, strict=True))
        found = np.empty(len(words))
        for start in range(0, len(words), PAIRS_AT_ONCE):
            part = slice(start, start + PAIRS_AT_ONCE)
            one = torch.from_numpy(words[part].astype(np.int64)).to(vectors.device)
            other = torch.from_numpy(answers[part].astype(np.int64)).to(vectors.device)
            own = (vectors[one] * weight[other]).sum(-1)
            rest = whole[one] + torch.log(-torch.expm1(own - whole[one]))
            said = own - torch.where(other == first[one], others[one], rest)
            found[part] = said.cpu().numpy()
        return found


def _normalisers(
    said: Float64[Tensor, "word answer"],
) -> tuple[Int[Tensor, " word"], Float64[Tensor, " word"], Float64[Tensor, " word"]]:
    """The likeliest answer, and the log of the sum over all answers and over all but that one."""
    first = said.argmax(-1)
    others = said.scatter(-1, first[:, None], -torch.inf).logsumexp(-1)
    return first, said.logsumexp(-1), others


def train_proxy(
    sources: CorpusSide,
    answers: CorpusSide,
    held_out: tuple[CorpusSide, CorpusSide],
    config: ProxyConfig = ProxyConfig(),
    *,
    seed: int = 0,
    device: torch.device | str = "cpu",
) -> Proxy:
    """The proxy with the lowest loss on the held-out pairs, of as many epochs as asked for.

    `answers` are the target words of each source (one class for a document).
    """
    with seeded(seed):  # on the CPU: every device starts from the same numbers
        vectors = nn.Parameter(torch.randn(sources.types, config.dim).to(device))
        # Two answers share one logit, reported as (0, s), as in the classifiers.
        head = nn.Linear(config.dim, 1 if answers.types == 2 else answers.types).to(device)
    optimiser = torch.optim.Adam(
        [vectors, *head.parameters()], config.learning_rate, fused=vectors.is_cuda
    )
    best = [p.detach().clone() for p in (vectors, *head.parameters())]
    losses: list[float] = []
    seconds: list[float] = []
    started = time.perf_counter()
    for epoch in range(max(config.epochs, config.most)):
        if epoch >= config.epochs and epoch - int(np.argmin(losses)) > config.patience:
            break
        order = numpy_generator(seed, "proxy", epoch).permutation(len(sources))
        for start in range(0, len(order), config.batch_size):
            rows = order[start : start + config.batch_size]
            wanted = _answers(answers, rows, config, device)
            descend(optimiser, _loss(vectors, head, sources, rows, wanted))
        losses.append(_held_out(vectors, head, *held_out, device))
        seconds.append(time.perf_counter() - started)
        if losses[-1] < min(losses[:-1], default=np.inf):
            best = [p.detach().clone() for p in (vectors, *head.parameters())]
    learnt, weight, bias = best
    if answers.types == 2:
        weight, bias = (torch.cat([torch.zeros_like(one), one]) for one in (weight, bias))
    return Proxy(learnt, weight, bias, tuple(losses), tuple(seconds))


def _loss(
    vectors: Tensor, head: nn.Linear, sources: CorpusSide, rows: np.ndarray, wanted: Tensor
) -> Float[Tensor, ""]:
    """-Σ Y log p over the rows; summed, not averaged."""
    token, offsets = _tokens(sources, rows, vectors.device)
    means = functional.embedding_bag(token, vectors, offsets, mode="mean")
    logits: Tensor = head(means)
    if head.out_features == 1:
        logits = torch.cat([torch.zeros_like(logits), logits], -1)
    return -(wanted * logits.log_softmax(-1)).sum()


def _tokens(
    sources: CorpusSide, rows: np.ndarray, device: torch.device
) -> tuple[Int[Tensor, " token"], Int[Tensor, " row"]]:
    lengths = sources.lengths[rows]
    offsets = np.cumsum(lengths) - lengths
    place = np.arange(int(lengths.sum())) + np.repeat(sources.starts[rows] - offsets, lengths)
    ids = torch.from_numpy(sources.ids[place].astype(np.int64))
    return ids.to(device), torch.from_numpy(offsets).to(device)


def _answers(
    answers: CorpusSide, rows: np.ndarray, config: ProxyConfig, device: torch.device | str
) -> Float[Tensor, "row answer"]:
    """How often each row's target has each word."""
    lengths = answers.lengths[rows]
    offsets = np.cumsum(lengths) - lengths
    place = np.arange(int(lengths.sum())) + np.repeat(answers.starts[rows] - offsets, lengths)
    index = np.repeat(np.arange(len(rows)), lengths) * answers.types + answers.ids[place]
    counts = torch.zeros(len(rows) * answers.types, device=device)
    where = torch.from_numpy(index.astype(np.int64)).to(device)
    counts.index_add_(0, where, torch.ones(len(where), device=device))
    counts = counts.view(len(rows), answers.types)
    if config.counts_padding:
        counts[:, config.start] += 1
        counts[:, 0] += torch.from_numpy(lengths.max() - lengths).to(counts)
    return counts


@torch.no_grad()
def _held_out(
    vectors: Tensor,
    head: nn.Linear,
    sources: CorpusSide,
    answers: CorpusSide,
    device: torch.device | str,
) -> float:
    """The loss per target word, padding never counted."""
    total = 0.0
    for start in range(0, len(sources), 512):
        rows = np.arange(start, min(start + 512, len(sources)))
        wanted = _answers(answers, rows, ProxyConfig(), device)
        total += float(_loss(vectors, head, sources, rows, wanted))
    return total / max(len(answers.ids), 1)


def shares(side: CorpusSide) -> csr_array:
    """Each document's share of every word: counts over length, sparse."""
    counts = side.counts()
    counts.data /= np.repeat(side.lengths, np.diff(counts.indptr))
    return csr_array(counts)


class Regression(NamedTuple):
    """The logistic regression that does best on held-out documents."""

    weights: Float64[np.ndarray, "type answer"]
    """What a word says of each class; two classes have (0, w)."""
    penalty: float
    """Its C."""
    accuracies: tuple[float, ...]
    """Held-out accuracy of each C, in the order asked for."""

    def probe(
        self, words: Int[np.ndarray, " pair"], answers: Int[np.ndarray, " pair"]
    ) -> Float64[np.ndarray, " pair"]:
        """The log-odds of the answer by what a word says, without bias, for each pair.

        With two classes this is (2y - 1) · weight.
        """
        every = torch.from_numpy(self.weights)
        sides = [log_odds(every, torch.full((len(every),), k)) for k in range(every.shape[1])]
        return np.asarray(torch.stack(sides, 1).numpy()[words, answers])


def logistic_sweep(
    documents: CorpusSide,
    labels: Int[np.ndarray, " document"],
    held_out: CorpusSide,
    held_out_labels: Int[np.ndarray, " document"],
    penalties: Sequence[float] = PENALTIES,
    iterations: int = 1_000,
) -> Regression:
    """L2 logistic regressions on shares of words, each started from the one before it.

    The first of those with the best held-out accuracy is kept.
    """
    import warnings

    from sklearn.exceptions import ConvergenceWarning
    from sklearn.linear_model import LogisticRegression

    features, tested = shares(documents).tocsr(), shares(held_out).tocsr()
    model = LogisticRegression(solver="lbfgs", max_iter=iterations, warm_start=True)
    kept: tuple[float, np.ndarray, np.ndarray] | None = None
    accuracies: list[float] = []
    for penalty in penalties:
        model.set_params(C=penalty)
        with warnings.catch_warnings():
            # The published sweep stops at 1,000 iterations too, converged or not.
            warnings.simplefilter("ignore", ConvergenceWarning)
            model.fit(features, labels)
        accuracies.append(float((model.predict(tested) == held_out_labels).mean()))
        if accuracies[-1] > max(accuracies[:-1], default=-1.0):
            kept = penalty, model.coef_.copy(), model.classes_.copy()
    assert kept is not None
    penalty, coefficients, classes = kept
    weights = np.zeros((documents.types, int(max(labels.max(), held_out_labels.max())) + 1))
    if len(coefficients) == 1:  # sklearn keeps one vector, that of the second class
        weights[:, classes[1]] = coefficients[0]
    else:
        weights[:, classes] = coefficients.T
    return Regression(weights, penalty, tuple(accuracies))


class StartingRates(NamedTuple):
    """How the proxy's answers start to move under gradient flow on the summed loss (eq. 15)."""

    logits: Float64[np.ndarray, "type answer"]
    """∂(W eᵢ)ₒ at the start."""
    probabilities: Float64[np.ndarray, "type answer"]
    """∂ softmax(W eᵢ)ₒ at the start."""
    limit: Float64[np.ndarray, "type answer"]
    """2 (C - mean over answers of C): where the logits' rate goes as the width grows."""


def initial_rates(
    sources: CorpusSide, answers: CorpusSide, dim: int, seed: int = 0
) -> StartingRates:
    """The rates of a proxy of that width with e, W ~ N(0, I / dim) and no bias.

    With G = Y - (words of the target) p the negative gradients are Gᵀ X E for W and Xᵀ G W for E,
    so d(W Eᵀ) = Gᵀ X (E Eᵀ) + (W Wᵀ) Gᵀ X, in which both Gram matrices go to the identity and p to
    uniform with an error of order dim^-1/2. For the probability eq. 15 leaves out 1 / |O|.
    """
    generator = numpy_generator(seed, "initial rates", dim)
    vectors = generator.standard_normal((sources.types, dim)) / np.sqrt(dim)
    weight = generator.standard_normal((answers.types, dim)) / np.sqrt(dim)
    bags, wanted = shares(sources), answers.counts()
    logits = weight @ vectors.T  # [answer type]
    p = _softmax((bags @ logits.T), axis=1)
    residual = wanted.toarray() - answers.lengths[:, None] * p
    pull = np.asarray(bags.T @ residual).T  # [answer type]
    rates = (pull @ (vectors @ vectors.T) + (weight @ weight.T) @ pull).T
    here = _softmax(logits.T, axis=1)
    moved = here * (rates - (here * rates).sum(1, keepdims=True))
    counts = np.asarray((bags.T @ wanted).toarray())
    return StartingRates(rates, moved, 2 * (counts - counts.mean(1, keepdims=True)))


def _softmax(logits: np.ndarray, axis: int) -> np.ndarray:
    powers = np.exp(logits - logits.max(axis, keepdims=True))
    return np.asarray(powers / powers.sum(axis, keepdims=True))
