"""Edits as data: the attention rows they ask for."""

from __future__ import annotations

import numpy as np
import torch
from hypothesis import given
from hypothesis import strategies as st

from heedful.models import Edit, Permute, Replace, Scale, erase, identity, keep, read, uniform
from heedful.models.edits import rows
from tests.tiny import batch_of, classifier

MODEL = classifier("affine+additive")
READING = read(MODEL, batch_of(((1,), (3,), (5,))))
UNITS = READING.mask.shape[1]

weight_rows = st.lists(
    st.lists(st.one_of(st.just(0.0), st.floats(1e-300, 1e6)), min_size=UNITS, max_size=UNITS),
    min_size=1,
    max_size=3,
)


def for_all(edits: list[list[float]]) -> torch.Tensor:
    return torch.tensor(edits, dtype=torch.float64).expand(3, -1, -1)


def assert_rows_are_distributions(edit: Edit, nothing_left: np.ndarray) -> None:
    made = rows(READING, edit)
    attention = made.attention.numpy()
    assert (attention >= 0).all()
    assert (attention[~np.broadcast_to(READING.mask.numpy()[:, None], attention.shape)] == 0).all()
    np.testing.assert_allclose(attention.sum(-1), np.where(nothing_left, 0, 1), atol=1e-12)


@given(weight_rows)
def test_after_any_scaling_a_row_sums_to_one_or_to_zero_if_nothing_is_left(
    weights: list[list[float]],
) -> None:
    scaled = for_all(weights)
    nothing_left = ((scaled == 0) | ~READING.mask[:, None]).all(-1).numpy()
    assert_rows_are_distributions(Scale(scaled), nothing_left)
    assert_rows_are_distributions(keep(scaled > 0), nothing_left)
    assert_rows_are_distributions(erase(scaled == 0), nothing_left)


@given(st.integers(0, 2**32 - 1))
def test_after_any_permutation_or_replacement_a_row_sums_to_one(seed: int) -> None:
    noise = torch.rand(3, 4, UNITS, generator=torch.Generator().manual_seed(seed))
    noise = noise.double().masked_fill(~READING.mask[:, None], torch.inf)
    nothing = np.zeros((3, 4), dtype=bool)
    assert_rows_are_distributions(Permute(noise.argsort(dim=-1, stable=True)), nothing)
    assert_rows_are_distributions(Replace((-noise).softmax(-1)), nothing)


def test_scaling_multiplies_and_renormalises() -> None:
    attention = READING.attention[1, :3]
    weights = torch.tensor([2.0, 0.0, 1.0, 9.0, 9.0])
    made = rows(READING, Scale(weights.expand(3, 1, UNITS))).attention[1, 0]
    left = 2 * attention[0] + attention[2]
    expected = torch.stack([2 * attention[0] / left, 0 * left, attention[2] / left])
    torch.testing.assert_close(made[:3], expected, rtol=1e-14, atol=0)
    assert made[3:].tolist() == [0, 0]


def test_permuting_gives_each_unit_the_weight_of_the_named_one() -> None:
    order = torch.tensor([[0, 1, 2, 3, 4], [2, 0, 1, 3, 4], [4, 3, 2, 1, 0]])[:, None]
    made = rows(READING, Permute(order)).attention[:, 0]
    assert made[1, :3].tolist() == READING.attention[1, [2, 0, 1]].tolist()
    assert made[2].tolist() == READING.attention[2].flip(0).tolist()


def test_replacing_never_puts_weight_on_padding() -> None:
    everywhere = torch.full((3, 1, UNITS), 1 / UNITS)
    made = rows(READING, Replace(everywhere)).attention[:, 0]
    assert bool((made[~READING.mask] == 0).all())


def test_the_uniform_edit_gives_every_unit_the_same_weight() -> None:
    made = rows(READING, uniform(READING)).attention[:, 0]
    expected = READING.mask / READING.units[:, None].double()
    torch.testing.assert_close(made, expected.double(), rtol=1e-15, atol=0)


def test_only_edits_that_change_nothing_are_called_unchanged() -> None:
    erased = torch.zeros(3, 2, UNITS, dtype=torch.bool)
    erased[:, 1, 0] = True
    assert rows(READING, erase(erased)).unchanged.tolist() == [[True, False]] * 3
    assert bool(rows(READING, identity(READING)).unchanged.all())
    beyond = torch.zeros(3, 1, UNITS, dtype=torch.bool)
    beyond[:, :, 3:] = True
    assert rows(READING, erase(beyond)).unchanged[:, 0].tolist() == [True, True, False]
