"""A head that is not linear answers every verb by being run again."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from heedful.errors import UnsupportedModel
from heedful.models import (
    AttentionClassifier,
    alone,
    curve,
    decide,
    identity,
    ranked,
    read,
    without_each,
)
from tests.tiny import DOCUMENTS, NonLinear, assert_close, batch_of, classifier

BATCH = batch_of()


def any_model() -> AttentionClassifier:
    return classifier("bigru+additive")


@pytest.mark.parametrize("bend", [nn.Identity(), nn.Sequential(nn.Linear(6, 6), nn.Tanh())])
@pytest.mark.parametrize("documents", [DOCUMENTS, ((70,), (3,), (66,))])
def test_a_head_that_is_not_linear_answers_every_verb(
    bend: nn.Module, documents: tuple[tuple[int, ...], ...]
) -> None:
    inner = classifier("bigru+additive")
    model = NonLinear(inner, bend.double())
    batch = batch_of(documents)
    reading = read(model, batch)
    units = reading.mask.shape[1]
    order = torch.stack(
        [ranked(reading.attention, reading), ranked(-reading.attention, reading)], 1
    )
    curves, without, single = (
        curve(model, reading, order),
        without_each(model, reading),
        alone(model, reading),
    )
    assert model.calls >= 3
    assert torch.equal(decide(model, reading, identity(reading))[:, 0], reading.logits)
    assert torch.equal(curves[:, :, 0], reading.logits[:, None].expand(-1, 2, -1))
    for document, count in enumerate(reading.units.tolist()):
        attention = reading.attention[document, :count].numpy()
        values = reading.values[document, :count]

        def said(weights: np.ndarray, values: Tensor = values) -> Tensor:
            weights = weights / weights.sum() if weights.any() else weights
            with torch.no_grad():
                return inner.head(model.bend(torch.from_numpy(weights) @ values))

        for ranking in range(2):
            for step in {0, 1, count // 2, count - 1, count, units}:
                kept = attention.copy()
                kept[order[document, ranking, : min(step, count)].numpy()] = 0
                assert_close(curves[document, ranking, step], said(kept))
        for unit, one in enumerate(np.eye(count)):
            assert_close(single[document, unit], said(one))
            assert_close(without[document, unit], said(attention * (1 - one)))
    assert bool(single[~reading.mask].isnan().all())


def test_a_linear_head_through_the_fallback_agrees_with_the_closed_forms() -> None:
    for recipe, settings in (("conv+dot", {}), ("han:lstm+additive", {"head_bias": False})):
        inner = classifier(recipe, 4, **settings)
        model = NonLinear(inner, nn.Identity())
        exact, slow = read(inner, BATCH), read(model, BATCH)
        order = ranked(exact.attention, exact)[:, None]
        assert_close(slow.logits, exact.logits, 1e-12)
        assert_close(curve(model, slow, order), curve(inner, exact, order))
        assert_close(alone(model, slow), alone(inner, exact))
        assert_close(without_each(model, slow), without_each(inner, exact))


def test_a_linear_model_refuses_to_answer_the_slow_way() -> None:
    model = any_model()
    reading = read(model, BATCH)
    with pytest.raises(UnsupportedModel, match="call decide"):
        model.answer(reading, identity(reading))
