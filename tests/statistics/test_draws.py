"""Statistics with their replicates, against the intervals of `heedful.statistics.intervals`."""

import numpy as np
import pytest
from scipy.stats import binomtest, spearmanr

from heedful.statistics import draws, intervals
from heedful.statistics.shares import discordance

NAMES = [f"document {i}" for i in range(300)]
VALUES = np.random.default_rng(1).gamma(2.0, size=300)


def test_a_quantile_agrees_with_the_one_of_intervals() -> None:
    ours = draws.quantile(VALUES, 0.5, NAMES).estimate()
    theirs = intervals.quantile(VALUES, 0.5)
    assert (ours.value, ours.low, ours.high) == (theirs.value, theirs.low, theirs.high)
    assert ours.value == np.median(VALUES)


def test_an_average_leaves_out_what_is_undefined() -> None:
    holed = np.where(np.arange(300) % 3 == 0, np.nan, VALUES)
    found = draws.average(holed, NAMES)
    assert found.value == pytest.approx(np.nanmean(holed))
    assert found.n == 200
    near = intervals.mean(holed, NAMES)
    assert found.estimate().low == pytest.approx(near.low, abs=0.06)
    assert found.estimate().high == pytest.approx(near.high, abs=0.06)


def test_a_plain_share_has_wilsons_interval() -> None:
    flags = np.zeros(300)
    assert draws.average(flags, NAMES).estimate() == intervals.proportion(0, 300)


def test_replicates_of_two_models_are_paired_by_document() -> None:
    """The interval of the difference is that of the paired differences, not of two samples."""
    other = VALUES + np.random.default_rng(2).normal(0.1, 0.05, 300)
    found = draws.minus(draws.average(other, NAMES), draws.average(VALUES, NAMES)).estimate()
    paired = intervals.paired(other, VALUES, NAMES)
    assert found.value == pytest.approx(paired.value)
    assert found.high - found.low == pytest.approx(paired.high - paired.low, rel=0.2)


def test_odds_count_documents_and_stay_finite() -> None:
    first, second = np.arange(300) < 60, np.arange(300) >= 260
    assert draws.odds(first, second, NAMES).value == 60 / 40
    assert draws.odds(first, first & False, NAMES).value == 60 / 0.5
    assert np.isnan(draws.odds(first & False, first & False, NAMES).value)


def test_a_quotient_by_nothing_or_less_is_undefined() -> None:
    one, zero = draws.average(VALUES, NAMES), draws.average(-VALUES, NAMES)
    assert np.isnan(draws.over(one, zero).value)
    assert np.isnan(draws.over(one, zero).estimate().low)


def test_the_onset_is_the_left_edge_of_the_first_high_bin() -> None:
    x = np.linspace(0, 1, 300)
    y = np.where(x >= 0.4, 0.5, 0.0)
    edges = np.round(np.linspace(0, 1, 11), 1)
    assert draws.onset(x, y, 0.1, edges, NAMES).value == 0.4
    assert draws.onset(x, 0 * y, 0.1, edges, NAMES).value == 1.0
    assert draws.onset([1.0], [0.5], 0.1, edges, ["one"]).value == 0.9  # the last bin is closed


def test_largest_and_smallest_are_taken_in_each_replicate() -> None:
    one, other = draws.average(VALUES, NAMES), draws.average(VALUES[::-1], NAMES)
    most, least = draws.largest([one, other]), draws.smallest([one, other])
    np.testing.assert_array_equal(most.drawn, np.maximum(one.drawn, other.drawn))
    np.testing.assert_array_equal(least.drawn, np.minimum(one.drawn, other.drawn))
    assert np.isnan(draws.largest([one, draws.undefined()]).value)


def test_spearman_over_models_is_scipys() -> None:
    random = np.random.default_rng(3)
    first = [draws.average(random.normal(k, 1, 300), NAMES) for k in range(6)]
    second = [draws.average(random.normal(k % 4, 1, 300), NAMES) for k in range(6)]
    expected = spearmanr([a.value for a in first], [b.value for b in second]).statistic
    assert draws.spearman(first, second).value == pytest.approx(expected)
    assert np.isnan(draws.spearman(first[:2], second[:2]).value)


def test_several_seeds_widen_the_interval() -> None:
    seeds = [draws.average(VALUES + shift, NAMES) for shift in (-0.5, 0.0, 0.5)]
    found = draws.over_seeds(seeds)
    assert found.value == pytest.approx(VALUES.mean())
    narrow = seeds[1].estimate()
    assert found.estimate().high - found.estimate().low > 1.5 * (narrow.high - narrow.low)
    assert draws.over_seeds(seeds[:1]) is seeds[0]


@pytest.mark.parametrize(("top", "random"), [(20, 5), (5, 5), (9, 2), (6, 0), (0, 0), (1, 9)])
def test_the_discordance_leaves_out_zero_where_the_exact_test_rejects(
    top: int, random: int
) -> None:
    found = discordance(top, random, 200)
    assert found.value == (top - random) / 200
    assert found.low <= found.value <= found.high
    rejects = top + random > 0 and binomtest(top, top + random).pvalue < 0.05
    assert (found.low > 0 or found.high < 0) == rejects


@pytest.mark.parametrize("shared", [0.0, 0.5, 1.0])
def test_pairs_that_share_a_training_allow_for_another_in_its_place(shared: float) -> None:
    """Of f(A) + f(B) + g(A, B), whatever its parts, the mean over all trainings is covered."""
    random, covered = np.random.default_rng(5), 0
    for trial in range(300):
        own = random.normal(size=6) * np.sqrt(shared / 2)
        met = own[0] + own[1:] + random.normal(size=5) * np.sqrt(1 - shared)
        pairs = [draws.Draws(float(one), np.full(1_000, one), 50) for one in met]
        found = draws.over_pairs(pairs, str(trial)).estimate()
        covered += found.low <= 0 <= found.high
    assert covered >= 0.93 * 300  # over_seeds: 49, 60 and 83 % at most
    assert draws.over_pairs(pairs[:1], "") is pairs[0]


def test_a_few_trainings_have_students_interval_and_their_documents() -> None:
    names = [f"document {k}" for k in range(400)]
    noise = np.random.default_rng(0).normal(size=400)
    levels = [0.1, 0.3, 0.2, 0.4, 0.25]
    flat = draws.over_trainings([draws.average(np.full(400, x), names) for x in levels], "a")
    values = np.array(levels)
    half = 2.776 * values.std(ddof=1) / np.sqrt(5)
    found = flat.estimate()
    assert found.value == pytest.approx(values.mean())
    assert found.high - found.low == pytest.approx(2 * half, rel=0.15)
    noisy = draws.over_trainings([draws.average(x + 3 * noise, names) for x in levels], "a")
    wider = noisy.estimate()
    assert wider.high - wider.low > found.high - found.low
    one = draws.average(noise, names)
    assert draws.over_trainings([one], "a") is one
    inside = draws.over_trainings([draws.average(np.full(400, x), names) for x in levels], "a", 0.2)
    assert inside.estimate().low == 0.2
    assert np.isnan(draws.over_trainings([draws.undefined()], "a").value)


def test_averages_are_each_their_own() -> None:
    names = [f"document {k}" for k in range(50)]
    first, second = np.arange(50.0), np.where(np.arange(50) % 3, np.nan, 1.0)
    for together, alone in zip(
        draws.averages([first, second], names),
        (draws.average(first, names), draws.average(second, names)),
        strict=True,
    ):
        assert together.value == alone.value
        assert together.n == alone.n
        np.testing.assert_allclose(together.drawn, alone.drawn)
