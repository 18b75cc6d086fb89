"""The closed forms stay exact where attention is peaked, and where it underflows."""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal, getcontext

import pytest
import torch

from heedful.models import (
    AttentionClassifier,
    Reading,
    alone,
    curve,
    decide,
    erase,
    ranked,
    read,
    without_each,
)
from tests.tiny import assert_close, batch_of, classifier

BATCH = batch_of()
PEAKED = [1 - 1e-12, 4e-13, 3e-13, 2e-13, 1e-13]


def reading_of(
    attention: list[float], unit_logits: list[list[float]], scores: list[float] | None = None
) -> Reading:
    """A reading of one document with hand-made attention (or scores) and unit logits."""
    said = torch.tensor([unit_logits], dtype=torch.float64)
    if scores is None:
        weights = torch.tensor([attention], dtype=torch.float64)
        raw = weights.log()
    else:
        raw = torch.tensor([scores], dtype=torch.float64)
        weights = raw.softmax(-1)
    offset = torch.tensor([[0.1, -0.2, 0.3][: said.shape[2]]], dtype=torch.float64)
    batch = batch_of(((said.shape[1],),))
    return Reading(
        batch=batch,
        texts=(("word",) * said.shape[1],),
        mask=batch.mask,
        values=said,
        scores=raw,
        attention=weights,
        logits=torch.bmm(weights[:, None], said)[:, 0] + offset,
        inputs=said,
        unit_of_token=torch.arange(said.shape[1])[None],
        unit_logits=said,
        offset=offset,
    )


def remaining_logits(reading: Reading, kept: list[int]) -> list[float]:
    """The logits when only some units are attended, with sixty digits, from the scores."""
    getcontext().prec = 60
    assert reading.unit_logits is not None
    assert reading.offset is not None
    offset = [Decimal(x) for x in reading.offset[0].tolist()]
    if not kept:
        return [float(x) for x in offset]
    scores = [Decimal(x) for x in reading.scores[0].tolist()]
    said = [[Decimal(x) for x in unit] for unit in reading.unit_logits[0].tolist()]
    top = max(scores[unit] for unit in kept)
    weight = {unit: (scores[unit] - top).exp() for unit in kept}
    total = sum(weight.values())
    return [
        float(b + sum(weight[unit] * said[unit][c] for unit in kept) / total)
        for c, b in enumerate(offset)
    ]


def any_model() -> AttentionClassifier:
    return classifier("bigru+additive")


def test_a_curve_starts_at_the_decision_to_the_bit_and_ends_at_the_offset() -> None:
    model = any_model()
    reading = read(model, BATCH)
    order = torch.stack([ranked(reading.attention, reading), ranked(-reading.attention, reading)])
    logits = curve(model, reading, order.transpose(0, 1))
    assert logits.shape == (len(BATCH), 2, reading.mask.shape[1] + 1, 3)
    assert torch.equal(logits[:, :, 0], reading.logits[:, None].expand(-1, 2, -1))
    assert reading.offset is not None
    for document, units in enumerate(reading.units.tolist()):
        after = logits[document, :, units:]
        assert torch.equal(after, reading.offset[document].expand_as(after))


def test_one_unit_has_nothing_left_without_it() -> None:
    model = any_model()
    reading = read(model, batch_of(((1,),)))
    assert_close(alone(model, reading)[:, 0], reading.logits, 1e-12)
    assert reading.offset is not None
    assert torch.equal(without_each(model, reading)[:, 0], reading.offset)


def test_tail_sums_are_exact_where_subtracting_a_prefix_is_not() -> None:
    said = [[3.0, -1.0], [1.0, 2.0], [-2.0, 0.7], [0.3, -4.0], [5.0, 1.0]]
    reading = reading_of(PEAKED, said)
    ours = curve(any_model(), reading, torch.arange(5)[None, None])[0, 0]
    weighted = reading.attention[0, :, None] * torch.tensor(said, dtype=torch.float64)
    gone, left = weighted.cumsum(0), weighted.sum(0)
    mass = reading.attention[0].cumsum(0)
    worst = 0.0
    for step in range(1, 5):
        exact = remaining_logits(reading, list(range(step, 5)))
        assert_close(ours[step], exact, 1e-12)
        subtracted = (left - gone[step - 1]) / (1 - mass[step - 1]) + reading.offset[0]
        worst = max(worst, float((subtracted - torch.tensor(exact)).abs().max()))
    assert worst > 1e-4


def test_leaving_one_out_is_exact_where_the_short_form_is_not() -> None:
    said = [[3.0, -1.0], [1.0, 2.0], [-2.0, 0.7], [0.3, -4.0], [5.0, 1.0]]
    reading = reading_of(PEAKED, said)
    exact = remaining_logits(reading, [1, 2, 3, 4])
    assert_close(without_each(any_model(), reading)[0, 0], exact, 1e-12)
    own = reading.attention[0, 0] * torch.tensor(said[0], dtype=torch.float64)
    short = (reading.logits[0] - reading.offset[0] - own) / (1 - reading.attention[0, 0])
    assert float((short + reading.offset[0] - torch.tensor(exact)).abs().max()) > 1e-5


@pytest.mark.parametrize(
    "scores",
    [
        [0.0, -800.0, -1600.0, -1601.0, -2400.0],
        [800.0, 0.0, 0.5, -800.0, -800.0],
        [-800.0, -799.0, 0.0, -1600.0, -1599.5],
        [-745.0, -744.5, 0.0, -700.0, -720.0],
    ],
)
def test_attention_that_underflows_is_taken_from_its_scores(scores: list[float]) -> None:
    said = [[3.0, -1.0, 0.0], [1.0, 2.0, 0.5], [-2.0, 0.7, 9.0], [0.3, -4.0, -3.0], [5.0, 1.0, 0.0]]
    reading = reading_of([], said, scores)
    model = any_model()
    for order in ([0, 1, 2, 3, 4], [2, 0, 1, 4, 3], [4, 3, 2, 1, 0]):
        logits = curve(model, reading, torch.tensor([[order]]))[0, 0]
        erased = torch.zeros(1, 6, 5, dtype=torch.bool)
        for step in range(6):
            erased[0, step, order[:step]] = True
        decided = decide(model, reading, erase(erased))[0]
        for step in range(6):
            exact = remaining_logits(reading, order[step:])
            assert_close(logits[step], exact, 1e-11)
            assert_close(decided[step], exact, 1e-11)
    without = without_each(model, reading)[0]
    for unit in range(5):
        exact = remaining_logits(reading, [other for other in range(5) if other != unit])
        assert_close(without[unit], exact, 1e-11)


def test_underflow_in_one_document_leaves_its_neighbours_alone() -> None:
    model = classifier("none+dot")
    reading = read(model, BATCH)
    order = ranked(reading.attention, reading)[:, None]
    scores = reading.scores.clone()
    scores[2, 0] += 2000
    attention = scores.softmax(-1)
    bent = replace(reading, scores=scores, attention=attention)
    others = [0, 1, 3]
    assert torch.equal(curve(model, bent, order)[others], curve(model, reading, order)[others])
    same = without_each(model, reading)[others].nan_to_num(7)
    assert torch.equal(without_each(model, bent)[others].nan_to_num(7), same)
