"""Agreement of attention with probes, over ragged rows."""

import math
from itertools import permutations

import numpy as np
import pytest
from scipy.stats import kendalltau

from heedful.dynamics.agreement import (
    admitted,
    agrees,
    agrees_split,
    chance,
    concentration,
    contextualised,
    first_largest,
    rank_correlation,
    without,
)
from heedful.studies.dynamics.agreement_curves import contextual, curve_of, is_inside

LENGTHS = np.array([1, 3, 20, 21, 41, 60, 2])


def _vector(seed, levels=None, checkpoints=None):
    generator = np.random.default_rng(seed)
    shape = (int(LENGTHS.sum()),) if checkpoints is None else (checkpoints, int(LENGTHS.sum()))
    if levels:
        return generator.integers(0, levels, size=shape).astype(np.float32)
    return generator.standard_normal(shape).astype(np.float32)


def _rows(vector):
    return np.split(vector, np.cumsum(LENGTHS)[:-1])


def _by_hand(u, v):
    """The definition, one row at a time."""
    chosen = int(np.argmax(u))
    return int((v > v[chosen]).sum()) < 0.05 * len(v)


def test_the_top_five_per_cent_is_counted_in_whole_numbers():
    lengths = np.arange(1, 2_001)
    assert admitted(lengths).tolist() == [math.ceil(0.05 * n) for n in lengths]


@pytest.mark.parametrize("levels", [None, 2, 5])
def test_agreement_equals_its_definition(levels):
    for seed in range(20):
        u, v = _vector(2 * seed, levels), _vector(2 * seed + 1, levels)
        wanted = [_by_hand(a, b) for a, b in zip(_rows(u), _rows(v), strict=True)]
        assert agrees(u, v, LENGTHS).tolist() == wanted


def test_checkpoints_are_measured_at_once():
    u, v = _vector(0), _vector(1, 4, checkpoints=6)
    together = agrees(u, v, LENGTHS)
    assert together.shape == (6, len(LENGTHS))
    for one, row in zip(together, v, strict=True):
        assert one.tolist() == agrees(u, row, LENGTHS).tolist()
    np.testing.assert_array_equal(chance(v, LENGTHS)[3], chance(v[3], LENGTHS))
    np.testing.assert_array_equal(agrees_split(u, v, LENGTHS)[3], agrees_split(u, v[3], LENGTHS))
    # Either of the two may be the one with checkpoints, or both.
    for first, second in ((v, u), (v, u[None]), (v, v[::-1])):
        rows = list(zip(*np.broadcast_arrays(first, second), strict=True))
        for measure in (agrees, agrees_split):
            each = [measure(a, b, LENGTHS) for a, b in rows]
            np.testing.assert_array_equal(measure(first, second, LENGTHS), each)


def test_the_first_of_tied_largest_units_is_taken_and_a_constant_second_always_agrees():
    u = np.array([1, 5, 5, 2], dtype=np.float32)
    lengths = np.array([4])
    assert first_largest(u, lengths).tolist() == [1]
    assert agrees(u, np.zeros(4, np.float32), lengths).all()


@pytest.mark.parametrize("levels", [None, 3])
def test_chance_equals_every_placement_of_the_largest_unit(levels):
    v = _vector(7, levels)
    wanted = []
    for row in _rows(v):
        hits = [_by_hand(np.eye(len(row))[i], row) for i in range(len(row))]
        wanted.append(np.mean(hits))
    np.testing.assert_allclose(chance(v, LENGTHS), wanted, atol=1e-15)


def test_without_ties_chance_is_the_share_of_admitted_ranks():
    np.testing.assert_allclose(chance(_vector(3), LENGTHS), admitted(LENGTHS) / LENGTHS)


def test_split_ties_equal_the_mean_over_all_ways_to_break_them():
    u, v = np.array([2.0, 2, 1, 0]), np.array([1.0, 1, 1, 3])
    lengths = np.array([4])
    found = []
    for order in permutations(range(4)):
        noise = 1e-6 * np.array(order)
        for other in permutations(range(4)):
            found.append(_by_hand(u + noise, v + 1e-6 * np.array(other)))
    assert agrees_split(u, v, lengths)[0] == pytest.approx(np.mean(found))
    constant = agrees_split(u, np.zeros(4), lengths)[0]
    assert constant == pytest.approx(1 / 4)  # nothing is gained from ties


def test_split_ties_change_nothing_where_there_are_none():
    u, v = _vector(11), _vector(12)
    np.testing.assert_array_equal(agrees_split(u, v, LENGTHS), agrees(u, v, LENGTHS))


@pytest.mark.parametrize("levels", [None, 3])
def test_rank_correlation_is_scipys(levels):
    u, v = _vector(5, levels, checkpoints=2), _vector(6, levels)
    found = rank_correlation(u, v, LENGTHS)
    for number in range(2):
        for row, (a, b) in enumerate(zip(_rows(u[number]), _rows(v), strict=True)):
            wanted = kendalltau(a, b).statistic if len(a) > 1 else np.nan
            np.testing.assert_allclose(found[number, row], wanted, atol=1e-12)


def test_uniform_attention_has_entropy_one_and_a_single_unit_none():
    uniform = np.repeat(1 / LENGTHS, LENGTHS)
    np.testing.assert_allclose(concentration(uniform, LENGTHS), [0, 1, 1, 1, 1, 1, 1], atol=1e-12)


def test_leaving_out_units_shortens_rows_and_drops_empty_ones():
    special = np.array([True, True, False, False, True])
    found = without(special, np.array([1, 3, 1]))
    assert found.rows.tolist() == [1]
    assert found.lengths.tolist() == [2]


def test_the_first_checkpoint_that_agrees_more_gives_the_performance():
    curve, performance = np.array([0.1, 0.4, 0.6, 0.5]), np.array([50.0, 70.0, 80.0, 90.0])
    assert contextualised(0.4, curve, performance, 95.0) == (80.0, 2)
    assert contextualised(0.05, curve, performance, 95.0) == (50.0, 0)
    never = contextualised(0.6, curve, performance, 95.0)
    assert never.is_never
    assert never.performance == 95.0


def test_curves_pool_rows_and_choose_checkpoints():
    values = np.array([[1, 0, 0, np.nan], [1, 1, 0, 1], [0, 0, 1, 1]], dtype=float)
    curve = curve_of(values, np.array([0, 0, 1, 2]))
    np.testing.assert_allclose(curve.means, [1 / 3, 3 / 4, 1 / 2])
    assert curve.highest().value == pytest.approx(3 / 4)
    assert curve.at(-1).value == pytest.approx(1 / 2)


def test_choosing_on_the_other_half_removes_the_gain_of_choosing():
    generator = np.random.default_rng(0)
    found = []
    for _ in range(20):
        curve = curve_of(generator.integers(0, 2, (22, 200)).astype(float), np.arange(200))
        found.append((curve.highest().value, curve.crossed().value))
    highest, honest = np.mean(found, axis=0)
    assert highest > 0.55
    assert abs(honest - 0.5) < 0.03


def test_noise_alone_does_not_fall_and_a_real_fall_is_told():
    generator = np.random.default_rng(1)
    flat = curve_of(generator.integers(0, 2, (22, 400)).astype(float), np.arange(400))
    assert flat.means[-1] < flat.means.max()  # the highest of 22 is above the last by luck alone
    assert flat.fall().estimate().high > 0
    chances = np.array([0.2, 0.9, 0.5])[:, None]
    falling = curve_of((generator.random((3, 400)) < chances).astype(float), np.arange(400))
    assert falling.fall().value == pytest.approx(falling.means[-1] - falling.means.max())
    assert falling.fall().estimate().high < 0


def test_the_performance_of_an_agreement_is_resampled_as_it_is_defined():
    generator = np.random.default_rng(3)
    values = [generator.integers(0, 2, (5, 60)).astype(float) for _ in range(4)]
    pair, context, performance, reference = (curve_of(v, np.arange(60)) for v in values)
    found = contextual(pair, context, performance, reference)
    wanted = contextualised(
        pair.means.max(), context.means, performance.means, reference.means.max()
    )
    assert found.value == pytest.approx(wanted.performance)


def test_a_curve_that_rises_and_falls_has_its_top_inside():
    up_and_down = np.array([[0, 0], [1, 1], [0, 0]], dtype=float).repeat(20, axis=1)
    assert is_inside(curve_of(up_and_down, np.arange(40))).estimate().low == 1.0
    assert is_inside(curve_of(up_and_down[:2], np.arange(40))).estimate().high == 0.0
