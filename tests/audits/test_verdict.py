"""The verdict: which share of texts makes which word, what failed, and what cannot be told."""

import json
import math
from dataclasses import replace

import pytest

from heedful.audits.exchange import GOES, MATTER, PASSES, SHARE
from heedful.audits.finding import Finding, Measure
from heedful.audits.verdict import (
    AUDIT,
    BORDERS,
    CALIBRATION,
    HEADS,
    RULE,
    borders,
    calibration,
    judge,
    word_of,
)
from heedful.statistics.estimates import Estimate

CALIBRATED = {
    "borders": {side: {"value": at, "low": at, "high": at} for side, at in BORDERS.items()},
    "table": {"columns": ["a"], "rows": [["b"]], "caption": "c"},
    "coverage": [
        {"quantity": "q", "interval": "bca", "n": 25, "coverage": 0.88},
        {"quantity": "r", "interval": "bca", "n": 25, "coverage": 0.94},
        {"quantity": "q", "interval": "bca", "n": 50, "coverage": 0.91},
    ],
}


def estimate(value: float, half: float = 0.02) -> Estimate:
    return Estimate(value, value - half, value + half, 200, "percentile")


def findings(
    goes: float = 0.95, matter: float = 0.95, passes: float = 0.95, half: float = 0.02
) -> dict[str, Finding]:
    values = {SHARE: goes * matter * passes, GOES: goes, MATTER: matter, PASSES: passes}
    measures = tuple(Measure(name, estimate(value, half)) for name, value in values.items())
    return {AUDIT: Finding(AUDIT, "?", ".", measures, "measures")}


@pytest.mark.parametrize(
    ("share", "word"),
    [(0.75, "yes"), (0.749, "partly"), (0.251, "partly"), (0.25, "no"), (math.nan, "cannot tell")],
)
def test_words_follow_from_the_share_of_texts(share: float, word: str) -> None:
    assert word_of(estimate(share), BORDERS) == word
    assert word_of(None, BORDERS) == "cannot tell"


@pytest.mark.parametrize(
    ("measured", "word", "said"),
    [
        ({}, "yes", "All three tests hold at once in 86\xa0% of the texts."),
        ({"goes": 0.1}, "no", "It decides through attention, but the words it shows are not the"),
        ({"matter": 0.1}, "no", "It decides through attention, but the words it shows are not the"),
        ({"passes": 0.1}, "no", "It points at the right words, but does not decide by them."),
        ({"goes": 0.1, "passes": 0.1}, "no", "The words it shows are not the reason, or what"),
        ({"passes": 0.5}, "partly", "In the others it points at the right words, but does not"),
    ],
)
def test_the_verdict_says_which_of_the_two_failed(
    measured: dict[str, float], word: str, said: str
) -> None:
    verdict = judge(findings(**measured), 200, CALIBRATED)
    assert verdict.word == word
    assert said in verdict.sentence
    assert not verdict.provisional
    assert verdict.to_json()["calibration"] == CALIBRATED["table"]
    assert [test.name.lower() for test in verdict.tests] == [GOES, MATTER, PASSES]


def test_a_word_within_its_own_noise_of_a_border_says_so() -> None:
    wide = judge(findings(half=0.2), 200, CALIBRATED)
    assert (wide.word, wide.near) == ("yes", "partly")
    assert wide.sentence.endswith("the word could have been partly.")
    assert judge(findings(), 200, CALIBRATED).near == ""
    assert judge(findings(goes=0.32, half=0.1), 200, CALIBRATED).near == "no"


def test_a_head_is_advised_only_where_its_whole_interval_is_above_the_border() -> None:
    def advice(*shares: float, goes: float = 0.1) -> str:
        heads = [Measure(SHARE, estimate(s), f"head {n}") for n, s in enumerate(shares)]
        alone = Finding(HEADS, "?", ".", tuple(heads), "measures")
        return " ".join(judge(findings(goes) | {HEADS: alone}, 200, CALIBRATED).advice)

    assert "Show head 2 of the audited layer instead" in advice(0.4, 0.78, 0.9)
    assert "all three tests hold at once in 90\xa0% of 200 texts" in advice(0.4, 0.78, 0.9)
    assert "head" not in advice(0.4, 0.76)  # its interval is 0.74 to 0.78
    assert "head" not in advice(0.9, goes=0.95)  # the mean over heads may be shown


def test_the_rule_is_told_in_four_sentences_with_its_borders() -> None:
    told = judge(findings(), 200, CALIBRATED).to_json()["rule"]
    assert len(told) == len(RULE) == 4
    assert told[-1].startswith(
        "Yes if all of this holds in at least 75\xa0% of the texts and no word"
    )
    assert told[-1].endswith("no if in at most 25\xa0%, partly between.")


def test_few_documents_settle_nothing_and_the_measured_coverage_is_said() -> None:
    verdict = judge(findings(), 60, CALIBRATED)
    assert verdict.word == "cannot tell"
    assert "60 documents are too few: audit 100 or more." in verdict.sentence
    assert verdict.sentence.endswith("missed it up to 9 times.")
    assert judge(findings(), 30, CALIBRATED).sentence.endswith("up to 12 times.")
    assert judge(findings(), 10, CALIBRATED).sentence.endswith("audit 100 or more.")


def test_texts_that_are_all_decided_alike_cannot_be_told() -> None:
    none = Finding(AUDIT, "?", "Nothing could be exchanged.", (), "measures")
    verdict = judge({AUDIT: none}, 200, CALIBRATED)
    assert verdict.word == "cannot tell"
    assert verdict.sentence.endswith("Nothing could be exchanged.")
    assert all(test.outcome == "unknown" for test in verdict.tests)
    assert judge({}, 200, CALIBRATED).word == "cannot tell"


def test_borders_are_those_of_the_calibration_in_the_package() -> None:
    stored = calibration()
    assert stored is not None
    assert stored == json.loads(CALIBRATION.read_text("utf-8"))
    assert borders(stored) == {side: stored["borders"][side]["value"] for side in BORDERS}
    assert borders(None) == BORDERS
    verdict = judge(findings(), 200).to_json()
    assert verdict["provisional"] is False
    assert set(verdict["calibration"]) == {"columns", "rows", "caption"}
    assert all(len(row) == len(verdict["calibration"]["columns"])
               for row in verdict["calibration"]["rows"])  # fmt: skip


def test_the_calibration_in_the_package_keeps_its_promise() -> None:
    stored = calibration()
    assert stored is not None
    assert stored["scores"]["open"]["right"]["value"] >= 0.9
    assert stored["scores"]["open"]["no called yes"] == []
    # Published whatever it says, and never refitted.
    assert stored["scores"]["opponent"]["right"]["n"] >= 60
    assert stored["scores"]["opponent"]["no called yes"] == []
    for row in stored["coverage"]:
        most = 1.0 if row["interval"] == "gamma" else 0.99
        assert row["n"] < 100 or 0.93 <= row["coverage"] <= most


def test_the_advice_is_the_ranking_s_where_attention_is_not_to_be_shown() -> None:
    worth = {"random": 0.0, "attention": 0.3, "product": 0.6}
    measures = [Measure("faithfulness", estimate(v), m) for m, v in worth.items()]
    for kind, sign in (("faithfulness", 1), ("comprehensiveness", 1), ("sufficiency", -1)):
        for method in ("attention", "product"):
            measures.append(Measure(kind, estimate(sign * 0.3, 0.1), f"{method} - random"))
    measures.append(Measure("faithfulness", estimate(-0.3, 0.1), "attention - product"))
    erased = Finding("input-erasure", "?", "!", tuple(measures), "input_erasure")
    verdict = judge(findings(goes=0.1) | {"input-erasure": erased}, 200, CALIBRATED)
    assert verdict.ranking is not None
    assert verdict.advice[0] == verdict.ranking.recommendation
    assert "Show `product` instead of attention" in verdict.advice[0]
    assert verdict.advice == (verdict.ranking.recommendation,)  # the rest is the run's
    assert judge(findings(), 200, CALIBRATED).ranking is None
    shown = judge(findings() | {"input-erasure": erased}, 200, CALIBRATED)
    assert shown.word == "yes"
    assert shown.ranking is not None
    assert "instead of attention" not in shown.ranking.recommendation
    assert "`product` does better than attention" in shown.ranking.recommendation
    assert replace(shown, advice=()).to_json()["advice"] == []
