"""Classifiers of one shape side by side on texts of any length, without padding: flat or with
sentences, without encoder, with convolutions or a GRU, and additive attention.

The units of a batch lie one after the other, each model's own in a row of its own, so that a step
costs what its words cost however their lengths differ. `AttentionClassifier` is the oracle.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor
from torch.nn import functional

from heedful.corpora.encoded import Encoded
from heedful.errors import InputError
from heedful.models.classifier_stack import ClassifierStack, looked_up, refuse_unlike
from heedful.models.ragged_gru import RaggedLayout, layout_of, ragged_gru

ENCODERS = ("none", "conv", "gru", "bigru")


@dataclass(frozen=True, eq=False)
class ResidentSentences:
    """The documents of a split on a device, and where their sentences begin and end."""

    ids: Int[Tensor, " token"]
    starts: Int[Tensor, " document"]
    lengths: Int[Tensor, " document"]
    labels: Int[Tensor, " document"]
    first: Int[Tensor, " document"]
    """The number of each document's first sentence among those of the split."""
    sentences: Int[Tensor, " document"]
    """How many it has."""
    sentence_starts: Int[Tensor, " sentence"]
    sentence_lengths: Int[Tensor, " sentence"]
    counts: Int[np.ndarray, "document 3"]
    """On the host: words, sentences and the words of the longest sentence of each document."""

    @classmethod
    def of(cls, encoded: Encoded, device: torch.device | str) -> ResidentSentences:
        """The documents of a split."""
        is_first = np.ones(len(encoded.ids), dtype=bool)
        is_first[1:] = encoded.sentence[1:] != encoded.sentence[:-1]
        is_first[encoded.starts[:-1]] = True
        starts = np.flatnonzero(is_first)
        lengths = np.diff(np.append(starts, len(encoded.ids)))
        sentences = np.add.reduceat(is_first.astype(np.int64), encoded.starts[:-1])
        first = np.cumsum(sentences) - sentences
        counts = np.stack([encoded.lengths, sentences, np.maximum.reduceat(lengths, first)], 1)

        def there(values: Int[np.ndarray, " any"]) -> Tensor:
            return torch.from_numpy(np.asarray(values, dtype=np.int64)).to(device)

        return cls(
            ids=there(encoded.ids),
            starts=there(encoded.starts[:-1]),
            lengths=there(encoded.lengths),
            labels=there(encoded.labels),
            first=there(first),
            sentences=there(sentences),
            sentence_starts=there(starts),
            sentence_lengths=there(lengths),
            counts=counts,
        )

    def batch(self, rows: Int[Tensor, "model batch"], sizes: Sizes, is_deep: bool) -> RaggedBatch:
        """Some documents of each model, by their rows; sizes are those of `sizes`."""
        documents = layout_of(
            self.sentences[rows] if is_deep else self.lengths[rows],
            sizes.sentences if is_deep else sizes.tokens,
            sizes.most_sentences if is_deep else sizes.longest,
        )
        inside = documents.sequence.clamp_max(rows.shape[1] - 1)
        own = rows.gather(1, inside)
        if not is_deep:
            words, at = None, self.starts[own] + documents.place
            is_word = documents.is_unit
        else:
            number = self.first[own] + documents.place
            of_sentence = torch.where(documents.is_unit, self.sentence_lengths[number], 0)
            words = layout_of(of_sentence, sizes.tokens, sizes.longest_sentence)
            sentence = number.gather(1, words.sequence.clamp_max(number.shape[1] - 1))
            at, is_word = self.sentence_starts[sentence] + words.place, words.is_unit
        ids = self.ids[at.clamp_max(len(self.ids) - 1)].masked_fill(~is_word, 0)
        return RaggedBatch(ids, words, documents, self.labels[rows])

    def sizes(
        self, rows: Int[np.ndarray, "model document"], cuts: Int[np.ndarray, " batch"]
    ) -> list[Sizes]:
        """Of each batch of these documents, which begin at the cuts: the most of any model."""
        words, sentences, longest = (self.counts[:, k][rows] for k in range(3))
        found = (
            np.add.reduceat(words, cuts, 1).max(0),
            np.add.reduceat(sentences, cuts, 1).max(0),
            np.maximum.reduceat(words, cuts, 1).max(0),
            np.maximum.reduceat(sentences, cuts, 1).max(0),
            np.maximum.reduceat(longest, cuts, 1).max(0),
        )
        return [Sizes(*one) for one in np.stack(found, 1).tolist()]


class Sizes(NamedTuple):
    """How large a batch is, known to the host, so that the device need not be asked."""

    tokens: int
    sentences: int
    longest: int
    """Words of the longest document."""
    most_sentences: int
    longest_sentence: int


class RaggedBatch(NamedTuple):
    """Documents of each model's own, their words one after the other."""

    ids: Int[Tensor, "model token"]
    words: RaggedLayout | None
    """How words fall into sentences; none in a flat model."""
    documents: RaggedLayout
    """How sentences, or words, fall into documents."""
    labels: Int[Tensor, "model batch"]


class RaggedPass(NamedTuple):
    """One forward pass of every model."""

    logits: Float[Tensor, "model batch class"]
    attention: Float[Tensor, "model unit"]
    """Of the audited level."""


class RaggedStack(ClassifierStack):
    """The parameters of all models, and their forward pass over ragged batches."""

    def run(self, batch: RaggedBatch, generator: torch.Generator | None = None) -> RaggedPass:
        """All models on their documents; with dropout where it has something to draw from."""
        config = self.config
        inputs = looked_up(self.weights["embedding.weight"], batch.ids[:, None])[:, 0]
        if batch.words is not None:
            below = config.dropout if config.word_dropout is None else config.word_dropout
            inputs = self._level("words", inputs, batch.words, below, generator)[0]
        context, attention = self._level(
            "level", inputs, batch.documents, config.dropout, generator
        )
        if config.head_dropout_on == "input":
            context = _dropped(context, config.head_dropout, generator)
        logits = self.head(context)
        if config.head_dropout_on == "logits":
            logits = _dropped(logits, config.head_dropout, generator)
        return RaggedPass(logits, attention)

    def _level(
        self,
        name: str,
        inputs: Float[Tensor, "model unit dim"],
        layout: RaggedLayout,
        dropout: float,
        generator: torch.Generator | None,
    ) -> tuple[Float[Tensor, "model sequence dim"], Float[Tensor, "model unit"]]:
        """The attended context of every sequence, and the attention."""
        inputs = _dropped(inputs, dropout, generator)
        match self.config.encoder:
            case "none":
                states = inputs
            case "conv":
                states = self._windows(f"{name}.encoder", inputs, layout, generator)
            case _:
                states = self._cells(f"{name}.encoder.cells", inputs, layout)
        asked = self._linear(f"{name}.attention.hidden", states).tanh()
        scores = self._linear(f"{name}.attention.query", asked)[..., 0]
        attention = softmax_within(scores / self.scale[:, None], layout)
        return sums_within(attention[..., None] * states, layout), attention

    def _windows(
        self, name: str, inputs: Tensor, layout: RaggedLayout, generator: torch.Generator | None
    ) -> Float[Tensor, "model unit dim"]:
        """Convolutions: one product gives what each unit says to each place around it."""
        inputs = _dropped(inputs, self.config.window_dropout, generator)
        parts = []
        for kind in ("narrow", "wide"):
            weight = self.weights[f"{name}.{kind}.weight"]
            models, filters, _, width = weight.shape
            # Columns by place in the window: what a unit gives to the one that reads it there.
            said = inputs @ weight.permute(0, 2, 3, 1).flatten(2)
            around = functional.pad(said, (0, 0, width // 2, width // 2))
            row = width * filters
            # The unit n + k - width/2 under place k: a diagonal view, so nothing is copied.
            window = around.as_strided(
                (models, inputs.shape[1], width, filters),
                (around.stride(0), row, row + filters, 1),
            )
            shift = torch.arange(width, device=inputs.device) - width // 2
            is_there = (layout.place[..., None] + shift >= 0) & (shift <= layout.left[..., None])
            found = (window * is_there[..., None]).sum(2)
            parts.append(found + self.weights[f"{name}.{kind}.bias"][:, None])
        return torch.cat(parts, -1).relu() * layout.is_unit[..., None]

    def _cells(
        self, name: str, inputs: Tensor, layout: RaggedLayout
    ) -> Float[Tensor, "model unit dim"]:
        """(Bi)GRUs: both directions of all models are walks side by side."""
        ends = ("", "_reverse") if self.config.encoder == "bigru" else ("",)
        inward, hidden, of_input, of_state = (
            torch.cat([self.weights[f"{name}.{kind}_l0{end}"] for end in ends])
            for kind in ("weight_ih", "weight_hh", "bias_ih", "bias_hh")
        )
        reads = inputs.repeat(len(ends), 1, 1)
        gates = torch.baddbmm(of_input[:, None], reads, inward.transpose(1, 2))
        states = ragged_gru(gates, hidden.transpose(1, 2), of_state, layout)
        return torch.cat(states.chunk(len(ends)), -1)

    def _check(self) -> None:
        config = self.config
        fits = config.encoder in ENCODERS and config.attention == "additive"
        fits = fits and config.layers == 1 and config.join == "none" and not config.marks
        if not fits or config.embedding_norm is not None or config.one_logit:
            raise InputError(
                f"{config.encoder}+{config.attention} cannot be stacked without padding; such "
                f"models have additive attention and one of {', '.join(ENCODERS)}, in one layer "
                "without marks, join or a bound on word vectors."
            )
        refuse_unlike(self.models, ("scale", "start"))


def softmax_within(
    scores: Float[Tensor, "model unit"], layout: RaggedLayout
) -> Float[Tensor, "model unit"]:
    """The softmax over the units of each sequence; 0 at padding."""
    sequences = layout.lengths.shape[1]
    steps = torch.arange(layout.longest, device=scores.device)
    at = layout.starts[..., None] + steps
    is_unit = steps < layout.lengths[..., None]
    rows = scores.gather(1, at.flatten(1).clamp_max(scores.shape[1] - 1)).view(at.shape)
    # A sequence of no units would be nan: its first place stands in and nobody reads it.
    is_read = is_unit | (steps == 0)
    found = rows.masked_fill(~is_read, -torch.inf).softmax(-1)
    row = layout.sequence.clamp_max(sequences - 1) * layout.longest + layout.place
    return found.flatten(1).gather(1, row) * layout.is_unit


def sums_within(
    values: Float[Tensor, "model unit dim"], layout: RaggedLayout
) -> Float[Tensor, "model sequence dim"]:
    """The sum over the units of each sequence; values are 0 at padding."""
    models, sequences = layout.lengths.shape
    inside = layout.sequence.clamp_max(sequences - 1)
    row = inside + sequences * torch.arange(models, device=values.device)[:, None]
    total = values.new_zeros(models * sequences, values.shape[-1])
    return total.index_add(0, row.flatten(), values.flatten(0, 1)).view(models, sequences, -1)


def _dropped(values: Tensor, share: float, generator: torch.Generator | None) -> Tensor:
    """The values with dropout; untouched without a generator."""
    if not share or generator is None:
        return values
    kept = torch.empty_like(values).bernoulli_(1 - share, generator=generator)
    return values * kept.div_(1 - share)
