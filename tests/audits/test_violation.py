"""Whether the sign of an importance agrees with what deleting the unit does."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
import torch

from heedful.audits import violation
from heedful.audits.tables import wide
from heedful.corpora.vocabulary import PAD
from heedful.models import AttentionClassifier, read
from tests.audits.test_input_erasure import GOOD, with_good_at
from tests.tiny import classifier


def sum_of_words() -> AttentionClassifier:
    """A model in which GOOD speaks for class 1 and every other word a little against it."""
    model = classifier("none+dot", 2, embedding_dim=2)
    with torch.no_grad():
        model.embedding.weight[:] = torch.tensor([0.0, -0.1])
        model.embedding.weight[GOOD] = torch.tensor([0.0, 4.0])
        model.embedding.weight[PAD] = 0
        model.level.attention.query.weight.zero_()
        model.head.weight.copy_(torch.tensor([[0.0, 0.0], [0.0, 6.0]]))
        model.head.bias.zero_()
    return model


def test_a_claim_is_belied_where_its_sign_is_not_that_of_the_effect() -> None:
    model = sum_of_words()
    reading = read(model, with_good_at([3, 0], 6))
    assert reading.decision.tolist() == [1, 1]
    said = reading.unit_logits[..., 1]
    filler = -(said - said.max())  # largest on the words that speak against the decision
    claims = {"right": said, "all for": filler, "against": -said, "none": torch.zeros_like(said)}
    rows = violation.rows(model, reading, claims, 0)
    by = {m: rows[rows["ranking"] == m] for m in claims}
    assert by["right"]["violated"].tolist() == [0, 0]
    assert (by["right"]["effect"] > 0.05).all()
    assert by["all for"]["violated"].tolist() == [1, 1]
    assert by["against"]["violated"].tolist() == [1, 1]  # GOOD again, with the wrong sign
    assert by["none"]["violated"].isna().all()
    whole = float(reading.logits.softmax(-1)[0, 1])
    without = torch.tensor([0.0, 6 * -0.1]).softmax(-1)[1]
    assert by["right"]["effect"].iloc[0] == pytest.approx(whole - float(without))


def test_the_strongest_unit_may_speak_against() -> None:
    model = sum_of_words()
    reading = read(model, with_good_at([2], 5))
    scores = torch.tensor([[0.5, -3.0, 1.0, 0.0, 0.0]])
    row = violation.rows(model, reading, {"m": scores}, 0).iloc[0]
    assert row["claim"] == -1
    assert row["effect"] < 0
    assert row["violated"] == 0


def test_chance_is_what_independent_signs_would_give() -> None:
    count = 40
    claim = np.where(np.arange(count) % 4 == 0, -1.0, 1.0)
    effect = np.where(np.arange(count) % 2 == 0, -1.0, 1.0)
    rows = pd.DataFrame(
        {
            "instance": [f"d{i}" for i in range(count)] * 2,
            "ranking": ["signed"] * count + ["attention"] * count,
            "units": 5,
            "claim": np.concatenate([claim, np.ones(count)]),
            "effect": np.tile(effect, 2),
        }
    )
    rows["violated"] = (rows["claim"] != rows["effect"]).astype(float)
    chance = violation.by_chance(wide(rows, "claim"), wide(rows, "violated"))
    assert chance["signed"].value == pytest.approx(0.75 * 0.5 + 0.25 * 0.5)
    assert chance["attention"].value == pytest.approx(0.5)
    finding = violation.summarise(rows)
    assert finding.get("violations", "signed").value == pytest.approx(0.25)  # type: ignore[union-attr]
    assert finding.get("violations", "attention").value == pytest.approx(0.5)  # type: ignore[union-attr]
    assert finding.get("effect as claimed", "signed").value == pytest.approx(0.5)  # type: ignore[union-attr]
    assert "50\xa0%" in finding.answer
    assert "least often by signed" in finding.answer
