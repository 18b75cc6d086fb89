"""How weights move: the optimisers, and what clips a gradient before it is used."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import torch
from torch import Tensor, nn

from heedful.training.config import TrainConfig


def optimiser_of(model: nn.Module, config: TrainConfig) -> torch.optim.Optimizer:
    """The optimiser, with weight decay on the parameters the configuration names."""
    return optimiser_for(model.named_parameters(), config)


def optimiser_for(
    named: Iterable[tuple[str, nn.Parameter]], config: TrainConfig, *, is_fused: bool = False
) -> torch.optim.Optimizer:
    """The optimiser of parameters under the names they have in a classifier.

    Fused: Adam in one pass over the memory, for many parameters on a GPU.
    """
    decayed: list[nn.Parameter] = []
    free: list[nn.Parameter] = []
    for name, parameter in named:
        if not parameter.requires_grad:
            continue
        is_decayed = {
            "all": True,
            "all but attention": ".attention." not in name,
            "encoder": ".encoder." in name,
            "additive map": ".attention.hidden." in name,
            "matrices": parameter.dim() > 1,
        }[config.decay]
        (decayed if is_decayed else free).append(parameter)
    groups = [
        {"params": decayed, "weight_decay": config.weight_decay},
        {"params": free, "weight_decay": 0.0},
    ]
    groups = [group for group in groups if group["params"]]
    rate, is_amsgrad = config.learning_rate, config.optimiser == "amsgrad"
    match config.optimiser:
        case "adam" | "amsgrad":
            fused = True if is_fused else None
            return torch.optim.Adam(groups, rate, amsgrad=is_amsgrad, fused=fused)
        case "adamw":
            return torch.optim.AdamW(groups, rate)
        case "adagrad":
            return torch.optim.Adagrad(groups, rate, lr_decay=config.rate_decay)
        case _:
            return torch.optim.SGD(groups, rate)


class EachAdam(torch.optim.Optimizer):
    """Adam over stacked weights, every model with a rate of its own; the library has one for all.

    `rates` of a group are set from outside, as `lr` is where there is one.
    """

    def __init__(self, weights: Iterable[nn.Parameter], config: TrainConfig, count: int) -> None:
        learnt = [weight for weight in weights if weight.requires_grad]
        super().__init__(learnt, {"lr": config.learning_rate, "betas": (0.9, 0.999), "eps": 1e-8})
        self.param_groups[0]["rates"] = [config.learning_rate] * count

    @torch.no_grad()
    def step(self, closure: object = None) -> None:  # type: ignore[override]
        """One update of every weight, in a few launches for all of them."""
        (group,) = self.param_groups
        weights: list[Tensor] = group["params"]
        # A weight that had no part in the loss has no gradient: as if it were zero.
        gradients = [torch.zeros_like(w) if w.grad is None else w.grad for w in weights]
        for weight in weights:
            if not self.state[weight]:
                self.state[weight] = {
                    "step": torch.zeros((), dtype=torch.float64),
                    "exp_avg": torch.zeros_like(weight),
                    "exp_avg_sq": torch.zeros_like(weight),
                }
        kept = [self.state[weight] for weight in weights]
        first, second = ([state[name] for state in kept] for name in ("exp_avg", "exp_avg_sq"))
        for state in kept:
            state["step"] += 1
        done = int(kept[0]["step"])
        one, two = group["betas"]
        torch._foreach_lerp_(first, gradients, 1 - one)
        torch._foreach_mul_(second, two)
        torch._foreach_addcmul_(second, gradients, gradients, 1 - two)
        below = torch._foreach_sqrt(second)
        torch._foreach_div_(below, (1 - two**done) ** 0.5)
        torch._foreach_add_(below, group["eps"])
        rates = [-rate / (1 - one**done) for rate in group["rates"]]
        if len(set(rates)) == 1:
            torch._foreach_addcdiv_(weights, first, below, rates[0])
            return
        moved = torch._foreach_div(first, below)
        like = weights[0]
        factor = moved_to(rates, like)
        for weight, change in zip(weights, moved, strict=True):
            weight.addcmul_(change, factor.view(-1, *[1] * (weight.dim() - 1)))


def moved_to(numbers: Sequence[float], like: Tensor) -> Tensor:
    """A few numbers as a tensor beside another, without waiting for its device."""
    found = torch.tensor(numbers, dtype=like.dtype)
    if like.is_cuda:
        return found.pin_memory().to(like.device, non_blocking=True)
    return found


def descend(optimiser: torch.optim.Optimizer, losses: Tensor, clip_norm: float = 0.0) -> None:
    """One update by the gradient of a loss, or of several models' own: for what is fitted to a few
    numbers and needs no `train`."""
    optimiser.zero_grad(set_to_none=True)
    losses.sum().backward()  # type: ignore[no-untyped-call]
    if clip_norm:
        learnt = [weight for group in optimiser.param_groups for weight in group["params"]]
        nn.utils.clip_grad_norm_(learnt, clip_norm)
    optimiser.step()


def clip_alone(parameters: Iterable[nn.Parameter], config: TrainConfig) -> None:
    """Clips the gradient of one model in place."""
    learnt = list(parameters)
    if config.clip_value:
        nn.utils.clip_grad_value_(learnt, config.clip_value)
    if config.clip_norm:
        nn.utils.clip_grad_norm_(learnt, config.clip_norm)


def clip_each(weights: Iterable[Tensor], config: TrainConfig) -> None:
    """Clips the gradients of stacked weights in place, each model's as if it were alone."""
    gradients: Sequence[Tensor] = [weight.grad for weight in weights if weight.grad is not None]
    if config.clip_value:
        for gradient in gradients:
            gradient.clamp_(-config.clip_value, config.clip_value)
    if config.clip_norm:
        squares = torch.stack([g.flatten(1).square().sum(1) for g in gradients]).sum(0)
        # As torch's clip_grad_norm_ does for one model.
        factor = (config.clip_norm / (squares.sqrt() + 1e-6)).clamp(max=1.0)
        for gradient in gradients:
            gradient *= factor.view(-1, *[1] * (gradient.dim() - 1))
