"""What a person sees of a text, and texts with units of others in them."""

import numpy as np
import pytest

from heedful.audits.hybrids import ReadText, contexts, encoded_hybrids, margin, mixed, seen


def text(name: str, ids: list[int], weights: list[float], decision: int = 0) -> ReadText:
    given = np.array(weights) / sum(weights)
    logits = np.eye(2)[decision]
    units = [np.array([one]) for one in ids]
    side = np.zeros(len(ids), dtype=int)
    return ReadText(name, units, side, given, seen(given), logits, logits, logits)


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


def test_seen_units_are_ordered_by_weight_and_then_by_place() -> None:
    assert text("a", [1, 2, 3, 4], [0.2, 0.3, 0.3 + 1e-9, 0.2]).order == [1, 2, 0, 3]


def test_margins_are_against_the_best_other_class() -> None:
    logits = np.array([[3.0, 1.0, 2.0], [0.0, 5.0, 1.0]])
    assert margin(logits, np.array([0, 2])).tolist() == [1.0, -4.0]


def ids_of(base: ReadText, other: ReadText, kept: list[int], back: list[int], longest=None):
    found = mixed(base, other, other.only(kept), base.only(back), longest)
    return [int(unit[0]) for unit in found.units], found.is_new.tolist()


def test_shown_units_stand_in_the_places_of_those_shown_there() -> None:
    base = text("base", [1, 2, 3, 4, 5], [0, 0.5, 0, 0.5, 0])
    one = text("one", [11, 12, 13], [0, 1, 0])
    three = text("three", [11, 12, 13, 14], [0.3, 0.3, 0.3, 0.1])
    assert ids_of(base, one, [1], []) == ([1, 12, 3, 5], [False, True, False, False])
    assert ids_of(base, three, [0, 1, 2], [])[0] == [1, 11, 3, 12, 13, 5]
    # Some of the text's, some of the base's own, each where it stood.
    assert ids_of(base, three, [2], [1])[0] == [1, 2, 3, 13, 5]
    assert ids_of(base, three, [], [1, 3])[0] == [1, 2, 3, 4, 5]
    assert ids_of(base, base, [], [])[0] == [1, 3, 5]
    assert ids_of(base, three, [0, 1, 2], [], 4)[0] == [1, 11, 3, 12]


def test_contexts_are_the_next_longer_texts_decided_otherwise_or_alike() -> None:
    texts = [text(f"{n}", list(range(n + 1)), [1.0] * (n + 1), n % 2) for n in range(6)]
    assert contexts(texts, 0, 2)[0] == [1, 3]
    assert contexts(texts, 0, 2)[4] == [5, 1]  # after the longest come the shortest
    assert contexts(texts, 0, 8)[1] == [2, 4, 0]
    assert contexts(texts, 0, 8, alike=True)[0] == [2, 4]
    assert contexts(texts, 0, 1, alike=True)[5] == [1]
    same = [one._replace(logits=np.array([1.0, 0.0])) for one in texts]
    assert contexts(same, 0, 3) == [[]] * 6
    assert contexts(same[:1], 0, 3, alike=True) == [[]]


def test_hybrids_become_documents_and_nothing_an_unknown_word() -> None:
    base = text("base", [1, 2], [0.5, 0.5])
    nothing = mixed(base, base, base.only([]), base.only([]))
    whole = mixed(base, base, base.only([]), base.only([0, 1]))
    found = encoded_hybrids([nothing, whole], unknown=7)
    assert found.ids.tolist() == [7, 1, 2]
    assert found.starts.tolist() == [0, 1, 3]
    assert found.sentence.tolist() == [0, 0, 1]
    assert found.names == ("0", "1")
