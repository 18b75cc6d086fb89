"""Importance by a linear stand-in for the model near one text: LIME and KernelSHAP, by captum.

Units of the text are replaced by `<unk>` at random, as in occlusion, and a linear model is fitted
to how the log-odds of the target class follow; its weights are the importance. LIME weighs texts by
how near they are to the whole one, KernelSHAP so that the weights tend to Shapley values.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib.util import find_spec
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from heedful.errors import InputError
from heedful.models.log_odds import log_odds
from heedful.models.reading import Reading
from heedful.models.rereading import chosen, read_again
from heedful.models.verbs import AttentiveModel
from heedful.runs.randomness import keys, seeded

SAMPLES, PER_UNIT = 200, 2
"""Texts with units left out that are read for one document, and how many more for each unit."""
WIDTH = 0.25
"""Of LIME's kernel on cosine distance, the one that its authors' package has for texts."""


def lime(model: AttentiveModel, reading: Reading, seed: int = 0) -> Float[Tensor, "batch unit"]:
    """Weights of least squares, texts weighed by exp(−d² / 2w²), d the cosine distance.

    Every unit is left out with probability ½ (captum's `Lime`). Least squares and not the lasso,
    which would tie most words at 0.
    """
    refuse_without_captum("lime")
    from captum._utils.models.linear_model import SkLearnLinearRegression
    from captum.attr import Lime
    from captum.attr._core.lime import get_exp_kernel_similarity_function

    def made(answer: Callable[[Tensor], Tensor]) -> Any:
        kernel = get_exp_kernel_similarity_function("cosine", kernel_width=WIDTH)
        return Lime(answer, SkLearnLinearRegression(), kernel)

    return _fitted(made, model, reading, "lime", seed)


def kernel_shap(
    model: AttentiveModel, reading: Reading, seed: int = 0
) -> Float[Tensor, "batch unit"]:
    """Weights of least squares on coalitions drawn by the Shapley kernel (captum's `KernelShap`).

    Together they add up to what the log-odds of the text lie above those of `<unk>` alone.
    """
    refuse_without_captum("kernel-shap")
    from captum.attr import KernelShap

    return _fitted(KernelShap, model, reading, "kernel-shap", seed)


def refuse_without_captum(name: str) -> None:
    """Raises where the package that fits is not installed."""
    if find_spec("captum") is None:
        raise InputError(
            f"{name} needs the `captum` package; install it with pip install 'heedful[surrogates]'."
        )


def _fitted(
    made: Callable[[Callable[[Tensor], Tensor]], Any],
    model: AttentiveModel,
    reading: Reading,
    name: str,
    seed: int,
) -> Float[Tensor, "batch unit"]:
    """The weights that captum fits to each document by itself, its draws keyed by the document."""
    found = torch.zeros(reading.mask.shape, dtype=torch.float64)
    drawn_by = keys(seed, reading.names, name).tolist()
    for row, units in enumerate(reading.units.tolist()):
        whole = torch.ones(1, units)
        answer = _asked(model, reading, row)
        if units < 2:  # nothing to fit: captum has no coalitions of a single unit
            found[row, :units] = answer(whole) - answer(0 * whole)
            continue
        samples = SAMPLES + PER_UNIT * units
        with seeded(drawn_by[row]):
            weights = made(answer).attribute(
                whole, n_samples=samples, perturbations_per_eval=samples
            )
        found[row, :units] = weights[0].double()
    return found.to(reading.attention.device)


def _asked(
    model: AttentiveModel, reading: Reading, row: int
) -> Callable[[Float[Tensor, "sample unit"]], Float[Tensor, " sample"]]:
    """The log-odds of a document's target with only the units that are 1, the others `<unk>`."""
    length = int(reading.batch.lengths[row])
    alone = chosen(reading.batch, torch.tensor([row]).numpy(), length)
    unit_of_token, target = reading.unit_of_token[row, :length], reading.target[row]

    def answer(kept: Float[Tensor, "sample unit"]) -> Float[Tensor, " sample"]:
        tokens = kept.bool().to(unit_of_token.device)[None, :, unit_of_token]
        logits = read_again(model, alone, tokens, "replaced")[0]
        return log_odds(logits, target.expand(len(logits))).cpu()

    return answer
