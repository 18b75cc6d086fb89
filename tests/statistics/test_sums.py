import numpy as np
import pytest

from heedful.statistics.intervals import bootstrap, bootstraps, mean, means, paired, proportion
from heedful.statistics.sums import FEW, OfSums, Sums, added, adding_up, few_of


def names(n):
    return [f"document-{i}" for i in range(n)]


def in_shards(make, n, parts=3):
    """What `make(rows, names)` gives of the whole, and of shards that are added up."""
    every = np.array(names(n))
    whole = make(np.arange(n), list(every))
    with adding_up():
        found = [make(rows, list(every[rows])) for rows in np.array_split(np.arange(n), parts)]
    return whole, added(found[0], [one.additive.sums for one in found])


def same(one, other):
    assert (one.n, one.method, one.undefined) == (other.n, other.method, other.undefined)
    numbers = [(e.value, e.low, e.high) for e in (one, other)]
    assert numbers[0] == pytest.approx(numbers[1], rel=1e-9, nan_ok=True)


VALUES = {
    "skewed": lambda rng: rng.exponential(1, 900),
    "with undefined ones": lambda rng: np.where(
        rng.random(900) < 0.1, np.nan, rng.normal(size=900)
    ),
    "shares": lambda rng: (rng.random(900) < 0.2).astype(float),
    "constant": lambda rng: np.full(900, 0.3),
    "rare": lambda rng: np.where(np.arange(900) % 200 == 7, rng.random(900), 0.0),
    "all of some shards alike": lambda rng: np.where(np.arange(900) < 300, 1.0, rng.random(900)),
}


@pytest.mark.parametrize("kind", VALUES)
def test_means_of_shards_add_up_to_the_whole(kind):
    values = VALUES[kind](np.random.default_rng(3))
    whole, total = in_shards(lambda rows, n: mean(values[rows], n, least=-9, most=9), 900)
    same(whole, total)
    assert whole.method == {"shares": "wilson", "constant": "constant", "rare": "gamma"}.get(
        kind, "bootstrap-t"
    )


def test_differences_and_counts_add_up_too():
    rng = np.random.default_rng(4)
    one, other = rng.random((2, 600)) < 0.4
    same(*in_shards(lambda rows, n: paired(one[rows], other[rows], n), 600))
    same(*in_shards(lambda rows, n: proportion(int(one[rows].sum()), len(rows)), 600))
    same(*in_shards(lambda rows, n: mean(one[rows], n), 600))


def test_statistics_of_sums_add_up_with_their_bca_intervals():
    rng = np.random.default_rng(5)
    values = rng.exponential(1, (600, 2))
    ratio = OfSums(values, lambda sums: sums[:, 0] / sums[:, 1])

    def of(rows, some):
        return bootstrap(OfSums(values[rows], ratio.finish), some, method="bca")

    whole, total = in_shards(of, 600)
    same(whole, total)
    assert whole.method == "bca"
    plainly = bootstrap(lambda w: (w @ values[:, 0]) / (w @ values[:, 1]), names(600), method="bca")
    same(whole, plainly)


def test_a_class_that_a_shard_lacks_counts_nothing_there():
    decided = np.array([0] * 300 + [1] * 300)

    def of(rows, some):
        seen = np.eye(decided[rows].max() + 1)[decided[rows]]
        shares = lambda sums: np.square(sums / sums.sum(1, keepdims=True)).sum(1)  # noqa: E731
        return bootstraps(OfSums(seen, lambda sums: shares(sums)[:, None]), some)[0]

    same(*in_shards(of, 600, parts=2))


def test_nothing_is_carried_where_nobody_asked():
    values = np.random.default_rng(6).random(50)
    assert mean(values, names(50)).additive is None
    assert all(one.additive is None for one in means(values[:, None], names(50)))


def test_few_numbers_are_counted_and_many_are_not():
    assert few_of(np.array([2.0, 1.0, 2.0])).tolist() == [[1, 1], [2, 2]]
    assert few_of(np.array([0.1 + 0.2, 0.3]))[:, 1].tolist() == [2]  # equal up to rounding
    assert len(few_of(np.arange(100.0))) == FEW + 1
    many = Sums(np.zeros((1, 1)), 100, 0, few_of(np.arange(100.0)))
    one = Sums(np.zeros((1, 1)), 1, 0, few_of(np.array([5.0])))
    assert len(many.plus(one).few) == len(one.plus(many).few) == FEW + 1
