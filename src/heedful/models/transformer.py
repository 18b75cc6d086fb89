"""A Transformer encoder with a pooling attention and a small decider (Wu, Nguyen & Ong 2020).

Word vectors are inputs, not parameters. As published there are no positions, and a layer norms what
asks (the queries) but not what is asked, nor the residual stream (docs/studies/tracing.md,
"Encoder").
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn
from torch.nn import functional

from heedful.corpora.batches import Batch, collate
from heedful.corpora.encoded import MAX_TOKENS, encode_documents
from heedful.corpora.texts import unlabelled
from heedful.corpora.vocabulary import PAD, SPECIALS, Vocabulary
from heedful.errors import InputError
from heedful.models import edits
from heedful.models.edits import Edit
from heedful.models.reading import Reading
from heedful.models.tracing import Fused, LayerStack
from heedful.models.transformer_config import TransformerConfig
from heedful.models.verbs import weigh

EPSILON = 1e-6
"""Of every layer norm."""
VECTOR_LENGTH = 0.4
"""Spread of random word vectors, where none are given: about that of GloVe's entries."""


class EncoderLayer(nn.Module):
    """Self-attention and a feed-forward part, each added to the residual stream."""

    def __init__(self, config: TransformerConfig) -> None:
        super().__init__()
        dim, inner = config.embedding_dim, config.heads * config.head_dim
        self.config = config
        self.norm = nn.LayerNorm(dim, EPSILON)
        self.query = nn.Linear(dim, inner, bias=False)
        self.key = nn.Linear(dim, inner, bias=False)
        self.value = nn.Linear(dim, inner, bias=False)
        self.out = nn.Linear(inner, dim, bias=False)
        self.feed_forward = nn.Sequential(
            nn.LayerNorm(dim, EPSILON),
            nn.Linear(dim, config.feed_forward),
            nn.ReLU(),
            nn.Linear(config.feed_forward, dim),
        )
        self.dropout = nn.Dropout(config.dropout)

    def attention(
        self, inputs: Float[Tensor, "batch token dim"], mask: Bool[Tensor, "batch token"] | None
    ) -> Fused:
        """What asks and what is asked; keys outside the mask are never attended."""
        normed = self.norm(inputs)
        asked = normed if self.config.norm == "full" else inputs
        query, key = self._by_head(self.query(normed)), self._by_head(self.key(asked))
        return Fused(query, key, None if mask is None else mask[:, None, None])

    def forward(
        self, inputs: Float[Tensor, "batch token dim"], attention: Fused
    ) -> Float[Tensor, "batch token dim"]:
        """The residual stream after the layer."""
        asked = self.norm(inputs) if self.config.norm == "full" else inputs
        value = self._by_head(self.value(asked))
        mixed = functional.scaled_dot_product_attention(
            attention.query,
            attention.key,
            value,
            attn_mask=attention.mask,
            dropout_p=self.config.dropout if self.training else 0.0,
        )
        stream = inputs + self.dropout(self.out(mixed.transpose(1, 2).flatten(2)))
        after: Tensor = stream + self.dropout(self.feed_forward(stream))
        return after

    def _by_head(
        self, x: Float[Tensor, "batch token inner"]
    ) -> Float[Tensor, "batch head token dim"]:
        return x.view(*x.shape[:2], self.config.heads, self.config.head_dim).transpose(1, 2)


class EncodedTexts(NamedTuple):
    """What the layers made of a batch."""

    states: Float[Tensor, "batch token dim"]
    """After the last layer norm: what is pooled."""
    layers: tuple[Fused, ...]
    """The attention of each layer, the lowest first."""


class Pooled(NamedTuple):
    """What the pooling attention made of the states."""

    scores: Float[Tensor, "batch token"]
    """-inf at padding."""
    context: Float[Tensor, "batch dim"]


class Encoder(nn.Module):
    """Dropout on the inputs, the layers, and the pooling attention over the last states."""

    def __init__(self, config: TransformerConfig) -> None:
        super().__init__()
        self.config = config
        dim, (wide, narrow) = config.embedding_dim, config.pooling_dims
        self.dropout = nn.Dropout(config.dropout)
        self.layers = nn.ModuleList(EncoderLayer(config) for _ in range(config.layers))
        self.norm = nn.LayerNorm(dim, EPSILON)
        self.pooling = nn.Sequential(
            nn.Linear(dim, wide),
            nn.ReLU(),
            nn.Dropout(config.top_dropout),
            nn.Linear(wide, narrow),
            nn.ReLU(),
            nn.Dropout(config.top_dropout),
            nn.Linear(narrow, 1),
        )

    def forward(
        self, inputs: Float[Tensor, "batch token dim"], mask: Bool[Tensor, "batch token"]
    ) -> EncodedTexts:
        """The last states, and what every layer attended to."""
        if self.config.positions == "sinusoidal":
            inputs = inputs + sinusoids(*inputs.shape[1:]).to(inputs)
        stream, attentions = self.dropout(inputs), []
        # The fastest kernels take no mask; one text alone needs none. (A batch is not looked at:
        # that would make a GPU wait.)
        padded = None if len(mask) == 1 and bool(mask.all()) else mask
        for layer in self.layers:
            attentions.append(layer.attention(stream, padded))  # type: ignore[operator]
            stream = layer(stream, attentions[-1])
        return EncodedTexts(self.norm(stream), tuple(attentions))

    def pool(
        self, states: Float[Tensor, "batch token dim"], mask: Bool[Tensor, "batch token"]
    ) -> Pooled:
        """The average of the states that the pooling attention weighs."""
        scores = self.pooling(states)[..., 0].masked_fill(~mask, -torch.inf)
        return Pooled(scores, (scores.softmax(-1)[..., None] * states).sum(1))


def sinusoids(tokens: int, dim: int) -> Float[Tensor, "token dim"]:
    """Sines in even and cosines in odd dimensions, of wavelengths from 2π to 10,000 · 2π."""
    rate = torch.exp(torch.arange(0, dim, 2) * (-math.log(10_000.0) / dim))
    angle = torch.arange(tokens)[:, None] * rate
    return torch.stack([angle.sin(), angle.cos()], -1).flatten(1)[:, :dim]


def decider(config: TransformerConfig, outputs: int) -> nn.Sequential:
    """The small network that decides from a pooled context."""
    return nn.Sequential(
        nn.Linear(config.embedding_dim, config.decider_dim),
        nn.ReLU(),
        nn.Dropout(config.top_dropout),
        nn.Linear(config.decider_dim, outputs),
    )


class WordVectors(nn.Module):
    """Frozen vectors of a vocabulary as one table beside the parameters; padding is zero."""

    table: Float[Tensor, "word dim"]

    def __init__(self, vocabulary: Vocabulary, dim: int) -> None:
        super().__init__()
        table = VECTOR_LENGTH * torch.randn(len(vocabulary), dim)
        table[: len(SPECIALS)] = 0
        self.register_buffer("table", table)

    def set(self, vectors: Float[np.ndarray, "word dim"]) -> None:
        """Takes given vectors; words without one (rows of nan) get the zero vector."""
        if vectors.shape != tuple(self.table.shape):
            raise InputError(
                f"The vectors are {vectors.shape[1]}-dimensional for {vectors.shape[0]} words, the "
                f"model expects {self.table.shape[1]} for {self.table.shape[0]}; "
                "set embedding_dim to the vectors' dimension."
            )
        self.table.copy_(torch.from_numpy(np.nan_to_num(vectors, nan=0.0)))
        self.table[PAD] = 0

    def forward(self, ids: Tensor) -> Float[Tensor, "... dim"]:
        """The vectors of word ids."""
        return functional.embedding(ids, self.table)


class Passed(NamedTuple):
    """One forward pass as training sees it."""

    logits: Float[Tensor, "batch class"]
    encoded: EncodedTexts
    pooled: Pooled


class TransformerClassifier(nn.Module):
    """The encoder and a classifier on its pooled context; audited at the pooling attention."""

    def __init__(
        self,
        config: TransformerConfig,
        vocabulary: Vocabulary,
        classes: tuple[str, ...],
        tokeniser: str = "words",
        max_tokens: int = MAX_TOKENS,
    ) -> None:
        super().__init__()
        if len(classes) < 2:
            raise InputError(f"A classifier needs at least two classes, got {list(classes)}.")
        self.config, self.vocabulary, self.classes = config, vocabulary, classes
        self.tokeniser, self.max_tokens = tokeniser, max_tokens
        self.recipe = "transformer"
        self.vectors = WordVectors(vocabulary, config.embedding_dim)
        self.encoder = Encoder(config)
        self.head = decider(config, len(classes))

    def set_vectors(self, vectors: Float[np.ndarray, "word dim"]) -> None:
        """Takes pretrained word vectors; words without one get the zero vector."""
        self.vectors.set(vectors)

    def batch(self, texts: Sequence[str]) -> Batch:
        """The texts, cut into words and padded, ready to be read."""
        documents = unlabelled(texts, self.tokeniser)
        encoded, _ = encode_documents(documents, self.vocabulary, self.max_tokens)
        return collate(encoded, range(len(documents))).to(self.vectors.table.device)

    def embed(self, batch: Batch) -> Float[Tensor, "batch token dim"]:
        """Word vectors of the batch."""
        vectors: Tensor = self.vectors(batch.ids)
        return vectors

    def forward(self, batch: Batch) -> Passed:
        """Logits and what was pooled, with dropout when training."""
        return self.from_inputs(self.embed(batch), batch)

    def from_inputs(self, inputs: Float[Tensor, "batch token dim"], batch: Batch) -> Passed:
        """The same from word vectors, so that gradients on inputs can be taken."""
        encoded: EncodedTexts = self.encoder(inputs, batch.mask)
        pooled = self.encoder.pool(encoded.states, batch.mask)
        return Passed(self.head(pooled.context), encoded, pooled)

    def loss(self, batch: Batch) -> Float[Tensor, ""]:
        """What training lowers, as the configuration says."""
        logits = self(batch).logits
        if self.config.loss == "cross-entropy":
            return functional.cross_entropy(logits, batch.labels)
        wanted = functional.one_hot(batch.labels, len(self.classes)).to(logits)
        return functional.binary_cross_entropy_with_logits(logits, wanted, reduction="sum")

    def outputs(self, logits: Float[Tensor, "batch class"]) -> Float[Tensor, "batch class"]:
        """What the model gives out: a sigmoid per class, or the logits under cross-entropy.

        Under cross-entropy the outputs would sum to one whatever is read, so that their sum has no
        gradient (the tracing study takes that of the sum); hence the logits.
        """
        return logits.sigmoid() if self.config.loss == "bce-sum" else logits

    def layers_of(self, batch: Batch) -> LayerStack:
        """The layers' queries and keys, and the pooling weights."""
        _, encoded, pooled = self(batch)
        return LayerStack(encoded.layers, pooled.scores.softmax(-1), batch.mask)

    def read(self, batch: Batch) -> Reading:
        """Reads a batch and keeps what the pooling attention saw and did."""
        inputs = self.embed(batch)
        _, encoded, pooled = self.from_inputs(inputs, batch)
        scores = pooled.scores.double()
        attention = scores.softmax(-1)
        position = torch.arange(batch.mask.shape[1], device=batch.mask.device)
        return Reading(
            batch=batch,
            texts=tuple(batch.words(self.vocabulary)),
            mask=batch.mask,
            values=encoded.states,
            scores=scores,
            attention=attention,
            logits=self._decided(weigh(attention[:, None], encoded.states.double()))[:, 0],
            inputs=inputs,
            unit_of_token=position.expand(batch.mask.shape),
        )

    def answer(self, reading: Reading, edit: Edit) -> Float[Tensor, "batch edit class"]:
        """Logits from the edited average of the states."""
        attention = edits.rows(reading, edit).attention
        return self._decided(weigh(attention, reading.values.double()))

    def _decided(
        self, context: Float[Tensor, "batch edit dim"]
    ) -> Float[Tensor, "batch edit class"]:
        """The classifier in float64, so that erasing a unit and rounding are never confused."""
        first, last = self.head[0], self.head[-1]
        assert isinstance(first, nn.Linear)
        assert isinstance(last, nn.Linear)
        hidden = functional.linear(context, first.weight.double(), first.bias.double()).relu()
        return functional.linear(hidden, last.weight.double(), last.bias.double())
