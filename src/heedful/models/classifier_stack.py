"""Several classifiers of one shape side by side: every parameter has a leading model axis.

Small models on a GPU wait for its launches, not for its arithmetic: seven λ and five seeds take
hardly longer together than one alone. The models' own parameters become views into the stack, so
whoever holds a model sees it learn.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from typing import Any, NamedTuple

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn
from torch.nn import functional

from heedful.corpora.batches import Batch
from heedful.errors import InputError
from heedful.models.classifier import AttentionClassifier
from heedful.models.recurrent import lstm
from heedful.models.transformer import TransformerClassifier

ENCODERS = ("none", "affine", "affine-tanh", "lstm", "bilstm")
FREE = ("scale", "normal_query", "normal_additive_query", "start", "embedding_start", "head_start")
"""Fields of ModelConfig in which stacked models may differ."""


class Dropped(NamedTuple):
    """What dropout lets through: a draw for each seed, and whose draw each model gets."""

    inputs: Bool[Tensor, "seed batch unit dim"] | None
    context: Bool[Tensor, "seed batch dim"] | None
    seed_of_model: Int[Tensor, " model"]


class StackPass(NamedTuple):
    """One forward pass of every model."""

    logits: Float[Tensor, "model batch class"]
    values: Float[Tensor, "model batch unit dim"]
    scores: Float[Tensor, "model batch unit"]
    states: Float[Tensor, "model batch unit encoded"]
    """What the encoder makes of the inputs, before they are joined to it."""
    inputs: Float[Tensor, "model batch unit input"]


class ClassifierStack:
    """The parameters of all models, and their forward pass."""

    def __init__(self, models: Sequence[AttentionClassifier], device: torch.device | str) -> None:
        if not models:
            raise InputError("a stack needs at least one model.")
        self.models = tuple(model.to(device) for model in models)
        self.config = models[0].config
        self._check()
        self.scale = torch.tensor(
            [float(getattr(model.level.attention, "scale", 1.0)) for model in models],
            device=device,
            dtype=models[0].head.weight.dtype,
        )
        self.weights: dict[str, nn.Parameter] = {}
        for name, first in models[0].named_parameters():
            whole = torch.stack([dict(m.named_parameters())[name].detach() for m in models])
            self.weights[name] = nn.Parameter(whole, requires_grad=first.requires_grad)
        for name in self.weights:
            for row, model in enumerate(self.models):
                dict(model.named_parameters())[name].data = self.weights[name].data[row]

    def __len__(self) -> int:
        return len(self.models)

    def named_parameters(self) -> Iterable[tuple[str, nn.Parameter]]:
        """Stacked parameters under the names they have in a single model."""
        return self.weights.items()

    def parameters(self) -> Iterable[nn.Parameter]:
        """All stacked parameters."""
        return self.weights.values()

    def state_dict(self) -> dict[str, Tensor]:
        """All stacked weights, as they are now."""
        return {name: weight.detach() for name, weight in self.weights.items()}

    def load_state_dict(self, weights: Mapping[str, Tensor]) -> None:
        """Puts copies of stacked weights in place, and so into every model."""
        with torch.no_grad():
            for name, weight in self.weights.items():
                weight.copy_(weights[name])

    def release(self) -> None:
        """Gives every model parameters of its own again."""
        for model in self.models:
            _own(model)

    def forward(
        self,
        batch: Batch,
        dropped: Dropped | None = None,
        vectors: Float[Tensor, "model word dim"] | None = None,
    ) -> StackPass:
        """All models on the batch, with dropout where it is given.

        `vectors` are read in place of the table of all words, the batch's ids numbering their rows.
        """
        return self.passed(batch.ids, batch.mask, dropped, vectors)

    def passed(
        self,
        ids: Int[Tensor, "*model batch token"],
        mask: Bool[Tensor, "*model batch token"],
        dropped: Dropped | None = None,
        vectors: Float[Tensor, "model word dim"] | None = None,
    ) -> StackPass:
        """The same from words: documents that all models read, or with a model axis its own."""
        config = self.config
        table = self.weights["embedding.weight"] if vectors is None else vectors
        inputs = looked_up(table, ids)
        if dropped is not None and dropped.inputs is not None:
            kept = dropped.inputs[dropped.seed_of_model]
            inputs = inputs * kept / (1 - config.dropout)
        states = self._encoded(inputs, mask)
        values = states
        if config.join == "concat":
            values = torch.cat([states, inputs], -1)
        elif config.join == "residual":
            values = states + inputs
        scores = self._asked(values, mask) if config.instance_query else self.scores(values)
        scores = scores.masked_fill(~mask, -torch.inf)
        context = (scores.softmax(-1)[..., None, :] @ values)[..., 0, :]
        if dropped is not None and dropped.context is not None:
            kept = dropped.context[dropped.seed_of_model]
            context = context * kept / (1 - config.head_dropout)
        return StackPass(self.head(context), values, scores, states, inputs)

    def head(self, context: Float[Tensor, "model *row dim"]) -> Float[Tensor, "model *row class"]:
        """Logits of every class from attended contexts, or from single values."""
        logits = self._linear("head", context)
        if self.config.one_logit:
            logits = torch.cat([torch.zeros_like(logits), logits], -1)
        return logits

    def draw(
        self,
        batch: Batch,
        generators: Sequence[torch.Generator],
        seed_of_model: Int[Tensor, " model"],
    ) -> Dropped:
        """What dropout keeps: for each seed the draws a single model would make, in its order."""
        config, device = self.config, self.scale.device
        width = self.weights["head.weight"].shape[-1]
        shapes = {
            "inputs": (config.dropout, (*batch.ids.shape, config.embedding_dim)),
            "context": (config.head_dropout, (len(batch), width)),
        }
        kept: dict[str, list[Tensor]] = {"inputs": [], "context": []}
        for generator in generators:
            for name, (share, shape) in shapes.items():
                if share:
                    empty = torch.empty(shape, dtype=torch.bool, device=device)
                    kept[name].append(empty.bernoulli_(1 - share, generator=generator))
        inputs, context = (torch.stack(kept[name]) if kept[name] else None for name in shapes)
        return Dropped(inputs, context, seed_of_model)

    def alignment(self) -> Float[Tensor, " model"]:
        """|V·W| of each model, as `objectives.alignment`."""
        return self.alignments().abs().sum(-1)

    def alignments(self) -> Float[Tensor, "model output"]:
        """V·W of each model and output; of models with dot attention."""
        query: Tensor = self.weights["level.attention.query.weight"][:, 0]
        head: Tensor = self.weights["head.weight"]
        if self.config.encoder == "affine":
            through = self.weights["level.encoder.linear.weight"]
            query = (query[:, None] @ through)[:, 0]
            head = head @ through
        return (head @ query[..., None])[..., 0]

    def _encoded(self, inputs: Tensor, mask: Tensor) -> Float[Tensor, "model batch unit dim"]:
        match self.config.encoder:
            case "none":
                return inputs
            case "affine":
                return self._linear("level.encoder.linear", inputs)
            case "affine-tanh":
                return self._linear("level.encoder.linear", inputs).tanh()
        if not self.config.marks:
            return self._recurrent(inputs, mask, "level.encoder.cells")
        marks = self.weights["level.encoder.marks"][:, :, None, None]
        last = mask.sum(-1, keepdim=True) + 1
        start = marks[:, 0].expand(-1, inputs.shape[1], 1, -1)
        longer = torch.cat([start, inputs * mask[..., None], torch.zeros_like(start)], 2)
        position = torch.arange(longer.shape[2], device=mask.device)
        longer = torch.where((position == last)[..., None], marks[:, 1], longer)
        states = self._recurrent(longer, position <= last, "level.encoder.encoder.cells")
        return states[:, :, 1:-1] * mask[..., None]

    def scores(self, values: Tensor) -> Float[Tensor, "model batch unit"]:
        """Unnormalised attention to every value."""
        if self.config.attention == "uniform":
            return values.new_zeros(values.shape[:-1])
        if self.config.attention == "additive":
            values = self._linear("level.attention.hidden", values).tanh()
        if self.config.attention == "additive-relu":
            values = self._linear("level.attention.hidden", values).relu()
        scores = self._linear("level.attention.query", values)[..., 0]
        return scores / self.scale[:, None, None]

    def _asked(self, values: Tensor, mask: Tensor) -> Float[Tensor, "model batch unit"]:
        """Scores by a query that each document makes itself, from the mean of its values."""
        mean = (values * mask[..., None]).sum(2) / mask.sum(-1, keepdim=True)
        query = self._linear("level.attention.query", mean)
        return (values @ query[..., None])[..., 0] / self.scale[:, None, None]

    def _linear(self, name: str, inputs: Tensor) -> Tensor:
        """A linear layer of every model on its own inputs: one batched product."""
        weight, bias = self.weights[f"{name}.weight"], self.weights.get(f"{name}.bias")
        flat = inputs.reshape(len(weight), -1, inputs.shape[-1])
        out = flat @ weight.transpose(1, 2)
        if bias is not None:
            out = out + bias[:, None]
        return out.view(*inputs.shape[:-1], -1)

    def _recurrent(self, inputs: Tensor, mask: Tensor, cells_at: str) -> Tensor:
        """States of the last layer of (Bi)LSTMs."""
        for layer in range(self.config.layers):
            inputs = self._layer(inputs, mask, cells_at, layer)
        return inputs

    def _layer(self, inputs: Tensor, mask: Tensor, cells_at: str, layer: int) -> Tensor:
        """States of (Bi)LSTMs, all models and both directions in one loop over time.

        Each text is turned around within its own length for the second direction, so padding is
        always on the right and never enters.
        """
        ends = ("", "_reverse") if self.config.encoder == "bilstm" else ("",)
        models, batch, units, _ = inputs.shape
        turned = turning(mask)
        inward, hidden, of_input, of_state = (
            tuple(self.weights[f"{cells_at}.{kind}_l{layer}{end}"] for end in ends)
            for kind in ("weight_ih", "weight_hh", "bias_ih", "bias_hh")
        )
        # Inputs are put together and not their gates, which take several times their memory.
        reads = [inputs, *(turned_around(inputs, turned) for _ in ends[1:])]
        # Added one by one: the gradients of two joined biases would be one and the same memory.
        bias = torch.cat([one + two for one, two in zip(of_input, of_state, strict=True)])
        gates = torch.baddbmm(
            bias[:, None], torch.cat(reads).flatten(1, 2), torch.cat(inward).transpose(1, 2)
        )
        states, _ = lstm(
            gates.view(len(ends) * models, batch, units, -1),
            torch.cat([weight.transpose(1, 2) for weight in hidden]),
        )
        found = states.view(len(ends), models, batch, units, -1)
        parts = [found[0]] + [turned_around(back, turned) for back in found[1:]]
        return torch.cat(parts, -1) * mask[..., None]

    def _check(self) -> None:
        config = self.config
        fits = config.encoder in ENCODERS and not config.hierarchical
        fits = fits and config.embedding_norm is None and config.head_dropout_on == "input"
        is_deep = config.layers > 1 or config.marks or config.join != "none"
        if is_deep or config.instance_query:
            drops_out = config.dropout or config.head_dropout
            fits = fits and config.encoder in ("none", "lstm", "bilstm") and not drops_out
        if not fits:
            raise InputError(
                f"{config.encoder}+{config.attention} cannot be stacked; stacked models are flat, "
                f"with one of {', '.join(ENCODERS)}, and with several layers, a join, marks or a "
                "query of the instance they are recurrent and without dropout."
            )
        refuse_unlike(self.models, FREE)


class _LookedUp(torch.autograd.Function):
    """The vectors of words in every model: of the same words, or of each model's own.

    Where models share the batch, the gradient adds up along one short list of words for all of
    them, where `embedding` would sort as many lists as there are models; own words are one list
    too, numbered through all tables. Padding has no gradient: picking the other places out would
    make the host wait for the card, several times a step.
    """

    @staticmethod
    def forward(ctx: Any, table: Tensor, ids: Tensor) -> Tensor:
        ctx.save_for_backward(ids)
        ctx.words = table.shape[1]
        return _picked(table, ids)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None]:
        (ids,) = ctx.saved_tensors
        total = gradient.new_zeros(len(gradient), ctx.words, gradient.shape[-1])
        if ids.dim() == 2:
            total.index_add_(1, ids.flatten(), gradient.flatten(1, 2))
        else:
            total.flatten(0, 1).index_add_(0, _through(ids, ctx.words), gradient.flatten(0, 2))
        return total, None


def looked_up(
    table: Float[Tensor, "model word dim"], ids: Int[Tensor, "*model batch unit"]
) -> Float[Tensor, "model batch unit dim"]:
    """The vectors of words, in every model."""
    found: Tensor = _LookedUp.apply(table, ids)  # type: ignore[no-untyped-call]
    return found


class _Turned(torch.autograd.Function):
    """Every text turned around within its own length.

    Turning twice gives the text back, so the gradient is turned the same way: a gather, where
    differentiating the indexing would add up by sorting.
    """

    @staticmethod
    def forward(ctx: Any, values: Tensor, turned: Tensor) -> Tensor:
        ctx.save_for_backward(turned)
        return _picked(values.flatten(1, 2), turned)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None]:
        (turned,) = ctx.saved_tensors
        return _picked(gradient.flatten(1, 2), turned), None


def turning(mask: Bool[Tensor, "*model batch unit"]) -> Int[Tensor, "*model batch unit"]:
    """Where `turned_around` finds each unit, batch and units taken as one; padding stays."""
    batch, units = mask.shape[-2:]
    place = torch.arange(units, device=mask.device)
    turned = torch.where(mask, mask.sum(-1, keepdim=True) - 1 - place, place)
    return turned + units * torch.arange(batch, device=mask.device)[:, None]


def turned_around(
    values: Float[Tensor, "model batch unit dim"], turned: Int[Tensor, "*model batch unit"]
) -> Float[Tensor, "model batch unit dim"]:
    """Every text turned around within its own length."""
    found: Tensor = _Turned.apply(values, turned)  # type: ignore[no-untyped-call]
    return found


def _own(module: nn.Module) -> None:
    """Gives a module's parameters memory of their own."""
    for parameter in module.parameters():
        parameter.data = parameter.data.clone()
    for part in module.modules():
        if isinstance(part, nn.RNNBase):
            part.flatten_parameters()  # else cuDNN copies the weights at every call, and warns


def _picked(table: Tensor, rows: Tensor) -> Tensor:
    """Rows of every model's table: the same rows of each, or with a model axis each one's own."""
    if rows.dim() == 2:
        return table.index_select(1, rows.flatten()).view(len(table), *rows.shape, -1)
    found = table.flatten(0, 1).index_select(0, _through(rows, table.shape[1]))
    return found.view(*rows.shape, -1)


def _through(rows: Tensor, count: int) -> Tensor:
    """Rows of each model's own table of so many, as rows of all tables one under the other."""
    first = count * torch.arange(len(rows), device=rows.device)
    return (rows + first[:, None, None]).flatten()


def each_loss(
    logits: Float[Tensor, "model *row class"], right: Int[Tensor, " model *row"]
) -> Float[Tensor, " model *row"]:
    """Cross-entropy of each model's own answers: its gradient reaches its own weights alone."""
    flat = logits.reshape(-1, logits.shape[-1])
    return functional.cross_entropy(flat, right.reshape(-1), reduction="none").view(right.shape)


def mean_losses(
    logits: Float[Tensor, "model *row class"], right: Int[Tensor, " model *row"]
) -> Float[Tensor, " model"]:
    """The mean of each model's own losses."""
    return each_loss(logits, right).flatten(1).mean(1)


def refuse_unlike(
    models: Sequence[AttentionClassifier | TransformerClassifier], free: Sequence[str]
) -> None:
    """Raises unless the models differ in the free settings only."""
    first, ours = models[0], asdict(models[0].config)
    for model in models[1:]:
        theirs = asdict(model.config)
        differing = [name for name in ours if theirs[name] != ours[name] and name not in free]
        if differing or model.vocabulary != first.vocabulary or model.classes != first.classes:
            what = differing[0] if differing else "vocabulary or classes"
            raise InputError(f"stacked models must have the same {what}.")
