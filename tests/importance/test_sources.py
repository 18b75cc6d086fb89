"""Explanations by sources: heads that carry an effect are found, and what they weigh."""

from __future__ import annotations

import numpy as np
import torch

from heedful.importance.sources import (
    CHOSEN,
    LEARNT,
    METHODS,
    RANDOM,
    Explained,
    _ridge,
    heads_on_dev,
)
from heedful.models.huggingface.source_reading import SourceReading


def test_the_head_that_carries_the_effect_is_chosen_and_weighs_most() -> None:
    drawn = np.random.default_rng(0)
    attention = [drawn.random((6, 20)) for _ in range(12)]
    effects = [one[:, 7] + 0.01 * drawn.random(6) for one in attention]
    chosen, learnt = heads_on_dev(attention, effects)
    assert (chosen.name, learnt.name) == (CHOSEN, LEARNT)
    assert chosen.weights.argmax() == 7
    assert chosen.weights.sum() == 1
    assert learnt.weights.argmax() == 7
    assert abs(learnt.weights[7]) > 5 * np.abs(np.delete(learnt.weights, 7)).max()


def test_few_questions_or_effects_without_spread_choose_nothing() -> None:
    attention = [np.ones((5, 3))] * 6
    assert heads_on_dev(attention[:3], [np.arange(5.0)] * 3) == []
    assert heads_on_dev(attention, [np.zeros(5)] * 6) == []


def test_a_ridge_solves_its_equations_whichever_way_it_goes() -> None:
    drawn = np.random.default_rng(1)
    for shape in ((3, 8), (8, 3)):
        inputs, goal = drawn.random(shape), drawn.random(shape[0])
        weights = _ridge(inputs, goal, 0.5)
        slope = inputs.T @ (inputs @ weights - goal) + 0.5 * weights
        np.testing.assert_allclose(slope, 0, atol=1e-12)


def test_each_method_by_hand() -> None:
    attention = torch.tensor([[[[0.2, 0.1], [0.4, 0.1]]], [[[0.0, 0.2], [0.0, 0.4]]]]).double()
    zeros = torch.zeros(2, dtype=torch.float64)
    first = 1 - attention.sum(-1)
    reading = SourceReading(zeros, attention, first, 2 * attention, zeros + 1, zeros + 2)
    free = reading._replace(attention=attention / 2)
    explained = Explained("a", reading, free, np.array([3.0, 4.0]))
    found = {name: make(explained, 0) for name, make in METHODS.items()}
    np.testing.assert_allclose(found["attention, last position"], [0.1, 0.15])
    np.testing.assert_allclose(found["attention"], [0.15, 0.2])
    np.testing.assert_allclose(found["attention, last layer"], [0.0, 0.3])
    np.testing.assert_allclose(found["attention, sink removed"], [0.375, 0.625])
    np.testing.assert_allclose(found["attention minus free"], [0.075, 0.1])
    np.testing.assert_allclose(found["value-weighted"], [0.3, 0.4])
    assert list(found["gradient x input"]) == [3, 4]
    assert list(found["trace"]) == [2, 2]
    assert (found[RANDOM] == METHODS[RANDOM](explained, 0)).all()
