"""How strongly logits speak for one class: log p / (1 − p), which keeps its order near p = 1.

A log probability of 32 bits is 0 for every logit from about 17 on: units that differ would be tied.
"""

from __future__ import annotations

import torch
from jaxtyping import Float, Int
from torch import Tensor


def log_odds(
    logits: Float[Tensor, "*row class"], right: Int[Tensor, "*row"]
) -> Float[Tensor, "*row"]:
    """The logit of one class per row over what all the others say together.

    It rises with the probability; its derivative is that of log p divided by 1 − p.
    """
    at = right[..., None]
    own = logits.gather(-1, at)[..., 0]
    return own - logits.scatter(-1, at, -torch.inf).logsumexp(-1)
