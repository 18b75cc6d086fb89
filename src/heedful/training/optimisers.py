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
