"""What a person sees of a text, and texts with units of others in them."""

import numpy as np
import pytest

from heedful.audits.hybrids import (
    ReadText,
    encoded_hybrids,
    exchanged,
    groups_of,
    partners,
    seen,
)


def text(name: str, ids: list[int], weights: list[float], decision: int = 0) -> ReadText:
    given = np.array(weights) / sum(weights)
    groups = groups_of(given)
    logits = np.eye(2)[decision]
    return ReadText(
        name,
        [np.array([one]) for one in ids],
        np.zeros(len(ids), dtype=int),
        given,
        groups,
        logits,
        np.zeros((len(groups), 2)),
        logits,
    )


@pytest.mark.parametrize(
    ("weights", "expected"),
    [
        ([0.9, 0.05, 0.05], [0]),
        ([0.45, 0.55, 0.0], [0, 1]),  # nearly the same shade
        ([0.3, 0.7, 0.0], [1]),
        ([1 / 30] * 30, list(range(30))),
        ([0.3, *[0.1] * 7], list(range(8))),  # on to half of the mass, and all that weigh the same
        ([0.3, 0.14, 0.14, 0.12, 0.1, 0.1, 0.1], [0, 1, 2]),
    ],
)
def test_a_person_sees_half_of_the_largest_weight_and_half_of_the_mass(
    weights: list[float], expected: list[int]
) -> None:
    assert np.flatnonzero(seen(np.array(weights))).tolist() == expected


def test_groups_are_what_is_seen_the_others_and_each_seen_unit_or_every_second_of_many() -> None:
    few = groups_of(np.array([0.1, 0.5, 0.4]))
    assert few.tolist() == [
        [False, True, True],
        [True, False, False],
        [False, True, False],
        [False, False, True],
    ]
    many = groups_of(np.array([0.12, 0.2, 0.18, 0.16, 0.14, 0.2]))
    assert np.flatnonzero(many[2]).tolist() == [0, 3, 5]  # second, fourth, sixth by weight
    assert len(many) == 3


def test_units_take_places_in_order_and_what_is_left_over_follows_or_falls_away() -> None:
    one = text("a", [1, 2, 3, 4], [5, 1, 5, 1])
    other = text("b", [11, 12, 13], [5, 5, 5], 1)

    def read(away: list[int], put: list[int], longest: int | None = None) -> list[int]:
        hybrid = exchanged(one, other, one.only(away), other.only(put), longest)
        assert [o < 0 for o in hybrid.origin] == [int(u[0]) > 10 for u in hybrid.units]
        return [int(unit[0]) for unit in hybrid.units]

    assert read([0, 2], [0, 1]) == [11, 2, 12, 4]
    assert read([0, 2], [0, 1, 2]) == [11, 2, 12, 13, 4]
    assert read([0, 2], [1]) == [12, 2, 4]
    assert read([0, 2], []) == [2, 4]
    assert read([0, 2], [0, 1, 2], longest=3) == [11, 2, 12]
    hybrid = exchanged(one, other, one.only([0]), other.only([0]))
    assert [int(unit[0]) for unit in hybrid.without(2).units] == [11, 2, 4]


def test_partners_were_decided_differently_and_are_seldom_each_other_s() -> None:
    texts = [text(str(i), [1] * (3 + i % 4), [1] * (3 + i % 4), int(i % 3 == 0)) for i in range(30)]
    found = partners(texts, 0)
    assert all(texts[i].decision != texts[j].decision for i, j in enumerate(found.tolist()))
    assert np.mean(found[found] == np.arange(30)) < 0.5
    assert (partners(texts[1:3], 0) == -1).all()


def test_a_hybrid_without_units_is_an_unknown_word() -> None:
    one = text("a", [1], [1])
    nothing = exchanged(one, one, one.only([0]), one.only([]))
    kept = exchanged(one, one, one.only([]), one.only([]))
    encoded = encoded_hybrids([nothing, kept], unknown=7)
    assert encoded.ids.tolist() == [7, 1]
    assert encoded.starts.tolist() == [0, 1, 2]
    assert nothing.is_new.tolist() == [[True]]
