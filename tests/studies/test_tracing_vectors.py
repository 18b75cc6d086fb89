"""Vectors that say the same in more dimensions, or the most in fewer."""

import numpy as np
import pytest

from heedful.studies.tracing.vectors import VectorChoice, shaped


def found() -> np.ndarray:
    table = np.random.default_rng(0).normal(scale=[3, 2, 1, 0.1], size=(200, 4))
    table[[3, 7]] = np.nan
    return table


def test_padding_and_rotation_keep_every_angle_and_length() -> None:
    plain = shaped(found(), VectorChoice(4), 1)
    for way in ("padded", "rotated"):
        wide = shaped(found(), VectorChoice(9, way), 1)
        assert wide.shape == (200, 9)
        np.testing.assert_allclose(wide @ wide.T, plain @ plain.T, atol=1e-4)
    assert (shaped(found(), VectorChoice(9, "padded"), 1)[:, 4:] == 0).all()
    assert (np.abs(shaped(found(), VectorChoice(9, "rotated"), 1)).max(0) > 0.1).all()


def test_reducing_keeps_the_directions_of_most_spread() -> None:
    known = np.delete(found(), [3, 7], 0)
    lost = np.linalg.svd(known, compute_uv=False)[2:]
    few = np.delete(shaped(found(), VectorChoice(2, "reduced"), 1), [3, 7], 0)
    kept = (known**2).sum() - (lost**2).sum()
    assert (few.astype(float) ** 2).sum() == pytest.approx(kept, rel=1e-5)


def test_words_without_a_vector_are_drawn_by_seed_or_zero() -> None:
    one, two = (shaped(found(), VectorChoice(4), seed) for seed in (1, 2))
    assert not np.allclose(one[3], two[3])
    np.testing.assert_array_equal(np.delete(one, [3, 7], 0), np.delete(two, [3, 7], 0))
    assert (shaped(found(), VectorChoice(4, missing="zero"), 1)[[3, 7]] == 0).all()
    further = np.zeros(200, dtype=bool)
    further[5] = True
    assert (shaped(found(), VectorChoice(4, missing="zero"), 1, further)[[3, 5, 7]] == 0).all()


def test_drawn_words_are_as_long_as_known_ones() -> None:
    table = np.random.default_rng(0).normal(scale=0.4, size=(4000, 50))
    table[:2000] = np.nan
    drawn = shaped(table, VectorChoice(50), 3)[:2000]
    assert drawn.std() == pytest.approx(0.4, rel=0.02)
