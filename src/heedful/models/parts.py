"""Encoders and attentions, built by name."""

from __future__ import annotations

import math
from typing import NamedTuple

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from heedful.models.recipe import ModelConfig


class Recurrent(nn.Module):
    """(Bi)LSTM or (Bi)GRU; padding never enters."""

    def __init__(self, config: ModelConfig, input_dim: int) -> None:
        super().__init__()
        directions = 2 if config.encoder.startswith("bi") else 1
        kind = nn.LSTM if config.encoder.endswith("lstm") else nn.GRU
        self.cells = kind(
            input_dim,
            config.width // directions,
            num_layers=config.layers,
            bidirectional=directions == 2,
            batch_first=True,
        )
        if config.start == "orthogonal":
            for name, weight in self.cells.named_parameters():
                if "bias" in name:
                    nn.init.zeros_(weight)
                elif "weight_ih" in name:
                    nn.init.xavier_uniform_(weight)
                else:
                    nn.init.orthogonal_(weight)
        elif config.start == "orthogonal cells":
            for weight in self.cells.parameters():
                if weight.dim() == 2:
                    nn.init.orthogonal_(weight)  # all gates as one matrix, as in the polarity study
        if config.gru_bias_quirk:
            # A helper for an LSTM's four gates, applied to a GRU's three: what would be the forget
            # gate lies across reset and update (docs/studies/erasure.md, "Start of the weights").
            for name, weight in self.cells.named_parameters():
                if "bias_hh" in name:
                    quarter = len(weight) // 4
                    nn.init.zeros_(weight)
                    nn.init.ones_(weight[quarter : 2 * quarter])

    def forward(
        self, inputs: Float[Tensor, "batch unit input"], mask: Bool[Tensor, "batch unit"]
    ) -> Float[Tensor, "batch unit dim"]:
        """States at every unit; zero at padding."""
        # On a processor the gradient of packed texts grows with the square of their length: every
        # step's share of it is a tensor as large as the whole batch.
        return (_packed if inputs.is_cuda else _padded)(self.cells, inputs, mask)


def _packed(
    cells: nn.LSTM | nn.GRU,
    inputs: Float[Tensor, "batch unit input"],
    mask: Bool[Tensor, "batch unit"],
) -> Float[Tensor, "batch unit dim"]:
    """The states in one launch, packed by true length."""
    lengths = mask.sum(-1).cpu()
    packed = pack_padded_sequence(inputs, lengths, batch_first=True, enforce_sorted=False)
    states, _ = cells(packed)
    padded, _ = pad_packed_sequence(states, batch_first=True, total_length=mask.shape[1])
    return padded


def _padded(
    cells: nn.LSTM | nn.GRU,
    inputs: Float[Tensor, "batch unit input"],
    mask: Bool[Tensor, "batch unit"],
) -> Float[Tensor, "batch unit dim"]:
    """The same, each direction by itself: a text is turned round before its padding."""
    position, lengths = torch.arange(mask.shape[1], device=mask.device), mask.sum(-1, keepdim=True)
    turned = torch.where(mask, lengths - 1 - position, position)[..., None]
    directions = 1 + cells.bidirectional
    start = inputs.new_zeros(1, len(inputs), cells.hidden_size)
    states = inputs.masked_fill(~mask[..., None], 0)
    for layer in range(cells.num_layers):
        parts = []
        for direction in range(directions):
            weights: list[Tensor] = list(cells.all_weights[layer * directions + direction])
            given = states.gather(1, turned.expand(states.shape)) if direction else states
            rest = weights, True, 1, 0.0, cells.training, False, True
            if isinstance(cells, nn.LSTM):
                part = torch.lstm(given, (start, start), *rest)[0]
            else:
                part = torch.gru(given, start, *rest)[0]
            parts.append(part.gather(1, turned.expand(part.shape)) if direction else part)
        states = torch.cat(parts, -1)
    return states.masked_fill(~mask[..., None], 0)


class Convolution(nn.Module):
    """Windows of 3 and of 5 units, half of the width each, ReLU; padding reads and gives zero."""

    def __init__(self, config: ModelConfig, input_dim: int) -> None:
        super().__init__()
        self.narrow = nn.Conv1d(input_dim, config.width // 2, 3, padding=1)
        self.wide = nn.Conv1d(input_dim, config.width // 2, 5, padding=2)
        self.dropout = nn.Dropout(config.window_dropout)

    def forward(
        self, inputs: Float[Tensor, "batch unit input"], mask: Bool[Tensor, "batch unit"]
    ) -> Float[Tensor, "batch unit dim"]:
        """Features at every unit; zero at padding."""
        x = self.dropout(inputs * mask[..., None]).transpose(1, 2)
        features = torch.cat([self.narrow(x), self.wide(x)], 1).relu().transpose(1, 2)
        return features * mask[..., None]


class Affine(nn.Module):
    """The same affine map at every unit, with or without tanh."""

    def __init__(self, config: ModelConfig, input_dim: int) -> None:
        super().__init__()
        self.linear = nn.Linear(input_dim, config.width)
        self.is_squashed = config.encoder == "affine-tanh"

    def forward(
        self, inputs: Float[Tensor, "batch unit input"], mask: Bool[Tensor, "batch unit"]
    ) -> Float[Tensor, "batch unit dim"]:
        """Mapped inputs."""
        mapped: Tensor = self.linear(inputs)
        return mapped.tanh() if self.is_squashed else mapped


class NoEncoder(nn.Module):
    """The inputs themselves."""

    def forward(
        self, inputs: Float[Tensor, "batch unit input"], mask: Bool[Tensor, "batch unit"]
    ) -> Float[Tensor, "batch unit input"]:
        """The inputs, untouched."""
        return inputs


class Marked(nn.Module):
    """An encoder that also reads a learnt start and end vector around each sequence.

    Their states are dropped, so that neither can be attended (docs/studies/faithful.md,
    "Attention").
    """

    def __init__(self, encoder: nn.Module, input_dim: int) -> None:
        super().__init__()
        self.encoder = encoder
        self.marks = nn.Parameter(torch.randn(2, input_dim) / math.sqrt(input_dim))

    def forward(
        self, inputs: Float[Tensor, "batch unit input"], mask: Bool[Tensor, "batch unit"]
    ) -> Float[Tensor, "batch unit dim"]:
        """States at every unit; zero at padding."""
        start = self.marks[0].expand(len(inputs), 1, -1)
        end = torch.zeros_like(start)
        longer = torch.cat([start, inputs * mask[..., None], end], 1)
        document, last = torch.arange(len(inputs), device=mask.device), mask.sum(-1) + 1
        longer = longer.index_put((document, last), self.marks[1])
        position = torch.arange(longer.shape[1], device=mask.device)
        states: Tensor = self.encoder(longer, position <= last[:, None])
        return states[:, 1:-1] * mask[..., None]


class AdditiveScores(nn.Module):
    """c · tanh(W h + b) / λ; that of the dynamics study is (c · ReLU(W h + b) + d) / λ."""

    def __init__(self, config: ModelConfig, dim: int) -> None:
        super().__init__()
        self.is_relu = config.attention == "additive-relu"
        hidden = config.attention_dim or max(dim // 2, 1)
        self.hidden = nn.Linear(dim, hidden, bias=self.is_relu or config.additive_bias)
        self.query = nn.Linear(hidden, 1, bias=self.is_relu)
        if config.normal_additive_query and not self.is_relu:
            nn.init.normal_(self.query.weight)
        self.scale = config.scale or 1.0

    def forward(self, values: Float[Tensor, "batch unit dim"]) -> Float[Tensor, "batch unit"]:
        """A score for each unit."""
        hidden: Tensor = self.hidden(values)
        scores: Tensor = self.query(hidden.relu() if self.is_relu else hidden.tanh())
        return scores[..., 0] / self.scale


class DotScores(nn.Module):
    """q · h / λ, with λ = √dim for the scaled form unless given."""

    def __init__(self, config: ModelConfig, dim: int) -> None:
        super().__init__()
        self.query = nn.Linear(dim, 1, bias=False)
        if config.normal_query:
            nn.init.normal_(self.query.weight)
        is_scaled = config.attention == "scaled-dot"
        self.scale = config.scale or (math.sqrt(dim) if is_scaled else 1.0)

    def forward(self, values: Float[Tensor, "batch unit dim"]) -> Float[Tensor, "batch unit"]:
        """A score for each unit."""
        scores: Tensor = self.query(values)
        return scores[..., 0] / self.scale


class AskingScores(nn.Module):
    """(Q h̄) · h / λ: dot attention whose query is made from the document's mean value h̄."""

    def __init__(self, config: ModelConfig, dim: int) -> None:
        super().__init__()
        self.query = nn.Linear(dim, dim, bias=False)
        if config.normal_query:
            nn.init.normal_(self.query.weight)
        is_scaled = config.attention == "scaled-dot"
        self.scale = config.scale or (math.sqrt(dim) if is_scaled else 1.0)

    def forward(
        self, values: Float[Tensor, "batch unit dim"], mask: Bool[Tensor, "batch unit"]
    ) -> Float[Tensor, "batch unit"]:
        """A score for each unit."""
        mean = (values * mask[..., None]).sum(1) / mask.sum(-1, keepdim=True)
        query: Tensor = self.query(mean)
        return (values @ query[..., None])[..., 0] / self.scale


class UniformScores(nn.Module):
    """The same score everywhere: attention frozen uniform."""

    def forward(self, values: Float[Tensor, "batch unit dim"]) -> Float[Tensor, "batch unit"]:
        """Zeros."""
        return values.new_zeros(values.shape[:2])


class Attended(NamedTuple):
    """What one level of attention saw and gave."""

    states: Float[Tensor, "batch unit encoded"]
    """What the encoder made of the inputs, before the join."""
    values: Float[Tensor, "batch unit dim"]
    """What is attended: states, joined with inputs where the recipe says so."""
    scores: Float[Tensor, "batch unit"]
    """-inf at padding."""
    context: Float[Tensor, "batch dim"]


class Level(nn.Module):
    """Dropout, encoder, join and attention over one sequence of units."""

    def __init__(self, config: ModelConfig, input_dim: int, dropout: float) -> None:
        super().__init__()
        self.dropout = nn.Dropout(dropout)
        match config.encoder:
            case "none":
                self.encoder: nn.Module = NoEncoder()
            case "affine" | "affine-tanh":
                self.encoder = Affine(config, input_dim)
            case "conv":
                self.encoder = Convolution(config, input_dim)
            case _:
                self.encoder = Recurrent(config, input_dim)
        if config.marks:
            self.encoder = Marked(self.encoder, input_dim)
        encoded = input_dim if config.encoder == "none" else config.width
        self.join = config.join
        self.dim = encoded + input_dim if config.join == "concat" else encoded
        match config.attention:
            case "additive" | "additive-relu":
                self.attention: nn.Module = AdditiveScores(config, self.dim)
            case "uniform":
                self.attention = UniformScores()
            case _ if config.instance_query:
                self.attention = AskingScores(config, self.dim)
            case _:
                self.attention = DotScores(config, self.dim)

    def forward(
        self, inputs: Float[Tensor, "batch unit input"], mask: Bool[Tensor, "batch unit"]
    ) -> Attended:
        """Values, scores and the attended context."""
        inputs = self.dropout(inputs)
        states: Tensor = self.encoder(inputs, mask)
        values = states
        if self.join == "concat":
            values = torch.cat([states, inputs], -1)
        elif self.join == "residual":
            values = states + inputs
        asks = isinstance(self.attention, AskingScores)
        scores = self.attention(values, mask) if asks else self.attention(values)
        scores = scores.masked_fill(~mask, -torch.inf)
        context = (scores.softmax(-1)[..., None] * values).sum(1)
        return Attended(states, values, scores, context)
