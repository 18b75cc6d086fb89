"""Wide recurrent layers of several models: as kernels, as a loop of launches, and by the library.

`python -m benchmarks.wide_gpu --device cuda` prints one JSON in less than a minute: milliseconds
forward and back of six bidirectional LSTMs of 256 states on 32 texts, at two lengths. Every way
starts from the same inputs and weights, and the JSON says how far its states are from the library's
(cuDNN on a GPU, where its products are in TF32 too).
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor, nn

from heedful.models import recurrent
from heedful.models.recurrent_walk import works

INPUTS = 128


def layers_of(models: int, dim: int, device: str) -> list[nn.LSTM]:
    torch.manual_seed(0)
    made = [nn.LSTM(INPUTS, dim, batch_first=True, bidirectional=True) for _ in range(models)]
    return [layer.to(device) for layer in made]


def in_turn(layers: Sequence[nn.LSTM], inputs: Tensor) -> Tensor:
    """States of one model after the other by the library."""
    return torch.stack([layer(read)[0] for layer, read in zip(layers, inputs, strict=True)])


def stacked(
    walk: Callable[..., tuple[Tensor, Tensor]], layers: Sequence[nn.LSTM], inputs: Tensor
) -> Tensor:
    """The same with all models and both directions in one walk."""
    models, batch, units, _ = inputs.shape

    def weights(kind: str) -> Tensor:
        return torch.stack([getattr(layer, kind) for layer in layers])

    gates, hidden = [], []
    for end, read in (("", inputs), ("_reverse", inputs.flip(2))):
        bias = weights(f"bias_ih_l0{end}") + weights(f"bias_hh_l0{end}")
        inward = weights(f"weight_ih_l0{end}").transpose(1, 2)
        gates.append(torch.baddbmm(bias[:, None], read.flatten(1, 2), inward))
        hidden.append(weights(f"weight_hh_l0{end}").transpose(1, 2))
    dim = hidden[0].shape[1]
    start = inputs.new_zeros(2, 2 * models, batch, dim)
    states, _ = walk(torch.cat(gates).view(2 * models, batch, units, -1), torch.cat(hidden), start)
    forth, back = states.view(2, models, batch, units, dim)
    return torch.cat([forth, back.flip(2)], -1)


def ways(device: str, dim: int) -> dict[str, Callable[..., tuple[Tensor, Tensor]]]:
    """The loop, and on a GPU the kernels for this width that agree with it there."""
    found: dict[str, Callable[..., tuple[Tensor, Tensor]]] = {"loop": recurrent.in_steps}
    if device == "cpu":
        return found
    from heedful.models import cluster_kernel, wide_kernel

    kernels = {"cluster": cluster_kernel.CLUSTERED, "wide": wide_kernel.WIDE}
    return found | {n: k for n, k in kernels.items() if works(k, recurrent.in_steps, dim, device)}


def measured(device: str, models: int, batch: int, units: int, dim: int) -> dict[str, Any]:
    """Milliseconds of every way, and how far its states are from the library's."""
    layers = layers_of(models, dim, device)
    inputs = torch.randn(models, batch, units, INPUTS, device=device, requires_grad=True)
    cases: dict[str, Callable[[], Tensor]] = {"library": lambda: in_turn(layers, inputs)}
    for name, walk in ways(device, dim).items():
        cases[name] = lambda walk=walk: stacked(walk, layers, inputs)  # type: ignore[misc]
    found: dict[str, Any] = {"units": units, "ms": {}, "distance": {}}
    expected = in_turn(layers, inputs).detach()
    for name, case in cases.items():
        states = case().detach()
        found["distance"][name] = float((states - expected).norm() / expected.norm())
        found["ms"][name] = round(1e3 * min(_timed(case, device) for _ in range(3)), 3)
    return found


def main() -> int:
    """Prints one JSON object."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--models", type=int, default=6)
    parser.add_argument("--batch", type=int, default=32)
    parser.add_argument("--dim", type=int, default=256)
    parser.add_argument("--units", type=int, nargs="+", default=[94, 916])
    options = parser.parse_args()
    device, dim = options.device, options.dim
    found: dict[str, Any] = {
        "device": "cpu" if device == "cpu" else torch.cuda.get_device_name(device),
        "torch": torch.__version__,
        "models": options.models,
        "batch": options.batch,
        "dim": dim,
        "kernels": [name for name in ways(device, dim) if name != "loop"],
    }
    found["lengths"] = [
        measured(device, options.models, options.batch, units, dim) for units in options.units
    ]
    print(json.dumps(found, indent=1))
    return 0


def _timed(case: Callable[[], Tensor], device: str) -> float:
    """Seconds forward and back."""
    _settle(device)
    started = time.perf_counter()
    case().sum().backward()  # type: ignore[no-untyped-call]
    _settle(device)
    return time.perf_counter() - started


def _settle(device: str) -> None:
    if device != "cpu":
        torch.cuda.synchronize()


if __name__ == "__main__":
    sys.exit(main())
