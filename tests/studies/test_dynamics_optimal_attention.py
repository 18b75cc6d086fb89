"""Optimal attention and its certificate."""

import math

import pytest
import torch

from heedful.studies.dynamics.optimal_attention import descended, optimal_attention


def _problem(rows=6, units=5, classes=7, scale=2.0, seed=0):
    generator = torch.Generator().manual_seed(seed)
    said = scale * torch.randn(rows, units, classes, generator=generator)
    offset = torch.randn(rows, classes, generator=generator)
    target = torch.randint(0, classes, (rows,), generator=generator)
    mask = torch.arange(units) < torch.randint(2, units + 1, (rows, 1), generator=generator)
    return said.double(), mask, offset.double(), target


def _loss(said, offset, target, attention):
    logits = torch.einsum("ru,ruc->rc", attention, said) + offset
    return -logits.log_softmax(-1).gather(1, target[:, None])[:, 0]


def test_the_counterexample_puts_no_weight_on_the_largest_probe():
    said = torch.tensor([[[0.0, 0, 0], [0, -10, 5], [0, 5, -10]]])
    found = optimal_attention(
        said,
        torch.ones(1, 3, dtype=torch.bool),
        torch.zeros(1, 3),
        torch.tensor([0]),
        tolerance=1e-9,
    )
    torch.testing.assert_close(found.attention[0].tolist(), [0.0, 0.5, 0.5], atol=1e-6, rtol=0)
    assert math.exp(-found.loss[0]) == pytest.approx(1 / (1 + 2 * math.exp(-2.5)), abs=1e-9)
    probe = said[0].softmax(-1)[:, 0]
    torch.testing.assert_close(probe, torch.tensor([0.3333, 0.00669, 0.00669]), atol=1e-4, rtol=0)


def test_the_gap_bounds_the_distance_to_any_other_attention():
    said, mask, offset, target = _problem()
    found = optimal_attention(said, mask, offset, target)
    assert (found.gap <= 1e-4).all()
    assert (found.attention[~mask] == 0).all()
    torch.testing.assert_close(found.attention.sum(-1), torch.ones(len(target)).double())
    generator = torch.Generator().manual_seed(1)
    for _ in range(300):
        other = torch.rand(mask.shape, generator=generator).double().pow(4) * mask
        other /= other.sum(-1, keepdim=True)
        assert (_loss(said, offset, target, other) >= found.loss - found.gap - 1e-12).all()


@pytest.mark.slow
def test_the_optimum_is_that_of_plain_gradient_descent():
    said, mask, offset, target = _problem(rows=4, units=4, scale=1.0, seed=3)
    found = optimal_attention(said, mask, offset, target, tolerance=1e-8)
    scores = torch.zeros(mask.shape, dtype=torch.float64, requires_grad=True)
    optimiser = torch.optim.Adam([scores], 0.1)
    for _ in range(3_000):
        attention = scores.masked_fill(~mask, -torch.inf).softmax(-1)
        loss = _loss(said, offset, target, attention).sum()
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
    reached = _loss(said, offset, target, attention.detach())
    torch.testing.assert_close(found.loss, reached, atol=1e-4, rtol=0)
    assert (found.loss <= reached + 1e-8).all()


def test_rows_that_share_a_source_have_the_answers_they_have_alone():
    said, mask, offset, target = _problem(rows=2)
    source = torch.tensor([1, 0, 1])
    rows = offset[[0, 1, 0]], target[[0, 1, 1]]
    together = optimal_attention(said, mask, *rows, source)
    alone = optimal_attention(said[source], mask[source], *rows)
    torch.testing.assert_close(together.attention, alone.attention, atol=1e-10, rtol=0)


def test_too_few_steps_are_told_by_the_gap():
    said, mask, offset, target = _problem(scale=5.0, seed=5)
    hasty = optimal_attention(said, mask, offset, target, most=1)
    assert hasty.steps == 1
    assert float(hasty.gap.max()) > 1e-4


def test_a_search_from_even_attention_ends_where_one_from_the_best_unit_does():
    said, mask, offset, target = _problem()
    one = optimal_attention(said, mask, offset, target, tolerance=1e-9)
    two = optimal_attention(said, mask, offset, target, tolerance=1e-9, is_even=True)
    torch.testing.assert_close(one.loss, two.loss, atol=1e-8, rtol=0)
    assert not two.stayed.any()
    # Who never left the best unit has all weight there.
    assert (one.attention[one.stayed].max(-1).values == 1).all()
    assert one.stayed.any()


def test_plain_gradient_steps_are_those_of_automatic_differentiation():
    said, mask, offset, target = _problem(rows=3)
    source = torch.tensor([0, 0, 2])
    found = descended(said, mask, offset, target, source, after=(2, 5), rate=0.5)
    scores = torch.zeros(3, mask.shape[1], dtype=torch.float64)
    for step in range(1, 6):
        scores.requires_grad_()
        attention = scores.masked_fill(~mask[source], -torch.inf).softmax(-1)
        (slope,) = torch.autograd.grad(_loss(said[source], offset, target, attention).sum(), scores)
        scores = (scores - 0.5 * slope).detach()
        if step in (2, 5):
            wanted = scores.masked_fill(~mask[source], -torch.inf).softmax(-1)
            torch.testing.assert_close(found[(2, 5).index(step)], wanted)
