import math
from dataclasses import replace

import numpy as np
import pytest
import scipy.stats

from heedful.statistics import (
    Estimate,
    bootstrap,
    deviation,
    mean,
    means,
    over_seeds,
    paired,
    pooled,
    proportion,
    quantile,
    resampling_weights,
    sign_test,
    widened,
)

NAN = float("nan")


def names(n):
    return [f"document-{i}" for i in range(n)]


def coverage(estimates, truth):
    return np.mean([e.low <= truth <= e.high for e in estimates])


DATA = {
    "normal": (lambda rng, shape: rng.normal(3, 2, shape), 3.0),
    "exponential": (lambda rng, shape: rng.exponential(1, shape), 1.0),
    "Pareto(3)": (lambda rng, shape: rng.pareto(3, shape), 0.5),
    "rare": (lambda rng, shape: rng.random(shape) * (rng.random(shape) < 0.03), 0.015),
    "bernoulli": (lambda rng, shape: (rng.random(shape) < 0.3).astype(float), 0.3),
}


@pytest.mark.slow
@pytest.mark.parametrize("n", [100, 400])
@pytest.mark.parametrize("kind", DATA)
def test_intervals_of_means_cover_the_truth_19_times_in_20(kind, n):
    draw, truth = DATA[kind]
    found = means(draw(np.random.default_rng(n), (n, 2000)), names(n))
    assert 0.93 <= coverage(found, truth) <= (1 if kind == "rare" else 0.97)


@pytest.mark.slow
@pytest.mark.parametrize("n", [100, 400])
def test_intervals_of_paired_differences_cover_the_truth(n):
    rng = np.random.default_rng(7)
    found = []
    for _ in range(400):
        easy = rng.random(n)  # what both see, so that the two are correlated
        found.append(paired(easy < 0.5, easy + rng.normal(0, 0.2, n) < 0.4, names(n)))
    u = np.random.default_rng(0)
    second = (u.random(1_000_000) + u.normal(0, 0.2, 1_000_000) < 0.4).mean()
    assert 0.93 <= coverage(found, 0.5 - second) <= 0.97


def test_wilson_covers_the_truth_by_the_exact_binomial_sum():
    for n in (100, 400):
        for p in (0.1, 0.3, 0.5):
            chance = scipy.stats.binom.pmf(np.arange(n + 1), n, p)
            inside = [proportion(k, n).low <= p <= proportion(k, n).high for k in range(n + 1)]
            assert 0.93 <= chance @ np.array(inside) <= 0.97


@pytest.mark.parametrize("n", [6, 7, 9, 20, 51])
def test_the_interval_of_a_median_covers_it_by_the_exact_binomial_sum(n):
    # Of the values 1 to n, b lie below the true median: it is inside if low <= b and b < high.
    found = quantile(np.arange(1, n + 1.0), 0.5)
    inside = [found.low <= below < found.high for below in range(n + 1)]
    covered = scipy.stats.binom.pmf(np.arange(n + 1), n, 0.5)[inside].sum()
    assert covered >= 0.95
    narrower = [found.low + 1 <= below < found.high - 1 for below in range(n + 1)]
    assert scipy.stats.binom.pmf(np.arange(n + 1), n, 0.5)[narrower].sum() < 0.95
    assert found.value == (n + 1) / 2


def test_a_median_of_few_values_has_no_interval_and_one_without_spread_has():
    assert math.isnan(quantile([1, 2, 3, 4, 5], 0.5).low)
    found = quantile([*[261.0] * 20, math.nan], 0.5)
    assert (found.value, found.low, found.high, found.n, found.undefined) == (261, 261, 261, 20, 1)
    assert math.isnan(quantile([], 0.5).value)


def test_wilson_equals_scipy():
    for hits, n in [(0, 20), (3, 17), (17, 17), (250, 1000), (1, 1)]:
        low, high = scipy.stats.binomtest(hits, n).proportion_ci(method="wilson")
        ours = proportion(hits, n)
        assert (ours.low, ours.high) == pytest.approx((low, high), abs=1e-12)


def test_bca_covers_better_than_percentile_on_a_skewed_ratio():
    rng = np.random.default_rng(3)
    hits = {"percentile": 0, "bca": 0}
    for _ in range(300):
        top, bottom = rng.lognormal(0, 1, 60), rng.lognormal(0, 0.5, 60)
        for method in hits:
            found = bootstrap(
                lambda w, a=top, b=bottom: (w @ a) / (w @ b), names(60), 0, 1000, method
            )
            assert found.method == method
            hits[method] += found.low <= np.exp(0.5) / np.exp(0.125) <= found.high
    assert 0.90 <= hits["bca"] / 300 <= 0.97
    assert hits["bca"] >= hits["percentile"]


def test_bca_of_a_mean_agrees_with_scipy():
    x = np.random.default_rng(5).exponential(1, 80)
    theirs = scipy.stats.bootstrap((x,), np.mean, n_resamples=20_000, method="BCa", rng=1)
    ours = bootstrap(lambda w: (w @ x) / w.sum(1), names(80), 0, 20_000, "bca")
    width = theirs.confidence_interval.high - theirs.confidence_interval.low
    assert ours.low == pytest.approx(theirs.confidence_interval.low, abs=0.03 * width)
    assert ours.high == pytest.approx(theirs.confidence_interval.high, abs=0.03 * width)


@pytest.mark.slow
def test_grouped_jackknife_keeps_the_acceleration():
    x = np.random.default_rng(6).exponential(1, 1000) ** 2
    theirs = scipy.stats.bootstrap((x,), np.mean, n_resamples=5000, method="BCa", rng=1)
    ours = bootstrap(lambda w: (w @ x) / w.sum(1), names(1000), 0, 5000, "bca")
    width = theirs.confidence_interval.high - theirs.confidence_interval.low
    assert ours.low == pytest.approx(theirs.confidence_interval.low, abs=0.06 * width)
    assert ours.high == pytest.approx(theirs.confidence_interval.high, abs=0.06 * width)


def test_weights_are_poisson_and_keyed_by_name_alone():
    weights = resampling_weights(names(300), seed=4, replicates=500)
    shuffled = resampling_weights(names(300)[::-1], seed=4, replicates=500)
    more = resampling_weights(names(300)[:7], seed=4, replicates=600)
    assert (weights == shuffled[:, ::-1]).all()
    assert (weights[:, :7] == more[:500]).all()
    assert (weights != resampling_weights(names(300), seed=5, replicates=500)).any()
    seen = np.bincount(weights.ravel(), minlength=7)[:7]
    expected = scipy.stats.poisson.pmf(np.arange(7), 1) * weights.size
    assert scipy.stats.chisquare(seen, expected * seen.sum() / expected.sum()).pvalue > 0.001


def test_rows_of_one_instance_are_resampled_together():
    x = np.random.default_rng(2).normal(size=200)
    twice = mean(np.repeat(x, 2), [name for name in names(200) for _ in range(2)])
    once = mean(x, names(200))
    assert twice.high - twice.low == pytest.approx(once.high - once.low, rel=0.05)
    rare = np.where(np.arange(200) < 3, x, 0.0)
    assert mean(np.repeat(rare, 2), [f"{i // 2}" for i in range(400)]).method != "gamma"


def test_degenerate_cases():
    for none in (mean([], []), proportion(0, 0), over_seeds([]), quantile([], 0.5)):
        assert np.isnan([none.value, none.low, none.high]).all()
        assert none.n == 0
    for one in (mean([2.0], ["a"]), over_seeds([2.0]), quantile([2.0], 0.5)):
        assert (one.value, one.n) == (2.0, 1)
        assert np.isnan([one.low, one.high]).all()
    for n in (2, 7, 29, 30):
        for same in (
            mean([0.1] * n, names(n)),
            paired([1.0] * n, [0.0] * n, names(n)),
            over_seeds([0.1] * n),
            bootstrap(lambda w: (w @ np.ones(w.shape[1])) / w.sum(1), names(n), 0, 200, "bca"),
        ):
            assert same.value in (0.1, 1.0)
            if n < 30:  # no spread among few is not certainty
                assert np.isnan([same.low, same.high]).all()
                assert (same.n, same.method) == (n, "none")
                assert same.side(0.0) == "straddles"
            else:
                assert (same.low, same.high) == (same.value, same.value)
    assert mean([NAN, NAN], names(2)).undefined == 2
    left_out = mean([1.0, NAN, 2.0, 4.0], names(4))
    assert (left_out.value, left_out.n, left_out.undefined) == (pytest.approx(7 / 3), 3, 1)


def test_few_differing_values_get_a_finite_interval():
    tiny = mean([1.0, 2.0, 4.0], names(3))
    assert tiny.method == "student-t"
    low, high = scipy.stats.t.interval(0.95, 2, 7 / 3, scipy.stats.sem([1, 2, 4]))
    assert (tiny.low, tiny.high) == pytest.approx((low, high))


@pytest.mark.parametrize("usual", [0.0, 0.5, 1.0])
def test_rare_events_of_equal_size_have_the_exact_poisson_interval(usual):
    values = np.full(400, usual)
    size = 0.25 if usual < 1 else -0.25
    values[[3, 50, 90]] += size
    low, high = (scipy.stats.chi2.ppf(0.025, 6) / 2, scipy.stats.chi2.ppf(0.975, 8) / 2)
    # Where the range ends a quarter above (below) the usual value and at it: one sort of event.
    ends = sorted([usual, usual + size])
    found = mean(values, names(400), least=ends[0], most=ends[1])
    expected = sorted(usual + size * end / 400 for end in (low, high))
    assert found.method == "gamma"
    assert (found.low, found.high) == pytest.approx(expected, rel=1e-9)


def test_an_event_that_could_be_larger_widens_the_interval_to_its_side():
    values = np.zeros(100)
    values[:2] = [0.2, 0.7]
    known = mean(values, names(100), least=0, most=1)
    larger = mean(values, names(100), least=0, most=5)
    unknown = mean(values, names(100))
    assert known.low == larger.low > 0 > unknown.low
    assert known.value == unknown.value == pytest.approx(0.009)
    assert known.high < unknown.high < larger.high
    many = np.zeros(100)
    many[:11] = 0.5
    assert mean(many, names(100), least=0, most=1).method == "bootstrap-t"


def test_as_many_wins_as_the_sign_test_needs_prove_a_paired_difference():
    for wins in range(2, 11):
        first = np.zeros(200)
        first[:wins] = 1
        found = paired(first, np.zeros(200), names(200), most=1)
        assert (found.side(0.0) == "above") == (sign_test(wins, 0) < 0.05)


def test_no_interval_of_a_mean_leaves_its_range():
    rng = np.random.default_rng(4)
    for n in (3, 5, 12, 40):
        for shape in ((0.05, 0.05), (20, 0.1), (0.1, 20)):
            x, y = rng.beta(*shape, (2, n, 50))
            for found in means(x, names(n), least=0, most=1):
                assert not found.low < 0
                assert not found.high > 1
            for column in range(50):
                found = paired(x[:, column], y[:, column], names(n), most=1)
                assert not found.low < -1
                assert not found.high > 1
    two = means(np.array([[0.0, 0.0], [0.1, 9.0], [1.0, 9.5]]), names(3), least=0, most=[1, np.inf])
    assert two[0].high == 1
    assert two[1].high > 9.5


def test_booleans_are_a_proportion_even_when_all_alike():
    never = mean(np.zeros(50, dtype=bool), names(50))
    assert never == proportion(0, 50)
    assert never.high > 0.05
    assert mean(np.zeros(50), names(50)) == never
    columns = np.stack([np.zeros(4), np.ones(4), np.array([1, NAN, 1, 1])], 1)
    assert means(columns, names(4))[:2] == [proportion(0, 4), proportion(4, 4)]
    assert means(columns, names(4))[2] == replace(proportion(3, 3), undefined=1)


def test_two_wins_in_a_hundred_do_not_prove_a_paired_difference():
    first = np.zeros(100)
    first[:2] = 1
    assert paired(first, np.zeros(100), names(100)).side(0.0) == "straddles"


def test_medians_are_the_usual_ones_and_their_interval_covers():
    rng = np.random.default_rng(8)
    for n in (4, 5, 40, 41):
        x = rng.normal(size=n)
        assert quantile(x, 0.5).value == pytest.approx(np.median(x))
    found = [quantile(rng.exponential(1, 150), 0.5) for _ in range(200)]
    assert 0.91 <= coverage(found, np.log(2)) <= 0.99


def test_over_seeds_equals_student():
    x = [0.81, 0.84, 0.79, 0.83]
    low, high = scipy.stats.t.interval(0.95, 3, np.mean(x), scipy.stats.sem(x))
    assert (over_seeds(x).low, over_seeds(x).high) == pytest.approx((low, high))
    cut = over_seeds(x, 0.8, 0.83)  # at what the number can be
    assert (cut.value, cut.low, cut.high) == (over_seeds(x).value, 0.8, 0.83)


def test_trainings_widen_an_interval_over_documents():
    found = mean(np.random.default_rng(0).normal(0, 1, 100), names(100))
    seeds = [0.1, 0.5, 0.3]
    half = over_seeds(seeds).high - over_seeds(seeds).value
    wide = widened(found, seeds)
    assert wide.value == found.value
    assert (wide.value - wide.low) ** 2 == pytest.approx((found.value - found.low) ** 2 + half**2)
    assert (wide.high - wide.value) ** 2 == pytest.approx((found.high - found.value) ** 2 + half**2)
    assert widened(found, [0.3]) == found  # one training tells nothing of others
    assert widened(found, [0.3, 0.3]) == found


def test_documents_and_trainings_together_cover_the_truth():
    rng = np.random.default_rng(5)
    covered = 0
    for _ in range(300):
        shift, texts = rng.normal(0, 0.3, 5), rng.normal(0, 1, 60)
        values = texts + shift[:, None]  # five trainings read the same texts
        found = widened(mean(values.mean(0), names(60)), values.mean(1))
        covered += found.low <= 0 <= found.high
    assert 0.92 <= covered / 300 <= 0.995


def test_sign_test_equals_the_binomial_test():
    for wins, losses in [(0, 5), (9, 1), (4, 4), (120, 80)]:
        exact = scipy.stats.binomtest(wins, wins + losses, 0.5).pvalue
        assert sign_test(wins, losses) == pytest.approx(exact)
    assert sign_test(0, 0) == 1.0


def test_an_undefined_statistic_has_no_interval():
    x = np.zeros(20)
    x[0] = 1  # a third of the replicates do not draw the only instance with mass
    with np.errstate(all="ignore"):
        found = bootstrap(lambda w: (w @ x) / (w @ x), names(20))
    assert (found.value, found.method) == (1.0, "none")


def test_estimates_say_where_they_lie_and_print_meaningful_digits():
    found = Estimate(0.4217, 0.3812, 0.4622, 500, "wilson")
    assert str(found) == "0.42 [0.38, 0.46]"
    assert str(Estimate(0.42, 0.3, 0.54, 9, "wilson")) == "0.42 [0.30, 0.54]"
    assert str(Estimate(123.4, 101.2, 150.9, 9, "student-t")) == "123 [101, 151]"
    assert str(Estimate(-0.001, -0.2, 0.2, 9, "student-t")) == "0.00 [-0.20, 0.20]"
    assert str(Estimate(NAN, NAN, NAN, 0, "none")) == "undefined"
    assert str(Estimate(1.0, NAN, NAN, 1, "none")) == "1 [no interval]"
    near = Estimate(-0.4, -0.6, -0.043, 9, "student-t")
    assert str(near) == "-0.4 [-0.6, 0.0]"
    assert near.against(0.0) == "-0.40 [-0.60, -0.04]"  # wholly below, and it shows
    assert near.against(-math.inf, 1.0) == str(near)
    assert Estimate(0.0, 0.0, 1e-9, 9, "none").against(0.0).startswith("0.000000 [")
    assert [found.side(t) for t in (0.3, 0.5, 0.4)] == ["above", "below", "straddles"]
    assert Estimate(1.0, NAN, NAN, 1, "none").side(0.0) == "straddles"
    assert Estimate(1.0, NAN, NAN, 1, "none").to_json()["low"] is None


def test_names_must_match_values():
    with pytest.raises(ValueError, match="3 values and 2 names"):
        mean([1.0, 2.0, 3.0], names(2))


def test_estimates_come_back_from_json():
    for found in (proportion(3, 17), over_seeds([1.0, 2.0, 4.0, NAN])):
        assert Estimate.from_json(found.to_json()) == found
    assert str(Estimate.from_json(over_seeds([1.0]).to_json())) == "1 [no interval]"


def test_the_deviation_of_seeds_has_the_interval_of_a_normal_sample():
    # n = 5, s = 1.5811: χ²(4) has its tails at 0.4844 and 11.1433.
    found = deviation([1.0, 2.0, 3.0, 4.0, 5.0])
    assert found.value == pytest.approx(np.sqrt(2.5))
    assert found.low == pytest.approx(np.sqrt(2.5 * 4 / 11.1433), rel=1e-4)
    assert found.high == pytest.approx(np.sqrt(2.5 * 4 / 0.4844), rel=1e-3)
    assert np.isnan(deviation([1.0]).low)
    # Five at once: χ²(4) leaves 0.5 % outside at 0.2070 and 14.8603.
    wider = deviation([1.0, 2.0, 3.0, 4.0, 5.0], together=5)
    assert wider.low == pytest.approx(np.sqrt(2.5 * 4 / 14.8603), rel=1e-4)
    assert wider.high == pytest.approx(np.sqrt(2.5 * 4 / 0.2070), rel=1e-3)


def test_a_pooled_mean_covers_the_truth_where_values_hang_together():
    rng = np.random.default_rng(3)
    found, alone = [], []
    for _ in range(300):
        sizes = rng.integers(1, 20, 100)
        hits = rng.random(sizes.sum()) < np.repeat(rng.beta(1, 1, 100), sizes)
        groups = np.repeat(names(100), sizes).tolist()
        found.append(pooled(hits, groups))
        alone.append(mean(hits, groups))
    assert 0.92 <= coverage(found, 0.5) <= 0.98
    assert coverage(alone, 0.5) < 0.8  # as if every value were its own


def test_pooled_values_without_spread_are_one_for_each_group():
    groups = np.repeat(names(40), 5).tolist()
    assert pooled(np.ones(200), groups) == proportion(40, 40)
    assert pooled(np.zeros(200), groups) == proportion(0, 40)
    none = pooled(np.zeros(200), groups, is_difference=True)
    assert (none.low, none.high, none.method) == (0, 0, "constant")
    assert math.isnan(pooled(np.full(10, 0.3), groups[:10]).low)
    assert math.isnan(pooled([], []).value)
    some = pooled([1.0, NAN, 0.0, 2.0], ["a", "a", "b", "b"])
    assert (some.value, some.n, some.undefined) == (1.0, 2, 1)


def test_an_interval_is_cut_at_what_the_number_can_be():
    cut = Estimate(0.98, 0.9, 1.01, 50, "bootstrap-t").cut(0, 1)
    assert (cut.low, cut.high, cut.value) == (0.9, 1, 0.98)
    assert np.isnan(Estimate(0.98, np.nan, np.nan, 1, "none").cut(0, 1).low)
