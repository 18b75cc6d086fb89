"""Tasks that make their own data: their laws, and that a sample is a hash of its address."""

import numpy as np
import pytest
import torch

from heedful.corpora.tasks import KEYWORD, Copying, Keyword, Sequences
from heedful.dynamics.cooccurrence import cooccurrence, normalised, side
from heedful.errors import InputError


def sampled(task: Copying, batch: int = 400, seeds: tuple[int, ...] = (0, 1)) -> Sequences:
    return task.sample(task.keys(seeds, 7), batch, task.orders(seeds))


@pytest.mark.parametrize(
    "task", [Copying(6, 6), Copying(9, 6), Copying(12, 6, 2), Copying(9, 6, is_reordered=True)]
)
def test_every_source_holds_distinct_symbols_and_ends(task: Copying) -> None:
    found = sampled(task)
    symbols = found.source[..., :-1]
    assert bool((symbols.sort(-1).values.diff(dim=-1) > 0).all())
    assert int(symbols.min()) >= 0
    assert int(symbols.max()) < task.symbols
    assert bool((found.source[..., -1] == task.end).all())
    assert bool((found.target[..., -1] == task.end).all())
    assert bool((found.before[..., 0] == task.start).all())
    assert torch.equal(found.before[..., 1:], found.target[..., :-1])
    # The target holds the source's symbols, in place or by the seed's one permutation.
    order = task.orders((0, 1))
    assert torch.equal(found.target[0, :, :-1], symbols[0][:, order[0]])
    if not task.is_reordered:
        assert torch.equal(found.source, found.target)


def test_the_mixture_draws_from_one_block_at_a_time_and_from_both_alike() -> None:
    block = sampled(Copying(12, 6, 2))[0][..., :-1] // 6
    assert bool((block == block[..., :1]).all())
    assert float(block[..., 0].double().mean()) == pytest.approx(0.5, abs=0.06)


def test_symbols_and_orders_are_uniform() -> None:
    found = sampled(Copying(9, 6), 3_000, (3,)).source[0, :, :-1]
    counts = torch.stack([(found == symbol).double().mean(0) for symbol in range(9)])
    assert float((counts - 1 / 9).abs().max()) < 0.03  # each symbol at each position


def expected_translation(task: Copying) -> torch.Tensor:
    """Trans(o | i) of IBM Model 1's first step in the limit of many pairs, ends left out.

    See docs/studies/dynamics.md, "Co-occurrence".

    A symbol always meets itself and each other symbol of its block with probability
    (n - 1) / (block - 1); the targets of a sequence are n, so every row is divided by n.
    """
    block = task.symbols // task.blocks
    others = (task.length - 1) / (block - 1) if block > 1 else 0.0
    inside = torch.full((block, block), others, dtype=torch.float64).fill_diagonal_(1.0)
    return torch.kron(torch.eye(task.blocks, dtype=torch.float64), inside / task.length)


@pytest.mark.parametrize("task", [Copying(6, 6), Copying(9, 6), Copying(12, 6, 2)])
def test_counts_of_samples_are_the_expected_ones(task: Copying) -> None:
    found = sampled(task, 4_000, (0,)).source[0, :, :-1].numpy()
    rows = side(found, task.symbols)
    table = normalised(cooccurrence(rows, rows)).toarray()
    expected = expected_translation(task).numpy()
    np.testing.assert_allclose(table, expected, atol=0.006)
    np.testing.assert_allclose(expected.sum(1), 1)


def test_the_expected_counts_are_those_of_the_specification() -> None:
    flat = expected_translation(Copying(40, 40))
    assert bool((flat == 1 / 40).all())
    some = expected_translation(Copying(60, 40))
    assert float(some[0, 0]) == pytest.approx(1 / 40)
    assert float(some[0, 1]) == pytest.approx(39 / 59 / 40)
    assert float(some[0, 0] / some[0, 1]) == pytest.approx(1.51, abs=0.01)
    both = expected_translation(Copying(80, 40, 2))
    assert bool((both[:40, 40:] == 0).all())
    assert bool((both[:40, :40] == 1 / 40).all())
    assert Copying(40, 40).chance == pytest.approx(0.13, abs=0.002)


def test_a_sample_depends_on_its_seed_and_number_alone() -> None:
    task = Copying(9, 6)
    both, one = sampled(task, 50, (4, 5)), sampled(task, 20, (5,))
    assert torch.equal(both.source[1, :20], one.source[0])
    other = task.sample(task.keys((5,), 8), 20, task.orders((5,)))
    assert not torch.equal(other.source, one.source)
    fresh = task.sample(task.keys((5,), 7, "evaluate"), 20, task.orders((5,)))
    assert not torch.equal(fresh.source, one.source)


def test_reordering_keeps_the_sources_and_differs_between_seeds() -> None:
    plain, turned = sampled(Copying(9, 6)), sampled(Copying(9, 6, is_reordered=True))
    assert torch.equal(plain.source, turned.source)
    assert not torch.equal(plain.target, turned.target)
    orders = Copying(60, 40, is_reordered=True).orders((0, 1))
    assert not torch.equal(orders[0], orders[1])
    assert torch.equal(orders.sort(-1).values[0], torch.arange(40))


def test_positives_hold_the_keyword_exactly_once() -> None:
    task = Keyword(7, 10)
    found = task.sample(task.keys((0, 1), 3), 2_000)
    count = (found.ids == KEYWORD).sum(-1)
    assert torch.equal(count, found.labels)
    assert float(found.labels.double().mean()) == 0.5
    positive = found.labels == 1
    assert bool((found.ids[positive].gather(1, found.place[positive][:, None]) == KEYWORD).all())
    assert bool((found.place[~positive] == -1).all())
    places = torch.bincount(found.place[positive], minlength=10) / positive.sum()
    assert float((places - 0.1).abs().max()) < 0.03
    others = found.ids[found.ids != KEYWORD]
    shares = torch.bincount(others, minlength=7)[1:] / len(others)
    assert float((shares - 1 / 6).abs().max()) < 0.01


def test_impossible_tasks_are_refused() -> None:
    with pytest.raises(InputError, match="cannot be drawn from 5"):
        Copying(5, 6)
    with pytest.raises(InputError, match="blocks of equal size"):
        Copying(7, 2, 2)
    with pytest.raises(InputError, match="two symbols"):
        Keyword(1, 4)
    assert Copying(80, 40, 2).name == "mixture of 2 x 40-of-40"
