"""Sequence-to-sequence with dot attention: an encoder, a decoder, one or several heads.

With teacher forcing nothing in the decoder depends on attention (there is no input feeding), so a
pass is three dense stages: encode, decode, attend. What the source says enters the output's first
layer additively,

    pre_t = base_t + Σ_k Σ_l α_{k,t,l} m_{k,l},     log p_t = log softmax(W f(pre_t) + b),

where m_{k,l} is the state h_l through the projections and base_t all that does not depend on
attention (docs/studies/dynamics.md, "Translator", "Shortcuts"). So the model can be asked about any
attention without being run again.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal, NamedTuple, TypeAlias

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from heedful.corpora.batches import Batch, moved
from heedful.corpora.pairs import Pairs, instances
from heedful.errors import InputError
from heedful.models import edits
from heedful.models.edits import Edit
from heedful.models.reading import Reading

State: TypeAlias = tuple[Float[Tensor, "layer sentence dim"], Float[Tensor, "layer sentence dim"]]
"""Hidden states and cells of a decoder; of a GRU both are its hidden states."""


@dataclass(frozen=True)
class TranslatorConfig:
    """The shape of a translator; the defaults are those of the dynamics study.

    See docs/studies/dynamics.md, "Translator".
    """

    vocabulary: int = 8_000
    """Pieces or symbols, special ones included."""
    embedding_dim: int = 256
    width: int = 256
    """Dimensions of the decoder and of one direction of the encoder."""
    layers: int = 2
    is_bidirectional: bool = True
    dropout: float = 0.5
    """Between layers."""
    cell: Literal["lstm", "gru"] = "lstm"
    attention: Literal["dot", "uniform"] = "dot"
    """Uniform: frozen at 1 / length in training and afterwards."""
    output: Literal["relu", "tanh", "linear"] = "relu"
    """Between context and vocabulary; `linear` has no layer there at all (docs/studies/dynamics.md,
    "Linear output")."""
    heads: int = 1
    joined: Literal["sum", "mean"] = "sum"
    """How the contexts of several heads become one (docs/studies/dynamics.md, "Several heads"): the
    paper's sum, the code's mean."""
    has_own_projections: bool = False
    """Whether each head projects its context itself, as in the code."""
    is_embedding_shared: bool = True
    """Whether source and target words have the same vectors."""

    def __post_init__(self) -> None:
        sizes = {"--width": min(self.width, self.embedding_dim), "--layers": self.layers}
        sizes |= {"--heads": self.heads, "the vocabulary": self.vocabulary}
        for name, size in sizes.items():
            if size < 1:
                raise InputError(f"{name} must be at least 1, got {size}.")
        if not 0 <= self.dropout <= 1:
            raise InputError(f"--dropout must lie from 0 to 1, got {self.dropout:g}.")


def copying_config(symbols: int, width: int = 256, heads: int = 1) -> TranslatorConfig:
    """The copying model, and the paper's form of several heads: contexts are summed.

    See docs/studies/dynamics.md, "Copying".
    """
    return TranslatorConfig(
        symbols + 2, width, width, 1, False, 0.0, "lstm", "dot", "tanh", heads
    )  # fmt: skip


def code_copying_config(symbols: int, width: int = 256, heads: int = 1) -> TranslatorConfig:
    """The copying model of the published code: GRUs, projected contexts are averaged."""
    return replace(
        copying_config(symbols, width, heads),
        cell="gru", joined="mean", has_own_projections=True, is_embedding_shared=False,
    )  # fmt: skip


class TranslatorPass(NamedTuple):
    """One teacher-forced pass."""

    logits: Float[Tensor, "sentence step word"]
    attention: Float[Tensor, "sentence head step unit"]


class Said(NamedTuple):
    """What enters the output's first layer, taken apart."""

    base: Float[Tensor, "sentence step hidden"]
    """All that does not depend on attention: the decoder's state and the biases."""
    message: Float[Tensor, "sentence head unit hidden"]
    """What each source position adds, per head, if all of that head's attention lies on it."""


class TranslatorState(NamedTuple):
    """What a translator needs to go on from its attention: `Reading.state`."""

    step: Int[Tensor, " batch"]
    """Which output word of its sentence an instance is."""
    said: Said
    """In float64."""
    scores: Float[Tensor, "batch head unit"]


class Translator(nn.Module):
    """Encoder, decoder and dot attention over the source, trained by teacher forcing."""

    def __init__(self, config: TranslatorConfig) -> None:
        super().__init__()
        self.config = config
        cells = nn.LSTM if config.cell == "lstm" else nn.GRU
        between = config.dropout if config.layers > 1 else 0.0
        sizes = config.embedding_dim, config.width, config.layers
        self.embedding = nn.Embedding(config.vocabulary, config.embedding_dim)
        if not config.is_embedding_shared:
            self.target_embedding = nn.Embedding(config.vocabulary, config.embedding_dim)
        self.encoder = cells(
            *sizes, batch_first=True, dropout=between, bidirectional=config.is_bidirectional
        )
        self.decoder = cells(*sizes, batch_first=True, dropout=between)
        states = config.width * (2 if config.is_bidirectional else 1)
        projections = config.heads if config.has_own_projections else 1
        self.query = nn.Linear(config.width, config.heads * states)
        self.project = nn.Linear(states, projections * config.width)
        if config.output != "linear":
            self.join = nn.Linear(2 * config.width, config.width)
        self.words = nn.Linear(config.width, config.vocabulary)

    @property
    def device(self) -> torch.device:
        """Where the weights are."""
        return self.words.weight.device

    def forward(self, pairs: Pairs) -> TranslatorPass:
        """Logits of every next word and the attention of every head, with dropout if training."""
        values, start = self.encode(self.embedding(pairs.source), pairs)
        states, _ = self.decode(pairs.before, start)
        attention = self.scores(states, values, pairs.source_mask).softmax(-1)
        return TranslatorPass(self.output(states, attention, values), attention)

    def encode(
        self, inputs: Float[Tensor, "sentence unit dim"], pairs: Pairs
    ) -> tuple[Float[Tensor, "sentence unit state"], State]:
        """The encoder's states (0 at padding) and what the decoder starts from.

        Per layer, the decoder starts from the mean of the two directions' last states.
        """
        if pairs.has_padding:
            # Sorted here: the library would wait for the device while it copies the order there.
            lengths, order = torch.sort(pairs.source_lengths, descending=True)
            here, back = (moved(rows, inputs.device) for rows in (order, order.argsort()))
            packed = pack_padded_sequence(inputs.index_select(0, here), lengths, batch_first=True)
            found, last = self.encoder(packed)
            values, _ = pad_packed_sequence(found, batch_first=True, total_length=inputs.shape[1])
            values = values.index_select(0, back)
            both = [one.index_select(1, back) for one in _both(last)]
        else:
            values, last = self.encoder(inputs)
            both = _both(last)
        layers, width = self.config.layers, self.config.width
        hidden, cell = (one.view(layers, -1, len(inputs), width).mean(1) for one in both)
        return values, (hidden, cell)

    def decode(
        self, before: Int[Tensor, "sentence step"], start: State
    ) -> tuple[Float[Tensor, "sentence step dim"], State]:
        """The decoder's state after reading each word, and what it would go on from."""
        table = self.embedding if self.config.is_embedding_shared else self.target_embedding
        if self.config.cell == "gru":
            states, last = self.decoder(table(before), start[0].contiguous())
            return states, (last, last)
        states, (hidden, cell) = self.decoder(
            table(before), (start[0].contiguous(), start[1].contiguous())
        )
        return states, (hidden, cell)

    def scores(
        self,
        states: Float[Tensor, "sentence step dim"],
        values: Float[Tensor, "sentence unit state"],
        mask: Tensor,
    ) -> Float[Tensor, "sentence head step unit"]:
        """Attention before the softmax: q_t · h_l, or 0 everywhere; -inf at padding."""
        sentences, steps, _ = states.shape
        shape = sentences, self.config.heads, steps, values.shape[1]
        if self.config.attention == "uniform":
            found = values.new_zeros(()).expand(shape)
        else:
            query = self.query(states).view(sentences, steps, self.config.heads, -1)
            found = query.transpose(1, 2) @ values[:, None].transpose(2, 3)
        return found.masked_fill(~mask[:, None, None], -torch.inf)

    def output(
        self,
        states: Float[Tensor, "sentence step dim"],
        attention: Float[Tensor, "sentence head step unit"],
        values: Float[Tensor, "sentence unit state"],
    ) -> Float[Tensor, "sentence step word"]:
        """Logits of the next word from attended contexts."""
        config = self.config
        if config.has_own_projections:
            contexts = attention @ values[:, None]
            weight = self.project.weight.view(config.heads, config.width, -1)
            bias = self.project.bias.view(config.heads, config.width).sum(0)
            context = torch.einsum("bkts,kds->btd", contexts, weight) + bias
            context = context / config.heads if config.joined == "mean" else context
        else:
            # Heads share all that follows: their weights are joined instead of their contexts.
            joined = attention.mean(1) if config.joined == "mean" else attention.sum(1)
            context = self.project(joined @ values)
        if config.output == "linear":
            logits: Tensor = self.words(context + states)
        else:
            logits = self.words(self.activated(self.join(torch.cat([states, context], -1))))
        return logits

    def activated(self, pre: Float[Tensor, "... hidden"]) -> Float[Tensor, "... hidden"]:
        """f(pre): ReLU, tanh or nothing."""
        match self.config.output:
            case "relu":
                return pre.relu()
            case "tanh":
                return pre.tanh()
        return pre

    def said(
        self,
        states: Float[Tensor, "sentence step dim"],
        values: Float[Tensor, "sentence unit state"],
        dtype: torch.dtype | None = None,
    ) -> Said:
        """The additive parts of the output's first layer (see the module)."""
        config = self.config
        states, values = states.to(dtype), values.to(dtype)
        weight, bias = self.project.weight.to(dtype), self.project.bias.to(dtype)
        weight, bias = weight.view(-1, config.width, weight.shape[1]), bias.view(-1, config.width)
        through = torch.einsum("bls,kds->bkld", values, weight)
        through = through.expand(-1, config.heads, -1, -1)
        shift = bias.sum(0)
        if config.joined == "mean":
            through = through / config.heads
            shift = shift / config.heads if config.has_own_projections else shift
        if config.output == "linear":
            return Said(states + shift, through)
        join, own = self.join.weight.to(dtype), self.join.bias.to(dtype)
        of_state, of_context = join[:, : config.width], join[:, config.width :]
        return Said(states @ of_state.T + (of_context @ shift + own), through @ of_context.T)

    def read(self, batch: Pairs) -> Reading:
        """Reads pairs: every output word is an instance, its units are the source positions.

        `values`, `inputs` and the messages of a sentence are kept once; `Reading.shared` says which
        row an instance uses.
        """
        inputs = self.embedding(batch.source)
        values, start = self.encode(inputs, batch)
        states, _ = self.decode(batch.before, start)
        sentence, step = batch.target_mask.nonzero(as_tuple=True)
        scores = self.scores(states, values, batch.source_mask).double()
        scores = scores.transpose(1, 2)[sentence, step]
        heads = scores.softmax(-1)
        mask = batch.source_mask[sentence]
        words: Batch = instances(batch)
        site = TranslatorState(step, self.said(states, values, torch.float64), scores)
        reading = Reading(
            batch=words,
            texts=tuple(batch.texts[row] for row in sentence.tolist()),
            mask=mask,
            values=values,
            scores=scores.mean(1),
            attention=heads.mean(1),
            logits=scores.new_zeros(()),
            inputs=inputs,
            unit_of_token=torch.arange(mask.shape[1], device=mask.device).expand(mask.shape),
            heads=heads if self.config.heads > 1 else None,
            shared=sentence,
            state=site,
        )
        hidden = self.hidden(reading, heads[:, :, None])
        return replace(reading, logits=self.logits(hidden)[:, 0])

    def answer(self, reading: Reading, edit: Edit) -> Float[Tensor, "batch edit class"]:
        """Logits under the edited attention."""
        return self.logits(self.hidden(reading, self.edited(reading, edit)))

    def edited(self, reading: Reading, edit: Edit) -> Float[Tensor, "batch head edit unit"]:
        """The attention rows an edit makes, for every head: the same edit acts on each."""
        site: TranslatorState = reading.state
        heads = site.scores.softmax(-1)
        return torch.stack(
            [
                edits.rows(
                    replace(reading, scores=site.scores[:, head], attention=heads[:, head]), edit
                ).attention
                for head in range(self.config.heads)
            ],
            1,
        )

    def hidden(
        self, reading: Reading, attention: Float[Tensor, "batch head edit unit"]
    ) -> Float[Tensor, "batch edit hidden"]:
        """f(base + Σ α m) for rows of attention, each sentence's messages used in place."""
        site: TranslatorState = reading.state
        sentence = reading.shared
        assert sentence is not None, "a translator's reading shares its values"
        base, message = site.said
        sentences, steps, _ = base.shape
        heads, count, units = attention.shape[1:]
        laid = attention.new_zeros(sentences, steps, heads, count, units)
        laid[sentence, site.step] = attention
        rows = laid.permute(0, 2, 1, 3, 4).reshape(sentences, heads, steps * count, units)
        added = (rows @ message).sum(1).view(sentences, steps, count, -1)
        return self.activated(base[sentence, site.step][:, None] + added[sentence, site.step])

    def logits(self, hidden: Float[Tensor, "... hidden"]) -> Float[Tensor, "... word"]:
        """Scores of all words from the output's hidden layer, in its precision."""
        return hidden @ self.words.weight.to(hidden).T + self.words.bias.to(hidden)


def _both(last: Tensor | State) -> list[Tensor]:
    """Hidden states and cells; a GRU has its hidden states for both."""
    return list(last) if isinstance(last, tuple) else [last, last]


def build_translator(config: TranslatorConfig, seed: int = 0) -> Translator:
    """A fresh translator whose random start depends on the seed alone."""
    from heedful.runs.randomness import seeded

    with seeded(seed):
        return Translator(config)
