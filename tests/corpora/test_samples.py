"""Which documents are drawn."""

import pytest

from heedful.corpora.samples import sampled
from heedful.errors import InputError

NAMES = [f"document {number}" for number in range(50)]


def test_no_number_draws_all_and_fewer_than_none_are_refused() -> None:
    assert sampled(NAMES, 0, seed=0).tolist() == list(range(50))
    assert sampled(NAMES, 99, seed=0).tolist() == list(range(50))
    with pytest.raises(InputError, match="0 for all, got -3"):
        sampled(NAMES, -3, seed=0)


def test_a_draw_is_the_beginning_of_a_larger_one_and_depends_on_the_seed() -> None:
    few, more, other = (
        set(sampled(NAMES, most, seed).tolist()) for most, seed in ((5, 1), (20, 1), (5, 2))
    )
    assert few < more
    assert few != other
