"""The study of fine-tuned encoders: its steps, its ranking over seeds, and the smoke run."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from heedful.corpora import Encoded, load_prepared
from heedful.corpora.prepared import write_prepared
from heedful.jobs.strengths import Strength
from heedful.models.huggingface.starting import start_from
from heedful.reproduction.results import Results
from heedful.reproduction.study import Plan
from heedful.reproduction.view import View
from heedful.studies import reproduce, study_of
from heedful.studies.transformers import steps
from heedful.studies.transformers.evidence import kept_only
from heedful.studies.transformers.measures import _ranking, _worth, half_as_good
from heedful.studies.transformers.steps import audited, chosen, swept
from heedful.studies.transformers.study import STUDY


@pytest.fixture(scope="module")
def done(tmp_path_factory: pytest.TempPathFactory):
    out = tmp_path_factory.mktemp("study")
    return reproduce("transformers", seeds=1, out=out).studies[0]


@pytest.mark.slow
def test_the_smoke_run_makes_every_artifact_and_decides_every_claim(done) -> None:
    made = {"T1", "T2", "T3", "T4", "T5", "F1", "F2", "F3"}
    assert {record["id"] for record in done.artifacts} == made
    assert all(record["rows"] for record in done.artifacts)
    assert all((done.folder / f"{name}.svg").is_file() for name in ("F1", "F2"))
    assert {claim["id"] for claim in done.claims} == {f"HF-{k}" for k in range(5, 16)}
    assert not done.skipped
    table = pd.read_csv(done.folder / "T2.csv")
    assert list(table["model"]) == ["plain", "tied"]
    assert (table["accuracy"] > 0.6).all()
    ranked = pd.read_csv(done.folder / "T3.csv")
    assert "random" in set(ranked["method"])
    layers = pd.read_csv(done.folder / "F3.csv")
    assert list(layers["site"].unique()) == ["pooled", "layer:0", "layer:1", "all"]
    assert layers["changed by shuffled"].between(0, 1).all()
    again = pd.read_csv(done.folder / "T5.csv").set_index("method")["accuracy"]
    assert again["whole texts"] > again["random"] - 0.05


@pytest.mark.slow
def test_figures_are_drawn_without_the_models(done, tmp_path: Path) -> None:
    """What comes back from a GPU is rows: models and encoder stay there."""
    import shutil

    steps = tmp_path / "transformers" / "steps"
    shutil.copytree(
        done.folder / "steps", steps, ignore=shutil.ignore_patterns("model", "model.step.json")
    )
    drawn = reproduce("transformers", seeds=1, out=tmp_path, compute=False).studies[0]
    for name in ("T2", "T3", "F2"):
        again, first = (pd.read_csv(one.folder / f"{name}.csv") for one in (drawn, done))
        pd.testing.assert_frame_equal(again, first)


@pytest.mark.slow
def test_every_model_is_asked_about_the_same_documents(done) -> None:
    plan = study_of("transformers").plan("smoke", seeds=1)
    results = Results(done.folder / "steps", may_compute=False)
    plain, tied = (results[audited(plan, "planted", model, 0)] for model in ("plain", "tied"))
    for name in plain:
        assert set(plain[name]["instance"]) == set(tied[name]["instance"])
    everything = results[swept(plan, "planted", 0.0, 0)]["substitution"]
    assert set(plain["substitution"]["instance"]) < set(everything["instance"])


def test_the_strength_is_chosen_by_the_means_over_seeds(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from heedful.reproduction.results import Step

    plan = STUDY.plan("smoke", seeds=2)
    numbers = {  # F1, and what flattening and shuffling change: strength 3 costs too much
        (0.0, 0): (0.90, 0.0, 0.0), (0.0, 1): (0.88, 0.0, 0.0),
        (1.0, 0): (0.87, -0.3, -0.3), (1.0, 1): (0.91, -0.1, -0.1),
        (3.0, 0): (0.80, -0.4, -0.4), (3.0, 1): (0.86, -0.4, -0.4),
    }  # fmt: skip

    def step(plan: Plan, name: str, strength: float, seed: int) -> Step:
        found = Strength(strength, *numbers[strength, seed])
        return Step(f"{strength:g}/{seed}", lambda results: vars(found), {"seed": seed})

    monkeypatch.setitem(steps.STRENGTHS, "smoke", (1.0, 3.0))
    monkeypatch.setattr(steps, "weighed", step)
    rule = chosen(plan, "planted")
    assert Results(tmp_path)[rule] == {"strength": 1.0, "is_within": True}


@pytest.mark.slow
def test_faithfulness_over_seeds_is_the_mean_of_the_seeds(done) -> None:
    plan = study_of("transformers").plan("smoke", seeds=1)
    rows = Results(done.folder / "steps")[audited(plan, "planted", "plain", 0)]
    more = {name: table.copy() for name, table in rows.items()}
    more["input-erasure"]["comprehensiveness"] += 0.25
    one, both = _ranking([rows]), _ranking([rows, more])
    for place in one.places:
        other = both.of(place.method)
        assert other.faithfulness.value == pytest.approx(place.faithfulness.value + 0.125)
    worth = _worth(rows["input-erasure"]).groupby("method")["worth"].mean()
    assert np.isclose(worth["attention"], one.of("attention").faithfulness.value)


@pytest.mark.slow
def test_the_best_of_many_chance_orders_is_not_called_better_and_attention_may_win() -> None:
    """Half of what the best leads by, on documents that did not choose it."""
    plan = study_of("transformers").plan("smoke", seeds=2)
    noise = np.random.default_rng(0)

    def measured(attention: float, best: float):
        lead = {"attention": attention, "0": best}

        def table(seed: int) -> pd.DataFrame:
            rows = [
                {"instance": f"d{i}", "method": method, "share": 0.1, "mode": "removed", "units": 9,
                 "comprehensiveness": noise.normal() + lead.get(method, 0.0), "sufficiency": 0.0}
                for i in range(300) for method in ("attention", "random", *map(str, range(40)))
            ]  # fmt: skip
            return pd.DataFrame(rows)

        tables = {seed: {"input-erasure": table(seed)} for seed in plan.seeds}
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(View, "of", lambda view, step, model, seed: tables[seed])
            return half_as_good(View(Results(Path()), plan, "planted"), "plain")

    chance = measured(0.0, 0.0)
    assert chance.low < 0 < chance.high
    assert chance.n == 150
    assert measured(1.0, 4.0).value == pytest.approx(-1.0, abs=0.2)
    assert measured(3.0, 4.0).value == pytest.approx(1.0, abs=0.2)


def test_words_taken_out_leave_the_others_in_order_and_numbered_anew() -> None:
    ids = np.arange(7)
    encoded = Encoded(
        ids, np.array([0, 4, 7]), np.array([0, 1]), np.array([0, 1, 1, 2, 0, 1, 2]), ("a", "b")
    )
    kept = np.array([True, False, False, True, False, True, True])
    fewer = kept_only(encoded, kept)
    assert fewer.ids.tolist() == [0, 3, 5, 6]
    assert fewer.starts.tolist() == [0, 2, 4]
    assert fewer.sentence.tolist() == [0, 1, 0, 1]


@pytest.mark.slow
def test_pieces_of_a_tokenizer_are_kept_with_its_own_unknown(done, tmp_path: Path) -> None:
    plan = study_of("transformers").plan("smoke", seeds=1)
    results = Results(done.folder / "steps")
    from heedful.studies.transformers.steps import encoder, pieces

    kept = results[pieces(plan, "planted")]
    model = start_from(results[encoder(plan, "planted")], kept.classes).model
    fresh = model.encode(plan.source("planted").load(plan))
    for split, encoded in fresh.splits.items():
        assert np.array_equal(kept.splits[split].ids, encoded.ids)
        assert np.array_equal(kept.splits[split].sentence, encoded.sentence)
        assert kept.splits[split].unknown == encoded.unknown == model.subwords.unknown
    write_prepared(kept, tmp_path)
    assert load_prepared(tmp_path).fingerprint == fresh.fingerprint


def test_without_the_encoder_the_way_to_get_it_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("HEEDFUL_ENCODERS", raising=False)
    found = reproduce("transformers", scale="paper", only=["T1"], out=tmp_path, figures=False)
    assert "benchmarks.minilm" in next(iter(found.studies[0].skipped.values()))
