"""Calibration at its quick scale, and the arithmetic behind its borders."""

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from heedful.audits.answer_verdict import answer_borders
from heedful.audits.verdict import Word, borders, calibration
from heedful.calibration.borders import Measured, fit, observations, score
from heedful.calibration.calibrate import SCALES, Calibrated, calibrate
from heedful.calibration.coverage import comparisons, coverage
from heedful.calibration.mechanisms import MECHANISMS
from heedful.errors import InputError
from heedful.statistics.estimates import Estimate
from tests.schemas import conforms


@pytest.fixture(scope="module")
def quick(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Calibrated]:
    with pytest.MonkeyPatch.context() as patch:
        # Intervals are simulated 250 times below; here only their table is wanted.
        patch.setitem(SCALES, "quick", replace(SCALES["quick"], simulations=20))
        yield calibrate(tmp_path_factory.mktemp("calibration"), scale="quick")


@pytest.mark.slow
def test_the_frozen_rule_is_right_on_a_few_mechanisms(quick: Calibrated) -> None:
    assert quick.mechanisms >= 10
    part = quick.scores["open"]
    assert part.right.value >= 0.8, part.wrong
    assert part.deceivers_called_yes == ()
    assert set(quick.scores) == {one.part for one in MECHANISMS.values()}
    stored = calibration()
    assert stored is not None
    assert {s: b["value"] for s, b in quick.borders.items()} == borders(stored)


@pytest.mark.slow
def test_every_table_is_there_and_a_second_call_measures_nothing(
    quick: Calibrated, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = pd.read_csv(quick.folder / "mechanisms.csv")
    assert len(table) == quick.mechanisms
    for name in ("coverage", "comparisons"):
        assert (quick.folder / f"{name}.csv").is_file()
    stored = json.loads((quick.folder / "calibration.json").read_text("utf-8"))
    decoders = pd.read_csv(quick.folder / "decoders.csv")
    for part, one in quick.answers.scores.items():
        some = decoders[decoders["part"] == part]
        right = some["right word"].str.removesuffix(" (near)") == some["word"]
        assert one.right.n == len(some) > 0
        assert one.right.value == pytest.approx(right.mean())
        assert one.right.value >= 0.7, one.wrong
        assert stored["answers"][part]["wrong"] == [list(wrong) for wrong in one.wrong]
    assert stored["answers"]["borders"] == answer_borders()._asdict()
    assert stored["provenance"]["command"] == "heedful calibrate --scale quick"
    assert sum(row[2] for row in stored["table"]["rows"]) == quick.mechanisms

    def never(*given: object, **named: object) -> dict[str, object]:
        raise AssertionError("measured again")

    monkeypatch.setattr("heedful.calibration.calibrate.measure", never)
    monkeypatch.setitem(SCALES, "quick", replace(SCALES["quick"], simulations=20))
    again = calibrate(quick.folder, scale="quick")
    assert replace(again, seconds=0) == replace(quick, seconds=0)
    conforms("calibrate", quick)


def measured(
    name: str,
    word: Word,
    share: float,
    dial: str = "",
    is_near: bool = False,
    is_overturned: bool = False,
) -> Measured:
    estimate = Estimate(share, share, share, 100, "percentile")
    truth = {"both": 0.0, "pointing": 0.0, "mediation": 0.0}
    return Measured(
        name=name,
        kind="k",
        part="open",
        dial=dial,
        word=word,
        is_near=is_near,
        is_deceiver=word == "no",
        truth=truth,
        share=estimate,
        is_overturned=is_overturned,
        tests={},
        accuracy=1.0,
        reader=None,
        passes=3.0,
    )


def test_borders_lie_between_the_words_and_dials_are_one_observation() -> None:
    some = [
        *(measured(f"n{i}", "no", 0.1) for i in range(4)),
        *(measured(f"p{i}", "partly", 0.5) for i in range(4)),
        *(measured(f"y{i}", "yes", 0.9) for i in range(4)),
    ]
    found = fit(some)
    assert found["no"]["value"] == pytest.approx(0.3, abs=0.01)
    assert found["yes"]["value"] == pytest.approx(0.7, abs=0.01)
    assert found["no"]["low"] <= found["no"]["value"] <= found["no"]["high"]
    # Ten wrong steps of one dial weigh as much as one mechanism.
    dial = [measured(f"d{i}", "yes", 0.2, dial="d") for i in range(10)]
    assert fit(some + dial)["yes"]["value"] == pytest.approx(0.7, abs=0.05)
    assert len(observations(some + dial)) == 13
    near = [measured(f"x{i}", "yes", 0.0, is_near=True) for i in range(9)]
    assert fit(some + near) == found


def test_a_score_counts_over_observations_and_names_what_is_wrong() -> None:
    at = {"no": 0.25, "yes": 0.75}
    some = [measured("a", "yes", 0.8), measured("b", "no", 0.9), measured("c", "no", np.nan)]
    some += [measured("d1", "no", 0.1, "d"), measured("d2", "partly", 0.1, "d")]
    found = score(some, at)
    assert found.right.value == pytest.approx((1 + 0 + 0 + 0.5) / 4)
    assert found.deceivers_called_yes == ("b",)
    assert found.wrong == (
        ("b", "no", "yes"),
        ("c", "no", "cannot tell"),
        ("d2", "partly", "no"),
    )


def test_cannot_tell_is_right_where_that_is_the_answer() -> None:
    at = {"no": 0.25, "yes": 0.75}
    noticed = measured("a", "cannot tell", 0.9, is_overturned=True)
    missed = measured("b", "cannot tell", 0.9)
    found = score([noticed, missed, measured("c", "no", 0.1, is_overturned=True)], at)
    assert found.right.value == pytest.approx(2 / 3)
    assert found.deceivers_called_yes == ("b",)


def test_an_unknown_scale_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"scale 'medium'; known: full, quick"):
        calibrate(tmp_path, scale="medium")


def test_no_processes_are_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"--jobs must be at least 1, got 0"):
        calibrate(tmp_path, jobs=0)


@pytest.mark.slow
def test_intervals_hold_the_truth_and_comparisons_rarely_cry_wolf() -> None:
    rows = pd.DataFrame(coverage(250, sizes=(100, 200)))
    # 250 simulations: ± 4 points around 95 % is three standard errors; rare events hold more.
    is_rare = rows["interval"] == "gamma"
    assert rows["coverage"].between(0.91, is_rare.map({True: 1.0, False: 0.99})).all(), rows
    found = pd.DataFrame(comparisons(150, sizes=(50, 200))).set_index(["difference", "n"])
    assert (found.loc[0.0, ["interval", "exact test"]] <= 0.12).all().all()
    for test in ("interval", "exact test"):
        power = found[test]
        assert power[0.2, 200] > 0.99
        assert power[0.0, 200] < power[0.05, 200] < power[0.1, 200] <= power[0.2, 200]
