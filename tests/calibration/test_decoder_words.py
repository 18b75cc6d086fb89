"""The borders of the word about answers: fitted, counted, and what is measured of decoders."""

from __future__ import annotations

import json
from pathlib import Path

import pandas as pd
import pytest

from heedful.audits.answer_measures import ATTENTION
from heedful.audits.answer_verdict import FIRST_BORDERS, AnswerBorders, Shares, shares_of
from heedful.audits.answers import summarise
from heedful.calibration.decoder_questions import known_questions
from heedful.calibration.decoder_truth import RightWord
from heedful.calibration.decoder_words import (
    MeasuredDecoder,
    decoder_once,
    fit_answer_borders,
    fitted_families,
    measure_decoder,
    score_decoders,
)
from heedful.calibration.known_decoders import known_decoder, programs
from heedful.importance.sources import CHOSEN
from heedful.jobs.one_answer import examined
from heedful.runs.atomic import write_json
from heedful.statistics.estimates import Estimate


def decoder(
    name: str, right: RightWord, attention: float, heads: float, family: str = "",
    is_near: bool = False, best: float = 3.0, depending: float = 1.0,
) -> MeasuredDecoder:  # fmt: skip
    def sure(value: float) -> Estimate:
        return Estimate(value, value - 0.05, value + 0.05, 40, "percentile")

    shares = Shares(
        {ATTENTION: sure(attention), CHOSEN: sure(heads)},
        {CHOSEN: sure(heads - attention)},
        best,
        depending,
    )
    return MeasuredDecoder(name, family or name, right, is_near, {}, shares)


KNOWN = [
    decoder("a", "attention as it is", 0.62, 0.9),
    decoder("b", "attention as it is", 0.9, 0.9),
    decoder("c", "these heads, so weighted", 0.3, 0.7),
    decoder("d", "no", 0.1, 0.52),
    decoder("e", "cannot tell", 0.9, 0.9, best=0.004),
    decoder("f", "no", 0.9, 0.9, depending=0.57),
    decoder("g", "cannot tell", 0.9, 0.9, depending=0.1),
]


def test_borders_are_those_with_the_fewest_wrong_words_nearest_to_the_first() -> None:
    at = fit_answer_borders(KNOWN)
    assert at == AnswerBorders(0.6, 0.5, 0.01, 0.6)
    assert score_decoders(KNOWN, at).wrong == ()
    assert {name for name, *_ in score_decoders(KNOWN, FIRST_BORDERS).wrong} == {
        "a",
        "c",
        "e",
        "f",
        "g",
    }
    # A family counts once, and what is a matter of a few questions not at all.
    many = [decoder(f"x{n}", "no", 0.62, 0.7, family="x", is_near=True) for n in range(20)]
    assert fit_answer_borders([*KNOWN, *many]) == at
    assert fit_answer_borders(KNOWN[1:2]) == FIRST_BORDERS


def test_naming_something_where_nothing_should_be_is_dear() -> None:
    some = [decoder(f"y{n}", "attention as it is", 0.7, 0.7) for n in range(5)]
    assert fit_answer_borders(some).share <= 0.7
    assert fit_answer_borders([*some, decoder("z", "no", 0.7, 0.7)]).share > 0.7


def test_a_score_counts_decoders_and_families_and_names_what_is_wrong() -> None:
    some = [
        decoder("a", "attention as it is", 0.9, 0.9, "one"),
        decoder("b", "no", 0.9, 0.9, "one", is_near=True),
        decoder("c", "no", 0.1, 0.1, "two"),
    ]
    found = score_decoders(some, FIRST_BORDERS)
    assert (found.right.value, found.right.n) == (pytest.approx(2 / 3), 3)
    assert (found.families.value, found.families.n) == (0.75, 2)
    assert found.too_kind == ("b",)
    assert found.wrong == (("b", "no", "attention as it is", True),)


def test_a_third_of_the_families_is_for_fitting() -> None:
    families = {one.family for one in programs().values()}
    assert fitted_families() < families
    assert len(fitted_families()) == round(len(families) / 3)


def test_what_is_measured_is_what_an_audit_measures(tmp_path: Path) -> None:
    name = "2 of eight look, others at a decoy"
    measured = measure_decoder(name, 0, 8)
    built = known_decoder(programs()[name])

    class Pieces:
        def free(self, prompt: object) -> object:
            return prompt

        def shown(self, pieces: object) -> list[str]:
            return []

    rows = [
        row
        for one in known_questions(built, 8, "audited")
        for row in examined(built.model, Pieces(), one.asked(), [], 4, 0)["rows"]  # type: ignore[arg-type]
    ]
    whole = shares_of(summarise(pd.DataFrame(rows)))
    told = MeasuredDecoder.from_json(decoder_once(name, tmp_path, 0, 8))
    for one in ("value", "low", "high", "n"):
        mine, theirs = (getattr(some.found[ATTENTION], one) for some in (told.shares, whole))
        assert mine == pytest.approx(theirs)
    assert told.shares.depending == whole.depending
    assert told.shares.best == pytest.approx(whole.best)
    assert told.shares.found[CHOSEN].value == pytest.approx(1)
    assert told.right == measured["right"] == "these heads, so weighted"
    write_json(tmp_path / "again.json", measured)
    stored = json.loads((tmp_path / "again.json").read_text("utf-8"))
    assert MeasuredDecoder.from_json(stored) == told
