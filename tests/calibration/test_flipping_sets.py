"""Flipping sets of many words, against all of them by brute force for votes of graded strength."""

from itertools import chain, combinations

import numpy as np
import pytest

from heedful.calibration import flipping_sets
from heedful.calibration.flipping_sets import Flipping, Heard


def answered(strengths: np.ndarray, kept: np.ndarray, seed: int) -> Flipping:
    """The search's answer where each word's two substitutes take its strength, twice or once."""
    counts = np.full(len(strengths), 3)
    search = flipping_sets.flipping_sets(counts, kept, np.random.default_rng(seed))
    ways = next(search)
    while True:
        margin = strengths.sum() - (np.array([0, 2, 1])[ways] * strengths).sum(1)
        try:
            ways = search.send(Heard(margin < 0, margin))
        except StopIteration as stop:
            return stop.value


def brute(strengths: np.ndarray, kept: np.ndarray) -> tuple[list[int], bool]:
    """Relevant words and sufficiency, from every set of words in turn."""
    n, total = len(strengths), strengths.sum()
    every = chain.from_iterable(combinations(range(n), size) for size in range(n + 1))
    flipping = [set(one) for one in every if total - 2 * strengths[list(one)].sum() < 0]
    minimal = [one for one in flipping if not any(other < one for other in flipping)]
    others = strengths[~kept].clip(0).sum()
    return sorted(set().union(*minimal)), total - 2 * others >= 0


@pytest.mark.parametrize("seed", range(6))
def test_ten_graded_votes(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(seed)
    strengths = rng.choice([1.0, 2.0, 4.0, 8.0], 8) * rng.choice([-1.0, 1.0, 1.0], 8)
    strengths += 1e-3 * rng.random(8)  # no ties
    strengths *= np.sign(strengths.sum())
    kept = rng.random(8) < 0.5
    monkeypatch.setattr(flipping_sets, "WAYS", 0)
    found = answered(strengths, kept, seed)
    relevant, is_sufficient = brute(strengths, kept)
    assert np.flatnonzero(found.relevant).tolist() == relevant
    assert found.is_sufficient == is_sufficient


def test_thirty_equal_votes_all_matter(monkeypatch: pytest.MonkeyPatch) -> None:
    found = answered(np.ones(30), np.zeros(30, dtype=bool), 0)
    assert found.relevant.all()
    assert found.smallest is not None
    assert (found.smallest > 0).sum() == 16
