"""Least squares as R's `lm` reports it, with orthogonal polynomials as R's `poly` makes them.

`quadratic(x, y)` is `lm(y ~ poly(x, 2))`: coefficient, standard error, t and two-sided p of every
term. The coefficient of `x²` is not that of x² itself but that times the length of the second
polynomial, so it grows with √n; its t and p are those of the raw quadratic.

Fits that do not exist (too few points, a regressor without spread) are nan throughout.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from jaxtyping import Bool, Float, Float64
from numpy.typing import ArrayLike
from scipy.special import stdtr, stdtrit

from heedful.runs.randomness import numpy_generator
from heedful.statistics.weighted import Values, Weighted, Weights

Points = Float64[np.ndarray, "point"]
INTERCEPT, LINEAR, SQUARE = "intercept", "x", "x²"
_SINGULAR = 1e-10
"""A regressor that the others explain up to this share of its length adds nothing."""


@dataclass(frozen=True, eq=False)
class Polynomials:
    """Orthonormal polynomials over a sample: zero mean, positive leading coefficient.

    With p₀ = 1 and p₋₁ = 0, pₖ₊₁ = (x − aₖ) pₖ − (|pₖ|² / |pₖ₋₁|²) pₖ₋₁, each divided by its
    length: the recurrence that R keeps as `alpha` and `norm2`, so that new points can be placed.
    """

    centres: tuple[float, ...]
    """a₀ (the mean), a₁, …"""
    squares: tuple[float, ...]
    """Squared lengths |p₀|² = n, |p₁|², …"""

    @classmethod
    def of(cls, x: ArrayLike, degree: int = 2) -> Polynomials:
        """The polynomials of a sample up to a degree."""
        values = np.asarray(x, dtype=np.float64)
        below, here = np.zeros_like(values), np.ones_like(values)
        centres, squares, before = [], [float(len(values))], 1.0
        for _ in range(degree):
            square = float(here @ here)
            centre = float(values @ here**2) / square if square else np.nan
            below, here = here, (values - centre) * here - (square / before) * below
            centres.append(centre)
            squares.append(float(here @ here))
            before = square
        return cls(tuple(centres), tuple(squares))

    def at(self, x: ArrayLike) -> Float64[np.ndarray, "point degree"]:
        """The polynomials of degree 1, 2, … at any points."""
        values = np.asarray(x, dtype=np.float64)
        below, here = np.zeros_like(values), np.ones_like(values)
        columns, before = [], 1.0
        for centre, square, length in zip(
            self.centres, self.squares, self.squares[1:], strict=False
        ):
            below, here = here, (values - centre) * here - (square / before) * below
            with np.errstate(divide="ignore", invalid="ignore"):
                columns.append(here / np.sqrt(length))
            before = square
        return np.stack(columns, axis=-1)


class Term(NamedTuple):
    """One coefficient as `summary(lm)` prints it."""

    b: float
    se: float
    t: float
    p: float
    """Two-sided."""


@dataclass(frozen=True, eq=False)
class Fit:
    """A least-squares fit."""

    names: tuple[str, ...]
    b: Float64[np.ndarray, "term"]
    covariance: Float64[np.ndarray, "term term"]
    n: int
    sigma: float
    """Residual standard error, with n − terms degrees of freedom."""
    r2: float
    """Share of (weighted) variance explained."""

    @property
    def df(self) -> int:
        """Degrees of freedom of the residuals."""
        return self.n - len(self.names)

    def term(self, name: str) -> Term:
        """One coefficient with its standard error, t and p."""
        place = self.names.index(name)
        b, se = float(self.b[place]), float(np.sqrt(self.covariance[place, place]))
        with np.errstate(divide="ignore", invalid="ignore"):
            t = float(np.divide(b, se))
        return Term(b, se, t, 2 * float(stdtr(self.df, -abs(t))) if self.df > 0 else np.nan)

    def ends(self, name: str) -> tuple[float, float]:
        """The 95 % interval of a coefficient by Student's t."""
        found = self.term(name)
        half = float(stdtrit(self.df, 0.975)) * found.se if self.df > 0 else np.nan
        return found.b - half, found.b + half

    def band(self, design: Float[np.ndarray, "point term"]) -> tuple[Points, Points, Points]:
        """The fitted mean at new rows of the design with the ends of its 95 % band."""
        middle = design @ self.b
        error = np.sqrt(np.einsum("pi,ij,pj->p", design, self.covariance, design))
        half = stdtrit(self.df, 0.975) * error
        return middle, middle - half, middle + half


def least_squares(
    columns: Mapping[str, ArrayLike],
    y: ArrayLike,
    weights: ArrayLike | None = None,
    is_robust: bool = False,
) -> Fit:
    """The regression of y on an intercept and the named columns.

    `weights` are those of `lm(weights=)`; `is_robust` replaces the covariance by HC3 (MacKinnon &
    White 1985), which does not suppose that all points scatter alike.
    """
    target = np.asarray(y, dtype=np.float64)
    names = (INTERCEPT, *columns)
    given = [np.ones(len(target)), *(np.asarray(c, dtype=np.float64) for c in columns.values())]
    design = np.stack(given, axis=1)
    share = np.ones(len(target)) if weights is None else np.asarray(weights, dtype=np.float64)
    root = np.sqrt(share)[:, None]
    n, terms = design.shape
    if n <= terms or not _is_solvable(root * design):
        nothing = np.full((terms, terms), np.nan)
        return Fit(names, nothing[0], nothing, n, np.nan, np.nan)
    q, r = np.linalg.qr(root * design)
    inverse = np.linalg.inv(r)
    b = inverse @ (q.T @ (root[:, 0] * target))
    residual = root[:, 0] * (target - design @ b)
    variance = float(residual @ residual) / (n - terms)
    if is_robust:
        leverage = (q**2).sum(1)
        with np.errstate(divide="ignore", invalid="ignore"):
            stretched = (residual / (1 - leverage))[:, None] * q
        covariance = inverse @ (stretched.T @ stretched) @ inverse.T
    else:
        covariance = variance * (inverse @ inverse.T)
    centred = target - share @ target / share.sum()
    with np.errstate(divide="ignore", invalid="ignore"):
        r2 = 1 - np.divide(residual @ residual, share @ centred**2)
    return Fit(names, b, covariance, n, float(np.sqrt(variance)), float(r2))


def quadratic(
    x: ArrayLike,
    y: ArrayLike,
    beside: Mapping[str, ArrayLike] | None = None,
    weights: ArrayLike | None = None,
    is_robust: bool = False,
) -> Fit:
    """`lm(y ~ poly(x, 2))`, with further regressors `beside` the two polynomials."""
    return least_squares(_design(x, beside), y, weights, is_robust)


def curve(fit: Fit, x: ArrayLike, at: ArrayLike) -> tuple[Points, Points, Points]:
    """A quadratic fit over x drawn at new points: mean and 95 % band."""
    points = np.asarray(at, dtype=np.float64)
    return fit.band(np.column_stack([np.ones(len(points)), Polynomials.of(x).at(points)]))


def vertex(fit: Fit, x: ArrayLike) -> float:
    """Where the fitted parabola turns."""
    basis = Polynomials.of(x)
    with np.errstate(divide="ignore", invalid="ignore"):
        slope = fit.term(LINEAR).b / np.sqrt(basis.squares[1])
        bend = fit.term(SQUARE).b / np.sqrt(basis.squares[2])
        return float(sum(basis.centres) / 2 - np.divide(slope, 2 * bend))


class TwoLines(NamedTuple):
    """Separate lines on either side of a split; a U falls on the left and rises on the right."""

    split: float
    left: Fit
    right: Fit

    @property
    def is_u(self) -> bool:
        """Whether the left line falls and the right one rises, both with p < .05."""
        left, right = self.left.term(LINEAR), self.right.term(LINEAR)
        return left.b < 0 < right.b and left.p < 0.05 and right.p < 0.05


def two_lines(x: ArrayLike, y: ArrayLike, split: float) -> TwoLines:
    """The lines through the points up to the split and through those above it."""
    points, values = np.asarray(x, dtype=np.float64), np.asarray(y, dtype=np.float64)
    is_left = points <= split
    left, right = (
        least_squares({LINEAR: points[side]}, values[side]) for side in (is_left, ~is_left)
    )
    return TwoLines(split, left, right)


class Permuted(NamedTuple):
    """A coefficient among those of shuffled data."""

    b: float
    drawn: Float64[np.ndarray, " permutation"]
    p: float
    """Two-sided, the data itself counted as one of the permutations."""


def permuted(x: ArrayLike, y: ArrayLike, permutations: int = 2_000, seed: int = 0) -> Permuted:
    """The coefficient of `x²` when x is shuffled: all permutations in one matrix product."""
    target = np.asarray(y, dtype=np.float64)
    square = Polynomials.of(x).at(x)[:, 1]
    generator = numpy_generator(seed, "shuffled x", len(target))
    shuffled = generator.permuted(np.tile(target, (permutations, 1)), axis=1)
    found, drawn = float(square @ target), shuffled @ square
    # Up to rounding: on few points many permutations give the very same coefficient.
    as_far = int((np.abs(drawn) >= abs(found) * (1 - 1e-12)).sum())
    return Permuted(found, drawn, (as_far + 1) / (permutations + 1))


def resampled(
    columns: Mapping[str, ArrayLike], y: ArrayLike, name: str, is_standardised: bool = False
) -> Weighted:
    """One coefficient as a function of resampling weights, for `draws` and `bootstrap`.

    Standardised it is divided by the residual standard error. Where a replicate leaves a regressor
    without spread it is nan.
    """
    target = np.asarray(y, dtype=np.float64)
    given = [np.ones(len(target)), *(np.asarray(c, dtype=np.float64) for c in columns.values())]
    scale = np.array([np.sqrt(np.mean(column**2)) or 1.0 for column in given])
    whole = np.column_stack([*given, target]) / np.append(scale, 1.0)
    products = (whole[:, :, None] * whole[:, None, :]).reshape(len(target), -1)
    terms, place = len(given), 1 + list(columns).index(name)

    def statistic(weights: Weights) -> Values:
        moments = (weights @ products).reshape(-1, terms + 1, terms + 1)
        total = weights.sum(1)
        left, right = moments[:, :terms, :terms], moments[:, :terms, terms]
        with np.errstate(divide="ignore", invalid="ignore"):
            is_known = np.linalg.det(left / total[:, None, None]) > _SINGULAR
        solvable = np.where(is_known[:, None, None], left, np.eye(terms))
        b = np.linalg.solve(solvable, right[:, :, None])[:, :, 0]
        found = b[:, place] / scale[place]
        if is_standardised:
            left_over = moments[:, terms, terms] - (b * right).sum(1)
            with np.errstate(divide="ignore", invalid="ignore"):
                found = found / np.sqrt(left_over / (total - terms))
        return np.where(is_known, found, np.nan)

    return statistic


def curvature(
    x: ArrayLike,
    y: ArrayLike,
    beside: Mapping[str, ArrayLike] | None = None,
    is_standardised: bool = False,
) -> Weighted:
    """The coefficient of `x²` as a function of resampling weights.

    The polynomials stay those of the whole sample, so that replicates keep the scale of the data.
    """
    return resampled(_design(x, beside), y, SQUARE, is_standardised)


def _design(
    x: ArrayLike, beside: Mapping[str, ArrayLike] | None
) -> dict[str, Float64[np.ndarray, " point"]]:
    columns = Polynomials.of(x).at(x)
    found = {LINEAR: columns[:, 0], SQUARE: columns[:, 1]}
    return found | {k: np.asarray(v, dtype=np.float64) for k, v in (beside or {}).items()}


def _is_solvable(design: Float64[np.ndarray, "point term"]) -> bool:
    """Whether every column has a part that the columns before it do not explain."""
    if not np.isfinite(design).all():
        return False
    lengths: Float64[np.ndarray, " term"] = np.linalg.norm(design, axis=0)
    own: Bool[np.ndarray, " term"] = np.abs(np.diag(np.linalg.qr(design, mode="r"))) > (
        _SINGULAR * lengths
    )
    return bool(own.all())
