"""How much each word takes part in every layer: its values set to zero, and the layer run again."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor
from torch.nn import functional

from heedful.models.huggingface.attending import handling
from heedful.models.huggingface.calls import Call
from heedful.models.huggingface.entering import keeping_calls
from heedful.models.huggingface.layout import skipping
from heedful.models.huggingface.pieces import Framed
from heedful.runs.memory import halving
from heedful.runs.meter import passed

if TYPE_CHECKING:
    from heedful.models.huggingface.classifier import PretrainedClassifier


def mixing(
    classifier: PretrainedClassifier, frame: Framed, group_of_key: Int[Tensor, "batch key"]
) -> Float[Tensor, "layer batch group group"]:
    """How far the states of each group (row) turn when the values of each group are zero.

    1 - cos, averaged over the positions of a group, for every layer with its own input kept as it
    was (Mohebbi et al. 2023). Attention stays as it was, so what it hands on without a group is
    what it handed on less the group's own part: its few columns times its few values. A group is
    a word or a special token; -1 is padding, and groups that a text does not have are 0.
    """
    counts = group_of_key.amax(-1) + 1
    device, groups = group_of_key.device, int(counts.max())
    text = torch.arange(len(counts), device=device).repeat_interleave(counts)
    group = torch.cat([torch.arange(count, device=device) for count in counts.tolist()])
    column = torch.where(group_of_key < 0, groups, group_of_key)
    size = torch.zeros(len(counts), groups + 1, dtype=torch.float64, device=device)
    size = size.scatter_add(1, column, torch.ones_like(column, dtype=size.dtype)).clamp_min(1)
    keys, is_own = _keys_of(group_of_key, groups)
    calls: list[Call] = []

    def keep(call: Call) -> Tensor:
        calls.append(call)
        return call.output()

    passed(column.numel())
    with keeping_calls(classifier.layout) as entered:
        with handling(classifier.model, keep, classifier.is_fused):
            classifier.run(classifier.inputs_of(frame))
        layers = list(entered)  # what is run again is noted too
    found = size.new_zeros(len(layers), len(counts), groups, groups)
    most = max(classifier.pass_tokens // column.shape[1], 1)

    def of_layer(place: int) -> None:
        layer, call = layers[place], calls[place]
        weights = call.weights()
        whole = weights @ call.value
        before = functional.normalize(layer.after, dim=-1)

        # Rows of all texts side by side: one word of one text is gone in each.
        def turned(some: Int[Tensor, " row"]) -> Float[Tensor, "row group"]:
            owner, without = text[some], group[some]
            columns, own = keys[owner, without], is_own[owner, without]
            given = weights.transpose(2, 3)[owner[:, None], :, columns] * own[..., None, None]
            values = call.value[owner[:, None], :, columns]
            context = whole[owner] - torch.einsum("rkhq,rkhd->rhqd", given, values)
            context = context.transpose(1, 2)
            with (
                handling(classifier.model, lambda call: context, False),
                skipping(classifier.layout.projections[place]),
            ):
                after = layer.again(owner)
            cosine = (after * before[owner]).sum(-1) / after.norm(dim=-1).clamp_min(1e-8)
            total = size.new_zeros(len(some), groups + 1)
            total = total.scatter_add(1, column[owner], 1 - cosine.double()) / size[owner]
            return total[:, :groups]

        for some in torch.split(torch.arange(len(text), device=device), most):
            passed(len(some) * column.shape[1] / len(layers))
            found[place, text[some], :, group[some]] = halving(turned, some, torch.cat)

    for place in range(len(layers)):
        of_layer(place)
    return found


def _keys_of(
    group_of_key: Int[Tensor, "batch key"], groups: int
) -> tuple[Int[Tensor, "batch group place"], Bool[Tensor, "batch group place"]]:
    """The keys of each group side by side, and which of these places there are."""
    order = group_of_key.masked_fill(group_of_key < 0, groups).sort(stable=True, dim=-1)
    every = torch.arange(groups + 1, device=group_of_key.device).expand(len(group_of_key), -1)
    start = torch.searchsorted(order.values.contiguous(), every.contiguous())
    most = int(start.diff(dim=-1).max())
    place = start[:, :-1, None] + torch.arange(most, device=start.device)
    is_own = place < start[:, 1:, None]
    place = place.clamp_max(group_of_key.shape[1] - 1)
    return order.indices[:, None].expand(-1, groups, -1).gather(2, place), is_own
