"""What single words are worth to a trained model: their polarity and their attention score.

An attention *weight* belongs to a word in its text; these two numbers belong to the word. Global
scores are those of the word read alone; local ones are averages over its occurrences, which differ
only where the encoder looks at the context.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import torch
from jaxtyping import Bool, Float, Float64, Int
from torch import Tensor

from heedful.corpora.batches import Batch, batches
from heedful.corpora.encoded import Encoded
from heedful.errors import InputError, UnsupportedModel
from heedful.models.classifier import AttentionClassifier
from heedful.models.verbs import evaluating, positions
from heedful.runs.meter import passed

CONTEXT_FREE = ("none", "affine", "affine-tanh")
"""Encoders that see one word at a time."""
CHUNK = 4_096
"""Words read at once."""


@dataclass(frozen=True, eq=False)
class WordScores:
    """The scores of every word of the vocabulary, by id."""

    logits: Float64[Tensor, "word class"]
    """What the word alone says of each class, without the head's bias."""
    scores: Float64[Tensor, " word"]
    """Its attention before the softmax, a = q·h/λ."""

    @property
    def polarity(self) -> Float64[Tensor, " word"]:
        """s = h·W, positive for the second class; two classes only."""
        return polarity_of(self.logits)


def polarity_of(logits: Float[Tensor, "*shape class"]) -> Float[Tensor, "*shape"]:
    """The logit of the second class minus that of the first."""
    if logits.shape[-1] != 2:
        raise InputError(f"polarity is one number for two classes only, got {logits.shape[-1]}.")
    return logits[..., 1] - logits[..., 0]


def is_context_free(model: AttentionClassifier) -> bool:
    """Whether a word's value and score are the same in every text."""
    config = model.config
    return (
        config.encoder in CONTEXT_FREE
        and not config.hierarchical
        and not config.instance_query
        and not config.marks
    )


def word_scores(model: AttentionClassifier) -> WordScores:
    """Global scores: every word read as a text of its own."""
    if model.config.hierarchical:
        raise InputError("word scores are those of a flat model; a hierarchical one attends twice.")
    device = model.head.weight.device
    logits, scores = [], []
    with evaluating(model):
        for start in range(0, len(model.vocabulary), CHUNK):
            stop = min(start + CHUNK, len(model.vocabulary))
            ids = torch.arange(start, stop, device=device)
            passed(len(ids))
            attended = model(words_alone(ids)).attended
            said = attended.values[:, 0].double() @ model.head.weight.double().T
            logits.append(model.with_zero(said))
            scores.append(attended.scores[:, 0].double())
    return WordScores(torch.cat(logits), torch.cat(scores))


def words_alone(ids: Int[Tensor, " word"]) -> Batch:
    """Each word as a document of one token."""
    column = ids[:, None]
    return Batch(
        ids=column,
        mask=torch.ones_like(column, dtype=torch.bool),
        labels=torch.full_like(ids, -1),
        sentence=torch.zeros_like(column),
        names=("",) * len(ids),
    )


class Occurrences(NamedTuple):
    """Averages over all places where each word stands; nan for words that never occur."""

    times: Float64[Tensor, " word"]
    """How often the word occurs."""
    logits: Float64[Tensor, "word class"]
    scores: Float64[Tensor, " word"]
    weight: Float64[Tensor, " word"]
    """The mean attention weight."""


def occurrence_scores(model: AttentionClassifier, encoded: Encoded) -> Occurrences:
    """Local scores: means over the word's occurrences in a split, in their texts."""
    if model.words is not None:
        raise InputError("word scores are those of a flat model; a hierarchical one attends twice.")
    words, classes = len(model.vocabulary), len(model.classes)
    device = model.head.weight.device
    sums = torch.zeros(words, classes + 3, dtype=torch.float64, device=device)
    with evaluating(model):
        for batch in batches(encoded, 256, max_tokens=65_536):
            here = batch.to(device)
            passed(positions(model, here))
            attended = model(here).attended
            scores = attended.scores.double()
            said = attended.values[here.mask].double() @ model.head.weight.double().T
            column = scores[here.mask][:, None]
            weight = scores.softmax(-1)[here.mask][:, None]
            seen = [torch.ones_like(column), model.with_zero(said), column, weight]
            sums.index_add_(0, here.ids[here.mask], torch.cat(seen, 1))
    count = sums[:, 0]
    means = sums[:, 1:] / count[:, None]
    return Occurrences(count, means[:, :classes], means[:, classes], means[:, classes + 1])


@dataclass(frozen=True, eq=False)
class FlatReading:
    """A whole split read by a context-free model: one row per token, no padding."""

    word: Int[Tensor, " token"]
    document: Int[Tensor, " token"]
    attention: Float64[Tensor, " token"]
    logits: Float64[Tensor, "document class"]
    """Decisions, the head's bias included."""
    labels: Int[Tensor, " document"]

    @property
    def lengths(self) -> Int[Tensor, " document"]:
        """Tokens of each document."""
        return torch.bincount(self.document, minlength=len(self.labels))

    @property
    def is_right(self) -> Bool[Tensor, " document"]:
        """Whether the decision is the label."""
        return self.logits.argmax(-1) == self.labels


def read_flat(
    model: AttentionClassifier, encoded: Encoded, scores: WordScores | None = None
) -> FlatReading:
    """The split read from the two tables of word scores: a softmax per document and two sums."""
    if not is_context_free(model):
        raise UnsupportedModel(
            f"{model.config.encoder} reads words in context; only {', '.join(CONTEXT_FREE)} can be "
            "read from a table of words."
        )
    table = word_scores(model) if scores is None else scores
    device = table.scores.device
    word = torch.from_numpy(encoded.ids).to(device).long()
    lengths = torch.from_numpy(encoded.lengths).to(device)
    count = len(encoded)
    document = torch.repeat_interleave(torch.arange(count, device=device), lengths)
    raw = table.scores[word]
    top = torch.full((count,), -torch.inf, dtype=raw.dtype, device=device)
    top = top.scatter_reduce(0, document, raw, "amax")
    unnormalised = (raw - top[document]).exp()
    mass = torch.zeros_like(top).index_add(0, document, unnormalised)
    attention = unnormalised / mass[document]
    logits = torch.zeros(count, table.logits.shape[1], dtype=raw.dtype, device=device)
    logits = logits.index_add(0, document, attention[:, None] * table.logits[word])
    if model.head.bias is not None:
        logits = logits + model.with_zero(model.head.bias.detach().double())
    labels = torch.from_numpy(encoded.labels).to(device)
    return FlatReading(word, document, attention, logits, labels)
