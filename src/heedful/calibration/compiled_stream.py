"""Transformers whose residual stream carries named attributes, compiled from a program.

A program says what every word starts with, what each head of each layer attends to and hands on,
what feed-forward parts find, and which attributes the decision reads. It is written into the
weights of a BERT, a GPT-2 or a Llama of `transformers`, or of our own Transformer, where the last
layer's head is the pooling attention. Attributes stand in the stream small and twice, once with a
minus, beside a large filler: layer norms then see mean 0 and variance 1 up to a percent, and hand
on what they were given. Right answers are computed from the weights, so that percent is no error.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor, nn

from heedful.corpora.encoded import EncodedCorpus
from heedful.corpora.vocabulary import END, PAD, START, UNKNOWN, Vocabulary
from heedful.jobs.decider import Decider
from heedful.models.huggingface import PretrainedClassifier
from heedful.models.huggingface.modules import NO_FRAME, PlainTokeniser
from heedful.models.huggingface.pieces import Frame, Pieces
from heedful.models.transformer import TransformerClassifier
from heedful.models.transformer_config import TransformerConfig
from heedful.runs.randomness import seeded

SMALL = 0.2
"""What an attribute of 1 is in the stream; the filler is about 4."""
STEEP = 60.0
"""How steep a rectifier is made of a smooth activation."""
FLAT = 0.05
"""How far into BERT's tanh an attribute of 1 goes."""
LONGEST = 80
"""Words of a text, special tokens included."""
ONE, SPECIAL, PLACE = "one", "special", "place"
"""Attributes that every position has: 1; 1 at special tokens; the position in units of LONGEST."""


@dataclass(frozen=True)
class HeadProgram:
    """What one head attends to, and what it hands on."""

    scores: Mapping[str, float]
    """Score of a key: a weighted sum of its attributes."""
    hands: Sequence[tuple[str, str, float]] = ()
    """From which attribute of a key, to which of the reader, and how many times."""
    asks: str = ONE
    """The reader's attribute that the score is multiplied by."""


@dataclass(frozen=True)
class NeuronProgram:
    """max(0, Σ weight · attribute), added to other attributes."""

    reads: Mapping[str, float]
    writes: Mapping[str, float]


@dataclass(frozen=True)
class LayerProgram:
    """The heads of a layer, then its feed-forward part."""

    heads: Sequence[HeadProgram] = ()
    neurons: Sequence[NeuronProgram] = ()


@dataclass(frozen=True)
class StreamProgram:
    """A whole Transformer."""

    words: Mapping[str, Mapping[str, float]]
    """What words start with; `[CLS]` and `[SEP]` may be named, too."""
    layers: Sequence[LayerProgram]
    decides: Mapping[str, Sequence[float]]
    """What each attribute of the read position adds to the logits."""
    knows_places: bool = False
    """Whether positions have the attribute `place` (BERT and GPT-2)."""

    @cached_property
    def attributes(self) -> tuple[str, ...]:
        """All that are named, the filler's place last."""
        names = dict.fromkeys([ONE, SPECIAL, PLACE])
        names |= dict.fromkeys(name for start in self.words.values() for name in start)
        for layer in self.layers:
            for head in layer.heads:
                names |= dict.fromkeys([*head.scores, head.asks])
                names |= dict.fromkeys(name for hand in head.hands for name in hand[:2])
            for neuron in layer.neurons:
                names |= dict.fromkeys([*neuron.reads, *neuron.writes])
        return tuple(names | dict.fromkeys(self.decides))

    @property
    def heads(self) -> int:
        """Heads of every layer; those that a layer does not name attend evenly to no avail."""
        return max(len(layer.heads) for layer in self.layers)

    @cached_property
    def half(self) -> int:
        """Half of the width of the stream."""
        step = 2 * self.heads
        least = max(len(self.attributes) + 1, 8 * self.heads)
        return step * math.ceil(least / step)

    def place(self, attribute: str) -> int:
        """Where an attribute stands."""
        return self.attributes.index(attribute)

    def vector(self, start: Mapping[str, float]) -> Float[Tensor, " dim"]:
        """A position of the stream, filled up to variance 1."""
        half = torch.zeros(self.half, dtype=torch.float64)
        for name, value in {ONE: 1.0, **start}.items():
            half[self.place(name)] = SMALL * value
        half[-1] = (self.half - half.square().sum()).sqrt()
        return torch.cat([half, -half]).float()

    def reading(self, weights: Mapping[str, float]) -> Float[Tensor, " dim"]:
        """The row of a weight that reads a weighted sum of attributes."""
        row = torch.zeros(2 * self.half)
        for name, weight in weights.items():
            row[self.place(name)] = weight / SMALL
        return row

    def writing(self, weights: Mapping[str, float]) -> Float[Tensor, " dim"]:
        """The column of a weight that adds to attributes."""
        column = torch.zeros(2 * self.half)
        for name, weight in weights.items():
            column[self.place(name)] = SMALL * weight
            column[self.place(name) + self.half] = -SMALL * weight
        return column

    def table(self, vocabulary: Vocabulary) -> Float[Tensor, "word dim"]:
        """What every word starts with."""
        rows = [self.vector(self.words.get(word, {})) for word in vocabulary.words]
        for place, name in ((START, "[CLS]"), (END, "[SEP]")):
            rows[place] = self.vector({SPECIAL: 1.0, **self.words.get(name, {})})
        return torch.stack(rows)

    def attention(self, layer: LayerProgram, row: int) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """Query, key, value and output [out, in] of a layer; scores use one row of each head."""
        width = 2 * self.half
        query, key, value, out = torch.zeros(4, width, width)
        dim = width // self.heads
        for number, head in enumerate(layer.heads):
            query[number * dim + row] = math.sqrt(dim) * self.reading({head.asks: 1.0})
            key[number * dim + row] = self.reading(head.scores)
            for hand, (source, target, times) in enumerate(head.hands):
                value[number * dim + hand] = self.reading({source: times})
                out[:, number * dim + hand] = self.writing({target: 1.0})
        return query, key, value, out


FRAME = Frame((START,), (), (END,), ((0,), 0, (), 0, (0,)))
"""BERT's special tokens around a text; those of the vocabulary serve."""


def words_between_spaces(vocabulary: Vocabulary, has_frame: bool) -> PlainTokeniser:
    """The tokeniser whose pieces are whole words, numbered as in the vocabulary."""

    frame = FRAME if has_frame else NO_FRAME

    def cut(text: str) -> Pieces:
        found = list(re.finditer(r"\S+", text))
        ids = vocabulary.encode([word.group() for word in found])
        spans = [None] * len(frame.before), [w.span() for w in found], [None] * len(frame.after)
        return Pieces([*frame.before, *ids, *frame.after], [*spans[0], *spans[1], *spans[2]])

    return PlainTokeniser(cut, PAD, UNKNOWN, frame)


def compiled(
    kind: str, program: StreamProgram, corpus: EncodedCorpus, site: str = "pooled"
) -> Decider:
    """The program as a `bert`, a `gpt2`, a `llama`, or `own` (site: its pooling attention)."""
    if kind == "own":
        return _own(program, corpus)
    model = _fresh(kind, program, corpus, site)
    with torch.no_grad():
        for name, weight in model.model.named_parameters():
            is_norm = "norm" in name.lower() or ".ln_" in name
            weight.fill_(1.0 if is_norm and name.endswith("weight") else 0.0)
        _SET[kind](model.model, program, corpus)
    return model


def _fresh(
    kind: str, program: StreamProgram, corpus: EncodedCorpus, site: str
) -> PretrainedClassifier:
    """Found with random weights: where a model attends is watched on unknown words."""
    from transformers import AutoConfig, AutoModelForSequenceClassification

    sizes: dict[str, Any] = {
        "vocab_size": len(corpus.vocabulary),
        "hidden_size": 2 * program.half,
        "num_hidden_layers": len(program.layers),
        "num_attention_heads": program.heads,
        "max_position_embeddings": LONGEST,
        "num_labels": len(corpus.classes),
        "pad_token_id": PAD,
        "bos_token_id": START,
        "eos_token_id": END,
    }
    dropouts = {"resid_pdrop", "embd_pdrop", "attn_pdrop"}
    extra: dict[str, dict[str, Any]] = {
        "gpt2": {"n_inner": 2 * program.half} | dict.fromkeys(dropouts, 0.0),
        "bert": {"type_vocab_size": 1, "intermediate_size": 2 * program.half},
        "llama": {
            "intermediate_size": 2 * program.half,
            # So slow that the slowest pair of a head does not turn over a text.
            "rope_parameters": {"rope_theta": 1e12, "rope_type": "default"},
        },
    }
    with seeded(0):
        make: Any = AutoModelForSequenceClassification.from_config
        module = make(AutoConfig.for_model(kind, **sizes, **extra[kind]))
    words = words_between_spaces(corpus.vocabulary, has_frame=kind == "bert")
    model = PretrainedClassifier(
        module.eval(), words, corpus.classes, site=site, max_pieces=LONGEST, recipe=kind
    )
    model.tokeniser = "whitespace"
    return model


def _places(table: Tensor, program: StreamProgram) -> None:
    if program.knows_places:
        for position in range(LONGEST):
            table[position] = program.writing({PLACE: position / LONGEST})


def _set_bert(module: Any, program: StreamProgram, corpus: EncodedCorpus) -> None:
    embeddings = module.bert.embeddings
    embeddings.word_embeddings.weight.copy_(program.table(corpus.vocabulary))
    _places(embeddings.position_embeddings.weight, program)
    for layer, part in zip(module.bert.encoder.layer, program.layers, strict=True):
        query, key, value, out = program.attention(part, 0)
        layer.attention.self.query.weight.copy_(query)
        layer.attention.self.key.weight.copy_(key)
        layer.attention.self.value.weight.copy_(value)
        layer.attention.output.dense.weight.copy_(out)
        for number, neuron in enumerate(part.neurons):
            layer.intermediate.dense.weight[number] = STEEP * program.reading(neuron.reads)
            layer.output.dense.weight[:, number] = program.writing(neuron.writes) / STEEP
    for number, (name, said) in enumerate(program.decides.items()):
        module.bert.pooler.dense.weight[number] = FLAT * program.reading({name: 1.0})
        module.classifier.weight[:, number] = torch.tensor(list(said)) / FLAT


def _set_gpt2(module: Any, program: StreamProgram, corpus: EncodedCorpus) -> None:
    module.transformer.wte.weight.copy_(program.table(corpus.vocabulary))
    _places(module.transformer.wpe.weight, program)
    for layer, part in zip(module.transformer.h, program.layers, strict=True):
        query, key, value, out = program.attention(part, 0)
        layer.attn.c_attn.weight.copy_(torch.cat([query, key, value]).T)  # stored as [in, out]
        layer.attn.c_proj.weight.copy_(out.T)
        for number, neuron in enumerate(part.neurons):
            layer.mlp.c_fc.weight[:, number] = STEEP * program.reading(neuron.reads)
            layer.mlp.c_proj.weight[number] = program.writing(neuron.writes) / STEEP
    _decides(module.score, program)


def _set_llama(module: Any, program: StreamProgram, corpus: EncodedCorpus) -> None:
    module.model.embed_tokens.weight.copy_(program.table(corpus.vocabulary))
    slowest = program.half // program.heads - 1
    for layer, part in zip(module.model.layers, program.layers, strict=True):
        query, key, value, out = program.attention(part, slowest)
        layer.self_attn.q_proj.weight.copy_(query)
        layer.self_attn.k_proj.weight.copy_(key)
        layer.self_attn.v_proj.weight.copy_(value)
        layer.self_attn.o_proj.weight.copy_(out)
        for number, neuron in enumerate(part.neurons):
            layer.mlp.gate_proj.weight[number] = STEEP * program.reading(neuron.reads)
            layer.mlp.up_proj.weight[number] = program.reading({ONE: 1.0})
            layer.mlp.down_proj.weight[:, number] = program.writing(neuron.writes) / STEEP
    _decides(module.score, program)


def _decides(head: nn.Linear, program: StreamProgram) -> None:
    for name, said in program.decides.items():
        head.weight += torch.outer(torch.tensor(list(said)), program.reading({name: 1.0}))


_SET: dict[str, Callable[[nn.Module, StreamProgram, EncodedCorpus], None]] = {
    "bert": _set_bert,
    "gpt2": _set_gpt2,
    "llama": _set_llama,
}


def _own(program: StreamProgram, corpus: EncodedCorpus) -> TransformerClassifier:
    """Our own Transformer: all layers but the last, whose head becomes the pooling attention."""
    layers, top = program.layers[:-1], program.layers[-1].heads[0]
    width = 2 * program.half
    config = TransformerConfig(
        embedding_dim=width,
        layers=max(len(layers), 1),
        heads=program.heads,
        head_dim=width // program.heads,
        feed_forward=width,
        pooling_dims=(2, 2),
        decider_dim=2 * len(top.hands),
        dropout=0.0,
        top_dropout=0.0,
        norm="full",
        loss="cross-entropy",
    )
    model = TransformerClassifier(config, corpus.vocabulary, corpus.classes, "whitespace")
    with torch.no_grad():
        for name, weight in model.named_parameters():
            is_norm = name.endswith("weight") and weight.dim() == 1
            weight.fill_(1.0 if is_norm else 0.0)
        model.set_vectors(program.table(corpus.vocabulary).numpy())
        for layer, part in zip(model.encoder.layers, layers, strict=False):
            made: Any = layer
            weights = program.attention(part, 0)
            for linear, given in zip(
                (made.query, made.key, made.value, made.out), weights, strict=True
            ):
                linear.weight.copy_(given)
            _, inner, _, outer = made.feed_forward
            for number, neuron in enumerate(part.neurons):
                inner.weight[number] = program.reading(neuron.reads)
                outer.weight[:, number] = program.writing(neuron.writes)
        pooling: Any = model.encoder.pooling
        first, _, _, second, _, _, last = pooling
        head: Any = model.head
        for sign, number in ((1.0, 0), (-1.0, 1)):  # a rectifier passes either side
            first.weight[number] = sign * program.reading(top.scores)
            second.weight[number, number] = 1.0
            last.weight[0, number] = sign
            for hand, (source, target, times) in enumerate(top.hands):
                place = 2 * hand + number
                head[0].weight[place] = sign * program.reading({source: times})
                head[-1].weight[:, place] = sign * torch.tensor(list(program.decides[target]))
    return model.eval()
