"""Regressions against values that were worked out elsewhere: R's own output, fractions, OLS."""

from fractions import Fraction

import numpy as np
import pytest
from scipy.stats import pearsonr

from heedful.statistics import bootstrap
from heedful.statistics.association import correlated, correlation, products
from heedful.statistics.draws import draws
from heedful.statistics.regression import (
    LINEAR,
    SQUARE,
    Polynomials,
    curvature,
    curve,
    least_squares,
    permuted,
    quadratic,
    resampled,
    two_lines,
    vertex,
)

SPEED = [4, 4, 7, 7, 8, 9, 10, 10, 10, 11, 11, 12, 12, 12, 12, 13, 13, 13, 13, 14, 14, 14, 14, 15,
         15, 15, 16, 16, 17, 17, 17, 18, 18, 18, 18, 19, 19, 19, 20, 20, 20, 20, 20, 22, 23, 24,
         24, 24, 24, 25]  # fmt: skip
DISTANCE = [2, 10, 4, 22, 16, 10, 18, 26, 34, 17, 28, 14, 20, 24, 28, 26, 34, 34, 46, 26, 36, 60,
            80, 20, 26, 54, 32, 40, 32, 40, 50, 42, 56, 76, 84, 36, 46, 68, 32, 48, 52, 56, 64, 66,
            54, 70, 92, 93, 120, 85]  # fmt: skip


def sample(n: int = 200, bend: float = 0.3) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(3)
    x = rng.uniform(1, 9, n)
    other = rng.normal(size=n) + 0.2 * x
    return x, bend * (x - 5) ** 2 - 0.4 * x + 0.5 * other + rng.normal(0, 1, n), other


def test_the_fit_is_the_one_r_prints_for_its_cars() -> None:
    """summary(lm(dist ~ poly(speed, 2), data = cars)), as R prints it."""
    fit = quadratic(SPEED, DISTANCE)
    printed = {
        "intercept": (42.980, 2.146, 20.026),
        LINEAR: (145.552, 15.176, 9.591),
        SQUARE: (22.996, 15.176, 1.515),
    }
    for name, numbers in printed.items():
        assert [round(value, 3) for value in fit.term(name)[:3]] == list(numbers)
    assert fit.term(LINEAR).p == pytest.approx(1.21e-12, rel=5e-3)
    assert round(fit.term(SQUARE).p, 3) == 0.136
    assert round(fit.sigma, 2) == 15.18
    assert fit.df == 47
    assert round(fit.r2, 4) == 0.6673


def test_polynomials_equal_exact_fractions() -> None:
    """Gram-Schmidt by hand in whole numbers: x = 1, 2, 4, 7 and y = 3, 1, 2, 8."""
    x, y = [Fraction(v) for v in (1, 2, 4, 7)], [Fraction(v) for v in (3, 1, 2, 8)]
    n = len(x)
    p1 = [v - sum(x) / n for v in x]
    squares = [v**2 for v in x]
    on_line = sum(a * b for a, b in zip(squares, p1, strict=True)) / sum(v * v for v in p1)
    p2 = [s - sum(squares) / n - on_line * v for s, v in zip(squares, p1, strict=True)]
    lengths = [sum(v * v for v in p) for p in (p1, p2)]
    found = Polynomials.of([float(v) for v in x]).at([float(v) for v in x])
    for column, (p, length) in enumerate(zip((p1, p2), lengths, strict=True)):
        exact = [float(v) / float(length) ** 0.5 for v in p]
        np.testing.assert_allclose(found[:, column], exact, rtol=1e-14, atol=1e-15)
    b2 = float(sum(a * b for a, b in zip(p2, y, strict=True))) / float(lengths[1]) ** 0.5
    assert quadratic([1, 2, 4, 7], [3, 1, 2, 8]).term(SQUARE).b == pytest.approx(b2, rel=1e-13)


def test_polynomials_are_the_signed_columns_of_a_qr() -> None:
    x, _, _ = sample()
    found = Polynomials.of(x).at(x)
    q, r = np.linalg.qr(np.column_stack([np.ones_like(x), x - x.mean(), (x - x.mean()) ** 2]))
    np.testing.assert_allclose(found, (q * np.sign(np.diag(r)))[:, 1:], atol=1e-13)
    np.testing.assert_allclose(found.T @ found, np.eye(2), atol=1e-13)


def test_the_closed_form_of_orthogonal_columns() -> None:
    x, y, _ = sample()
    fit, z = quadratic(x, y), Polynomials.of(x).at(x)
    np.testing.assert_allclose(fit.b, [y.mean(), *(z.T @ y)], rtol=1e-12)
    assert fit.term(SQUARE).se == pytest.approx(fit.sigma, rel=1e-12)
    assert fit.term("intercept").se == pytest.approx(fit.sigma / np.sqrt(len(x)), rel=1e-12)


def test_the_t_of_the_square_is_that_of_the_raw_quadratic() -> None:
    x, y, _ = sample()
    raw = least_squares({"x": x, "xx": x**2}, y)
    fit = quadratic(x, y)
    assert fit.term(SQUARE).t == pytest.approx(raw.term("xx").t, rel=1e-9)
    assert fit.term(SQUARE).b == pytest.approx(
        raw.term("xx").b * np.sqrt(Polynomials.of(x).squares[2]), rel=1e-9
    )
    assert vertex(fit, x) == pytest.approx(-raw.term("x").b / 2 / raw.term("xx").b, rel=1e-9)


@pytest.mark.slow
@pytest.mark.parametrize("is_robust", [False, True])
@pytest.mark.parametrize("is_weighted", [False, True])
def test_other_regressors_weights_and_hc3_agree_with_statsmodels(
    is_weighted: bool, is_robust: bool
) -> None:
    import statsmodels.api as sm

    x, y, other = sample()
    weights = np.random.default_rng(1).integers(2, 20, len(x)) if is_weighted else np.ones(len(x))
    design = sm.add_constant(np.column_stack([Polynomials.of(x).at(x), other]))
    kind = {"cov_type": "HC3", "use_t": True} if is_robust else {}
    expected = sm.WLS(y, design, weights=weights).fit(**kind)
    fit = quadratic(x, y, {"other": other}, weights if is_weighted else None, is_robust)
    found = np.array([fit.term(name) for name in fit.names])
    np.testing.assert_allclose(found[:, 0], expected.params, rtol=1e-10)
    np.testing.assert_allclose(found[:, 1], expected.bse, rtol=1e-10)
    np.testing.assert_allclose(found[:, 2], expected.tvalues, rtol=1e-9)
    np.testing.assert_allclose(found[:, 3], expected.pvalues, rtol=1e-8)
    assert fit.r2 == pytest.approx(expected.rsquared, rel=1e-10)


def test_the_band_holds_the_fitted_mean_as_statsmodels_says() -> None:
    import statsmodels.api as sm

    x, y, _ = sample(60)
    middle, low, high = curve(quadratic(x, y), x, [1.0, 5.0, 9.0])
    model = sm.OLS(y, np.column_stack([np.ones_like(x), x, x**2])).fit()
    new = np.array([[1, 1, 1], [1, 5, 25], [1, 9, 81]], dtype=float)
    expected = model.get_prediction(new).summary_frame()
    np.testing.assert_allclose(middle, expected["mean"], rtol=1e-9)
    np.testing.assert_allclose(low, expected["mean_ci_lower"], rtol=1e-9)
    np.testing.assert_allclose(high, expected["mean_ci_upper"], rtol=1e-9)


def test_what_cannot_be_fitted_is_nan() -> None:
    assert np.isnan(quadratic([1.0, 2, 3], [1.0, 2, 4]).term(SQUARE)).all()  # no residual
    assert np.isnan(quadratic(np.full(9, 5.0), np.arange(9.0)).b).all()  # no spread
    assert np.isnan(quadratic([1.0, 2] * 6, np.arange(12.0)).b).all()  # two values: no square
    x, y, _ = sample(20)
    assert np.isnan(quadratic(x, y, {"copy": 3 * x}).b).all()


def test_two_lines_tell_a_u_from_a_slope() -> None:
    x = np.linspace(1, 9, 81)
    noise = np.random.default_rng(0).normal(0, 0.1, 81)
    u, hockey = (
        two_lines(x, np.abs(x - 5) + noise, 5),
        two_lines(x, np.maximum(5 - x, 0) + noise, 5),
    )
    assert u.is_u
    assert u.left.term(LINEAR).b == pytest.approx(-1, abs=0.05)
    assert u.left.n + u.right.n == 81
    assert not hockey.is_u
    assert quadratic(x, np.maximum(5 - x, 0) + noise).term(SQUARE).p < 1e-3  # yet it bends


def test_permutations_are_those_of_separate_fits() -> None:
    x, y, _ = sample(40, bend=0.0)
    found = permuted(x, y, permutations=300)
    assert found.b == pytest.approx(quadratic(x, y).term(SQUARE).b, rel=1e-9)
    # A shuffled y has a standard deviation of |y - mean| / sqrt(n - 1) along any unit vector.
    assert found.drawn.std() == pytest.approx(y.std(ddof=1), rel=0.15)
    assert abs(found.drawn.mean()) < 0.2 * found.drawn.std()
    x, y, _ = sample(120, bend=1.0)
    assert permuted(x, y, permutations=199).p == pytest.approx(1 / 200)


def test_resampled_coefficients_are_weighted_fits() -> None:
    x, y, other = sample(50)
    weights = np.random.default_rng(2).poisson(1, (4, 50)).astype(float)
    z = Polynomials.of(x).at(x)
    columns = {LINEAR: z[:, 0], SQUARE: z[:, 1], "other": other}
    found = curvature(x, y, {"other": other})(weights)
    expected = [least_squares(columns, y, w).term(SQUARE).b for w in weights]
    np.testing.assert_allclose(found, expected, rtol=1e-9)
    whole = curvature(x, y, is_standardised=True)(np.ones((1, 50)))
    assert whole[0] == pytest.approx(quadratic(x, y).term(SQUARE).t, rel=1e-9)
    alone = resampled({"x": np.array([1.0, 1, 2])}, [1.0, 2, 3], "x")(np.array([[1.0, 1, 0]]))
    assert np.isnan(alone[0])


def test_the_bootstrap_interval_is_about_as_wide_as_students() -> None:
    x, y, _ = sample(400)
    fit = quadratic(x, y)
    found = bootstrap(curvature(x, y), [str(i) for i in range(400)])
    assert found.value == pytest.approx(fit.term(SQUARE).b, rel=1e-9)
    low, high = fit.ends(SQUARE)
    assert (found.high - found.low) == pytest.approx(high - low, rel=0.2)


def test_correlations_plain_and_partial() -> None:
    x, y, other = sample(300)
    names = [str(i) for i in range(300)]
    assert draws(correlation(x, y), names).value == pytest.approx(pearsonr(x, y).statistic)
    residuals = [v - np.polyval(np.polyfit(other, v, 1), other) for v in (x, y)]
    found = draws(correlation(x, y, other), names)
    assert found.value == pytest.approx(pearsonr(*residuals).statistic, rel=1e-9)
    texts = np.arange(300) % 20
    summed = np.stack([np.bincount(texts, column) for column in products(x, y, other).T], axis=1)
    by_text = draws(correlated(summed), names[:20])
    by_token = draws(correlation(x, y, other), [names[text] for text in texts])
    assert by_text.value == pytest.approx(by_token.value)
    np.testing.assert_allclose(by_text.drawn, by_token.drawn)
    assert np.isnan(draws(correlation(x, np.ones(300)), names).value)
    assert np.isnan(draws(correlation(x, y, x), names).value)
