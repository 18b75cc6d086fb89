"""The polarity study: complete as data, and whole on a tiny plan."""

import json
from pathlib import Path

import pandas as pd
import pytest

from heedful.reproduction.ledger import holding
from heedful.reproduction.reproduce import reproduce_study
from heedful.reproduction.request import StudyRequest
from heedful.statistics import Estimate
from heedful.studies.polarity import corpora, steps
from heedful.studies.polarity import printed as paper
from heedful.studies.polarity.figures import _weight_boxes
from heedful.studies.polarity.study import OPPOSED, STUDY


def test_every_item_and_claim_of_the_specification_is_there() -> None:
    wanted = {f"POL-{n}" for n in range(1, 22)} | {f"POL-A{n}" for n in range(1, 5)}
    assert {claim.id for claim in STUDY.claims} == wanted
    figures = {f"S-F{n}" for n in range(1, 29)} - {"S-F26", "S-F27"}  # 25 shows all three
    main = {"M-T1", "M-T2", "M-F2", "M-F3", "M-F3c", "M-F4", "M-F5", "M-X", "S-T1", "N-1"}
    ours = {f"X-{n}" for n in range(1, 7)}  # terms, L2, Adam, V·W at each λ, splits, starts
    assert figures | main | ours <= {artifact.id for artifact in STUDY.artifacts}


def test_the_papers_112_accuracies_are_those_of_its_table() -> None:
    table = paper.accuracies()
    assert len(table) == 112
    assert not table["accuracy"].isna().any()
    best = table[(table["corpus"] == "sst") & (table["model"] == "dp")]["accuracy"].max()
    assert best == 82.2
    worst = table.loc[table["accuracy"].idxmin()]
    assert tuple(worst[["corpus", "model", "λ"]]) == ("20news-2", "dp", "0.001")


def test_a_side_may_ask_that_the_interval_holds_a_value() -> None:
    assert holding(0).judge(Estimate(0.1, -0.1, 0.3, 5, "t")) == "confirmed"
    assert holding(0).judge(Estimate(0.2, 0.1, 0.3, 5, "t")) == "refuted"
    nan = float("nan")
    assert holding(0).judge(Estimate(0.2, nan, nan, 1, "t")) == "undecided"


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The whole study with two seeds, tiny sets and one epoch."""
    patch = pytest.MonkeyPatch()
    patch.setattr(corpora, "TINY", {"instances": 200, "neutral": 30, "polar": 6})
    patch.setitem(corpora.PLANTED, "train", 200)
    patch.setitem(corpora.PLANTED, "test", 60)
    out = tmp_path_factory.mktemp("polarity")
    try:
        result = reproduce_study(STUDY, StudyRequest(seeds=2, out=out))
    finally:
        patch.undo()
    assert not result.skipped
    return result.folder


@pytest.mark.slow
def test_the_whole_study_is_made_at_smoke_scale(made: Path) -> None:
    for artifact in STUDY.artifacts:
        record = json.loads((made / f"{artifact.id}.json").read_text())
        assert record["rows"] > 0, artifact.id
        assert (made / f"{artifact.id}.svg").is_file(), artifact.id
        assert not record["missing"], artifact.id
    assert (made / "index.html").is_file()


@pytest.mark.slow
def test_every_claim_has_a_verdict_with_its_numbers(made: Path) -> None:
    claims = json.loads((made / "claims.json").read_text())
    assert {claim["id"] for claim in claims} == {claim.id for claim in STUDY.claims}
    for claim in claims:
        assert claim["verdict"] in ("confirmed", "refuted", "undecided", "not measurable")
        assert claim["seeds"] == 2
    exact = [c for c in claims if c["id"] == "POL-A4"]
    assert {c["verdict"] for c in exact} == {"confirmed"}


@pytest.mark.slow
def test_the_grid_has_a_cell_for_every_model_and_scale(made: Path) -> None:
    table = pd.read_csv(made / "M-T2.csv", dtype={"λ": str})
    assert len(table) == 2 * 4 * 7
    assert table["accuracy"].between(0, 100).all()
    shown = pd.read_csv(made / "M-T2.shown.csv")
    assert list(shown.columns) == ["corpus", "λ", "DP", "DP-L", "DP-A", "AD"]


@pytest.mark.slow
def test_the_strength_of_the_grid_is_not_trained_again(made: Path) -> None:
    table = pd.read_csv(made / "X-2.csv", dtype={"L2": str})
    assert list(table["L2"]) == ["1e-05", "0.0001", "0.001"] * 3
    grid = pd.read_csv(made / "M-T2.csv", dtype={"λ": str}).set_index(["corpus", "model", "λ"])
    for model, title in (("dp-l", "DP-L"), ("dp-a", "DP-A"), ("ad", "AD")):
        same = table[(table["model"] == title) & (table["L2"] == "0.001")]["accuracy"].item()
        assert same == pytest.approx(grid.loc[("planted", model, "10"), "accuracy"])
        assert not list(made.glob(f"steps/planted/{model},l2=0.001*"))


@pytest.mark.slow
def test_adam_is_another_training_of_the_same_models(made: Path) -> None:
    table = pd.read_csv(made / "X-3.csv").set_index("optimiser")
    assert list(table.index) == ["adagrad", "adam"]
    assert (
        table.loc["adam", "neutral over class words"]
        != table.loc["adagrad", "neutral over class words"]
    )
    assert table["right signs"].between(0, 1).all()


@pytest.mark.slow
def test_every_made_up_word_is_shown_with_the_class_it_was_made_for(made: Path) -> None:
    table = pd.read_csv(made / "S-F3.csv")
    kinds = table.groupby("panel")["class"].value_counts()
    for panel in ("data1", "data2"):
        assert kinds[panel].to_dict() == {"neutral": 30, "positive": 6, "negative": 6}
        assert sorted(table[table["panel"] == panel]["token index"]) == list(range(42))


@pytest.mark.slow
def test_axes_have_the_epochs_of_the_papers_own_rate(made: Path) -> None:
    ends = {name: pd.read_csv(made / f"{name}.csv")["epoch"].max() for name in ("S-F1", "S-F5")}
    assert ends["S-F1"] == pytest.approx(16 * 0.1 / 0.015)  # 75 epochs would be 500
    assert ends["S-F5"] == pytest.approx(16 * 0.1 / 0.25)  # and 30
    assert set(pd.read_csv(made / "S-F1.csv")["quantity"]) == set(OPPOSED)


@pytest.mark.slow
def test_ratios_are_compared_with_the_balanced_set_of_the_same_start(made: Path) -> None:
    whole = pd.read_csv(made / "S-F7.csv")
    assert whole.groupby("series").size().to_dict() == dict.fromkeys(whole["series"], 5)
    assert whole["series"].nunique() == 4  # two optimisers, two starts of W
    for _, rows in whole.groupby("series"):
        table = rows.set_index("ratio")
        assert pd.isna(table.loc["1:1", "minus 1:1"])
        moved = (table["V·W"] - table.loc["1:1", "V·W"]).drop("1:1")
        assert moved.to_numpy() == pytest.approx(table["minus 1:1"].drop("1:1").to_numpy())


@pytest.mark.slow
def test_splits_and_starts_are_drawn_again(made: Path) -> None:
    splits = pd.read_csv(made / "X-5.csv", dtype={"λ": str})
    assert len(splits) == 4 * len(steps.LARGE_SCALES)
    assert (splits["redrawn n"] == 2).all()
    assert (splits["redrawn"] != splits["our split"]).any()
    starts = pd.read_csv(made / "X-6.csv")
    assert list(starts["start"]) == list(steps.STARTS) * 2
    released = starts.set_index(["corpus", "start"]).loc[("planted", "U(-0.1, 0.1)"), "accuracy"]
    grid = pd.read_csv(made / "M-T2.csv", dtype={"λ": str}).set_index(["corpus", "model", "λ"])
    # The released start is the grid's own training.
    assert released == pytest.approx(grid.loc[("planted", "dp", "0.001"), "accuracy"])


@pytest.mark.slow
def test_every_seed_has_its_own_order_of_batches(made: Path) -> None:
    records = list(made.glob("steps/*/*/*/*.step.json"))
    assert len(records) > 50
    for record in records:
        inputs = json.loads(record.read_text())["inputs"]["inputs"]
        assert inputs["train"]["order_seed"] is None
        assert {member["seed"] for member in inputs["members"]} == {int(record.parent.name)}


@pytest.mark.slow
def test_intervals_stay_inside_the_range_of_their_number(made: Path) -> None:
    for name, bounds in {"X-2": (0, 1), "X-4": (-1, 1)}.items():
        table = pd.read_csv(made / f"{name}.csv")
        kinds = ("AUC", "right signs") if name == "X-2" else ("rank correlation",)
        columns = [c for c in table if c.startswith(kinds) and c.endswith(("low", "high"))]
        assert columns
        assert table[columns].stack().dropna().between(*bounds).all()
    accuracy = pd.read_csv(made / "X-6.csv")[["accuracy low", "accuracy high"]]
    assert accuracy.stack().dropna().between(0, 100).all()


@pytest.mark.slow
def test_weights_beyond_the_whiskers_are_named(made: Path) -> None:
    table = pd.read_csv(made / "M-F5.csv")
    boxes = table[table["n"].notna()].set_index("class")
    beyond = table[table["outlier"].notna()]
    assert list(boxes.index) == ["positive", "negative", "neutral"]
    assert len(beyond)
    for row in beyond.to_dict("records"):
        low, high = boxes.loc[row["class"], ["low", "high"]]
        assert not low <= row["outlier"] <= high
        assert row["word"]
    drawn = _weight_boxes(table).axes[0].get_lines()[-1]
    assert len(beyond) == 0 or len(drawn.get_xdata()) == len(beyond)
