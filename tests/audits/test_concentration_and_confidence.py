"""Single-unit confidence and concentration, by hand."""

import numpy as np
import pandas as pd
import pytest

from heedful.audits import concentration, confidence
from heedful.audits.finding import Finding
from tests.hand import model_of, random_reading, reading_of, softmax


def value(finding: Finding, name: str, method: str = "") -> float:
    estimate = finding.get(name, method)
    assert estimate is not None
    return estimate.value


def test_confidence_by_hand() -> None:
    logits = np.log([0.9, 0.6, 0.4])
    other = np.log([0.1, 0.4, 0.6])
    said = np.stack([logits, other], 1)
    # The document: .5 log 9 + .25 log 1.5 - .25 log 1.5 = log 3, so p = .75.
    reading = reading_of([[0.5, 0.25, 0.25], [1.0]], [said, said[:1]], labels=[0, 1])
    rows = confidence.rows(model_of(2), reading, {}, 0)
    first = rows.iloc[0]
    assert first["probability"] == pytest.approx(0.75)
    assert first["confidence"] == pytest.approx((0.9 + 0.6 + 0.4) / 3)
    assert first["agreeing"] == pytest.approx(2 / 3)
    assert first["near"] == 0
    assert first["bins"].sum() == 3
    assert first["bins"][[18, 12, 8]].sum() + first["bins"][[17, 11, 7]].sum() == 3
    finding = confidence.summarise(rows)
    assert value(finding, "single-unit confidence") == pytest.approx(
        ((0.9 + 0.6 + 0.4) / 3 + 0.9) / 2
    )
    assert value(finding, "single-unit confidence, pooled units") == pytest.approx(
        (0.9 + 0.6 + 0.4 + 0.9) / 4
    )
    # The second document has one unit, which decides alike whatever the model does.
    alike = finding.get("units that decide alike")
    assert alike is not None
    assert (alike.value, alike.n, alike.undefined) == (pytest.approx(2 / 3), 1, 1)
    assert value(finding, "units within 0.1 of the document") == 0
    assert any(note.startswith("1 of 2 documents have one unit") for note in finding.notes)
    # It is decided wrongly.
    assert value(finding, "single-unit confidence", "correct") == pytest.approx(1.9 / 3)
    assert sum(finding.drawn["units"]["counts"]) == 4


@pytest.mark.parametrize("classes", [2, 5])
def test_confidence_equals_attending_to_each_unit_in_turn(classes: int) -> None:
    reading = random_reading([1, 4, 7], classes, seed=3, padding=2)
    rows = confidence.rows(model_of(classes), reading, {}, 0)
    assert reading.unit_logits is not None
    assert reading.offset is not None
    for document, n in enumerate(reading.units.tolist()):
        decision = int(reading.decision[document])
        said = [
            softmax((reading.unit_logits[document, i] + reading.offset[document]).numpy())
            for i in range(n)
        ]
        found = rows.iloc[document]
        assert found["confidence"] == pytest.approx(np.mean([p[decision] for p in said]))
        assert found["agreeing"] == pytest.approx(np.mean([p.argmax() == decision for p in said]))


def test_confidence_without_labels_or_without_a_correct_decision() -> None:
    finding = confidence.summarise(confidence.rows(model_of(2), random_reading([3, 4], 2), {}, 0))
    assert finding.get("single-unit confidence", "correct") is None
    assert "2 of 2 documents have no label" in finding.notes[0]
    wrong = reading_of([[1.0]], [[[3.0, 0.0]]], labels=[1])
    finding = confidence.summarise(confidence.rows(model_of(2), wrong, {}, 0))
    assert finding.notes[0] == "No document was decided correctly."
    assert finding.notes[1].startswith("1 of 1 documents have one unit")
    assert len(finding.notes) == 2


def test_concentration_of_flat_peaked_and_single_rows() -> None:
    said = [np.zeros((n, 2)) for n in (4, 2, 1)]
    reading = reading_of([[0.25] * 4, [1.0, 0.0], [1.0]], said, padding=1)
    rows = concentration.rows(model_of(2), reading, {}, 0)
    np.testing.assert_allclose(rows["entropy"], [1, 0, 0], atol=1e-12)
    np.testing.assert_allclose(rows["largest_weight"], [0.25, 1, 1])
    np.testing.assert_allclose(rows["effective_units"], [4, 1, 1])
    finding = concentration.summarise(rows)
    assert value(finding, "effective units") == pytest.approx(2.5)
    assert value(finding, "effective share of units") == pytest.approx((1 + 0.5) / 2)
    assert "1 of 3 documents have one unit and are left out." in finding.notes


@pytest.mark.parametrize("audit", [concentration, confidence])
def test_nothing_to_say_is_said(audit: object) -> None:
    finding = audit.summarise(pd.DataFrame())  # type: ignore[attr-defined]
    assert finding.measures == ()
    assert finding.answer.startswith("Nothing could be measured")
