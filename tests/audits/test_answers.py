"""Measures of sources by hand, and the three words by what they rest on."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
import pytest

from heedful.audits.answer_measures import (
    ATTENTION,
    BEYOND,
    DEPENDING,
    EVIDENCE,
    FIRST,
    FORESEEN,
    FOUND,
    HIT,
    ON_SOURCES,
    ORACLE,
    PRECISION,
)
from heedful.audits.answer_verdict import AnswerBorders, Shares, _advice, judge, word_of
from heedful.audits.answers import (
    KS,
    MATTERS,
    Removals,
    first_of,
    measures_of,
    random_removals,
    summarise,
)
from heedful.importance.sources import CHOSEN, LEARNT, RANDOM
from heedful.statistics.estimates import Estimate


def removals() -> Removals:
    """Four sources of which the second matters most and the fourth somewhat."""
    effects = np.array([0.1, 2.0, 0.0, 0.8])
    kept = np.array([[1, 0, 1, 1], [0, 1, 1, 0], [1, 1, 0, 1]], dtype=bool)
    said = -1.0 - (~kept) @ effects
    return Removals(-1.0, -1.0 - effects, kept, said, np.array([False, True, False, True]))


def test_each_measure_by_hand() -> None:
    claimed = {"good": np.array([0.0, 3.0, 0.0, 1.0]), "bad": np.array([3.0, 0.0, 1.0, -1.0])}
    claimed[RANDOM] = np.array([0.4, 0.3, 0.2, 0.1])
    drops = {"good": {1: -3.0, 3: -3.9}, "bad": {1: -1.1, 3: -3.0}, RANDOM: {1: -1.1, 3: -3.2}}
    good, bad, random = measures_of(claimed, removals(), drops)
    assert [good["drop at 1"], good["drop at 3"]] == pytest.approx([2.0, 2.9])
    assert math.isnan(good["drop at 5"])  # there are four
    assert good["found"] == pytest.approx(2.0 - 0.725)
    assert good["best"] == good["found"]
    assert bad["found"] == pytest.approx(0.1 - 0.725)
    assert random["drop at 1"] == pytest.approx(0.725)
    assert random["found"] == 0
    assert good[FORESEEN] == pytest.approx(1.0)  # sums kept 1, 3, 4 beside -3, -1.9, -1
    assert good[PRECISION] == 1
    assert bad[PRECISION] == pytest.approx((1 / 3 + 2 / 4) / 2)
    assert (good[EVIDENCE], bad[EVIDENCE]) == (1, 0)
    assert (good[HIT], bad[HIT]) == (1, 0)
    assert pytest.approx(math.log(2)) == MATTERS


def test_equal_sources_come_in_order_and_removals_remove_some() -> None:
    assert first_of(np.array([1.0, 2.0, 2.0, 0.0]), 2).tolist() == [False, True, True, False]
    assert first_of(np.array([1.0, 1.0, 1.0]), 1).tolist() == [True, False, False]
    kept = random_removals(200, 3, np.random.default_rng(0))
    assert kept.any(1).all()
    assert not kept.all(1).any()
    assert abs(kept.mean() - 0.5) < 0.06


def rows(count: int, **firsts: float) -> pd.DataFrame:
    """Answers of which each explanation finds the most needed source with a given frequency."""
    table = []
    for n in range(count):
        for name, share in firsts.items():
            name = {"attention": "attention", "chosen": CHOSEN, "learnt": LEARNT}.get(name, ORACLE)
            found = 1.0 if n < share * count else 0.0
            about = {"instance": f"a{n}", FIRST: 0.3, ON_SOURCES: 0.5, "ranking": name}
            measured = dict.fromkeys((FORESEEN, PRECISION, EVIDENCE, HIT), found)
            drops = {f"drop at {k}": 2 * found for k in KS}
            table.append(about | measured | drops | {"found": found, "best": 1.0})
    return pd.DataFrame(table)


@pytest.mark.parametrize(
    ("count", "shares", "word"),
    [
        (60, {"attention": 0.95, "chosen": 1.0}, "attention as it is"),
        (60, {"attention": 0.4, "chosen": 0.95, "learnt": 0.9}, "these heads, so weighted"),
        (60, {"attention": 0.4, "chosen": 0.5}, "no"),
        (60, {"attention": 0.1}, "no"),
        (10, {"attention": 1.0}, "cannot tell"),
    ],
)
def test_three_words(count: int, shares: dict[str, float], word: str) -> None:
    finding = summarise(rows(count, **shares, oracle=1.0))
    assert finding.get(FOUND, "attention").value == pytest.approx(shares["attention"], abs=0.01)
    verdict = judge(finding, "heedful audit lm:x --questions NEW.jsonl --heads run")
    assert verdict.word == word
    assert "decoders built by hand" in verdict.sentence
    assert ("--heads run" in verdict.advice) == (word == "these heads, so weighted")
    assert finding.get(FIRST, "attention").value == pytest.approx(0.3)
    said = finding.answer.replace("\u00a0", " ")
    assert "the first token holds 30 %" in said
    assert "and the sources 50 %" in said


AT = AnswerBorders(0.75, 0.5, 0.01, 0.7)


def shares(
    attention: float, heads: float, best: float = 2.0, depending: float = 1.0, count: int = 40
) -> Shares:
    """Of so many answers, each known to within 0.1."""

    def about(value: float) -> Estimate:
        return Estimate(value, value - 0.1, value + 0.1, count, "percentile")

    found = {ATTENTION: about(attention), CHOSEN: about(heads)}
    return Shares(found, {CHOSEN: about(heads - attention)}, best, depending)


@pytest.mark.parametrize(
    ("measured", "word", "method", "advised"),
    [
        (shares(0.9, 1.0), "attention as it is", "attention", ""),
        (shares(0.5, 0.9), "these heads, so weighted", CHOSEN, f"Show {CHOSEN}."),
        (shares(0.72, 0.8), "cannot tell", "", "Ask more questions."),  # not surely better
        (shares(0.5, 0.6), "no", "", "Show what removing"),
        (shares(0.9, 1.0, best=0.005), "cannot tell", "", ""),
        # Nothing is shown for answers that need no source, whatever is found of the others.
        (shares(0.9, 1.0, depending=0.6), "no", "", "Show what removing"),
        (shares(0.9, 1.0, depending=0.3), "cannot tell", "", ""),
        (shares(0.9, 1.0, count=12), "cannot tell", "", "Ask more questions."),
    ],
)
def test_the_word_by_its_borders_and_what_follows(
    measured: Shares, word: str, method: str, advised: str
) -> None:
    told = word_of(measured, AT)
    assert (told.word, told.method) == (word, method)
    advice = _advice(told, measured, AT, "")
    assert advice.startswith(advised)
    assert bool(advice) == bool(advised)


def test_what_answers_depend_on_and_what_heads_are_beyond_attention_by_hand() -> None:
    table = rows(40, attention=0.25, chosen=0.75, oracle=1.0)
    last = table["instance"].isin([f"a{n}" for n in range(30, 40)])
    table.loc[last, ["found", "best"]] = 0.01  # a hundredth of the others
    finding = summarise(table)
    assert finding.get(DEPENDING, ORACLE).value == 0.75
    # Of 30 that count 1 and 10 that count 0.01: 30 found by heads, 10 by attention.
    beyond = finding.get(BEYOND, CHOSEN)
    assert beyond.value == pytest.approx(20 / 30.1)
    assert beyond.low > 0


def test_few_that_find_the_same_do_not_hide_that_heads_find_more() -> None:
    # In three of forty answers both name the same source; an interval by studentised
    # resampling of the differences reached below zero here.
    table = rows(40, attention=0.075, chosen=1.0, oracle=1.0)
    beyond = summarise(table).get(BEYOND, CHOSEN)
    assert beyond.value == pytest.approx(37 / 40)
    assert beyond.low > 0.8


def test_a_word_says_how_often_it_was_right_on_decoders() -> None:
    finding = summarise(rows(60, attention=0.95, chosen=1.0, oracle=1.0))
    right = Estimate(0.8, 0.7, 0.9, 90, "wilson").to_json()
    stored = {"borders": AT._asdict(), "held_out": {"right": right}}
    verdict = judge(finding, calibrated=stored)
    assert "right for 80" in verdict.sentence
    assert "[70, 90]" in verdict.sentence
    assert "90 decoders" in verdict.sentence
    assert "not calibrated" not in verdict.sentence
    assert not verdict.provisional
    worse = stored | {"held_out": {"right": right | {"value": 0.6}}}
    verdict = judge(finding, calibrated=worse)
    assert "not calibrated" in verdict.sentence
    assert "right for 60" in verdict.sentence
    assert verdict.provisional


def test_heads_not_surely_better_than_attention_are_not_named() -> None:
    table = rows(60, attention=0.8, chosen=0.0, oracle=1.0)
    # Heads find 53 of 60 where attention finds 48, but not the same ones.
    late = table["instance"].isin([f"a{n}" for n in range(7, 60)]) & (table["ranking"] == CHOSEN)
    table.loc[late, ["found", "drop at 1"]] = [1.0, 2.0]
    assert judge(summarise(table)).word == "cannot tell"


def test_one_answer_that_counts_for_all_settles_nothing() -> None:
    table = rows(30, attention=0.0, oracle=1.0)
    table.loc[table["instance"] == "a0", ["found", "best"]] = 200.0
    assert judge(summarise(table)).word == "cannot tell"


def test_answers_without_a_source_that_matters_are_counted() -> None:
    table = rows(30, attention=0.5, oracle=1.0)
    table.loc[table["instance"].isin(["a0", "a1"]), PRECISION] = np.nan
    finding = summarise(table)
    assert any(
        note.startswith("2 of 30 answers have no source that matters") for note in finding.notes
    )
