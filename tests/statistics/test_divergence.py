from math import log

import pytest
import torch
from scipy.spatial.distance import jensenshannon

from heedful.statistics.divergence import entropy, js_divergence, total_variation

INF = float("inf")


def distributions(*shape, seed=0):
    generator = torch.Generator().manual_seed(seed)
    scores = 3 * torch.randn(*shape, generator=generator, dtype=torch.float64)
    return scores.log_softmax(-1)


def test_js_is_symmetric_zero_for_equal_and_ln_2_for_disjoint():
    p, q = distributions(50, 7), distributions(50, 7, seed=1)
    assert torch.equal(js_divergence(p, q), js_divergence(q, p))
    assert js_divergence(p, p).max() < 1e-15
    assert js_divergence(p, p).min() >= 0
    left, right = torch.tensor([0.0, -INF]).double(), torch.tensor([-INF, 0.0]).double()
    assert js_divergence(left, right).item() == pytest.approx(log(2), abs=1e-15)


def test_js_of_a_worked_example():
    # p = (1, 0), q = (1/2, 1/2), m = (3/4, 1/4): (ln 4/3 + (ln 2/3 + ln 2) / 2) / 2
    p, q = torch.tensor([0.0, -INF]).double(), torch.tensor([0.5, 0.5]).double().log()
    expected = (log(4 / 3) + (log(2 / 3) + log(2)) / 2) / 2
    assert js_divergence(p, q).item() == pytest.approx(expected, abs=1e-15)


def test_js_is_the_square_of_scipys_distance():
    p, q = distributions(20, 9), distributions(20, 9, seed=1)
    theirs = jensenshannon(p.exp().numpy(), q.exp().numpy(), axis=1) ** 2
    torch.testing.assert_close(js_divergence(p, q), torch.from_numpy(theirs), atol=1e-12, rtol=0)


def test_masked_units_and_absent_mass_change_neither_js_nor_its_gradient():
    p, q = distributions(4, 5), distributions(4, 5, seed=1)
    padding = torch.full((4, 3), -INF, dtype=torch.float64)
    mask = torch.arange(8).expand(4, 8) < 5
    plain = p.clone().requires_grad_()
    padded = torch.cat([p, padding], 1).requires_grad_()
    garbage = torch.cat([p, torch.full_like(padding, 0.3)], 1)
    one, two = js_divergence(plain, q), js_divergence(padded, torch.cat([q, padding], 1))
    torch.testing.assert_close(one, two)
    torch.testing.assert_close(js_divergence(garbage, torch.cat([q, padding], 1), mask), one)
    (first,) = torch.autograd.grad(one.sum(), plain)
    (second,) = torch.autograd.grad(two.sum(), padded)
    torch.testing.assert_close(second, torch.nn.functional.pad(first, (0, 3)))


def test_js_gradient_is_right_and_finite_where_only_one_has_mass():
    p = distributions(3, 4).requires_grad_()
    q = distributions(3, 4, seed=1)
    q[:, 0] = -INF
    assert torch.autograd.gradcheck(lambda x: js_divergence(x.log_softmax(-1), q), (p,))


def test_total_variation_of_two_classes_is_the_difference():
    p, q = torch.tensor([[0.9, 0.1], [1.0, 0.0]]), torch.tensor([[0.6, 0.4], [0.0, 1.0]])
    torch.testing.assert_close(total_variation(p, q), torch.tensor([0.3, 1.0]))


def test_entropy_is_one_for_uniform_zero_for_one_hot_and_ignores_padding():
    mask = torch.tensor([[1, 1, 1, 0], [1, 1, 1, 1], [1, 0, 0, 0], [0, 0, 0, 0]]).bool()
    attention = torch.tensor(
        [[1 / 3, 1 / 3, 1 / 3, 0.7], [0, 1, 0, 0], [1, 0.3, 0, 0], [0, 0, 0.2, 0]],
        dtype=torch.float64,
    )
    found = entropy(attention, mask)
    torch.testing.assert_close(found[:3], torch.tensor([1.0, 0.0, 0.0], dtype=torch.float64))
    assert found[3].isnan()
    half = torch.tensor([[0.5, 0.5, 0.0, 0.0]], dtype=torch.float64)
    assert entropy(half, mask[1:2]).item() == pytest.approx(0.5)
