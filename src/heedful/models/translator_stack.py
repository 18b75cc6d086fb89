"""Small translators of one shape side by side: every parameter has a leading model axis."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from heedful.corpora.tasks import Sequences
from heedful.errors import InputError
from heedful.models.log_odds import log_odds
from heedful.models.recurrent import gru, lstm
from heedful.models.translator import Translator


class SeedsPass(NamedTuple):
    """One teacher-forced pass of every model over its own sequences."""

    logits: Float[Tensor, "model batch step word"]
    attention: Float[Tensor, "model batch head step unit"] | None
    """None where it is frozen uniform."""


class TranslatorStack:
    """The parameters of all models, and their forward pass as three dense stages."""

    def __init__(self, models: Sequence[Translator], device: torch.device | str = "cpu") -> None:
        if not models:
            raise InputError("a stack needs at least one model.")
        self.config = models[0].config
        if any(model.config != self.config for model in models):
            raise InputError("stacked translators must have the same configuration.")
        if self.config.layers > 1 or self.config.is_bidirectional:
            raise InputError("stacked translators have one layer and one direction.")
        states = [model.state_dict() for model in models]
        self.weights = {
            name: nn.Parameter(torch.stack([state[name] for state in states]).to(device))
            for name in states[0]
        }

    def __len__(self) -> int:
        return len(self.weights["words.weight"])

    def write(self, models: Iterable[Translator]) -> None:
        """Copies the weights back into models, one for each of the stack."""
        for row, model in enumerate(models):
            model.load_state_dict({n: w.detach()[row].cpu() for n, w in self.weights.items()})

    def forward(self, sequences: Sequences) -> SeedsPass:
        """Logits of every next symbol."""
        values, state, cell = self._run("encoder", sequences.source)
        states, _, _ = self._run("decoder", sequences.before, state, cell)
        if self.config.attention == "uniform":
            # The context is the same at every step: projected once per sentence.
            context = self._each_head(values.mean(2, keepdim=True))
            return SeedsPass(self._words(self._base(states) + self._said(context)), None)
        query = self._linear("query", states)
        models, batch, steps, _ = query.shape
        query = query.view(models, batch, steps, self.config.heads, -1).transpose(2, 3)
        attention = (query @ values[:, :, None].transpose(3, 4)).softmax(-1)
        if not self.config.has_own_projections:  # heads share all that follows: add them up first
            summed = attention.sum(2) if self.config.joined == "sum" else attention.mean(2)
            contexts = (summed @ values)[:, :, None]
        else:
            contexts = attention @ values[:, :, None]
        return SeedsPass(self._words(self._base(states) + self._said(contexts)), attention)

    def probe(self, sequences: Sequences) -> Float[Tensor, "model batch step unit"]:
        """The log-odds of each target if the context were one source state alone."""
        values, state, cell = self._run("encoder", sequences.source)
        states, _, _ = self._run("decoder", sequences.before, state, cell)
        base, said = self._base(states), self._said(self._each_head(values))
        parts = []
        for step in range(base.shape[2]):  # [model batch unit word] at a time
            logits = self._words(base[:, :, step, None] + said)
            right = sequences.target[:, :, step, None].expand(logits.shape[:3])
            parts.append(log_odds(logits, right))
        return torch.stack(parts, 2)

    def _each_head(self, values: Tensor) -> Float[Tensor, "model batch head unit state"]:
        """The contexts that `_said` expects if every head has the same ones."""
        heads = self.config.heads
        if not self.config.has_own_projections:
            return values[:, :, None] * (heads if self.config.joined == "sum" else 1)
        return values[:, :, None].expand(-1, -1, heads, -1, -1)

    def _run(
        self, part: str, ids: Tensor, state: Tensor | None = None, cell: Tensor | None = None
    ) -> tuple[Tensor, Tensor, Tensor]:
        """States of the encoder or decoder, its last state and cell.

        The inputs' share of the gates is computed once per symbol and looked up: there are far
        fewer symbols than positions.
        """
        shared = self.config.is_embedding_shared or part == "encoder"
        table = self.weights["embedding.weight" if shared else "target_embedding.weight"]
        inward, outward, of_input, of_state = (
            self.weights[f"{part}.{kind}_l0"]
            for kind in ("weight_ih", "weight_hh", "bias_ih", "bias_hh")
        )
        is_lstm = self.config.cell == "lstm"
        bias = of_input + of_state if is_lstm else of_input
        gates = looked_up(table @ inward.transpose(1, 2) + bias[:, None], ids)
        if is_lstm:
            states, cell = lstm(gates, outward.transpose(1, 2), state, cell)
        else:
            states = gru(gates, outward.transpose(1, 2), of_state, state)
        last = states[:, :, -1]
        return states, last, last if cell is None else cell

    def _base(self, states: Tensor) -> Float[Tensor, "model batch step hidden"]:
        """What enters the output's first layer whatever is attended to."""
        if self.config.output == "linear":
            return states
        own = self.weights["join.weight"][:, :, : self.config.width]
        return _mapped(states, own) + self.weights["join.bias"][:, None, None]

    def _said(
        self, contexts: Float[Tensor, "model batch head step state"]
    ) -> Float[Tensor, "model batch step hidden"]:
        """What contexts add to it: one per head where heads project themselves, else joined."""
        config = self.config
        weight: Tensor = self.weights["project.weight"]
        bias: Tensor = self.weights["project.bias"]
        if config.has_own_projections:
            weight = weight.view(len(weight), config.heads, config.width, -1)
            weight = weight.transpose(1, 2).flatten(2)
            bias = bias.view(len(bias), config.heads, -1).sum(1)
            found = _mapped(contexts.transpose(2, 3).flatten(3), weight) + bias[:, None, None]
            found = found / config.heads if config.joined == "mean" else found
        else:
            found = _mapped(contexts[:, :, 0], weight) + bias[:, None, None]
        if config.output == "linear":
            return found
        return _mapped(found, self.weights["join.weight"][:, :, config.width :])

    def _words(self, pre: Tensor) -> Float[Tensor, "model batch step word"]:
        match self.config.output:
            case "relu":
                pre = pre.relu()
            case "tanh":
                pre = pre.tanh()
        return self._linear("words", pre)

    def _linear(self, name: str, inputs: Tensor) -> Tensor:
        found = _mapped(inputs, self.weights[f"{name}.weight"])
        return found + self.weights[f"{name}.bias"][:, None, None]


def _mapped(
    inputs: Float[Tensor, "model batch step dim"], weight: Float[Tensor, "model out dim"]
) -> Float[Tensor, "model batch step out"]:
    """Every model's own linear map: one batched product."""
    flat = inputs.reshape(len(weight), -1, inputs.shape[-1])
    return (flat @ weight.transpose(1, 2)).view(*inputs.shape[:-1], -1)


class _LookedUp(torch.autograd.Function):
    """Rows of each model's table; the gradient is one product with a one-hot matrix.

    Adding up by index is slow where thousands of positions share a few dozen symbols.
    """

    @staticmethod
    def forward(ctx: Any, table: Tensor, ids: Tensor) -> Tensor:
        ctx.save_for_backward(ids)
        ctx.symbols = table.shape[1]
        models = torch.arange(len(table), device=table.device)
        return table[models[:, None, None], ids]

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None]:
        (ids,) = ctx.saved_tensors
        places = torch.arange(ctx.symbols, device=ids.device)
        one_hot = (ids.flatten(1)[:, None] == places[:, None]).to(gradient.dtype)
        return one_hot @ gradient.flatten(1, 2), None


def looked_up(
    table: Float[Tensor, "model symbol dim"], ids: Int[Tensor, "model batch unit"]
) -> Float[Tensor, "model batch unit dim"]:
    """Rows of each model's own table, for tables of few symbols."""
    found: Tensor = _LookedUp.apply(table, ids)  # type: ignore[no-untyped-call]
    return found
