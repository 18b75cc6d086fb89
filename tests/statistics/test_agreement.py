from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from scipy.stats import kendalltau
from sklearn.metrics import average_precision_score

from heedful.statistics.agreement import (
    average_precision,
    ccc,
    kendall_tau_b,
    mass_on,
    token_f1,
    top_units,
)

NAN = float("nan")


def ragged(batch, units, levels=None, seed=0):
    """Two importances and a mask of random lengths; with levels, many ties."""
    generator = torch.Generator().manual_seed(seed)
    draw = torch.rand(2, batch, units, generator=generator, dtype=torch.float64)
    if levels:
        draw = (draw * levels).floor()
    lengths = torch.randint(2, units + 1, (batch, 1), generator=generator)
    return draw[0], draw[1], torch.arange(units) < lengths


@pytest.mark.parametrize("levels", [None, 2, 5, 40])
@pytest.mark.parametrize("units", [2, 3, 8, 33])
def test_kendall_equals_scipy_with_and_without_ties(units, levels):
    first, second, mask = ragged(40, units, levels)
    second = torch.where(torch.rand(40, 1) < 0.5, second, first + 0.3 * second)
    ours = kendall_tau_b(first, second, mask)
    theirs = [
        kendalltau(a[m].numpy(), b[m].numpy()).statistic
        for a, b, m in zip(first, second, mask, strict=True)
    ]
    np.testing.assert_allclose(ours.numpy(), theirs, atol=1e-12)


def test_kendall_of_long_rows_equals_scipy():
    first, second, mask = ragged(3, 3200, 500)
    ours = kendall_tau_b(first.float(), (first + second).float(), mask)
    theirs = [
        kendalltau(a[m].numpy(), b[m].numpy()).statistic
        for a, b, m in zip(first, first + second, mask, strict=True)
    ]
    np.testing.assert_allclose(ours.numpy(), theirs, atol=1e-12)


def test_kendall_is_one_minus_one_or_undefined():
    x = torch.tensor([[1.0, 2.0, 3.0, 9.0]]).expand(5, 4)
    y = torch.tensor([[1.0, 5, 6, 0], [3, 2, 1, 7], [1, 1, 1, 0], [1, 2, 3, 0], [1, NAN, 3, 0]])
    mask = torch.tensor([[1, 1, 1, 0]] * 3 + [[1, 0, 0, 0]] + [[1, 1, 1, 0]]).bool()
    found = kendall_tau_b(x, y, mask).tolist()
    assert found[:2] == [1.0, -1.0]
    assert all(map(math.isnan, found[2:]))


def test_padding_and_its_content_change_no_agreement():
    first, second, mask = ragged(20, 12, 4)
    evidence = second > 1
    wide_mask = torch.nn.functional.pad(mask, (0, 5))
    noisy = [torch.nn.functional.pad(x, (0, 5), value=99.0) for x in (first, second)]
    noisy = [x.masked_fill(~wide_mask, NAN) for x in noisy]
    wide_evidence = torch.nn.functional.pad(evidence, (0, 5), value=True)
    pairs = [
        (kendall_tau_b(first, second, mask), kendall_tau_b(*noisy, wide_mask)),
        (
            average_precision(first, evidence, mask),
            average_precision(noisy[0], wide_evidence, wide_mask),
        ),
        (token_f1(first, evidence, mask), token_f1(noisy[0], wide_evidence, wide_mask)),
        (mass_on(first, evidence, mask), mass_on(noisy[0], wide_evidence, wide_mask)),
    ]
    for narrow, wide in pairs:
        torch.testing.assert_close(narrow, wide, equal_nan=True, rtol=0, atol=1e-12)


@pytest.mark.parametrize("levels", [None, 3])
def test_average_precision_equals_sklearn(levels):
    importance, other, mask = ragged(60, 15, levels, seed=3)
    evidence = other < other.median()
    ours = average_precision(importance, evidence, mask)
    for row in range(60):
        e, s = evidence[row][mask[row]].numpy(), importance[row][mask[row]].numpy()
        if e.any():
            assert ours[row].item() == pytest.approx(average_precision_score(e, s), abs=1e-12)
        else:
            assert ours[row].isnan()


def test_ties_go_to_the_earlier_unit():
    importance = torch.tensor([[0.2, 0.5, 0.5, 0.5, 0.1]])
    mask = torch.ones(1, 5, dtype=torch.bool)
    assert top_units(importance, mask, 2).tolist() == [[False, True, True, False, False]]
    assert top_units(importance, mask, torch.tensor([4])).sum() == 4
    lowest = torch.tensor([[-torch.inf, -torch.inf, 1.0]])
    late = torch.tensor([[False, True, True]])  # padding on the left, importance -inf beside it
    assert top_units(lowest, late, 2).tolist() == [[False, True, True]]


def test_token_f1_and_mass_of_a_worked_example():
    attention = torch.tensor([[0.1, 0.6, 0.3, 0.0], [0.5, 0.5, 0.0, 0.0]])
    evidence = torch.tensor([[1, 1, 0, 1], [0, 0, 0, 1]]).bool()
    mask = torch.tensor([[1, 1, 1, 0], [1, 1, 0, 0]]).bool()
    # Two evidence units are real; the top two units are 1 and 2, of which one is evidence.
    f1, mass = token_f1(attention, evidence, mask), mass_on(attention, evidence, mask)
    assert (f1[0].item(), mass[0].item()) == (0.5, pytest.approx(0.7))
    assert f1[1].isnan()
    assert mass[1].isnan()


def test_it_is_the_closed_form():
    x, y = [1.0, 2.0, 4.0], [1.0, 3.0, 3.0]
    # Deviations (-4, -1, 5)/3 and (-4, 2, 2)/3: variances 14/9 and 8/9, covariance 8/9.
    assert ccc(x, y) == pytest.approx(2 * (8 / 9) / (14 / 9 + 8 / 9))


def test_a_shift_and_a_scale_cost_what_they_should():
    x = np.array([-1.0, 1.0])  # mean 0, variance 1
    assert ccc(x, x + 2) == pytest.approx(2 / (1 + 1 + 4))
    assert ccc(x, 3 * x) == pytest.approx(6 / (1 + 9))
    assert ccc(x, -x) == -1


def test_it_is_symmetric_and_never_above_correlation():
    random = np.random.default_rng(0)
    x, y = random.normal(size=50), random.normal(size=50)
    y = 0.5 * x + y + 1
    assert ccc(x, y) == pytest.approx(ccc(y, x))
    assert abs(ccc(x, y)) <= abs(np.corrcoef(x, y)[0, 1])


def test_constants_and_nothing():
    assert ccc([1, 1, 1], [1, 2, 3]) == 0
    assert math.isnan(ccc([1, 1], [1, 1]))
    assert math.isnan(ccc([], []))
    with pytest.raises(ValueError, match="one length"):
        ccc([1, 2], [1, 2, 3])
