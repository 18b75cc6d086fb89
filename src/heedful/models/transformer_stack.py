"""Transformers of one shape side by side: all their parameters are one table, a row per model.

A small Transformer on a GPU waits for launches: 84 parameters make some thousand of them a step.
Here every layer of all models is one batched product and the optimiser sees a single tensor, so
that fifteen models take as many launches as a third of one does alone.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn
from torch.nn import functional

from heedful.errors import InputError
from heedful.models.classifier_stack import refuse_unlike
from heedful.models.transformer import EPSILON, TransformerClassifier, sinusoids

FREE = ("loss", "dropout_epochs", "positions")
"""Fields of TransformerConfig in which stacked models may differ."""
ASKED = "asked"
"""A layer's keys and values, which lie side by side and are one product."""
ALIGNED = 4
"""Parameters start at multiples of this, which the fast kernels for products ask for."""


class StackBatch(NamedTuple):
    """A batch for each of some models. Rows and tokens beyond a model's own are padding."""

    models: tuple[int, ...]
    """Which of the stack's models read it."""
    ids: Int[Tensor, "model batch token"]
    mask: Bool[Tensor, "model batch token"]
    """True where there is a token; also at one token of every row that only fills up."""
    labels: Int[Tensor, "model batch"]
    share: Float[Tensor, "model batch"]
    """1 for a document of the model's own batch, 0 for a row that only fills up."""
    sizes: tuple[tuple[int, int], ...]
    """Documents and longest document of each model's own batch."""


class Drops:
    """Dropout in one step: every model draws its own, those past their epochs draw nothing.

    On the CPU each model draws from its own generator what it would draw alone. On a GPU all draw
    at once from the device's own generator.
    """

    def __init__(
        self,
        generators: Sequence[torch.Generator],
        is_dropping: Sequence[bool],
        sizes: Sequence[tuple[int, int]],
    ) -> None:
        self.generators, self.is_dropping, self.sizes = generators, tuple(is_dropping), sizes

    def runs(self) -> Iterator[tuple[slice, bool]]:
        """Neighbouring models that all drop, or all do not."""
        start = 0
        for stop in range(1, len(self.is_dropping) + 1):
            if stop == len(self.is_dropping) or self.is_dropping[stop] != self.is_dropping[start]:
                yield slice(start, stop), self.is_dropping[start]
                start = stop

    def __call__(self, x: Tensor, share: float, axes: str) -> Tensor:
        """What dropout lets through; `axes` names those after the model: b, t, or any other."""
        if not share or not any(self.is_dropping):
            return x
        if x.is_cuda:
            found = [
                functional.dropout(x[at], share) if is_on else x[at] for at, is_on in self.runs()
            ]
            return found[0] if len(found) == 1 else torch.cat(found)
        kept = torch.ones_like(x)
        for row, drops in enumerate(self.is_dropping):
            if drops:
                own = {"b": self.sizes[row][0], "t": self.sizes[row][1]}
                shape = [own.get(axis, size) for axis, size in zip(axes, x.shape[1:], strict=True)]
                drawn = x.new_empty(shape).bernoulli_(1 - share, generator=self.generators[row])
                kept[row][tuple(slice(size) for size in shape)] = drawn / (1 - share)
        return x * kept


class TransformerStack:
    """The parameters of all models, and their forward pass."""

    def __init__(
        self, models: Sequence[TransformerClassifier], device: torch.device | str = "cpu"
    ) -> None:
        if not models:
            raise InputError("a stack needs at least one model.")
        self.models, self.config = tuple(models), models[0].config
        refuse_unlike(models, FREE)
        named = dict(models[0].named_parameters())
        self.places: dict[str, tuple[int, torch.Size]] = {}
        end = 0
        for name in sorted(named, key=lambda name: named[name].numel() % ALIGNED > 0):
            self.places[name] = (end, named[name].shape)
            end += named[name].numel()
        self.shapes = _joined({name: shape for name, (_, shape) in self.places.items()})
        width = -(-end // ALIGNED) * ALIGNED
        whole = torch.zeros(len(models), width, dtype=models[0].vectors.table.dtype)
        for row, model in enumerate(models):
            for name, weight in model.named_parameters():
                start = self.places[name][0]
                whole[row, start : start + weight.numel()] = weight.detach().flatten()
        self.weights = nn.Parameter(whole.to(device))
        tables = [model.vectors.table for model in models]
        is_shared = all(torch.equal(table, tables[0]) for table in tables[1:])
        self.vectors = torch.stack(tables[:1] if is_shared else tables).to(device)
        self._indices: dict[tuple[int, ...], Tensor] = {}

    def __len__(self) -> int:
        return len(self.models)

    def parameters(self) -> list[nn.Parameter]:
        """The one table."""
        return [self.weights]

    def state_dict(self) -> dict[str, Tensor]:
        """The table as it is now."""
        return {"weights": self.weights.detach()}

    def load_state_dict(self, state: Mapping[str, Tensor]) -> None:
        """Puts a copy of another table in place."""
        with torch.no_grad():
            self.weights.copy_(state["weights"])

    def release(self) -> None:
        """Copies the weights into the models."""
        rows = self.weights.detach().cpu()
        with torch.no_grad():
            for row, model in zip(rows, self.models, strict=True):
                for name, weight in model.named_parameters():
                    start, shape = self.places[name]
                    weight.copy_(row[start : start + weight.numel()].view(shape))

    def scatter(self, total: Tensor, found: Tensor, models: tuple[int, ...]) -> None:
        """Adds what was found of some models to a total of all."""
        total.index_add_(0, self._index(models), found)

    def forward(
        self, batch: StackBatch, drops: Drops | None = None
    ) -> Float[Tensor, "model batch class"]:
        """Logits of every model on its own batch."""
        drops = drops or Drops((), (False,) * len(batch.models), batch.sizes)
        config, parts = self.config, self._parts(batch.models)
        which = self._index(batch.models if len(self.vectors) > 1 else (0,))
        stream = self.vectors[which[:, None, None], batch.ids]
        has_positions = self._which(batch.models, "positions", "sinusoidal")
        if any(has_positions):
            waves = sinusoids(*stream.shape[2:]).to(stream)
            share = self._index(tuple(map(int, has_positions))).to(stream)
            stream = stream + share[:, None, None, None] * waves
        stream = drops(stream, config.dropout, "btd")
        # Added to scores once for all layers; a mask of True and False would be turned into it in
        # each of them.
        hidden = stream.new_zeros(batch.mask.shape).masked_fill_(~batch.mask, -torch.inf)
        for number in range(config.layers):
            stream = self._layer(parts, f"encoder.layers.{number}", stream, hidden, drops)
        states = _normed(parts, "encoder.norm", stream)
        x = states
        for place in (0, 3):
            x = _linear(parts, f"encoder.pooling.{place}", x).relu()
            x = drops(x, config.top_dropout, "btd")
        scores = _linear(parts, "encoder.pooling.6", x)[..., 0] + hidden
        context = (scores.softmax(-1)[..., None, :] @ states)[..., 0, :]
        x = drops(_linear(parts, "head.0", context).relu(), config.top_dropout, "bd")
        return _linear(parts, "head.3", x)

    def losses(
        self, logits: Float[Tensor, "model batch class"], batch: StackBatch
    ) -> Float[Tensor, " model"]:
        """What training lowers, of each model: its gradient reaches its own row alone."""
        wanted = functional.one_hot(batch.labels, logits.shape[-1]).to(logits)
        is_mean = self._which(batch.models, "loss", "cross-entropy")
        found: list[Tensor] = []
        if not all(is_mean):
            binary = functional.binary_cross_entropy_with_logits(logits, wanted, reduction="none")
            found.append((binary.sum(-1) * batch.share).sum(-1))
        if any(is_mean):
            lost = logits.logsumexp(-1) - (logits * wanted).sum(-1)
            found.append((lost * batch.share).sum(-1) / batch.share.sum(-1))
        if len(found) == 1:
            return found[0]
        return torch.where(self._index(tuple(map(int, is_mean))) > 0, found[1], found[0])

    def _layer(
        self, parts: dict[str, Tensor], name: str, stream: Tensor, hidden: Tensor, drops: Drops
    ) -> Float[Tensor, "model batch token dim"]:
        config = self.config
        models, rows, tokens, _ = stream.shape
        normed = _normed(parts, f"{name}.norm", stream)
        asked = normed if config.norm == "full" else stream

        def by_head(x: Tensor) -> Float[Tensor, "sequence head token dim"]:
            return x.view(*x.shape[:3], config.heads, -1).flatten(0, 1).transpose(1, 2)

        query = by_head(_linear(parts, f"{name}.query", normed))
        key, value = map(by_head, _linear(parts, f"{name}.{ASKED}", asked).chunk(2, -1))
        mixed = self._attended(query, key, value, hidden, drops)
        mixed = mixed.transpose(1, 2).reshape(models, rows, tokens, -1)
        stream = stream + drops(_linear(parts, f"{name}.out", mixed), config.dropout, "btd")
        x = _normed(parts, f"{name}.feed_forward.0", stream)
        x = _linear(parts, f"{name}.feed_forward.1", x).relu()
        x = _linear(parts, f"{name}.feed_forward.3", x)
        return stream + drops(x, config.dropout, "btd")

    def _attended(
        self, query: Tensor, key: Tensor, value: Tensor, hidden: Tensor, drops: Drops
    ) -> Float[Tensor, "sequence head token dim"]:
        """Attended values; dropout acts on the attention itself."""
        share, rows = self.config.dropout, hidden.shape[1]
        added = hidden.flatten(0, 1)[:, None, None].to(query.dtype)
        if not share or not any(drops.is_dropping):
            return functional.scaled_dot_product_attention(query, key, value, attn_mask=added)
        if not query.is_cuda:
            scores = query @ key.transpose(-1, -2) * self.config.head_dim**-0.5 + added
            attention = scores.softmax(-1).view(-1, rows, *scores.shape[1:])
            return drops(attention, share, "bhtt").flatten(0, 1) @ value
        found = []
        for models, is_dropping in drops.runs():
            at = slice(models.start * rows, models.stop * rows)
            one = functional.scaled_dot_product_attention(
                query[at], key[at], value[at], attn_mask=added[at],
                dropout_p=share if is_dropping else 0.0,
            )  # fmt: skip
            found.append(one)
        return found[0] if len(found) == 1 else torch.cat(found)

    def _which(self, models: tuple[int, ...], field: str, value: str) -> list[bool]:
        return [getattr(self.models[row].config, field) == value for row in models]

    def _index(self, numbers: tuple[int, ...]) -> Int[Tensor, " model"]:
        """The numbers on the device; copied there once, since a copy makes the host wait."""
        if numbers not in self._indices:
            self._indices[numbers] = torch.tensor(numbers, device=self.weights.device)
        return self._indices[numbers]

    def _parts(self, models: tuple[int, ...]) -> dict[str, Tensor]:
        """Parameters of some models as views with a leading model axis; their gradient is one."""
        is_whole = models == tuple(range(len(self)))
        weights = self.weights if is_whole else self.weights[self._index(models)]
        sizes = [shape.numel() for shape in self.shapes.values()]
        rest = weights.shape[1] - sum(sizes)
        views = torch.split(weights, [*sizes, rest], dim=1)
        return {
            name: view.view(len(weights), *shape)
            for (name, shape), view in zip(self.shapes.items(), views[:-1], strict=True)
        }


def _joined(shapes: dict[str, torch.Size]) -> dict[str, torch.Size]:
    """The same parameters in the same order, each layer's keys and values as one."""
    found: dict[str, torch.Size] = {}
    for name, shape in shapes.items():
        layer, _, part = name.removesuffix(".weight").rpartition(".")
        if part == "key":
            found[f"{layer}.{ASKED}.weight"] = torch.Size((2 * shape[0], shape[1]))
        elif part != "value":
            found[name] = shape
    return found


def _linear(parts: dict[str, Tensor], name: str, x: Float[Tensor, "model ... dim"]) -> Tensor:
    """A linear layer of every model on its own inputs: one batched product."""
    weight, bias = parts[f"{name}.weight"], parts.get(f"{name}.bias")
    flat = x.reshape(len(weight), -1, x.shape[-1])
    turned = weight.transpose(1, 2)
    out = flat @ turned if bias is None else torch.baddbmm(bias[:, None], flat, turned)
    return out.view(*x.shape[:-1], -1)


def _normed(parts: dict[str, Tensor], name: str, x: Float[Tensor, "model ... dim"]) -> Tensor:
    """A layer norm of every model, with its own scale and shift."""
    plain = functional.layer_norm(x, x.shape[-1:], eps=EPSILON)
    shape = len(x), *[1] * (x.dim() - 2), -1
    return torch.addcmul(
        parts[f"{name}.bias"].view(shape), plain, parts[f"{name}.weight"].view(shape)
    )
