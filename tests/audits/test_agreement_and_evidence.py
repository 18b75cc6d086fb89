"""Agreement between importance methods, and with known evidence."""

import numpy as np
import pandas as pd
import pytest
import torch
from scipy.stats import kendalltau
from sklearn.metrics import average_precision_score

from heedful.audits import agreement, evidence
from heedful.audits.finding import Finding
from heedful.importance import explain
from tests.hand import model_of, random_reading, reading_of

RANKINGS = ("random", "attention", "gradient", "product")


def value(finding: Finding, name: str, method: str = "") -> float:
    estimate = finding.get(name, method)
    assert estimate is not None
    return estimate.value


def test_agreement_equals_scipy_and_sets() -> None:
    reading = random_reading([2, 8, 25], 3, seed=1)
    model = model_of(3)
    importance = explain(model, reading, RANKINGS)
    rows = agreement.rows(model, reading, importance, 0)
    assert len(rows) == 3 * 6
    for found in rows.to_dict("records"):
        document, n = int(found["instance"].split()[1]), found["units"]
        one, other = (importance[found[side]][document, :n].numpy() for side in ("first", "second"))
        assert found["tau"] == pytest.approx(kendalltau(one, other).statistic, abs=1e-12)
        assert found["top_1"] == (one.argmax() == other.argmax())
        k = max(1, n // 10)
        tops = [set(np.argsort(-x, kind="stable")[:k].tolist()) for x in (one, other)]
        assert found["top_10th"] == pytest.approx(len(tops[0] & tops[1]) / k)


def test_agreement_leaves_out_single_units_and_counts_constant_rankings() -> None:
    said = [np.zeros((n, 2)) for n in (1, 3)]
    reading = reading_of([[1.0], [0.2, 0.3, 0.5]], said)
    model = model_of(2)
    rows = agreement.rows(model, reading, explain(model, reading, ("attention", "gradient")), 0)
    finding = agreement.summarise(rows)
    assert finding.notes[0] == "1 of 2 documents have one unit and are left out."
    assert "1 of 1 rankings are undefined" in finding.notes[1]
    assert finding.drawn["Kendall τ"] == [[1.0, None], [None, 1.0]]


def test_agreement_names_the_nearest_and_the_farthest_method() -> None:
    reading = random_reading([12] * 30, 2, seed=3)
    model = model_of(2)
    rows = agreement.rows(model, reading, explain(model, reading, RANKINGS), 0)
    finding = agreement.summarise(rows)
    tau = {name: value(finding, "Kendall τ", f"attention ~ {name}") for name in RANKINGS[2:]}
    assert f"most with {max(tau, key=lambda name: tau[name])}" in finding.answer
    assert "random order" in finding.answer


def test_evidence_by_hand() -> None:
    reading = reading_of(
        [[0.5, 0.3, 0.2], [0.6, 0.4], [0.9, 0.1]],
        [np.zeros((3, 2)), np.zeros((2, 2)), np.zeros((2, 2))],
        evidence=[[0, 2], [], [0, 1]],
    )
    importance = {
        "random": torch.tensor([[1.0, 3.0, 2.0], [1.0, 2.0, 9.0], [1.0, 2.0, 9.0]]),
        "attention": reading.attention,
        "gradient": torch.tensor([[1.0, -1.0, 3.0], [1.0, 2.0, 9.0], [-1.0, -2.0, 9.0]]),
    }
    rows = evidence.rows(model_of(2), reading, importance, 0)
    found = rows[rows["instance"] == "document 0"].set_index("ranking")
    assert found.loc["attention", "auprc"] == pytest.approx((1 + 2 / 3) / 2)
    assert found.loc["attention", "f1"] == 0.5
    assert found.loc["attention", "mass"] == pytest.approx(0.7)
    assert found.loc["gradient", ["auprc", "f1", "mass"]].tolist() == [1, 1, 1]
    assert found.loc["random", "mass"] == pytest.approx(0.5)
    finding = evidence.summarise(rows)
    assert finding.notes[0] == "1 of 3 documents have no known evidence and are left out."
    assert "1 of 3 documents are evidence from the first unit to the last" in finding.notes[1]
    assert value(finding, "mass on evidence", "attention - random") == pytest.approx((0.2 + 0) / 2)
    # In the last document no unit speaks for the decision by gradient: undefined, and counted.
    estimate = finding.get("mass on evidence", "gradient")
    assert estimate is not None
    assert (estimate.n, estimate.undefined) == (1, 1)


def test_average_precision_equals_scikit_learn() -> None:
    known = [[0, 3], [1], [2, 5, 7], [0]]
    reading = random_reading([5, 4, 9, 1], 2, seed=2, evidence=known, padding=1)
    model = model_of(2)
    importance = explain(model, reading, RANKINGS)
    rows = evidence.rows(model, reading, importance, 0)
    for found in rows.to_dict("records"):
        document, n = int(found["instance"].split()[1]), found["units"]
        truth = np.isin(np.arange(n), known[document])
        scores = importance[found["ranking"]][document, :n].numpy()
        assert found["auprc"] == pytest.approx(average_precision_score(truth, scores))


def test_a_corpus_without_evidence_has_no_rows() -> None:
    reading = random_reading([3], 2)
    rows = evidence.rows(model_of(2), reading, {"attention": reading.attention}, 0)
    assert len(rows) == 0


@pytest.mark.parametrize("audit", [agreement, evidence])
def test_nothing_to_say_is_said(audit: object) -> None:
    finding = audit.summarise(pd.DataFrame())  # type: ignore[attr-defined]
    assert finding.measures == ()
    assert finding.answer.startswith("Nothing could be measured")
