"""The attention classifier: one level of attention over words, or words within sentences."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from heedful.corpora.batches import Batch, collate
from heedful.corpora.encoded import MAX_TOKENS, encode_documents
from heedful.corpora.texts import unlabelled
from heedful.corpora.vocabulary import MASK, PAD, Vocabulary
from heedful.errors import InputError, UnsupportedModel
from heedful.models.edits import Edit
from heedful.models.parts import Attended, Level
from heedful.models.reading import Reading
from heedful.models.recipe import ModelConfig, Recipe
from heedful.models.verbs import weigh


class Pass(NamedTuple):
    """One forward pass as training sees it."""

    logits: Float[Tensor, "batch class"]
    attended: Attended
    """The audited level."""
    mask: Bool[Tensor, "batch unit"]
    word_states: Float[Tensor, "batch token encoded"]
    """What the word encoder made of each token, before any join; zero at padding."""


class Sentences(NamedTuple):
    """Where each token of a batch goes when it is laid out by sentence."""

    unit_of_token: Int[Tensor, "batch token"]
    place: Int[Tensor, "batch token"]
    """Position within the sentence."""
    mask: Bool[Tensor, "batch unit"]
    """Which sentences exist."""


class AttentionClassifier(nn.Module):
    """Embeddings, an encoder, attention and a linear head; the same parts twice when hierarchical.

    The audited attention is the last one: over words in a flat model, over sentences in a
    hierarchical one.
    """

    def __init__(
        self,
        config: ModelConfig,
        vocabulary: Vocabulary,
        classes: tuple[str, ...],
        tokeniser: str = "words",
        max_tokens: int = MAX_TOKENS,
    ) -> None:
        super().__init__()
        if len(classes) < 2:
            raise InputError(f"A classifier needs at least two classes, got {list(classes)}.")
        if config.one_logit and len(classes) != 2:
            raise InputError(f"one_logit is for two classes, got {len(classes)}.")
        self.config, self.vocabulary, self.classes = config, vocabulary, classes
        self.tokeniser, self.max_tokens = tokeniser, max_tokens
        self.recipe = str(Recipe(config))
        """What the model was trained by, penalties included where they are known."""
        self.embedding = nn.Embedding(
            len(vocabulary), config.embedding_dim, PAD, max_norm=config.embedding_norm
        )
        if config.embedding_start is not None:
            nn.init.uniform_(self.embedding.weight, -config.embedding_start, config.embedding_start)
            with torch.no_grad():
                self.embedding.weight[PAD] = 0
        self.embedding.weight.requires_grad_(not config.freeze_embeddings)
        below_dropout = config.dropout if config.word_dropout is None else config.word_dropout
        self.words = (
            Level(config, config.embedding_dim, below_dropout) if config.hierarchical else None
        )
        below = config.embedding_dim if self.words is None else self.words.dim
        self.level = Level(config, below, config.dropout)
        outputs = 1 if config.one_logit else len(classes)
        self.head = nn.Linear(self.level.dim, outputs, bias=config.head_bias)
        if config.start == "orthogonal":
            nn.init.xavier_uniform_(self.head.weight)
            if config.head_bias:
                nn.init.zeros_(self.head.bias)
        if config.head_start is not None:
            nn.init.uniform_(self.head.weight, -config.head_start, config.head_start)
        self.head_dropout = nn.Dropout(config.head_dropout)

    def set_vectors(self, vectors: Float[np.ndarray, "word dim"]) -> None:
        """Copies pretrained vectors into the embedding; rows of nan keep their random start."""
        if vectors.shape != tuple(self.embedding.weight.shape):
            raise InputError(
                f"The vectors are {vectors.shape[1]}-dimensional for {vectors.shape[0]} words, the "
                f"model expects {self.config.embedding_dim} for {len(self.vocabulary)}; "
                "set embedding_dim to the vectors' dimension."
            )
        found = torch.from_numpy(~np.isnan(vectors).any(1))
        if not bool(found.any()):
            return
        with torch.no_grad():
            given = torch.from_numpy(vectors).to(self.embedding.weight)
            norm = given[found].norm(dim=1).mean()
            # The random rows start at the length of the given ones, so that neither drowns the
            # other; the mask symbol must differ from padding, hence it is not left at zero.
            self.embedding.weight *= norm / self.embedding.weight[MASK:].norm(dim=1).mean()
            self.embedding.weight[found] = given[found]
            self.embedding.weight[PAD] = 0

    def batch(self, texts: Sequence[str]) -> Batch:
        """The texts, cut into words and padded, ready to be read."""
        documents = unlabelled(texts, self.tokeniser)
        encoded, _ = encode_documents(documents, self.vocabulary, self.max_tokens)
        device = self.head.weight.device
        return collate(encoded, range(len(documents))).to(device)

    def embed(self, batch: Batch) -> Float[Tensor, "batch token dim"]:
        """Word vectors of the batch."""
        vectors: Tensor = self.embedding(batch.ids)
        return vectors

    def forward(self, batch: Batch) -> Pass:
        """Logits and the audited level, with dropout when training."""
        return self.from_inputs(self.embed(batch), batch)

    def from_inputs(self, inputs: Float[Tensor, "batch token dim"], batch: Batch) -> Pass:
        """The same from word vectors, so that gradients on inputs can be taken."""
        if self.words is None:
            mask = batch.mask
            attended: Attended = self.level(inputs, mask)
            word_states = attended.states
        else:
            layout = sentences(batch)
            mask = layout.mask
            below, word_states = self._sentence_vectors(self.words, inputs, batch, layout)
            attended = self.level(below, mask)
        if self.config.head_dropout_on == "input":
            logits = self.head(self.head_dropout(attended.context))
        else:
            logits = self.head_dropout(self.head(attended.context))
        return Pass(self.with_zero(logits), attended, mask, word_states)

    def read(self, batch: Batch) -> Reading:
        """Reads a batch and keeps what the audited attention saw and did."""
        inputs = self.embed(batch)
        attended, mask = self.from_inputs(inputs, batch)[1:3]
        scores = attended.scores.double()
        attention = scores.softmax(-1)
        unit_logits = self.with_zero(attended.values.double() @ self.head.weight.double().T)
        empty = scores.new_zeros(len(batch), self.head.out_features)
        offset = self.with_zero(empty if self.head.bias is None else empty + self.head.bias)
        words = batch.words(self.vocabulary)
        if self.words is None:
            position = torch.arange(mask.shape[1], device=mask.device)
            unit_of_token, texts = position.expand(mask.shape), tuple(words)
        else:
            unit_of_token = sentences(batch).unit_of_token
            texts = tuple(
                _joined(row, of) for row, of in zip(words, unit_of_token.tolist(), strict=True)
            )
        return Reading(
            batch=batch,
            texts=texts,
            mask=mask,
            values=attended.values,
            scores=scores,
            attention=attention,
            logits=weigh(attention[:, None], unit_logits)[:, 0] + offset,
            inputs=inputs,
            unit_of_token=unit_of_token,
            unit_logits=unit_logits,
            offset=offset,
        )

    def answer(self, reading: Reading, edit: Edit) -> Float[Tensor, "batch edit class"]:
        """Never needed: the head is linear, so `decide` works from the unit logits."""
        raise UnsupportedModel("A linear head answers from its unit logits; call decide instead.")

    def with_zero(self, logits: Float[Tensor, "... output"]) -> Float[Tensor, "... class"]:
        """One logit per class: a single logit s becomes (0, s)."""
        if not self.config.one_logit:
            return logits
        return torch.cat([torch.zeros_like(logits), logits], -1)

    def _sentence_vectors(
        self, level: Level, inputs: Tensor, batch: Batch, layout: Sentences
    ) -> tuple[Float[Tensor, "batch unit dim"], Float[Tensor, "batch token encoded"]]:
        """Attends to the words of each sentence, all sentences of the batch at once.

        Gives the sentence vectors, and the states of the words back in document order.
        """
        count, longest = int(layout.mask.sum()), int(layout.place.max()) + 1
        row = torch.zeros_like(layout.mask, dtype=torch.long)
        row[layout.mask] = torch.arange(count, device=row.device)
        target = (row.gather(1, layout.unit_of_token) * longest + layout.place)[batch.mask]
        words = inputs.new_zeros(count * longest, inputs.shape[-1])
        words = words.index_put((target,), inputs[batch.mask])
        mask = torch.zeros(count * longest, dtype=torch.bool, device=inputs.device)
        mask[target] = True
        attended: Attended = level(words.view(count, longest, -1), mask.view(count, longest))
        vectors = inputs.new_zeros(*layout.mask.shape, attended.context.shape[-1])
        vectors = vectors.index_put((layout.mask,), attended.context)
        states = inputs.new_zeros(*batch.mask.shape, attended.states.shape[-1])
        states = states.index_put((batch.mask,), attended.states.flatten(0, 1)[target])
        return vectors, states


def sentences(batch: Batch) -> Sentences:
    """How the tokens of a batch fall into sentences, numbered without gaps."""
    starts = torch.ones_like(batch.mask)
    starts[:, 1:] = (batch.sentence[:, 1:] != batch.sentence[:, :-1]) & batch.mask[:, 1:]
    unit_of_token = starts.long().cumsum(1) - 1
    position = torch.arange(batch.mask.shape[1], device=batch.mask.device).expand(starts.shape)
    first = torch.where(starts, position, 0).cummax(1).values
    count = unit_of_token.amax(1) + 1
    mask = torch.arange(int(count.max()), device=count.device) < count[:, None]
    place = torch.where(batch.mask, position - first, 0)
    return Sentences(unit_of_token, place, mask)


def _joined(words: tuple[str, ...], unit_of_token: list[int]) -> tuple[str, ...]:
    units: dict[int, list[str]] = {}
    for word, unit in zip(words, unit_of_token, strict=False):
        units.setdefault(unit, []).append(word)
    return tuple(" ".join(unit) for unit in units.values())
