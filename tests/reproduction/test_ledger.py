import math

import pytest

from heedful.reproduction.ledger import (
    Judgement,
    NotMeasurable,
    Parts,
    Side,
    Unchanged,
    above,
    at_least,
    at_most,
    below,
    between,
    each_unchanged,
    holding,
    judge,
    over_all,
    sides_of,
    within,
)
from heedful.statistics import Estimate

NAN = math.nan


def estimate(low: float, high: float) -> Estimate:
    return Estimate((low + high) / 2, low, high, 50, "bootstrap-t")


@pytest.mark.parametrize(
    ("side", "low", "high", "word"),
    [
        (above(0), 0.1, 0.2, "confirmed"),
        (above(0), -0.2, -0.1, "refuted"),
        (above(0), -0.1, 0.1, "undecided"),
        (above(0), 0.0, 0.1, "undecided"),
        (above(0), 0.0, 0.0, "undecided"),
        (below(1.6), 1.0, 1.5, "confirmed"),
        (below(1.6), 1.7, 1.8, "refuted"),
        (at_least(0.75), 0.75, 0.9, "confirmed"),
        (at_least(0.75), 0.7, 0.8, "undecided"),
        (at_most(0.1), 0.0, 0.1, "confirmed"),
        (at_most(0.1), 0.11, 0.2, "refuted"),
        (within(0.1), -0.1, 0.1, "confirmed"),
        (within(0.1), 0.05, 0.2, "undecided"),
        (within(0.1), 0.2, 0.3, "refuted"),
        (within(0), 0.0, 0.0, "confirmed"),
        (within(0), 1e-9, 1e-9, "refuted"),
        (within(1.5, centre=47.5), 46.5, 48.5, "confirmed"),
        (between(0, 1), -2.0, -1.0, "refuted"),
    ],
)
def test_the_interval_decides(side: Side, low: float, high: float, word: str):
    assert judge(estimate(low, high), side).word == word


def test_a_number_without_interval_decides_nothing():
    found = judge(Estimate(3.0, NAN, NAN, 1, "none"), above(0))
    assert found.word == "undecided"
    assert "no interval" in found.reason


def test_a_number_that_cannot_be_computed_says_so_and_not_nan():
    found = judge(Estimate(NAN, NAN, NAN, 0, "bootstrap"), above(0))
    assert (found.word, found.reason) == ("undecided", "cannot be computed here")


def test_missing_data_is_not_measurable_with_its_reason():
    found = judge(NotMeasurable("needs SEND"), above(0))
    assert (found.word, found.estimate, found.reason) == ("not measurable", None, "needs SEND")


def test_all_parts_must_hold_and_a_refuted_one_settles_it():
    good, bad, unsure = estimate(1, 2), estimate(-2, -1), estimate(-1, 1)
    missing = NotMeasurable("absent")
    assert judge(Parts(a=good, b=good), above(0)).word == "confirmed"
    assert judge(Parts(a=good, b=unsure), above(0)).word == "undecided"
    assert judge(Parts(a=good, b=missing), above(0)).word == "not measurable"
    found = judge(Parts(a=missing, b=unsure, c=bad), above(0))
    assert found.word == "refuted"
    assert found.estimate == bad
    assert found.reason.startswith("0 of 3 parts hold; c: ")
    assert [part["verdict"] for part in found.parts] == ["not measurable", "undecided", "refuted"]


def test_a_claim_of_many_parts_says_how_many_hold():
    good, unsure = estimate(1, 2), estimate(-1, 2)
    assert judge(Parts(a=good, b=good), above(0)).reason.startswith("2 of 2 parts hold; a: ")
    assert judge(Parts(a=good, b=unsure), above(0)).reason.startswith("1 of 2 parts hold; b: ")
    assert "parts hold" not in judge(Parts(a=good), above(0)).reason
    assert over_all(judged(a="confirmed", b="refuted")).reason.startswith("holds on 1 of 2 corpora")


def test_what_is_undecided_says_which_n_would_decide_it():
    unsure = Estimate(1.0, -1.0, 3.0, 25, "percentile")
    assert "n = 205 would decide it with a chance of 80\xa0%" in judge(unsure, above(0)).reason
    assert "would decide" not in judge(estimate(1, 2), above(0)).reason
    # Of two borders that the interval holds, the nearer asks for more.
    both = judge(Estimate(0.5, -2.5, 3.5, 25, "percentile"), within(1.5)).reason
    assert both == judge(Estimate(0.5, -2.5, 3.5, 25, "percentile"), below(1.5)).reason.replace(
        "< 1.5", "size ≤ 1.5"
    )
    assert "no n would decide it" in judge(estimate(-1, 1), above(0)).reason


def test_each_part_may_have_its_own_side():
    sides = {"accuracy": at_least(-3), "drop": below(0)}
    measured = Parts(accuracy=estimate(-2, 1), drop=estimate(-9, -7))
    assert judge(measured, sides).word == "confirmed"
    with pytest.raises(ValueError, match="no side for 'other'"):
        judge(Parts(other=estimate(0, 1)), sides)


def test_an_artefact_check_asks_whether_the_verdict_stays():
    good, bad, unsure = estimate(1, 2), estimate(-2, -1), estimate(-1, 1)
    assert judge(Unchanged(good, good), above(0)).word == "confirmed"
    assert judge(Unchanged(bad, bad), above(0)).word == "confirmed"
    assert judge(Unchanged(good, bad), above(0)).word == "refuted"
    assert judge(Unchanged(good, unsure), above(0)).word == "undecided"
    missing = Unchanged(good, Parts(x=NotMeasurable("absent")))
    assert judge(missing, above(0)).word == "not measurable"


def judged(**words: str) -> dict[str, Judgement]:
    found = {}
    for name, word in words.items():
        missing = word == "not measurable"
        found[name] = Judgement(word, None if missing else estimate(0, 1), f"because {name}")
    return found


def test_all_corpora_are_confirmed_only_together_and_exceptions_are_named():
    assert over_all(judged(sst="confirmed", imdb="confirmed")).word == "confirmed"
    found = over_all(judged(sst="confirmed", imdb="refuted", ag="undecided"))
    assert found.word == "refuted"
    assert "exceptions: imdb (refuted), ag (undecided)" in found.reason
    assert over_all(judged(sst="confirmed", ag="undecided")).word == "undecided"


def test_all_is_decided_over_the_corpora_at_hand_and_says_so():
    found = over_all(judged(sst="confirmed", yelp="not measurable"))
    assert found.word == "confirmed"
    assert "at hand: sst" in found.reason
    assert "not measurable: yelp" in found.reason
    nothing = over_all(judged(yelp="not measurable"))
    assert (nothing.word, nothing.reason) == ("not measurable", "because yelp")


def test_one_verdict_that_changes_is_not_hidden_by_one_refuted_both_times() -> None:
    good, bad = Estimate(1, 0.5, 2, 50, "t"), Estimate(-1, -2, -0.5, 50, "t")
    before, after = Parts(always=bad, changes=good), Parts(always=bad, changes=bad)
    assert judge(Unchanged(before, after), above(0)).word == "confirmed"
    assert judge(each_unchanged(before, after), above(0)).word == "refuted"
    missing = each_unchanged(before, Parts(always=bad, changes=NotMeasurable("no")))
    assert judge(missing, above(0)).word == "not measurable"


def test_a_check_sees_a_verdict_that_changes_beside_one_refuted_both_ways() -> None:
    low, high = (Estimate(v, v - 1, v + 1, 5, "t") for v in (-4.0, 4.0))
    before = {"tying uniform +": low, "mlm uniform +": high}
    same = judge(each_unchanged(before, dict(before)), below(0))
    assert same.word == "confirmed"
    turned = judge(each_unchanged(before, before | {"tying uniform +": high}), below(0))
    assert turned.word == "refuted"
    assert "tying" in turned.reason
    assert "mlm" not in turned.reason


@pytest.mark.parametrize(
    "side",
    [
        above(0),
        above(-3),
        below(0.05),
        at_least(1.6),
        at_most(1e-12),
        between(-0.6, -0.4),
        within(0.5),
        within(0),
        within(1.5, 47.5),
        within(0, 0.32),
        holding(0),
    ],
)
def test_a_side_is_read_from_the_text_that_a_person_writes(side: Side) -> None:
    assert sides_of(side.text) == side
    assert sides_of({"a part": side.text}) == {"a part": side}


def test_a_side_may_be_a_fraction_and_must_be_a_side() -> None:
    assert sides_of("< 1/3") == below(1 / 3)
    for text in ("about 3", "> 1 or 2", "0"):
        with pytest.raises(ValueError, match="got"):
            sides_of(text)
