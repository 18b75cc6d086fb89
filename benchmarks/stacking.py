"""Seven λ of the polarity study trained as one stack and one after the other.

A row of `make bench`; on a GPU, `python -m benchmarks.stacking --device cuda` prints JSON.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import torch

from benchmarks.table import Row
from benchmarks.timing import side_by_side
from heedful.corpora import encode, synthetic
from heedful.models import AttentionClassifier, build, parse
from heedful.training import TrainConfig, fit
from heedful.training.presets import POLARITY_MODELS, POLARITY_SCALES, PRESETS
from heedful.training.stacked import fit_stacked


def stacking_cases(
    device: str = "cpu",
    model: str = "dp",
    instances: int = 2_000,
    precision: torch.dtype = torch.float32,
) -> dict[str, Callable[[], list[AttentionClassifier]]]:
    """`one by one` and `stacked`: one epoch of the seven λ of one model of the polarity study.

    Both give the trained models, on their device; dropout on a GPU draws differently.
    """
    corpus = encode(synthetic("data1", instances=instances))
    config: TrainConfig = replace(PRESETS[f"polarity/{model}@10"].train, epochs=1, order_seed=0)

    def fresh() -> list[AttentionClassifier]:
        presets = [PRESETS[f"polarity/{model}@{scale}"] for scale in POLARITY_SCALES]
        recipes = [parse(preset.recipe, **preset.model) for preset in presets]
        made = [build(recipe.model, corpus.vocabulary, corpus.classes) for recipe in recipes]
        return [one.to(precision) for one in made]

    def alone() -> list[AttentionClassifier]:
        models = fresh()
        for one in models:
            fit(one, corpus, config, device=device)
        _settle(device)
        return models

    def together() -> list[AttentionClassifier]:
        models = fresh()
        fit_stacked(models, corpus, config, seeds=[0] * len(models), device=device)
        _settle(device)
        return models

    return {"one by one": alone, "stacked": together}


def measured(device: str = "cpu", instances: int = 12_000, repeats: int = 3) -> dict[str, Any]:
    """Seconds of one epoch of every model of the study, both ways, and what stacking gains."""
    found = {}
    for model in POLARITY_MODELS:
        with torch.enable_grad():
            timed = side_by_side(stacking_cases(device, model, instances), repeats)
        alone, stacked = timed["one by one"].seconds, timed["stacked"].seconds
        found[model] = {
            "one_by_one_seconds": round(alone, 4),
            "stacked_seconds": round(stacked, 4),
            "gain": round(alone / stacked, 2),
        }
    return found


def stacking_rows(instances: int, repeats: int) -> list[Row]:
    """What the stack of seven λ gains on this machine, for each model of the polarity study."""
    count = len(POLARITY_SCALES)
    rows = []
    for model, seen in measured("cpu", instances, repeats).items():
        rows.append(
            Row(
                f"{count} λ of {model} trained as one stack, one epoch of {instances:,} documents",
                1e3 * seen["stacked_seconds"],
                seen["gain"],
                "one model after the other",
                f"The stack ends with the weights the {count} models have alone "
                "(tests/training/test_stacked.py). It shares batches, dropout draws and launches, "
                "not the arithmetic, which is what a CPU spends its time on: the gain on a "
                "GPU is the one that counts (`python -m benchmarks.stacking --device cuda`).",
                naive=1e3 * seen["one_by_one_seconds"],
            )
        )
    return rows


def _settle(device: str) -> None:
    if device != "cpu":
        torch.cuda.synchronize()


def main() -> None:
    """Prints one JSON object."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--instances", type=int, default=12_000)
    parser.add_argument("--repeats", type=int, default=3)
    options = parser.parse_args()
    print(json.dumps(measured(options.device, options.instances, options.repeats), indent=1))


if __name__ == "__main__":
    main()
