"""How much each word takes part in every layer: its values set to zero, and the layer run again."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import torch
from jaxtyping import Float, Int
from torch import Tensor
from torch.nn import functional

from heedful.models.huggingface.attending import handling
from heedful.models.huggingface.calls import Call
from heedful.models.huggingface.entering import keeping_calls
from heedful.models.huggingface.pieces import Framed

if TYPE_CHECKING:
    from heedful.models.huggingface.classifier import PretrainedClassifier

PASS_TOKENS = 2**14
"""Tokens in one run of a layer."""


def mixing(
    classifier: PretrainedClassifier, frame: Framed, group_of_key: Int[Tensor, "batch key"]
) -> Float[Tensor, "layer batch group group"]:
    """How far the states of each group (row) turn when the values of each group are zero.

    1 - cos, averaged over the positions of a group, for every layer with its own input kept as it
    was (Mohebbi et al. 2023). A group is a word or a special token; -1 is padding, and groups that
    a text does not have are 0.
    """
    counts = group_of_key.amax(-1) + 1
    device, groups = group_of_key.device, int(counts.max())
    text = torch.arange(len(counts), device=device).repeat_interleave(counts)
    group = torch.cat([torch.arange(count, device=device) for count in counts.tolist()])
    share = functional.one_hot(group_of_key + 1, groups + 1)[..., 1:].double()
    share = share / share.sum(1, keepdim=True).clamp_min(1)
    gone = torch.zeros(0)

    def handle(call: Call) -> Tensor:
        if len(gone):
            call = replace(call, value=call.value.masked_fill(gone[:, None, :, None], 0))
        return call.output()

    with handling(classifier.model, handle, classifier.is_fused):
        with keeping_calls(classifier.layout) as entered:
            classifier.run(classifier.inputs_of(frame))
        found = share.new_zeros(len(entered), len(counts), groups, groups)
        for layer, call in enumerate(entered):
            # Rows of all texts side by side: one word of one text is gone in each.
            most = max(PASS_TOKENS // share.shape[1], 1)
            for some in torch.split(torch.arange(len(text), device=device), most):
                owner, without = text[some], group[some]
                gone = group_of_key[owner] == without[:, None]
                turned = functional.cosine_similarity(call.again(owner), call.after[owner], dim=-1)
                mean = torch.einsum("rk,rkg->rg", 1 - turned.double(), share[owner])
                found[layer, owner, :, without] = mean
            gone = torch.zeros(0)
    return found
