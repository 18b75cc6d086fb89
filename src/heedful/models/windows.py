"""A Transformer that follows a narrative: words within windows of time, windows by an LSTM.

All windows of all narratives go through the encoder side by side; only the decoder walks in time.
The published model reads every window by itself; with `reads="narrative"` words attend to the whole
narrative and are pooled by window afterwards.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from heedful.corpora.narrative_batches import NarrativeBatch
from heedful.corpora.vocabulary import Vocabulary
from heedful.models.tracing import LayerStack
from heedful.models.transformer import EncodedTexts, Encoder, Pooled, WordVectors, decider
from heedful.models.transformer_config import TransformerConfig


class NarrativePass(NamedTuple):
    """One forward pass over narratives."""

    ratings: Float[Tensor, "batch window"]
    """The guess for every window; 0 beyond a narrative's end."""
    encoded: EncodedTexts
    pooled: Pooled
    """One row per window that exists, in the order of narratives."""


class WindowLayout(NamedTuple):
    """The words of a batch as the encoder reads them, and where each window's words stand."""

    ids: Int[Tensor, "sequence token"]
    mask: Bool[Tensor, "sequence token"]
    sequence: Int[Tensor, " window"]
    """Which sequence holds a window."""
    place: Int[Tensor, "window word"]
    """Where in its sequence each word of a window stands."""
    words: Bool[Tensor, "window word"]
    """Which words of a window exist."""


class NarrativeTransformer(nn.Module):
    """Encoder and pooling over the words of a window, an LSTM over windows, a rating for each."""

    classes: tuple[str, ...] = ()

    def __init__(self, config: TransformerConfig, vocabulary: Vocabulary) -> None:
        super().__init__()
        self.config, self.vocabulary = config, vocabulary
        dim = config.embedding_dim
        self.vectors = WordVectors(vocabulary, dim)
        self.encoder = Encoder(config)
        self.decoder = nn.LSTM(dim, dim, batch_first=True)
        self.head = decider(config, 1)

    def set_vectors(self, vectors: Float[np.ndarray, "word dim"]) -> None:
        """Takes pretrained word vectors; words without one get the zero vector."""
        self.vectors.set(vectors)

    def forward(self, batch: NarrativeBatch) -> NarrativePass:
        """The ratings, with dropout when training."""
        layout = self.layout(batch)
        return self.from_inputs(self.vectors(layout.ids), batch, layout)

    def from_inputs(
        self,
        inputs: Float[Tensor, "sequence token dim"],
        batch: NarrativeBatch,
        layout: WindowLayout,
    ) -> NarrativePass:
        """The same from word vectors, so that gradients on inputs can be taken."""
        encoded: EncodedTexts = self.encoder(inputs, layout.mask)
        states = encoded.states[layout.sequence[:, None], layout.place]
        pooled = self.encoder.pool(states, layout.words)
        contexts = inputs.new_zeros(*batch.windows.shape, inputs.shape[-1])
        contexts = contexts.index_put((batch.windows,), pooled.context)
        lengths = batch.windows.sum(-1).cpu()
        packed = pack_padded_sequence(contexts, lengths, batch_first=True, enforce_sorted=False)
        followed, _ = pad_packed_sequence(
            self.decoder(packed)[0], batch_first=True, total_length=contexts.shape[1]
        )
        ratings = self.head(followed)[..., 0] * batch.windows
        return NarrativePass(ratings, encoded, pooled)

    def layout(self, batch: NarrativeBatch) -> WindowLayout:
        """The words as sequences: one per window, or one per narrative."""
        words = batch.mask[batch.windows]
        count, longest = words.shape
        device = words.device
        if self.config.reads == "windows":
            place = torch.arange(longest, device=device).expand(count, -1)
            sequence = torch.arange(count, device=device)
            return WindowLayout(batch.ids[batch.windows], words, sequence, place, words)
        flat = batch.mask.flatten(1)
        position = (flat.long().cumsum(1) - 1).clamp_min(0)
        lengths = flat.sum(1)
        mask = torch.arange(int(lengths.max()), device=device) < lengths[:, None]
        ids = torch.zeros_like(mask, dtype=torch.long)
        ids[mask] = batch.ids.flatten(1)[flat]
        sequence = torch.arange(len(flat), device=device)[:, None].expand(batch.windows.shape)
        place = position.view(batch.mask.shape)[batch.windows]
        return WindowLayout(ids, mask, sequence[batch.windows], place, words)

    def loss(self, batch: NarrativeBatch) -> Float[Tensor, ""]:
        """Squared error over the windows that exist, divided by their number."""
        wrong: Tensor = (self(batch).ratings - batch.ratings) * batch.windows
        return wrong.square().sum() / batch.windows.sum()

    def layers_of(self, batch: NarrativeBatch) -> LayerStack:
        """The layers over each window and its pooling weights.

        Where whole narratives are read there is one row per narrative, and the trace starts from
        the pooling weights of all its windows alike.
        """
        layout = self.layout(batch)
        _, encoded, pooled = self.from_inputs(self.vectors(layout.ids), batch, layout)
        weights = pooled.scores.softmax(-1)
        if self.config.reads == "windows":
            return LayerStack(encoded.layers, weights, layout.mask)
        share = weights / batch.windows.sum(-1)[layout.sequence][:, None]
        start = torch.zeros(layout.mask.shape, dtype=weights.dtype, device=weights.device)
        row = layout.sequence[:, None].expand(layout.place.shape)
        start.index_put_((row, layout.place), share, accumulate=True)
        return LayerStack(encoded.layers, start, layout.mask)
