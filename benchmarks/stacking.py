"""Seven λ trained as one stack and one by one, for `side_by_side(stacking_cases(), repeats)`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from heedful.corpora import encode, synthetic
from heedful.models import AttentionClassifier, build, parse
from heedful.training import TrainConfig, fit
from heedful.training.presets import POLARITY_SCALES, PRESETS
from heedful.training.stacked import fit_stacked


def stacking_cases(device: str = "cpu") -> dict[str, Callable[[], None]]:
    """`one by one` and `stacked`: one epoch of the seven DP models of the polarity study.

    The weights they end with are the same (tests/test_stacked.py).
    """
    corpus = encode(synthetic("data1", instances=2_000))
    config: TrainConfig = replace(PRESETS["polarity/dp@10"].train, epochs=1, order_seed=0)

    def fresh() -> list[AttentionClassifier]:
        presets = [PRESETS[f"polarity/dp@{scale}"] for scale in POLARITY_SCALES]
        recipes = [parse(preset.recipe, **preset.model) for preset in presets]
        return [build(recipe.model, corpus.vocabulary, corpus.classes) for recipe in recipes]

    def alone() -> None:
        for model in fresh():
            fit(model, corpus, config, device=device)

    def together() -> None:
        models = fresh()
        fit_stacked(models, corpus, config, seeds=[0] * len(models), device=device)

    return {"one by one": alone, "stacked": together}
