"""Calibration at its quick scale, and the arithmetic behind its tables."""

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pandas as pd
import pytest

from heedful.calibration.borders import Measured, fit, score, verdict_of
from heedful.calibration.calibrate import Calibrated, calibrate
from heedful.calibration.coverage import comparisons, coverage
from heedful.calibration.discrimination import ordered_rightly, telling
from heedful.calibration.grids import SCALES, settings
from heedful.calibration.headlines import MEASURES
from heedful.errors import InputError
from heedful.statistics.estimates import Estimate


@pytest.fixture(scope="module")
def quick(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Calibrated]:
    with pytest.MonkeyPatch.context() as patch:
        # Intervals are simulated 250 times below; here only their table is wanted.
        patch.setitem(SCALES, "quick", replace(SCALES["quick"], simulations=20))
        yield calibrate(tmp_path_factory.mktemp("calibration"), scale="quick", device="cpu")


@pytest.mark.slow
def test_the_quick_verdict_is_right_on_models_it_was_not_fitted_to(quick: Calibrated) -> None:
    assert quick.score.of >= 30
    assert quick.score.share >= 0.95, quick.score.wrong
    assert quick.score.false_yes == 0


@pytest.mark.slow
def test_every_table_and_the_picture_are_there(quick: Calibrated) -> None:
    tables = ("confusion", "fit_confusion", "transformers", "audits", "documents", "models",
              "coverage", "comparisons", "wrong")  # fmt: skip
    for name in tables:
        assert (quick.folder / f"{name}.csv").is_file()
    audits = pd.read_csv(quick.folder / "audits.csv")
    assert list(audits["key"]) == 2 * list(MEASURES)
    assert ElementTree.parse(quick.folder / "dial.svg").getroot().tag.endswith("svg")
    stored = json.loads((quick.folder / "calibration.json").read_text("utf-8"))
    assert stored["borders"] == quick.to_json()["borders"]
    assert stored["provenance"]["command"] == "heedful calibrate --scale quick"


def audits_of(quick: Calibrated, family: str) -> pd.DataFrame:
    audits = pd.read_csv(quick.folder / "audits.csv")
    return audits[audits["family"] == family].set_index("key")


@pytest.mark.slow
def test_what_each_audit_cannot_see_is_said(quick: Calibrated) -> None:
    passes = audits_of(quick, "flat and hierarchical")["calls yes"].str.split(", ")
    assert {"decoyed", "relayed", "rationalised"} <= set(passes["reliance"])
    assert {"decoyed", "nudged"} <= set(passes["efficiency"])
    assert {"leaked", "rationalised"} <= set(passes["told"])
    assert not {"decoyed", "relayed", "nudged", "hidden"} & set(passes["told"])
    assert "rationalised" not in passes["deletion"]


@pytest.mark.slow
def test_transformers_are_judged_and_audits_that_refuse_them_are_named(quick: Calibrated) -> None:
    rows = pd.read_csv(quick.folder / "transformers.csv")
    words = dict(zip(rows["construction"].str.partition(" ")[0], rows["right word"], strict=True))
    asked = SCALES["quick"].of_transformers
    assert words == {name: "yes" if name == "reason" else "no" for name in asked}
    refused = audits_of(quick, "Transformers")["calls yes"] == "refuses"
    assert set(refused[refused].index) == {"efficiency", "mass", "adversary"}


@pytest.mark.slow
def test_reliance_is_monotone_along_both_dials(quick: Calibrated) -> None:
    audits = audits_of(quick, "flat and hierarchical")
    for dial in ("leak", "crowd"):
        assert audits.loc["reliance", f"rises on {dial}"] == 1
        assert audits.loc["reliance", f"follows {dial}"] == pytest.approx(1)


@pytest.mark.slow
def test_a_second_call_audits_nothing_again(quick: Calibrated) -> None:
    records = sorted((quick.folder / "work").rglob("*.step.json"))
    before = [record.stat().st_mtime_ns for record in records]
    again = calibrate(quick.folder, scale="quick", device="cpu")
    assert [record.stat().st_mtime_ns for record in records] == before
    assert again.score == quick.score


def test_halves_share_no_encoder_and_no_corpus_family() -> None:
    for scale in SCALES.values():
        seen = {
            half: {(s.encoder, s.family) for s in settings(scale, half, scale.seeds)}
            for half in ("fit", "test")
        }
        assert not {e for e, _ in seen["fit"]} & {e for e, _ in seen["test"]}
        assert not {f for _, f in seen["fit"]} & {f for _, f in seen["test"]}
        names = [s.name for half in seen for s in settings(scale, half, scale.seeds)]
        assert len(names) == len(set(names))


def test_an_unknown_scale_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="scale"):
        calibrate(tmp_path, scale="huge")


def model(kind: str, word: str, value: float, told: float = 1.0, apart: str = "") -> Measured:
    numbers = {"reliance": value, "told": told, "deletion": 0.1}
    estimates = {k: Estimate(v, v - 0.02, v + 0.02, 200, "bca") for k, v in numbers.items()}
    name = f"{kind} {word} {value} {told}"
    return Measured(name, kind, kind, "fit", word, value, apart, 2, 1.0, 0.5, estimates)


@pytest.mark.slow
def test_borders_lie_in_the_middle_between_models() -> None:
    models = [model("dial", "no", r) for r in (0.0, 0.1, 0.2)]
    models += [model("dial", "partly", r) for r in (0.4, 0.6)]
    models += [model("dial", "yes", r) for r in (0.8, 1.0)]
    models += [model("deceiving", "no", 1.0, told) for told in (0.0, 0.1)]
    models += [model("dial", "no", 0.7, apart="near a border")]
    fitted = fit(models)
    # Contradicting ends above 0.22 and by 0.42, supporting starts from 0.58 and below 0.78.
    assert fitted["reliance"]["contradicts"] == pytest.approx(0.32, abs=0.011)
    assert fitted["reliance"]["supports"] == pytest.approx(0.68, abs=0.011)
    assert 0.12 < fitted["told"]["contradicts"] <= fitted["told"]["supports"] < 0.98
    found = score(models, fitted)
    assert (found.right, found.of, found.false_yes) == (9, 9, 0)
    assert found.rows[-1] == ("dial (dial), near a border", "either", 1, 0, 1, 0, 0)


@pytest.mark.slow
def test_a_false_yes_weighs_more_than_several_other_mistakes() -> None:
    models = [model("deceiving", "no", 0.9, 0.5)]
    models += [model("reason", "yes", 0.9, told) for told in (0.41, 0.42, 0.43, 0.9)]
    found = score(models, fit(models))
    assert found.false_yes == 0
    assert verdict_of(models[-1], fit(models)) == "yes"


def test_ordering_counts_pairs_and_halves_ties() -> None:
    assert ordered_rightly([1.0, 2.0], [1.0, 0.0]) == 3.5 / 4
    assert np.isnan(ordered_rightly([], [1.0]))
    table = telling(
        [model("reason", "yes", 0.9), model("deceiving", "no", 0.9, 0.0)],
        {"told": MEASURES["told"]},
    )
    assert table.loc[0, "reason above deceiving"] == 1
    assert table.loc[0, "calls yes"] == "none"


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
