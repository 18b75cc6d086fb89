"""Why a word's scores grow: the exact terms of gradient flow, for every word at once.

With ż = −∇ℓ, the mean cross-entropy ℓ over m texts, r the error of a text (its one-hot label minus
its probabilities; y β for two classes with one logit), h its context, s its logits and λ the scale,
two numbers of each word e carry everything (docs/studies/polarity.md, "Scores and their flow"):

    π(e) = Σ α r            over all places where e stands; one per output
    ρ(e) = Σ α (s_e − s)·r

    ṡ_e = A + B + C    A = (WᵀV/λ) ρ/m     B = WᵀW π/m     C = e·Σ r h / m
    ȧ_e = D + E + F    D = (VᵀW/λ) π/m     E = |V|² ρ/(λ² m)     F = e·Σ_w ρ(w) w /(λ² m)

A, B, D, E come from the word's own vector, C and F from the head and the query. An affine map or
additive attention adds terms for its matrix (`map …`) and bias; the forms are exact for both. The
signs are those of r: a word tied to class k has π_k > 0 and ρ > 0. Since s_e is the same wherever
a context-free model meets e, all sums over tokens are sums over words of π and ρ: one reading of
the split, then products with the table of word vectors.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import pandas as pd
import torch
from jaxtyping import Bool, Float64, Int
from torch import Tensor, nn

from heedful.corpora.encoded import Encoded, EncodedCorpus
from heedful.dynamics.scores import FlatReading, WordScores, read_flat, word_scores
from heedful.dynamics.token_classes import TokenClasses
from heedful.errors import InputError, UnsupportedModel
from heedful.models.classifier import AttentionClassifier
from heedful.models.parts import AdditiveScores, Affine, DotScores
from heedful.training.loop import Moment


@dataclass(frozen=True, eq=False)
class Flow:
    """How fast each word's scores change under gradient flow, and through which terms."""

    pi: Float64[Tensor, "word output"]
    rho: Float64[Tensor, " word"]
    polarity: Mapping[str, Float64[Tensor, "word output"]]
    """The terms of ṡ by name; one output for a head with one logit, else one per class."""
    attention: Mapping[str, Float64[Tensor, " word"]]
    """The terms of ȧ by name."""
    velocity: Float64[Tensor, "word dim"]
    """ė of each word vector."""
    error: Float64[Tensor, "document output"]
    """r of each text; its size is β for a head with one logit."""
    scores: WordScores
    reading: FlatReading

    def towards(self, output: int = -1) -> dict[str, Float64[Tensor, " word"]]:
        """The terms of ṡ as one number each: of the only logit, of the second minus the first of
        two, or of the class `output` of several."""
        if self.pi.shape[1] == 2:
            return {name: term[:, 1] - term[:, 0] for name, term in self.polarity.items()}
        return {name: term[:, output] for name, term in self.polarity.items()}

    @property
    def polarity_rate(self) -> Float64[Tensor, "word output"]:
        """ṡ: the sum of its terms."""
        return torch.stack(list(self.polarity.values())).sum(0)

    @property
    def attention_rate(self) -> Float64[Tensor, " word"]:
        """ȧ: the sum of its terms."""
        return torch.stack(list(self.attention.values())).sum(0)


class FlowParameters(NamedTuple):
    """The parameters the flow is made of, in float64."""

    words: Float64[Tensor, "word dim"]
    head: Float64[Tensor, "output width"]
    query: Float64[Tensor, " hidden"]
    scale: float
    matrix: Float64[Tensor, "width dim"] | None
    """Of the affine map, or inside additive attention."""
    bias: Float64[Tensor, " width"] | None
    is_additive: bool


def parts_of(model: AttentionClassifier) -> FlowParameters:
    """The parameters of a model whose flow is known; others are refused."""
    config, level = model.config, model.level
    plain = not (config.hierarchical or config.marks or config.instance_query)
    dot = config.encoder in ("none", "affine") and isinstance(level.attention, DotScores)
    additive = config.encoder == "none" and config.attention == "additive"
    if not plain or config.join != "none" or not (dot or additive):
        raise UnsupportedModel(
            "gradient flow is known for none and affine with (scaled-)dot attention and for none "
            f"with additive attention, not for {config.encoder}+{config.attention}"
            + (f"+{config.join}." if config.join != "none" else ".")
        )
    linear: nn.Linear | None = None
    if isinstance(level.encoder, Affine):
        linear = level.encoder.linear
    elif isinstance(level.attention, AdditiveScores):
        linear = level.attention.hidden

    def exact(tensor: Tensor) -> Tensor:
        return tensor.detach().double()

    return FlowParameters(
        words=exact(model.embedding.weight),
        head=exact(model.head.weight),
        query=exact(level.attention.query.weight[0]),  # type: ignore[union-attr, index]
        scale=float(level.attention.scale),  # type: ignore[arg-type]
        matrix=None if linear is None else exact(linear.weight),
        bias=None if linear is None or linear.bias is None else exact(linear.bias),
        is_additive=additive,
    )


def flow(model: AttentionClassifier, encoded: Encoded) -> Flow:
    """The terms of ṡ and ȧ for every word, from one reading of the split without dropout.

    Penalties and weight decay are not part of it, nor is what an optimiser makes of the gradient:
    plain gradient descent with a small step follows it.
    """
    parts = parts_of(model)
    if not (encoded.labels >= 0).all():
        raise InputError("gradient flow needs the label of every text of the split.")
    if encoded.labels.max(initial=0) >= len(model.classes):
        raise InputError(
            f"labels are class numbers from 0 to {len(model.classes) - 1}, got "
            f"{int(encoded.labels.max())}."
        )
    scores = word_scores(model)
    reading = read_flat(model, encoded, scores)
    skip = int(model.config.one_logit)
    error = -reading.logits.softmax(-1)
    error[torch.arange(len(error), device=error.device), reading.labels] += 1
    error = error[:, skip:]
    said = scores.logits[:, skip:]
    pi, rho = _drives(reading, error, said, skip, parts, model)
    terms = _additive if parts.is_additive else _dot
    polarity, attention, pull = terms(parts, pi, rho, error.sum(0))
    m = len(reading.labels)
    if not model.embedding.weight.requires_grad:  # frozen vectors leave what the others learn
        polarity |= {name: torch.zeros_like(polarity[name]) for name in "AB"}
        attention |= {name: torch.zeros_like(attention[name]) for name in "DE"}
        pull = torch.zeros_like(pull)
    return Flow(
        pi,
        rho,
        {name: term / m for name, term in polarity.items()},
        {name: term / m for name, term in attention.items()},
        pull / m,
        error,
        scores,
        reading,
    )


def _drives(
    reading: FlatReading,
    error: Float64[Tensor, "document output"],
    said: Float64[Tensor, "word output"],
    skip: int,
    parts: FlowParameters,
    model: AttentionClassifier,
) -> tuple[Float64[Tensor, "word output"], Float64[Tensor, " word"]]:
    """π and ρ of every word."""
    plain = reading.logits[:, skip:]
    if model.head.bias is not None:
        plain = plain - model.head.bias.detach().double()
    pushed = reading.attention[:, None] * error[reading.document]
    pi = torch.zeros_like(said).index_add(0, reading.word, pushed)
    against = ((said[reading.word] - plain[reading.document]) * pushed).sum(1)
    rho = torch.zeros_like(said[:, 0]).index_add(0, reading.word, against)
    return pi, rho


Terms = tuple[dict[str, Tensor], dict[str, Tensor], Tensor]


def _dot(parts: FlowParameters, pi: Tensor, rho: Tensor, error: Tensor) -> Terms:
    """m times the terms of dot attention, with or without an affine map; and m ė."""
    words, head, query, scale = parts.words, parts.head, parts.query, parts.scale
    back_head, back_query, values = head, query, words
    if parts.matrix is not None:
        back_head, back_query = head @ parts.matrix, query @ parts.matrix
        values = words @ parts.matrix.T
        values = values if parts.bias is None else values + parts.bias
    cross = back_head @ back_query / scale
    polarity = {
        "A": rho[:, None] * cross,
        "B": pi @ (back_head @ back_head.T),
        "C": values @ (values.T @ pi),
    }
    attention = {
        "D": pi @ cross,
        "E": rho * back_query.square().sum() / scale**2,
        "F": values @ (values.T @ rho) / scale**2,
    }
    if parts.matrix is not None:
        inner = head @ query / scale
        along, weighed = words @ (words.T @ pi), words @ (words.T @ rho)
        polarity |= {"map A": weighed[:, None] * inner, "map B": along @ (head @ head.T)}
        attention |= {"map D": along @ inner, "map E": weighed * query.square().sum() / scale**2}
        if parts.bias is not None:
            polarity["bias"] = (head @ head.T @ error).expand_as(pi)
            attention["bias"] = (inner @ error).expand_as(rho)
    pull = rho[:, None] * back_query / scale + pi @ back_head
    return polarity, attention, pull


def _additive(parts: FlowParameters, pi: Tensor, rho: Tensor, error: Tensor) -> Terms:
    """m times the terms of additive attention, exactly, not linearised; and m ė."""
    words, head, query, scale = parts.words, parts.head, parts.query, parts.scale
    assert parts.matrix is not None
    inside = words @ parts.matrix.T
    hidden = (inside if parts.bias is None else inside + parts.bias).tanh()
    slope = (1 - hidden.square()) * query  # D V of each word
    back = slope @ parts.matrix  # u of each word
    cross = back @ head.T / scale
    polarity = {
        "A": rho[:, None] * cross,
        "B": pi @ (head @ head.T),
        "C": words @ (words.T @ pi),
    }
    learnt = (slope * rho[:, None]).T @ words
    attention = {
        "D": (pi * cross).sum(1),
        "E": rho * back.square().sum(1) / scale**2,
        "F": hidden @ (hidden.T @ rho) / scale**2,
        "map E": (slope * (words @ learnt.T)).sum(1) / scale**2,
    }
    if parts.bias is not None:
        attention["bias"] = slope @ (slope.T @ rho) / scale**2
    pull = rho[:, None] * back / scale + pi @ head
    return polarity, attention, pull


def pair_means(
    first: Float64[Tensor, "word dim"],
    second: Float64[Tensor, "word dim"],
    groups: Int[Tensor, " word"],
    count: int,
) -> Float64[Tensor, "group group"]:
    """Mean of first_i · second_k over pairs i ≠ k of each two groups, from sums per group.

    Words of group -1 belong nowhere; a block without pairs is nan.
    """
    known = groups >= 0
    groups = groups[known]

    def summed(values: Tensor) -> Tensor:
        shape = (count, *values.shape[1:])
        empty = torch.zeros(shape, dtype=values.dtype, device=values.device)
        return empty.index_add(0, groups, values)

    total = summed(first[known]) @ summed(second[known]).T
    size = torch.bincount(groups, minlength=count).double()
    pairs = size[:, None] * size - torch.diag(size)
    itself = summed((first[known] * second[known]).sum(1))
    return (total - torch.diag(itself)) / torch.where(pairs > 0, pairs, torch.nan)


def dot_product_rate(
    model: AttentionClassifier, found: Flow, chosen: Bool[Tensor, " word"] | Int[Tensor, " chosen"]
) -> Float64[Tensor, "chosen chosen"]:
    """dΩ/dτ of every pair of the chosen words."""
    one_way = found.velocity[chosen] @ parts_of(model).words[chosen].T
    return one_way + one_way.T


def word_terms(
    model: AttentionClassifier, encoded: Encoded, words: Sequence[str], output: int = -1
) -> pd.DataFrame:
    """A row for each word: its two scores, and the terms that push each of them.

    Columns `polarity A`, `attention D`, … hold the terms; `output` is the class whose polarity is
    looked at in a model of more than two classes.
    """
    unseen = [word for word in words if word not in model.vocabulary.ids]
    if unseen:
        raise InputError(f"the model does not know the word {unseen[0]!r}; choose another.")
    found = flow(model, encoded)
    said = found.scores.logits[:, output]
    columns = {"polarity": found.scores.polarity if len(model.classes) == 2 else said}
    columns |= {"attention": found.scores.scores}
    columns |= {f"polarity {name}": term for name, term in found.towards(output).items()}
    columns |= {f"attention {name}": term for name, term in found.attention.items()}
    places = [model.vocabulary.ids[word] for word in words]
    values = {name: column[places].tolist() for name, column in columns.items()}
    return pd.DataFrame({"word": list(words)} | values)


@dataclass
class FlowLog:
    """Scores and terms of chosen words at every evaluation: `fit(observers=[FlowLog(["good"])])`.

    `output` is the class whose polarity is followed in a model with one logit per class; the
    last one unless given.
    """

    words: Sequence[str]
    split: str = "train"
    output: int = -1
    tables: list[pd.DataFrame] = field(default_factory=list)

    def __call__(self, moment: Moment) -> None:
        """Logs the moment."""
        self.log(moment.step, moment.epoch, moment.model, moment.corpus)

    def log(
        self, step: int, epoch: float, model: AttentionClassifier, corpus: EncodedCorpus
    ) -> None:
        """One entry for each word."""
        found = word_terms(model, corpus.splits[self.split], self.words, self.output)
        found.insert(0, "epoch", epoch)
        found.insert(0, "step", step)
        self.tables.append(found)

    def table(self) -> pd.DataFrame:
        """One row per word and evaluation, one column per term."""
        return pd.concat(self.tables, ignore_index=True) if self.tables else pd.DataFrame()


def by_class(found: Flow, classes: TokenClasses, output: int = -1) -> pd.DataFrame:
    """Each term over the words of each class: its mean, mean size and share of positive values."""
    terms = found.towards(output)
    terms |= {f"attention {k}" if k in terms else k: v for k, v in found.attention.items()}
    rows = []
    for name in classes.names:
        chosen = torch.from_numpy(classes.of(name)).to(found.rho.device)
        count = int(chosen.sum())
        for term, values in terms.items():
            here = values[chosen]
            rows.append(
                {
                    "class": name,
                    "term": term,
                    "n": count,
                    "mean": float(here.mean()) if count else float("nan"),
                    "size": float(here.abs().mean()) if count else float("nan"),
                    "positive": int((here > 0).sum()),
                    "negative": int((here < 0).sum()),
                }
            )
    return pd.DataFrame(rows)
