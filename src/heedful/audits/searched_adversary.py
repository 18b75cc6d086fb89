"""The published search for another attention with the same output, by gradient ascent.

Jain & Wallace 2019, §4.2.2. It is kept beside the exact adversary to show how far it gets; here it
runs on cached unit logits, with the gradient written out.
"""

import torch
from jaxtyping import Bool, Float, Int64
from torch import Tensor

from heedful.audits.exact_adversary import TOLERANCE, Adversary
from heedful.runs.randomness import uniform_noise
from heedful.statistics.divergence import js_divergence, total_variation

CANDIDATES = 5
STEPS = 500
LEARNING_RATE = 0.01
PENALTY = 500.0
LOOK_EVERY = 5
"""Steps between two looks at how far the candidates have come."""
SPREAD = 3.0
"""Standard deviation of the logits that candidates start from."""


def search(
    attention: Float[Tensor, "batch unit"],
    said: Float[Tensor, "batch unit class"],
    mask: Bool[Tensor, "batch unit"],
    keys: Int64[Tensor, " batch"],
    tolerance: float = TOLERANCE,
    steps: int = STEPS,
) -> Adversary:
    """The farthest attention met on the way of a few candidates that climb together.

    Per document Σ_k JSD(α_k, α) + Σ_{k<l} JSD(α_k, α_l) / K(K - 1) - 500/K Σ_k max(0, TVD_k - ε)
    is raised by Adam (AMSGrad) for `steps` steps. The paper keeps the last iterate; we keep the
    best one within the tolerance, since the penalty lets the last one hover just outside. Where no
    iterate is within it, divergence and distance are nan and the attention is the trained one.
    `said` are the logits of each unit alone, offset included.
    """
    noise = uniform_noise(keys, CANDIDATES, mask.shape[1], device=mask.device)
    logits = SPREAD * torch.special.ndtri(noise.clamp_min(2.0**-54)).to(attention)
    trained = torch.bmm(attention[:, None], said).softmax(-1)
    log_trained = attention.log()[:, None]
    padding = torch.zeros_like(log_trained).masked_fill(~mask[:, None], -torch.inf)
    best = torch.full_like(attention[:, 0], -torch.inf)
    row, distance = attention.clone(), torch.full_like(best, torch.nan)
    optimiser = _Amsgrad(logits)
    for step in range(steps + 1):
        log_rows = (logits + padding).log_softmax(-1)
        rows = log_rows.exp()
        output = torch.bmm(rows, said).softmax(-1)
        tvd = total_variation(output, trained)
        if step % LOOK_EVERY == 0 or step == steps:
            jsd = js_divergence(log_rows, log_trained).masked_fill(tvd > tolerance, -torch.inf)
            top, candidate = jsd.max(-1)
            is_better = top > best
            best = torch.where(is_better, top, best)
            index = candidate[:, None]
            distance = torch.where(is_better, tvd.gather(1, index)[:, 0], distance)
            here = rows.gather(1, index[..., None].expand(-1, 1, rows.shape[2]))[:, 0]
            row = torch.where(is_better[:, None], here, row)
        if step < steps:
            force = (tvd > tolerance) * (PENALTY / CANDIDATES)
            slope = _slope(rows, log_rows, attention[:, None], said, output, trained, force)
            logits = optimiser.step(logits, slope)
    found = best.masked_fill(best.isneginf(), torch.nan)
    return Adversary(row, found, distance, torch.zeros_like(best, dtype=torch.bool))


def _slope(
    rows: Float[Tensor, "batch candidate unit"],
    log_rows: Float[Tensor, "batch candidate unit"],
    attention: Float[Tensor, "batch 1 unit"],
    said: Float[Tensor, "batch unit class"],
    output: Float[Tensor, "batch candidate class"],
    trained: Float[Tensor, "batch 1 class"],
    force: Float[Tensor, "batch candidate"],
) -> Float[Tensor, "batch candidate unit"]:
    """The gradient of the loss (minus the objective) on the candidates' logits.

    `force` is the weight of each candidate's total variation: 0 within the tolerance.
    ∂JSD(p, q)/∂p_i = ln(2 p_i / (p_i + q_i)) / 2; constants drop out in the softmax.
    """
    count = rows.shape[1]
    from_trained = log_rows - (rows + attention).log()
    # The term of a candidate with itself is ln(1/2), a constant.
    together = (rows[:, :, None] + rows[:, None]).log()
    apart = count * log_rows - together.sum(2)
    climb = (from_trained + apart / (count * (count - 1))) / 2
    sign = (output - trained).sign() / 2
    by_logit = output * (sign - (output * sign).sum(-1, keepdim=True))
    loss = torch.bmm(by_logit * force[..., None], said.transpose(1, 2)) - climb
    # Where a row has no weight its logarithm is -inf, and so may be its slope: it stays put.
    loss = loss.masked_fill(rows == 0, 0)
    return rows * (loss - (rows * loss).sum(-1, keepdim=True))


class _Amsgrad:
    """Adam with the AMSGrad bound, for one tensor whose gradient is at hand."""

    def __init__(self, like: Tensor) -> None:
        self.mean = torch.zeros_like(like)
        self.square = torch.zeros_like(like)
        self.most = torch.zeros_like(like)
        self.steps = 0

    def step(self, x: Tensor, slope: Tensor) -> Tensor:
        """The tensor one step further down."""
        self.steps += 1
        self.mean.lerp_(slope, 0.1)
        self.square.mul_(0.999).addcmul_(slope, slope, value=0.001)
        torch.maximum(self.most, self.square, out=self.most)
        bound = (self.most / (1 - 0.999**self.steps)).sqrt_().add_(1e-8)
        return x.addcdiv(self.mean, bound, value=-LEARNING_RATE / (1 - 0.9**self.steps))
