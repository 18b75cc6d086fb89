"""The faithful study: every item is declared, and a tiny run makes them all."""

import json
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scipy.stats import binomtest

from heedful.reproduction.ledger import NotMeasurable
from heedful.reproduction.results import Results
from heedful.reproduction.view import View, Views
from heedful.statistics import Estimate, over_seeds
from heedful.statistics.shares import exact_share
from heedful.studies import reproduce
from heedful.studies.faithful import figures, measures, models, printed, steps
from heedful.studies.faithful import tables as faithful_tables
from heedful.studies.faithful.examination import Measuring
from heedful.studies.faithful.models import Setting
from heedful.studies.faithful.steps import crew_of, measured, measuring
from heedful.studies.faithful.study import STUDY

sys.path.insert(0, str(Path(__file__).parents[2] / "docs"))
from publish import training_logs

ARTIFACTS = {*(f"T{i}" for i in range(1, 7)), *(f"F{i}" for i in range(1, 8)),
             *(f"X{i}" for i in range(1, 11))}  # fmt: skip
CLAIMS = {*(f"FAI-{i}" for i in range(1, 20)), *(f"FAI-A{i}" for i in range(1, 9))}


def test_every_item_of_the_checklist_is_declared() -> None:
    assert {one.id for one in STUDY.artifacts} == ARTIFACTS
    assert {one.id for one in STUDY.claims} == CLAIMS


def test_whatever_is_asked_of_a_model_is_asked_of_every_seed_it_has() -> None:
    plan = STUDY.plan("paper", [source.name for source in STUDY.sources])
    few = set(range(models.FEW))
    for part in STUDY.parts:
        for corpus in plan.only(part.corpora).corpora:
            seeds: dict[str, set[int]] = {}
            asked: dict[str, Setting] = {}
            for step in part.needs(plan, corpus):
                if step.name.endswith("/adversaries"):
                    assert set(step.inputs["seeds"]) == few
                elif "seed" in step.inputs:
                    model = f"{step.inputs['setting']} {step.name.rpartition('/')[2]}"
                    seeds.setdefault(model, set()).add(step.inputs["seed"])
                    asked[model] = Setting(**step.inputs["setting"])
            for model, found in seeds.items():
                every = set(models.seeds_of(plan, corpus, asked[model]))
                assert found == (few if model.endswith("probe") else every), (part.id, corpus)


def test_ten_seeds_where_modes_decide_and_six_where_a_sign_test_just_can() -> None:
    plan = STUDY.plan("paper")
    assert len(models.seeds_of(plan, "sst", Setting("tying", "•"))) == 10
    assert len(models.seeds_of(plan, "sst", Setting("tying", is_frozen=True))) == 10
    assert len(models.seeds_of(plan, "ng", Setting("tying", "•", query="instance"))) == 10
    assert len(models.seeds_of(plan, "imdb", Setting("tying"))) == 6
    assert len(models.seeds_of(plan, "sst", Setting(), Setting(layers=2))) == 6
    claims = {claim.id: claim for claim in STUDY.claims}
    assert claims["FAI-2"].trainings(plan, ["sst", "ag"]) == 10
    assert claims["FAI-2"].trainings(plan, ["sst", "imdb"]) == 6
    assert claims["FAI-15"].trainings(plan, ["sst"]) == 6
    # Six of six leave out a half, five of five would not: that is why there are six.
    assert exact_share(models.FEW, models.FEW).low > 0.5 > exact_share(5, 5).low


def test_a_small_corpus_is_read_more_often() -> None:
    plan = STUDY.plan("paper")
    config = models.sizes(plan).train
    assert models.stretched(plan, config, 6_920).epochs == 8  # 217 batches: 1,736 updates
    assert models.stretched(plan, config, 1_275).epochs == 40  # 40 batches: 320 updates
    asked = replace(config, patience=4)
    assert models.stretched(plan, asked, 1_275).patience == 20
    assert models.stretched(STUDY.plan("smoke"), config, 10).epochs == config.epochs


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
        Setting("mlm", strength=1.0), Setting("mlm", strength=3.0), Setting(is_frozen=True),
        Setting(attention="•", is_wide=True), Setting(attention="•", is_long=True),
        Setting(is_random=True), Setting(attention="•", query="default"),
        Setting(attention="•", query="instance"), Setting(layers=3), Setting("concat"),
        Setting("residual"),
    ]  # fmt: skip
    assert len({one.name for one in settings}) == len(settings)
    for one in settings:
        recipe = one.recipe(8)
        assert recipe.model.embedding_dim == 8
        assert recipe.model.width == (24 if one.is_wide else 8)
        assert recipe.model.one_logit
        assert recipe.model.marks
    assert Setting("mlm", strength=1.0).recipe(8).model.freeze_embeddings
    assert not Setting(attention="•", query="default").recipe(8).model.normal_query
    assert Setting("mlm", strength=1.0).recipe(8).penalties.masked_over == "words"
    assert Setting("tying", strength=1.0).recipe(8).penalties.tying_over == "mean"
    assert Setting("mlm").vectors == Setting(is_frozen=True).vectors == "frozen"
    assert Setting("tying").vectors == "trained"


def test_a_step_keeps_its_name_and_key_on_a_machine_without_the_data() -> None:
    here = STUDY.plan("paper", data_root=Path(__file__).parent)
    there = STUDY.plan("paper")
    one, two = (measured(plan, "sst", Setting(), 0) for plan in (here, there))
    assert (one.name, one.key) == (two.name, two.key)


def test_dear_measures_are_taken_where_a_table_asks_for_them() -> None:
    plan = STUDY.plan("paper")
    assert measuring(plan, "sst", Setting(), 0).clusterings == 3
    assert measuring(plan, "sst", Setting("tying"), 3).types == 1_000
    assert measuring(plan, "sst", Setting("tying"), models.FEW).types == 0
    assert measuring(plan, "sst", Setting("tying"), 3).pairs == 1_000_000
    assert measuring(plan, "sst", Setting("tying", strength=3.0), 1).types == 0
    assert measuring(plan, "sst", Setting(layers=2), 0).types == 0
    assert measuring(plan, "evidence", Setting(), 0).types == 0  # has fewer words than asked for
    assert not measuring(plan, "sst", Setting(attention="•"), 0).erasure
    assert measuring(plan, "sst", Setting(attention="•"), 0).draws == 100
    assert measuring(plan, "imdb", Setting(), 0).draws == 25  # 5,000 texts
    assert measuring(plan, "sst", Setting(), 0).documents
    assert not measuring(plan, "sst", Setting(layers=2), 0).documents


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
    monkeypatch.setattr(measures, "ENOUGH", 2)


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
    trained = scores.query("vectors == 'trained' or model == 'mlm'")
    assert list(trained["model"]) == 2 * ["base", "concat", "tying", "mlm"]
    frozen = scores.query("vectors == 'frozen' and model != 'mlm'")
    assert list(frozen["model"]) == 2 * ["base", "concat", "tying"]
    confidence = pd.read_csv(folder / "T3.csv").query("corpus == 'planted'")
    assert confidence.groupby("vectors").size().to_dict() == {"trained": 8, "frozen": 10}
    logs = training_logs(folder)
    assert set(logs["model"]) >= {"base+", "tying-dot", "base-dot,wide,long", "mlm+,strength=1"}
    watched = ["dev accuracy", "dev F1 of class 1", "entropy of attention"]
    assert (
        logs[logs["model"] == "base-dot"][watched]
        .apply(lambda one: one.between(0, 1))
        .all(axis=None)
    )
    assert {"adversary jsd λ=0", "adversary kl λ=0.3"} <= set(logs["λ or setting"].dropna())
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
    asked: list[Setting] = []

    def apart(view: View, one: Setting, two: Setting, name: str) -> list[float]:
        asked.append(two)
        return [a - b for a, b in zip(drops[one.variant], drops[two.variant], strict=True)]

    monkeypatch.setattr(faithful_tables, "differences", apart)
    cells = [
        (corpus, attention, model, "frozen" if model == "mlm" else vectors)
        for corpus in ("sst", "ag") for attention in "+•" for vectors in ("trained", "frozen")
        for model in drops if (model, vectors) != ("mlm", "trained")
    ]  # fmt: skip
    ours = pd.DataFrame(cells, columns=["corpus", "attention", "model", "vectors"])
    views = Views(Results(Path()), STUDY.plan("smoke"))
    said = faithful_tables._sign_test(views, ours, tuple(drops))
    # Two corpora, attentions and kinds of vectors, three seeds; mlm has frozen ones alone, and ties
    # in a third of its runs, which do not count.
    assert f"tying in 24 of 24 runs, p = {2 * 0.5**24:.2g}" in said
    assert "mlm in 4 of 8 runs, p = 1" in said
    assert sum(one.is_frozen for one in asked) == 4 + 4
    some = ours[:-1]  # mlm is not there on one corpus with one attention
    said = faithful_tables._sign_test(views, some, tuple(drops))
    assert "tying in 24 of 24 runs" in said
    assert "mlm in 3 of 6 runs" in said


@pytest.mark.parametrize("low", [4, 9, 10])
def test_a_remedy_is_more_fragile_where_the_sign_test_says_so(
    monkeypatch: pytest.MonkeyPatch, low: int
) -> None:
    plan = STUDY.plan("paper")
    # Two modes: one training loses a lot, others hardly any.
    drops = [-60.0, *[-1.0] * (low - 1), *[2.0] * (10 - low)]
    found = {"base": [0.0] * 10, "tying": drops}
    monkeypatch.setattr(
        steps, "per_seed", lambda view, one, name, seeds: [found[one.variant][s] for s in seeds]
    )
    view = View(Results(Path()), plan, "sst")
    share = steps.lower(view, Setting("tying"), Setting(), "change permuted f1")
    assert (share.value, share.n) == (low / 10, 10)
    assert (share.low > 0.5) == (binomtest(low, 10, 0.5).pvalue < 0.05 and low > 5)
    found["tying"][0] = 0.0  # a tie is left out
    assert steps.lower(view, Setting("tying"), Setting(), "any").n == 9


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
    monkeypatch.setattr(measures, "ENOUGH", 81)
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
    assert len(crews["plain+"]) == 10 + 7 * 6 + 6  # base, tried δ, random vectors
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
