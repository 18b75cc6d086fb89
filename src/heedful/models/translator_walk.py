"""A translator's pass for training with every recurrent layer in one launch.

The library's LSTM launches a few kernels for each word, one after the other: about a thousand an
update, and on a card that many processes share each of them queues anew. `recurrent.lstm` walks
through a layer, both directions at once, in one launch forward and one back.
"""

from __future__ import annotations

from functools import cache

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn
from torch.nn import functional

from heedful.corpora.pairs import Pairs
from heedful.models.classifier_stack import turned_around, turning
from heedful.models.recurrent import has_kernel, lstm
from heedful.models.translator import Translator

SHUT = 1e4
"""Closes or opens a gate entirely, whatever the state adds: its sigmoid is 0 or 1."""


def walks(model: Translator) -> bool:
    """Whether the model's layers have a kernel where they are."""
    is_plain = model.config.cell == "lstm" and model.words.weight.dtype == torch.float32
    return is_plain and has_kernel(model.config.width, model.device)


def walked(model: Translator, pairs: Pairs) -> Float[Tensor, "sentence step word"]:
    """The logits of `model(pairs)`, with dropout of its own draws if the model is training."""
    mask = pairs.source_mask
    values, starts = _encoded(model, model.embedding(pairs.source), mask)
    states = _decoded(model, pairs, starts)
    attention = model.scores(states, values, mask).softmax(-1)
    return model.output(states, attention, values)


def _encoded(
    model: Translator, values: Float[Tensor, "sentence unit dim"], mask: Tensor
) -> tuple[Float[Tensor, "sentence unit state"], list[tuple[Tensor, Tensor]]]:
    """The encoder's states, 0 at padding, and the state and cell each decoder layer starts from."""
    cells = model.encoder
    assert isinstance(cells, nn.LSTM), "a translator of LSTMs"
    ends = ("", "_reverse") if cells.bidirectional else ("",)
    turned = turning(mask)
    place = torch.arange(mask.shape[1], device=mask.device)
    is_last = (place == mask.sum(-1, keepdim=True) - 1)[..., None]
    starts = []
    for layer in range(cells.num_layers):
        values = _dropped(model, values, layer)
        read = values[None]
        if cells.bidirectional:
            read = torch.cat([read, turned_around(read, turned)])
        states, cell = _layer(cells, [f"_l{layer}{end}" for end in ends], read, mask)
        starts.append(((states * is_last).sum(2).mean(0), cell.mean(0)))
        values = states[0]
        if cells.bidirectional:
            values = torch.cat([values, turned_around(states[1:], turned)[0]], -1)
    return values * mask[..., None], starts


def _decoded(
    model: Translator, pairs: Pairs, starts: list[tuple[Tensor, Tensor]]
) -> Float[Tensor, "sentence step dim"]:
    cells = model.decoder
    assert isinstance(cells, nn.LSTM), "a translator of LSTMs"
    shared = model.config.is_embedding_shared
    values: Tensor = (model.embedding if shared else model.target_embedding)(pairs.before)
    for layer, (state, cell) in enumerate(starts):
        values = _dropped(model, values, layer)
        states, _ = _layer(cells, [f"_l{layer}"], values[None], None, state[None], cell[None])
        values = states[0]
    return values


def _layer(
    cells: nn.LSTM,
    names: list[str],
    inputs: Float[Tensor, "end sentence unit dim"],
    mask: Bool[Tensor, "sentence unit"] | None,
    state: Float[Tensor, "end sentence dim"] | None = None,
    cell: Float[Tensor, "end sentence dim"] | None = None,
) -> tuple[Float[Tensor, "end sentence unit dim"], Float[Tensor, "end sentence dim"]]:
    """States of one layer, and its cells after the last word of each sentence.

    At padding nothing enters a cell and nothing leaves it, so the last cell is that of the end.
    """
    inward, outward = (
        _joined([getattr(cells, kind + name) for name in names])
        for kind in ("weight_ih", "weight_hh")
    )
    # Added one by one: the gradients of two joined biases would be one and the same memory.
    bias = _joined([getattr(cells, f"bias_ih{n}") + getattr(cells, f"bias_hh{n}") for n in names])
    gates = torch.baddbmm(bias[:, None], inputs.flatten(1, 2), inward.transpose(1, 2))
    gates = gates.view(*inputs.shape[:3], -1)
    if mask is not None:
        gates = torch.where(
            mask[..., None], gates, _held(cells.hidden_size, gates.dtype, gates.device)
        )
    return lstm(gates, outward.transpose(1, 2), state, cell)


@cache
def _held(dim: int, dtype: torch.dtype, device: torch.device) -> Float[Tensor, " gate"]:
    """Gates (in, keep, new, out) that leave a cell as it is; made once, where they are needed."""
    found = torch.zeros(4 * dim, dtype=dtype, device=device)
    found[:dim], found[dim : 2 * dim] = -SHUT, SHUT
    return found


def _joined(weights: list[Tensor]) -> Tensor:
    """Weights of several directions with an axis for them; of a single one without a copy."""
    return weights[0][None] if len(weights) == 1 else torch.stack(weights)


def _dropped(model: Translator, values: Tensor, layer: int) -> Tensor:
    """What enters a layer: the first reads everything."""
    share = model.config.dropout if layer and model.training else 0.0
    return functional.dropout(values, share) if share else values
