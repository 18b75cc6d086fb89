"""Twenty stacked seeds of the copying task against one seed on the library's fused LSTM.

`python -m benchmarks.seeds_gpu` prints a JSON line for each form of the models. `--device cpu`
works too; there arithmetic and not launches takes the time, so that n models cost n times one.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import torch

from heedful.corpora.pairs import of_task
from heedful.corpora.tasks import Copying
from heedful.models.classifier_stack import mean_losses
from heedful.models.translator import (
    Translator,
    TranslatorConfig,
    build_translator,
    code_copying_config,
    copying_config,
)
from heedful.models.translator_stack import TranslatorStack
from heedful.studies.dynamics.seeds import SeedsConfig, fit_seeds
from heedful.training.optimisers import descend
from heedful.training.precision import reduced_precision

LIMIT = 4.0
"""A stack of twenty may cost so many times one seed."""


def fit_alone(
    model: Translator, task: Copying, config: SeedsConfig = SeedsConfig(), *, seed: int
) -> None:
    """Trains one model in place on the library's own layers: what a stack is compared with."""
    device = model.device
    optimiser = torch.optim.Adam(
        model.parameters(), config.learning_rate, fused=device.type == "cuda"
    )
    orders = task.orders([seed], device)
    keys = torch.stack([task.keys([seed], step) for step in range(config.steps)]).to(device)
    model.train()
    with reduced_precision(device):
        for step in range(config.steps):
            pairs = of_task(task.sample(keys[step], config.batch_size, orders))
            descend(optimiser, mean_losses(model(pairs).logits[None], pairs.target[None]))


def measured(
    device: str = "cuda", seeds: int = 20, steps: int = 40, width: int = 256, repeats: int = 2
) -> Iterator[dict[str, Any]]:
    """Milliseconds per step: one seed on the library's layers, one stacked, all stacked.

    A run of `steps` and one of a quarter of them are timed, and the difference taken: what is paid
    once (compiling, recording) does not count, and is given apart.
    """
    task = Copying(40, 40)
    shared = {"device": _described(device), "seeds": seeds, "limit": LIMIT}
    forms: dict[str, TranslatorConfig] = {
        "lstm, 1 head": copying_config(40, width),
        "gru, 8 heads": code_copying_config(40, width, 8),
    }
    for name, model in forms.items():

        def alone(steps: int, model: TranslatorConfig = model) -> None:
            one = build_translator(model).to(device)
            fit_alone(one, task, _config(steps), seed=0)

        def stacked(
            steps: int,
            count: int = seeds,
            model: TranslatorConfig = model,
            is_recorded: bool = True,
        ) -> None:
            stack = TranslatorStack([build_translator(model, s) for s in range(count)], device)
            recorded = is_recorded and device != "cpu"
            fit_seeds(stack, task, _config(steps), seeds=range(count), is_recorded=recorded)

        def stacked_one(steps: int, stacked: Callable[..., None] = stacked) -> None:
            stacked(steps, 1)

        def launched(steps: int, stacked: Callable[..., None] = stacked) -> None:
            stacked(steps, is_recorded=False)

        cases: dict[str, Callable[[int], None]] = {
            "one_library_ms": alone,
            "one_stacked_ms": stacked_one,
            "all_stacked_ms": stacked,
            "all_stacked_unrecorded_ms": launched,
        }
        times = {key: _per_step(device, case, steps, repeats) for key, case in cases.items()}
        ratio = times["all_stacked_ms"] / times["one_library_ms"]
        found = {key: round(value, 3) for key, value in times.items()}
        found |= {"times_one_seed": round(ratio, 2), "passes": ratio <= LIMIT}
        yield {"models": name} | found | shared


def _config(steps: int) -> SeedsConfig:
    return replace(SeedsConfig(), steps=steps, every=steps)


def _per_step(device: str, run: Callable[[int], None], steps: int, repeats: int) -> float:
    few = steps // 4
    best = {}
    for count in (few, steps):
        seconds = []
        for _ in range(repeats):
            _settle(device)
            started = time.perf_counter()
            run(count)
            _settle(device)
            seconds.append(time.perf_counter() - started)
        best[count] = min(seconds)
    return 1e3 * (best[steps] - best[few]) / (steps - few)


def _settle(device: str) -> None:
    if device != "cpu":
        torch.cuda.synchronize()


def _described(device: str) -> str:
    return device if device == "cpu" else torch.cuda.get_device_name()


def main() -> None:
    """Prints the lines, each as soon as it is measured."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--steps", type=int, default=40)
    parser.add_argument("--width", type=int, default=256)
    parser.add_argument("--repeats", type=int, default=2)
    options = parser.parse_args()
    given = options.seeds, options.steps, options.width, options.repeats
    for line in measured(options.device, *given):
        print(json.dumps(line), flush=True)


if __name__ == "__main__":
    main()
