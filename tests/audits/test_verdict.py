"""The verdict: which outcomes make which word, and where its borders come from."""

import json
import math

import pytest

from heedful.audits.finding import Finding, Measure
from heedful.audits.verdict import (
    BORDERS,
    CALIBRATION,
    Border,
    Outcome,
    borders,
    calibration,
    judge,
    word_of,
)
from heedful.statistics.estimates import Estimate

RELIANCE, TOLD, DELETION = BORDERS
CALIBRATED = {
    "borders": {
        "reliance": {"contradicts": 0.3, "supports": 0.7},
        "told": {"contradicts": 0.2, "supports": 0.3},
        "deletion": {"contradicts": 0.0, "supports": 0.0},
    },
    "table": {"columns": ["a"], "rows": [["b"]], "caption": "c"},
    "coverage": [
        {"quantity": "q", "interval": "bca", "n": 25, "coverage": 0.88},
        {"quantity": "r", "interval": "bca", "n": 25, "coverage": 0.94},
        {"quantity": "q", "interval": "bca", "n": 50, "coverage": 0.91},
    ],
}


def estimate(low: float, high: float) -> Estimate:
    return Estimate((low + high) / 2, low, high, 200, "bca")


def findings(**given: tuple[float, float]) -> dict[str, Finding]:
    found = {}
    for border in BORDERS:
        if border.key in given:
            measure = Measure(border.measure, estimate(*given[border.key]), border.method)
            found[border.audit] = Finding(border.audit, "?", ".", (measure,), "measures")
    return found


GOOD = {"reliance": (0.9, 1.0), "told": (0.9, 0.95), "deletion": (0.2, 0.3)}


@pytest.mark.parametrize(
    ("low", "high", "outcome"),
    [
        (0.8, 0.9, "supports"),
        (0.75, 0.9, "mixed"),  # touches the border
        (0.1, 0.2, "contradicts"),
        (0.1, 0.25, "mixed"),
        (0.4, 0.6, "mixed"),
        (math.nan, math.nan, "unknown"),
    ],
)
def test_an_outcome_needs_the_whole_interval(low: float, high: float, outcome: str) -> None:
    border = Border("k", "a", "m", "", "n", contradicts=0.25, supports=0.75, sentence="")
    assert border.outcome(estimate(low, high)) == outcome
    assert border.outcome(None) == "unknown"


@pytest.mark.parametrize(
    ("reliance", "told", "deletion", "word"),
    [
        ("supports", "supports", "supports", "yes"),
        ("supports", "supports", "mixed", "yes"),  # a veto that does not speak
        ("supports", "mixed", "supports", "partly"),
        ("mixed", "supports", "supports", "partly"),
        ("supports", "supports", "contradicts", "no"),
        ("contradicts", "unknown", "supports", "no"),
        ("supports", "unknown", "supports", "cannot tell"),
    ],
)
def test_words_follow_from_outcomes(
    reliance: Outcome, told: Outcome, deletion: Outcome, word: str
) -> None:
    assert word_of({RELIANCE: reliance, TOLD: told, DELETION: deletion}) == word


@pytest.mark.parametrize(
    ("changed", "word"),
    [
        ({}, "yes"),
        ({"reliance": (0.4, 0.6)}, "partly"),
        ({"reliance": (0.0, 0.1)}, "no"),
        ({"told": (-0.1, 0.1)}, "no"),
        ({"told": (0.15, 0.35)}, "partly"),
        ({"deletion": (-0.03, -0.01)}, "no"),
        ({"deletion": (-0.03, 0.01)}, "yes"),
        ({"told": (math.nan, math.nan)}, "cannot tell"),
    ],
)
def test_the_verdict_gives_its_reason(changed: dict[str, tuple[float, float]], word: str) -> None:
    verdict = judge(findings(**(GOOD | changed)), 200, CALIBRATED)
    assert verdict.word == word
    assert not verdict.provisional
    assert verdict.to_json()["calibration"] == CALIBRATED["table"]
    if changed and word != "yes":
        (key,) = changed
        (test,) = (t for t, b in zip(verdict.tests, BORDERS, strict=True) if b.key == key)
        assert verdict.sentence.endswith(test.sentence)


def test_few_documents_settle_nothing_and_the_measured_coverage_is_said() -> None:
    verdict = judge(findings(**GOOD), 60, CALIBRATED)
    assert verdict.word == "cannot tell"
    assert "60 documents are too few: audit 100 or more." in verdict.sentence
    assert "with 50, intervals that should miss the truth 5 times in 100" in verdict.sentence
    assert verdict.sentence.endswith("missed it up to 9 times.")
    assert judge(findings(**GOOD), 30, CALIBRATED).sentence.endswith("up to 12 times.")
    assert judge(findings(**GOOD), 10, CALIBRATED).sentence.endswith("audit 100 or more.")


def test_a_missing_audit_leaves_it_open_unless_another_one_contradicts() -> None:
    some = {key: GOOD[key] for key in ("reliance", "told")}
    verdict = judge(findings(**some), 200, CALIBRATED)
    assert (verdict.word, len(verdict.tests)) == ("cannot tell", 2)
    assert judge(findings(reliance=(0.0, 0.0)), 200, CALIBRATED).word == "no"
    assert judge({}, 200, CALIBRATED).word == "cannot tell"


def test_borders_are_those_of_the_calibration_in_the_package() -> None:
    stored = calibration()
    assert stored is not None
    assert stored == json.loads(CALIBRATION.read_text("utf-8"))
    for border in borders(stored):
        assert stored["borders"][border.key] == {
            "contradicts": border.contradicts,
            "supports": border.supports,
        }
    verdict = judge(findings(**GOOD), 200).to_json()
    assert verdict["provisional"] is False
    assert set(verdict["calibration"]) == {"columns", "rows", "caption"}
    assert all(len(row) == len(verdict["calibration"]["columns"])
               for row in verdict["calibration"]["rows"])  # fmt: skip


def test_the_calibration_in_the_package_keeps_its_promise() -> None:
    stored = calibration()
    assert stored is not None
    held_out = stored["held out"]
    assert held_out["of"] >= 200
    assert held_out["right"] >= 0.95 * held_out["of"]
    assert held_out["false yes"] == 0
    counted = sum(row[2] for row in stored["table"]["rows"] if "," not in row[0])
    assert counted == held_out["of"]
    for row in stored["coverage"]:
        most = 1.0 if row["interval"] == "gamma" else 0.975
        assert row["n"] < 100 or 0.93 <= row["coverage"] <= most


def test_the_advice_is_the_ranking_s_where_attention_is_not_to_be_shown() -> None:
    worth = {"random": 0.0, "attention": 0.3, "product": 0.6}
    measures = [Measure("faithfulness", estimate(v - 0.02, v + 0.02), m) for m, v in worth.items()]
    for kind, sign in (("faithfulness", 1), ("comprehensiveness", 1), ("sufficiency", -1)):
        for method in ("attention", "product"):
            ends = sorted((sign * 0.2, sign * 0.4))
            measures.append(Measure(kind, estimate(*ends), f"{method} - random"))
    measures.append(Measure("faithfulness", estimate(-0.4, -0.2), "attention - product"))
    erased = Finding("input-erasure", "?", "!", tuple(measures), "input_erasure")
    bad = findings(**(GOOD | {"reliance": (0.0, 0.1)})) | {"input-erasure": erased}
    verdict = judge(bad, 200, CALIBRATED)
    assert verdict.ranking is not None
    assert verdict.advice[0] == verdict.ranking.recommendation
    assert "Show `product` instead of attention" in verdict.advice[0]
    assert verdict.advice == (verdict.ranking.recommendation,)  # the rest is the run's
    assert judge(findings(**GOOD), 200, CALIBRATED).ranking is None
    shown = judge(findings(**GOOD) | {"input-erasure": erased}, 200, CALIBRATED)
    assert shown.word == "yes"
    assert shown.ranking is not None
    assert "instead of attention" not in shown.ranking.recommendation
    assert "`product` does better than attention" in shown.ranking.recommendation
