"""The faithful study: every item is declared, and a tiny run makes them all."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from heedful.reproduction.ledger import NotMeasurable
from heedful.reproduction.results import Results
from heedful.reproduction.view import View, Views
from heedful.statistics import Estimate, over_seeds
from heedful.studies import reproduce
from heedful.studies.faithful import figures, measures, models, printed
from heedful.studies.faithful import tables as faithful_tables
from heedful.studies.faithful.examination import Measuring
from heedful.studies.faithful.models import Setting
from heedful.studies.faithful.steps import crew_of, measured, measuring
from heedful.studies.faithful.study import STUDY

ARTIFACTS = {*(f"T{i}" for i in range(1, 7)), *(f"F{i}" for i in range(1, 8)),
             *(f"X{i}" for i in range(1, 11))}  # fmt: skip
CLAIMS = {*(f"FAI-{i}" for i in range(1, 20)), *(f"FAI-A{i}" for i in range(1, 9))}


def test_every_item_of_the_checklist_is_declared() -> None:
    assert {one.id for one in STUDY.artifacts} == ARTIFACTS
    assert {one.id for one in STUDY.claims} == CLAIMS


def test_whatever_is_asked_of_a_model_is_asked_of_every_seed() -> None:
    plan = STUDY.plan("paper", [source.name for source in STUDY.sources])
    for part in STUDY.parts:
        for corpus in plan.only(part.corpora).corpora:
            seeds: dict[str, set[int]] = {}
            for step in part.needs(plan, corpus):
                if step.name.endswith("/adversaries"):
                    assert set(step.inputs["seeds"]) == set(range(5))
                elif "seed" in step.inputs:
                    model = f"{step.inputs['setting']} {step.name.rpartition('/')[2]}"
                    seeds.setdefault(model, set()).add(step.inputs["seed"])
            assert all(found == set(range(5)) for found in seeds.values()), (part.id, corpus)


def test_the_papers_tables_are_whole() -> None:
    assert len(printed.SCORES) == 10 * 4
    assert len(printed.DEPTH) == 12 * 4
    assert len(printed.INFORMATION) == len(printed.CONFIDENCE) == 10 * 4
    tying = printed.SCORES.query("model == 'tying'")
    base = printed.SCORES.query("model == 'base'")
    # The means that section 8 of the specification gives.
    assert tying["uniform"].mean() == pytest.approx(-33.6, abs=0.06)
    assert base["permuted"].mean() == pytest.approx(-14.3, abs=0.06)


def test_settings_have_names_and_recipes_of_their_own() -> None:
    settings = [
        Setting(), Setting(attention="•"), Setting("tying", strength=10.0),
        Setting("tying", strength=0.1, over="sum"), Setting("mlm", strength=1.0),
        Setting("mlm", strength=1.0, over="words"), Setting(is_frozen=True),
        Setting(is_random=True), Setting(attention="•", query="default"),
        Setting(attention="•", query="instance"), Setting(layers=3), Setting("concat"),
        Setting("residual"),
    ]  # fmt: skip
    assert len({one.name for one in settings}) == len(settings)
    for one in settings:
        recipe = one.recipe(8)
        assert recipe.model.width == recipe.model.embedding_dim == 8
        assert recipe.model.one_logit
        assert recipe.model.marks
    assert Setting("mlm", strength=1.0).recipe(8).model.freeze_embeddings
    assert not Setting(attention="•", query="default").recipe(8).model.normal_query
    assert Setting("tying", strength=0.1, over="sum").recipe(8).penalties.tying_over == "sum"


def test_a_step_keeps_its_name_and_key_on_a_machine_without_the_data() -> None:
    here = STUDY.plan("paper", data_root=Path(__file__).parent)
    there = STUDY.plan("paper")
    one, two = (measured(plan, "sst", Setting(), 0) for plan in (here, there))
    assert (one.name, one.key) == (two.name, two.key)


def test_dear_measures_are_taken_where_a_table_asks_for_them() -> None:
    plan = STUDY.plan("paper")
    assert measuring(plan, "sst", Setting(), 0).clusterings == 3
    assert measuring(plan, "sst", Setting("tying"), 3).types == 1_000
    assert measuring(plan, "sst", Setting("tying", strength=3.0), 1).types == 0
    assert measuring(plan, "sst", Setting(layers=2), 0).types == 0
    assert measuring(plan, "evidence", Setting(), 0).types == 0  # has fewer words than asked for
    assert not measuring(plan, "sst", Setting(attention="•"), 0).erasure


@pytest.fixture
def tiny(monkeypatch: pytest.MonkeyPatch) -> None:
    small = models.SCALES["smoke"]
    sizes = replace(
        small,
        dim=6,
        train=replace(small.train, epochs=1),
        imitation=replace(small.imitation, epochs=1),
        measuring=Measuring(draws=4, types=10, pairs=200),
        planted={"train": 48, "dev": 24, "test": 24},
        adversary=(0.0, 0.3),
    )
    monkeypatch.setitem(models.SCALES, "smoke", sizes)
    monkeypatch.setattr(measures, "FEW", 2)


@pytest.mark.slow
@pytest.mark.usefixtures("tiny")
def test_a_tiny_run_makes_every_table_figure_and_claim(tmp_path: Path) -> None:
    found = reproduce("faithful", out=tmp_path, seeds=1).studies[0]
    folder = tmp_path / "faithful"
    for id in ARTIFACTS - {"X4"}:
        assert len(pd.read_csv(folder / f"{id}.csv")), id
        assert "<svg" in (folder / f"{id}.svg").read_text(), id
    missing = json.loads((folder / "X4.json").read_text())["missing"]
    assert "mimic/diabetes.csv" in missing["diabetes"]
    claims = {(one["id"], one["corpus"]): one for one in found.claims}
    assert {id for id, _ in claims} == CLAIMS
    absent = [one for one in found.claims if one["corpus"] == "planted" and one["id"] != "FAI-7"]
    assert len(absent) == 26
    for one in absent:
        assert one["verdict"] != "not measurable", (one["id"], one["reason"])
    assert claims["FAI-7", "diabetes"]["verdict"] == "not measurable"
    scores = pd.read_csv(folder / "T1.csv").query("corpus == 'planted'")
    assert list(scores["model"]) == 2 * ["base", "concat", "tying", "mlm"]
    shown = pd.read_csv(folder / "T1.shown.csv").columns
    assert set(faithful_tables.SHOWN) < set(shown)
    assert "permuted: F1 of class 0" in shown
    flat = {score: faithful_tables.column("uniform", score) for score in faithful_tables.SCORES}
    for changes in (dict.fromkeys(flat, 0), {s: scores[name] for s, name in flat.items()}):
        # Accuracy is the mediant of the classes' F1, so it lies between them.
        both = pd.concat([scores[s] + changes[s] for s in ("f1", "F1 of class 0")], axis=1)
        accuracy = scores["accuracy"] + changes["accuracy"]
        assert accuracy.between(both.min(axis=1) - 1e-6, both.max(axis=1) + 1e-6).all()
    assert "Deviations from the paper" in (folder / "index.html").read_text()
    again = reproduce("faithful", out=tmp_path, seeds=1, compute=False).studies[0]
    assert again.claims == found.claims


def test_notes_that_few_have_are_asked_for_where_nothing_is_computed(tmp_path: Path) -> None:
    asked = {"scale": "paper", "corpora": ["diabetes"], "only": ["X4", "FAI-7"]}
    found = reproduce("faithful", out=tmp_path, compute=False, **asked).studies[0]
    assert [one["verdict"] for one in found.claims] == ["not measurable"]
    assert "mimic/diabetes.csv" in found.claims[0]["reason"]
    missing = json.loads((tmp_path / "faithful" / "X4.json").read_text())["missing"]
    assert "only credentialed users have" in missing["diabetes"]


def test_orderings_are_counted_over_runs_with_a_sign_test(monkeypatch: pytest.MonkeyPatch) -> None:
    drops = {"base": [-1.0, -2.0, -3.0], "tying": [-9.0, -8.0, -7.0], "mlm": [-1.0, 0.0, -3.5]}
    monkeypatch.setattr(faithful_tables, "per_seed", lambda view, asked, name: drops[asked.variant])
    cells = [(corpus, attention, model) for corpus in ("sst", "ag") for attention in "+•"
             for model in drops]  # fmt: skip
    ours = pd.DataFrame(cells, columns=["corpus", "attention", "model"])
    views = Views(Results(Path()), STUDY.plan("smoke"))
    said = faithful_tables._sign_test(views, ours, tuple(drops))
    # Two corpora, two attentions, three seeds; mlm ties in a third of them, which do not count.
    assert f"tying in 12 of 12 runs, p = {2 * 0.5**12:.2g}" in said
    assert "mlm in 4 of 8 runs, p = 1" in said
    some = ours[:-1]  # mlm is not there on one corpus with one attention
    said = faithful_tables._sign_test(views, some, tuple(drops))
    assert "tying in 12 of 12 runs" in said
    assert "mlm in 3 of 6 runs" in said


def test_leaks_are_judged_training_by_training(monkeypatch: pytest.MonkeyPatch) -> None:
    names = [str(place) for place in range(200)]
    sure = np.linspace(0.5, 1, 200)

    def table(confidence: np.ndarray, probability: np.ndarray) -> pd.DataFrame:
        columns = {"instance": names, "confidence": confidence, "probability": probability}
        return pd.DataFrame(columns)

    # Two trainings, one of which leaks the more the surer it is, the other the less.
    leaks = {0: sure, 1: -sure}
    tables = {
        "base": [table(leaks[seed], sure) for seed in leaks],
        "tying": [table(np.zeros(200), sure) for _ in leaks],
    }
    monkeypatch.setattr(measures, "instances", lambda view, asked: tables[asked.variant])
    view = View(Results(Path()), STUDY.plan("smoke"), "sst")
    found = measures.leaks_when_sure(view)
    spearman, unsure = found["Spearman"], found["unsure"]
    assert isinstance(spearman, Estimate)
    assert abs(spearman.value) < 1e-12
    # The mean over documents has no spread at all, its trainings have all there can be.
    assert (spearman.low, spearman.high) == (-1, 1)
    assert isinstance(unsure, Estimate)
    assert unsure.n == 40  # documents below 0.6, in either training
    monkeypatch.setattr(measures, "FEW", 81)
    few = measures.leaks_when_sure(view)["unsure"]
    assert isinstance(few, NotMeasurable)
    assert "80 decisions only" in few.reason


def test_an_adversary_is_dearer_by_the_height_of_its_curve_at_each_seed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    lifts = {0: 0.1, 1: 0.3, 2: 0.2}  # how far mlm's curve lies above base's, TVD = JSD

    def documents(seed: int, jsd: float, tvd: float) -> pd.DataFrame:
        apart = np.array([-0.05, 0.05])  # two documents, of which only the mean counts
        return pd.DataFrame(
            {"jsd": jsd + apart, "tvd": tvd - apart, "decision": [0, 1], "label": [0, 1],
             "seed": seed}
        )  # fmt: skip

    def table(order: tuple[int, ...], jsd: float, lift: dict[int, float]) -> pd.DataFrame:
        return pd.concat([documents(s, jsd + s / 10, jsd + s / 10 + lift[s]) for s in order])

    level = dict.fromkeys(lifts, 0.0)
    tables = {
        "base": {"0": table((0, 1, 2), 0.1, level), "0.3": table((2, 0, 1), 0.4, level)},
        "mlm": {"0": table((1, 2, 0), 0.2, lifts), "0.3": table((0, 2, 1), 0.5, lifts)},
    }
    monkeypatch.setattr(figures, "imitated", lambda *asked: asked[2])
    monkeypatch.setattr(figures, "adversaries", lambda *asked: [0.0, 0.3])
    view = View(tables, STUDY.plan("smoke"), "sst")  # type: ignore[arg-type]
    found = measures.gap(view, "mlm")
    expected = over_seeds(list(lifts.values()))
    assert found.value == pytest.approx(expected.value)
    assert (found.low, found.high) == pytest.approx((expected.low, expected.high))
    tables["mlm"] = {"0": table((0, 1, 2), 2.0, lifts), "0.3": table((0, 1, 2), 3.0, lifts)}
    nowhere = measures.gap(view, "mlm")
    assert (nowhere.n, nowhere.undefined) == (0, 3)


@pytest.mark.parametrize("scale", ["smoke", "paper"])
def test_every_model_that_is_measured_is_trained_in_some_crew(scale: str) -> None:
    every = [source.name for source in STUDY.sources]
    plan = STUDY.plan(scale, every)
    for part in STUDY.parts:
        for corpus in plan.only(part.corpora).corpora:
            known = set(models.roster(plan, corpus))
            for step in part.needs(plan, corpus):
                if step.name.endswith(("/measures", "/probe")):
                    asked = step.inputs["setting"], step.inputs["seed"]
                    assert (Setting(**asked[0]), asked[1]) in known, step.name


def test_models_of_a_crew_have_one_shape_and_strengths_known_when_it_trains() -> None:
    plan = STUDY.plan("paper")
    crews: dict[str, list[Setting]] = {}
    for setting, _ in models.roster(plan, "sst"):
        crews.setdefault(crew_of(setting), []).append(setting)
    assert len(crews["plain+"]) == 40  # base, tried δ, random vectors, the literal sum
    for name, members in crews.items():
        waits = {one.is_chosen for one in members}
        assert len(waits) == 1, name
        if waits == {True}:
            assert len({one.variant for one in members}) == 1, name
        strength = 1.0
        shapes = {
            replace(
                replace(one, strength=one.strength or strength).recipe(8).model, normal_query=True
            )
            for one in members
        }
        assert len(shapes) == 1, name
