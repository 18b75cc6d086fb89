"""Half, single and double precision agree to rounding; rows at the edge have a defined answer."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch
from torch import Tensor

from heedful.corpora import planted
from heedful.errors import InputError
from heedful.jobs.settings import settings_of
from heedful.jobs.train import train
from heedful.models import AttentionClassifier, curve, decide, erase, ranked, read, uniform
from tests.tiny import DIM, assert_close, batch_of, classifier

BATCH = batch_of(((1,), (9,), (5, 4), (30,)))
ROUNDOFF = {torch.float16: 2.0**-11, torch.bfloat16: 2.0**-8, torch.float32: 2.0**-24}


def bound(model: AttentionClassifier, roundoff: float) -> Tensor:
    """How far a logit of `none+dot` may be from its value in float64, to first order.

    A product of d terms errs by (d + 2)u times its terms' sizes. An error δ of a score changes its
    exponential by a factor within e^±δ, a softmax of n by e^±2δ (1 + (n + 4)u); the logit is the
    mean of what units say under it. All of what is rounded is counted twice, for the second order.
    """
    dim = DIM + 2
    values = model.embedding(BATCH.ids).abs()
    score = dim * roundoff * (values @ model.level.attention.query.weight.abs().T)[..., 0]
    worst = score.masked_fill(~BATCH.mask, 0).max(-1).values[:, None]
    said = values @ model.head.weight.abs().T
    softmax = torch.expm1(2 * worst) + (BATCH.mask.shape[1] + 4) * roundoff
    weight = read(model, BATCH).attention[..., None]
    summed = (weight * said).sum(1)
    return 2 * (summed * (softmax + dim * roundoff) + model.head.bias.abs() * roundoff)


@pytest.mark.parametrize("kind", list(ROUNDOFF), ids=str)
def test_a_model_of_lower_precision_decides_as_in_float64_up_to_its_rounding(
    kind: torch.dtype,
) -> None:
    low = classifier("none+dot").to(kind)
    exact = classifier("none+dot")
    exact.load_state_dict({name: one.double() for name, one in low.state_dict().items()})
    with torch.no_grad():
        most = bound(exact, ROUNDOFF[kind])
    theirs, ours = read(low, BATCH), read(exact, BATCH)
    error = (theirs.logits - ours.logits).abs()
    assert bool((error <= most).all())
    assert float(error.max()) > 0  # the lower precision was really used
    order = ranked(ours.attention, ours)[:, None]
    assert theirs.logits.dtype == curve(low, theirs, order).dtype == torch.float64


@pytest.mark.parametrize("kind", [*ROUNDOFF, torch.float64], ids=str)
def test_every_answer_is_exact_for_the_reading_whatever_the_precision(kind: torch.dtype) -> None:
    model = classifier("bigru+additive").to(kind)
    reading = read(model, BATCH)
    assert reading.unit_logits is not None
    assert reading.offset is not None
    order = ranked(reading.attention, reading)
    steps = curve(model, reading, order[:, None])[:, 0]
    for row, units in enumerate(reading.units.tolist()):
        for step in range(1, units):
            kept = order[row, step:units]
            weight = reading.attention[row, kept] / reading.attention[row, kept].sum()
            said = (weight[:, None] * reading.unit_logits[row, kept]).sum(0) + reading.offset[row]
            assert_close(steps[row, step], said, 1e-12)


def test_equal_scores_attend_evenly_and_every_step_is_the_mean_of_what_is_left() -> None:
    model = classifier("none+dot")
    with torch.no_grad():
        model.level.attention.query.weight.zero_()
    reading = read(model, BATCH)
    assert reading.unit_logits is not None
    assert reading.offset is not None
    order = ranked(reading.attention, reading)
    steps = curve(model, reading, order[:, None])[:, 0]
    assert_close(decide(model, reading, uniform(reading))[:, 0], reading.logits, 1e-14)
    for row, units in enumerate(reading.units.tolist()):
        assert order[row, :units].tolist() == list(range(units))  # ties by position
        assert_close(
            reading.attention[row, :units],
            torch.full((units,), 1 / units, dtype=torch.float64),
            1e-15,
        )
        for step in range(units):
            said = reading.unit_logits[row, step:units].mean(0) + reading.offset[row]
            assert_close(steps[row, step], said, 1e-13)


@pytest.mark.parametrize("recipe", ["none+dot", "bigru+additive", "han:bilstm+dot"])
@pytest.mark.parametrize("left", [0, 1])
def test_with_one_unit_left_it_decides_and_with_none_the_offset(recipe: str, left: int) -> None:
    model = classifier(recipe)
    reading = read(model, BATCH)
    assert reading.unit_logits is not None
    assert reading.offset is not None
    gone = torch.ones_like(reading.mask)
    gone[:, :left] = False
    logits = decide(model, reading, erase(gone[:, None]))[:, 0]
    alone = reading.unit_logits[:, 0] * left + reading.offset
    assert_close(logits, alone, 1e-12)


@pytest.mark.parametrize("recipe", ["none+dot", "bigru+additive", "han:bilstm+dot"])
def test_a_row_of_padding_alone_is_refused_by_name(recipe: str) -> None:
    mask = BATCH.mask.clone()
    mask[2] = False
    with pytest.raises(InputError, match="Document document 2 has no token"):
        read(classifier(recipe), replace(BATCH, mask=mask))


@pytest.mark.slow
@pytest.mark.parametrize("strength", ["1e6", "1e300"])
def test_a_huge_penalty_gives_finite_weights_or_is_refused(strength: str) -> None:
    corpus = planted(2, "short", sizes={"train": 40, "dev": 10, "test": 10})
    small = settings_of({"model": {"embedding_dim": 4, "width": 4}, "train": {"epochs": 1}})
    if strength == "1e300":  # beyond float32
        with pytest.raises(InputError, match="Training diverged"):
            train(f"gru+additive+tying:{strength}", corpus, settings=small)
        return
    model = train(f"gru+additive+tying:{strength}", corpus, settings=small)
    assert all(bool(weight.isfinite().all()) for weight in model.parameters())
