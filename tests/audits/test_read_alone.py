"""Units read alone, one deleted unit, and measures against chance: closed forms and brute force."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
import torch

from heedful.audits import deletion, read_alone
from heedful.audits.input_erasure import loss_avoided
from heedful.audits.substitution import against_chance
from heedful.audits.tables import Wide
from heedful.calibration.hiding import attended, hiding
from heedful.models import read
from tests.tiny import batch_of, chosen, classifier

DOCUMENTS = ((3,), (2, 1), (1, 3, 2), (4, 1), (1,))
NAMES = [f"d{i}" for i in range(4)]


@pytest.mark.parametrize("recipe", ["bilstm+additive", "none+dot", "han:bigru+dot"])
def test_reading_units_alone_equals_reading_each_as_its_own_text(recipe: str) -> None:
    model, batch = classifier(recipe), batch_of(DOCUMENTS)
    reading = read(model, batch)
    found = read_alone.read_units(model, reading)
    for document in range(len(DOCUMENTS)):
        for unit in range(int(reading.units[document])):
            one = chosen(batch, [document])
            kept = reading.unit_of_token[document : document + 1, : one.mask.shape[1]] == unit
            logits = read(model, one.keeping(kept)).logits[0]
            torch.testing.assert_close(found[document, unit], logits)


@pytest.mark.parametrize("recipe", ["bilstm+additive", "han:bigru+dot"])
def test_deleting_drawn_units_averages_to_the_exact_expectation(recipe: str) -> None:
    model, batch = classifier(recipe), batch_of(((2, 1, 3), (1, 3, 2)))
    reading = read(model, batch)
    rows = deletion.rows(model, reading, {}, 0, draws=4000)
    for document in range(2):
        lost = []
        one = chosen(batch, [document])
        for unit in range(int(reading.units[document])):
            kept = reading.unit_of_token[document : document + 1, : one.mask.shape[1]] != unit
            after = read(model, one.keeping(kept)).logits.softmax(-1)[0]
            decided = int(reading.decision[document])
            lost.append(float(reading.logits.softmax(-1)[document, decided] - after[decided]))
        weights = reading.attention[document, : len(lost)].numpy()
        assert rows["attention"][document] == pytest.approx(weights @ lost, abs=0.02)
        assert rows["random"][document] == pytest.approx(np.mean(lost), abs=0.02)


def test_changes_against_chance_do_not_depend_on_the_number_of_classes() -> None:
    for classes in (2, 5):
        decision = np.repeat(np.arange(classes), 20)
        names = [f"d{i}" for i in range(len(decision))]
        changes = np.full(len(decision), 0.5 * (1 - 1 / classes))
        assert against_chance(changes, decision, names).value == pytest.approx(0.5)
    alike = against_chance(np.zeros(4), np.zeros(4, dtype=int), NAMES)
    assert np.isnan(alike.value)


def test_told_and_loss_avoided_by_hand() -> None:
    attended, any_unit, text = np.array([[0.9, 0.7], [0.5, 0.3], [1.0, 0.8]])
    told = read_alone.beyond_any(attended, any_unit, text, NAMES[:2])
    assert told.value == pytest.approx((0.8 - 0.4) / (0.9 - 0.4))
    assert np.isnan(read_alone.beyond_any(attended, text, text, NAMES[:2]).value)
    table = pd.DataFrame({"random": [0.4, 0.4], "attention": [0.1, 0.3]}, index=["a", "b"])
    found = loss_avoided(Wide(table))
    assert found["attention"].value == pytest.approx(0.5)
    assert found["random"].value == 0


@pytest.mark.parametrize("recipe", ["bilstm+additive", "han:none+dot"])
def test_the_hiding_penalty_is_that_of_the_attention_on_evidence(recipe: str) -> None:
    model, batch = classifier(recipe), batch_of(DOCUMENTS[:4])
    known = torch.zeros_like(batch.mask)
    known[:, 1] = True
    batch = replace(batch, evidence=known)
    reading = read(model, batch)
    assert reading.evidence is not None
    shown = (reading.attention * reading.evidence).sum(-1)
    expected = -(1 - shown).clamp_min(1e-6).log().mean()
    assert hiding(attended(model, batch)).item() == pytest.approx(float(expected), rel=1e-6)
