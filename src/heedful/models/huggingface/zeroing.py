"""How much each word takes part in every layer: its values set to zero, and the layer run again."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from jaxtyping import Float, Int
from torch import Tensor
from torch.nn import functional

from heedful.models.huggingface.attending import handling
from heedful.models.huggingface.calls import Call
from heedful.models.huggingface.entering import keeping_calls
from heedful.models.huggingface.layout import skipping
from heedful.models.huggingface.pieces import Framed

if TYPE_CHECKING:
    from heedful.models.huggingface.classifier import PretrainedClassifier


def mixing(
    classifier: PretrainedClassifier, frame: Framed, group_of_key: Int[Tensor, "batch key"]
) -> Float[Tensor, "layer batch group group"]:
    """How far the states of each group (row) turn when the values of each group are zero.

    1 - cos, averaged over the positions of a group, for every layer with its own input kept as it
    was (Mohebbi et al. 2023). Zero values are zero weights, so attention stays as it was and every
    layer goes on from one product of it with the values. A group is a word or a special token; -1
    is padding, and groups that a text does not have are 0.
    """
    counts = group_of_key.amax(-1) + 1
    device, groups = group_of_key.device, int(counts.max())
    text = torch.arange(len(counts), device=device).repeat_interleave(counts)
    group = torch.cat([torch.arange(count, device=device) for count in counts.tolist()])
    column = torch.where(group_of_key < 0, groups, group_of_key)
    size = torch.zeros(len(counts), groups + 1, dtype=torch.float64, device=device)
    size = size.scatter_add(1, column, torch.ones_like(column, dtype=size.dtype)).clamp_min(1)
    calls: list[Call] = []

    def keep(call: Call) -> Tensor:
        calls.append(call)
        return call.output()

    context = torch.zeros(0)
    with keeping_calls(classifier.layout) as entered:
        with handling(classifier.model, keep, classifier.is_fused):
            classifier.run(classifier.inputs_of(frame))
        layers = list(entered)  # what is run again is noted too
    found = size.new_zeros(len(layers), len(counts), groups, groups)
    most = max(classifier.pass_tokens // column.shape[1], 1)
    with handling(classifier.model, lambda call: context, False):
        for place, (layer, call) in enumerate(zip(layers, calls, strict=True)):
            weights = call.weights()
            before = functional.normalize(layer.after, dim=-1)
            # Rows of all texts side by side: one word of one text is gone in each.
            for some in torch.split(torch.arange(len(text), device=device), most):
                owner, without = text[some], group[some]
                gone = (group_of_key[owner] == without[:, None])[:, None, None]
                context = weights[owner].masked_fill(gone, 0) @ call.value[owner]
                context = context.transpose(1, 2)
                with skipping(classifier.layout.projections[place]):
                    after = layer.again(owner)
                cosine = (after * before[owner]).sum(-1) / after.norm(dim=-1).clamp_min(1e-8)
                turned = size.new_zeros(len(some), groups + 1)
                turned = turned.scatter_add(1, column[owner], 1 - cosine.double()) / size[owner]
                found[place, owner, :, without] = turned[:, :groups]
    return found
