"""The tracing study: every item of the checklist, every claim, on the engine."""

import json
import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from heedful.corpora import Corpus
from heedful.errors import InputError
from heedful.reproduction.ledger import NotMeasurable, Parts, judge
from heedful.reproduction.results import Results, Skipped
from heedful.reproduction.view import View, Views
from heedful.statistics.estimates import Estimate
from heedful.studies import reproduce, study_of
from heedful.studies.tracing import corpora, models, study
from heedful.studies.tracing import steps as tracing_steps
from heedful.studies.tracing.appendix import variants
from heedful.studies.tracing.claims import CLAIMS, same_under_recipes
from heedful.studies.tracing.measures import feelings_first, good_accuracy, windows_help
from heedful.studies.tracing.printed import HEADS, REGRESSION
from heedful.studies.tracing.trainings import concordances
from heedful.training import TrainConfig

CHECKLIST = ["T1a", "T1b", "F1", "F2", "F3", "F4", "F5", "F6", "R1", "R2", "R3", "S1", "S2", "E1"]
IDS = [*(f"TRA-{k}" for k in range(1, 19)), *(f"TRA-A{k}" for k in range(1, 13))]
STUDY = study.STUDY


@pytest.fixture
def tiny(monkeypatch: pytest.MonkeyPatch) -> None:
    for split, size in {"train": 60, "dev": 20, "test": 120}.items():
        monkeypatch.setitem(corpora.PLANTED, split, size)
    monkeypatch.setitem(corpora.TALES, "smoke", {"train": 4, "dev": 2, "test": 6})
    small = {"embedding_dim": 16, "layers": 2, "heads": 3, "head_dim": 4, "feed_forward": 8}
    monkeypatch.setattr(models, "SMALL", models.SMALL | small)
    train = TrainConfig(epochs=1, batch_size=20, learning_rate=1e-2)
    monkeypatch.setattr(models, "SMALL_TRAIN", train)


def test_every_item_of_the_checklist_is_declared_once() -> None:
    ids = [artifact.id for artifact in STUDY.artifacts]
    assert [id for id in ids if not id.startswith("X")] == CHECKLIST
    assert [claim.id for claim in STUDY.claims] == IDS
    assert study_of("tracing") is STUDY


def test_every_claim_has_a_statistic_a_place_and_a_paper_value() -> None:
    for claim in CLAIMS:
        assert claim.sentence.endswith(".")
        assert claim.statistic
        assert claim.where
        assert claim.paper
        assert claim.measure


def test_thresholds_that_are_not_the_papers_say_so() -> None:
    ours = {claim.id for claim in CLAIMS if "(ours)" in claim.statistic}
    assert ours == {"TRA-1", "TRA-6", "TRA-7", "TRA-11", "TRA-A6", "TRA-A8", "TRA-A9", "TRA-A12"}


def test_the_scales_have_their_corpora_and_stand_ins_are_named() -> None:
    assert STUDY.plan("smoke").corpora == ("planted", "narratives")
    plan = STUDY.plan("paper")
    assert plan.corpora == ("sst", "send")
    assert len(plan.seeds) >= 5
    stand_ins = {source.name: source.stand_in_for for source in STUDY.sources}
    assert stand_ins == {"sst": None, "planted": "SST-5", "send": None, "narratives": "SEND"}
    needs_send = {"TRA-3", "TRA-4", "TRA-12", "TRA-17"}
    assert {c.id for c in CLAIMS if "sst" not in (c.corpora or ())} == needs_send


def test_the_papers_tables_are_whole() -> None:
    assert HEADS.set_index(["corpus", "kind"]).shape == (6, 9)
    lat = REGRESSION[REGRESSION["score"] == "LAT"]
    np.testing.assert_allclose(lat["b2"] / lat["SE"], lat["t"], rtol=0.01)


def test_other_vectors_than_the_papers_decide_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    plan = STUDY.plan("paper", ["sst"])

    class Prepared:
        vectors = np.zeros((3, 100))

    row = {"training": pd.DataFrame({"accuracy": [0.42]})}
    monkeypatch.setattr(
        Results, "__getitem__", lambda self, s: Prepared if s.name == "sst/corpus" else row
    )
    found = good_accuracy(View(Results(Path(".")), plan, "sst"))
    assert isinstance(found, NotMeasurable)
    assert found.reason == "needs 300-d GloVe; with 100-d vectors: accuracy 42 [no interval]"


def test_a_verdict_that_changes_is_not_hidden_by_one_that_fails_both_times(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """TRA-A7: accuracy off the mark under every recipe, the U gone under one of them."""
    up, gone = Estimate(0.3, 0.2, 0.4, 9, "x"), Estimate(-0.3, -0.4, -0.2, 9, "x")
    most = Estimate(1.0, 0.6, 1.0, 5, "x")
    shares = [40.0, 40.1, 40.2, 40.3, 40.1]
    monkeypatch.setattr("heedful.studies.tracing.claims.accuracies", lambda view, variant: shares)

    def bends(view: View, variant: str) -> Parts:
        return Parts(
            {"b2": gone if variant == "cross-entropy" else up, "seeds with p < .001": most}
        )

    monkeypatch.setattr("heedful.studies.tracing.claims.bends", bends)
    found = same_under_recipes(View(Results(Path(".")), STUDY.plan("paper", ["sst"]), "sst"))
    side = next(claim.side for claim in CLAIMS if claim.id == "TRA-A7")
    verdict = judge(found, side)
    assert verdict.word == "refuted"
    words = {part["part"]: part["verdict"] for part in verdict.parts}
    assert words.pop("b2, cross-entropy") == "refuted"
    assert set(words.values()) == {"confirmed"}


def test_every_strong_word_counts_alike_wherever_it_stands(monkeypatch: pytest.MonkeyPatch) -> None:
    """TRA-8: one word at the top of its text, three at the bottom of theirs: a quarter."""
    texts = pd.DataFrame(
        {"instance": ["a", "b", "c"], "percentile": [1.0, 0.0, np.nan], "tagged": [1.0, 3.0, 0.0]}
    )
    monkeypatch.setattr(View, "of", lambda self, step, seed: texts)
    found = feelings_first(View(Results(Path(".")), STUDY.plan("smoke", ["planted"]), "planted"))
    assert found.value == pytest.approx(0.25)


def _narratives(monkeypatch: pytest.MonkeyPatch, ccc: dict[str, pd.DataFrame]) -> None:
    monkeypatch.setattr(models, "narrative_ccc", lambda view, reads: ccc[reads])


def test_examples_spread_within_a_run_and_seeds_widen_the_interval(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """T1b and TRA-4: two runs that err on other narratives; their mean has no spread at all."""
    names = [f"n{k}" for k in range(40)]
    one = pd.Series([0.2, 0.6] * 20, index=names)
    both = pd.DataFrame({0: one, 1: 0.8 - one})
    zero = both * 0
    _narratives(monkeypatch, {"windows": both, "narrative": zero})
    plan = STUDY.plan("smoke", ["narratives"])
    table = concordances(Views(Results(Path(".")), plan)).table
    assert table is not None
    assert table["SD_eg"].iloc[0] == pytest.approx(0.2)
    far = pd.DataFrame({0: one * 0 + 0.1, 1: one * 0 + 0.5})
    _narratives(monkeypatch, {"windows": far, "narrative": zero})
    found = windows_help(View(Results(Path(".")), plan, "narratives"))
    assert found.value == pytest.approx(0.3)
    assert (found.low, found.high) == pytest.approx((0.1, 0.5))


def test_the_seeds_of_a_variant_are_trained_together_with_its_vectors() -> None:
    plan = STUDY.plan("paper", ["sst"])
    for variant in models.VARIANTS:
        members = models.trained(plan, "sst", variant, 0).inputs["members"]
        assert [name for name, *_ in members] == [f"{variant},{k}" for k in range(5)]
        for _, config, vectors in members:
            assert config["embedding_dim"] == vectors["dim"]
    wide = models.trained(plan, "sst", models.PADDED, 0).inputs["members"][0]
    assert (wide[1]["embedding_dim"], wide[2]["way"]) == (300, "padded")


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where two tests reproduce the study, so that each step is computed by the first alone."""
    return tmp_path_factory.mktemp("tracing")


@pytest.mark.slow
@pytest.mark.usefixtures("tiny")
def test_a_tiny_run_on_texts_has_all_columns(place: Path) -> None:
    only = [
        "F4",
        "F5",
        "F6",
        "R1",
        "R2",
        "R3",
        "S1",
        "X1",
        "X-V",
        "X-T",
        "X-S",
        "X-H",
        "X-L",
        "TRA-5",
        "TRA-8",
        "TRA-11",
        "TRA-A5",
    ]
    found = reproduce("tracing", only=only, corpora=["planted"], out=place, figures=False)
    folder = place / "tracing"
    assert not found.studies[0].skipped
    tables = {id: pd.read_csv(folder / f"{id}.csv") for id in only if not id.startswith("TRA")}
    assert {"corpus", "word", "count", "score"} == set(tables["F4"])
    assert tables["F5"]["valence"].between(1, 9).all()
    heads = tables["F6"][tables["F6"]["panel"] == "planted"]
    assert set(heads["column"]) == {"rand", "rand, published", "1", "2", "3"}
    own = heads[heads["column"].isin(["1", "2", "3"])]
    assert own["share"].between(0, 1).all()
    regressions = tables["R1"]
    plain = regressions[(regressions["score"] == "LAT") & (regressions["row"] == "as published")]
    assert plain["seed"].tolist() == [0, 1]
    np.testing.assert_allclose(plain["b2"] / plain["SE"], plain["t"], rtol=1e-6)
    assert {"LAT, untrained model", "heads averaged"} <= set(regressions["score"])
    shown = pd.read_csv(folder / "R1.shown.csv")
    assert {"b2 low", "seeds with p < .001", "R²", "median vertex"} <= set(shown)
    said = json.loads((folder / "R1.json").read_text())["sentence"]
    assert said.startswith("planted: b2 ")
    assert any(f" in {seeds} of 2. The paper's" in said for seeds in range(3))
    assert "nan" not in said
    assert len(tables["R2"]) == 6
    assert tables["R3"]["words"][0] == tables["X1"]["rated"][0]
    assert tables["S1"]["width"].tolist() == [16]
    assert tables["X-V"]["recipe"].tolist() == list(models.VARIANTS)
    assert {"b2 low", "b2 with mean 1/N", "b2 of N × share high", "accuracy"} <= set(tables["X-V"])
    assert tables["X-T"]["r"].between(-1, 1).all()
    assert (tables["X-S"]["LAT"] >= 0).all()
    layers = tables["X-H"].groupby(["layer", "head"])["received"].sum()
    np.testing.assert_allclose(layers, 1, atol=1e-4)
    assert tables["X-L"]["latex"][0].count("red!100") == 1
    claims = {one["id"]: one for one in found.studies[0].claims if one["corpus"] == "planted"}
    assert claims["TRA-5"]["verdict"] == "confirmed"
    assert claims["TRA-5"]["ours"] <= 1e-12
    assert claims["TRA-8"]["interval"] is not None
    assert {part["part"] for part in claims["TRA-A5"]["parts"]} == {
        "minus untrained", "minus shuffled ratings", "minus pooling alone",
    }  # fmt: skip
    assert all(one["stand_in_for"] == "SST-5" for one in claims.values())


@pytest.mark.slow
@pytest.mark.usefixtures("tiny")
def test_three_machines_share_the_work_through_steps(tmp_path: Path) -> None:
    """Prepare here, train there without texts or lexicon, draw here without models or tokens."""
    settings = {"corpora": ["planted"], "figures": False, "seeds": 1}
    reproduce("tracing", only=["X1"], out=tmp_path / "here", **settings)
    steps = tmp_path / "here" / "tracing" / "steps"
    names = {path.name for path in (steps / "planted").iterdir()}
    tables = {
        f"{one}{end}" for one in ("ratings", "vectors-50") for end in (".parquet", ".step.json")
    }
    assert names == {"corpus", "corpus.step.json"} | tables
    shutil.copytree(steps, tmp_path / "gpu" / "tracing" / "steps")

    def forbidden(plan: object) -> Corpus:
        raise InputError("there are no texts on this machine")

    source, kept = STUDY.source("planted"), STUDY.source("planted").load
    own = tracing_steps._own
    object.__setattr__(source, "load", forbidden)
    tracing_steps._own = forbidden  # type: ignore[assignment]
    wanted = ["F5", "F6", "R1", "T1a", "TRA-11", "TRA-14"]
    try:
        there = reproduce("tracing", only=wanted, out=tmp_path / "gpu", **settings)
    finally:
        object.__setattr__(source, "load", kept)
        tracing_steps._own = own
    assert not there.studies[0].skipped
    gpu = tmp_path / "gpu" / "tracing" / "steps"
    for path in gpu.rglob("*"):
        compact = ("words", "heads", "texts", "decisions")
        if path.is_file() and any(part.startswith(compact) for part in path.relative_to(gpu).parts):
            place = steps / path.relative_to(gpu)
            place.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(path, place)
    assert not list(steps.rglob("tokens.parquet"))
    assert not list(steps.rglob("model.safetensors"))
    home = reproduce("tracing", only=wanted, out=tmp_path / "here", compute=False, **settings)
    numbers = [
        [c["ours"] for c in r.studies[0].claims if c["id"] == "TRA-11"] for r in (there, home)
    ]
    assert numbers[0] == numbers[1]
    assert None not in numbers[0]
    for id in ("F5", "F6", "R1", "T1a"):
        one, two = (tmp_path / place / "tracing" / f"{id}.csv" for place in ("gpu", "here"))
        assert one.read_text() == two.read_text()


@pytest.mark.slow
@pytest.mark.usefixtures("tiny")
def test_narratives_are_tagged_by_ratings_and_fillers_left_out(tmp_path: Path) -> None:
    only = ["F6", "E1", "TRA-12", "TRA-17"]
    found = reproduce("tracing", only=only, out=tmp_path, figures=False, seeds=1)
    folder = tmp_path / "tracing"
    assert not found.studies[0].skipped
    words = pd.read_parquet(folder / "steps" / "narratives" / "windows" / "0" / "words.parquet")
    assert "null" not in set(words["word"])
    heads = pd.read_csv(folder / "F6.csv")
    assert heads[heads["panel"] == "narratives"]["n"].min() > 0
    shared = pd.read_csv(folder / "E1.csv")
    assert shared["sentences of"].dropna().tolist() == ["planted"]
    assert shared["slope, paper"].dropna().tolist() == [0.0757, 0.0764]
    claims = {one["id"]: one for one in found.studies[0].claims}
    assert claims["TRA-12"]["stand_in_for"] == "SEND"


@pytest.mark.slow
@pytest.mark.usefixtures("tiny")
def test_the_whole_study_makes_every_item_and_judges_every_claim(place: Path) -> None:
    found = reproduce("tracing", out=place)
    folder = place / "tracing"
    assert not found.studies[0].skipped
    for id in CHECKLIST:
        record = json.loads((folder / f"{id}.json").read_text())
        assert record["rows"] > 0 or id in ("F1", "F2"), id
        assert record["sentence"] or id in ("F1", "F2"), id
        assert "<svg" in (folder / f"{id}.svg").read_text()[:200], id
    judged = {one["id"]: one for one in found.studies[0].claims}
    assert set(judged) == set(IDS)
    reasons = [one["reason"] for one in found.studies[0].claims]
    assert all(reasons)


def test_a_missing_corpus_is_a_reason_not_an_error(tmp_path: Path) -> None:
    root = tmp_path / "data"
    root.mkdir()
    found = reproduce(
        "tracing", only=["X1", "TRA-12"], corpora=["send"], scale="paper", out=tmp_path,
        data_root=root, figures=False,
    )  # fmt: skip
    claim = found.studies[0].claims[0]
    assert claim["verdict"] == "not measurable"
    assert "SEND is not in the data root" in claim["reason"]


def test_a_study_that_is_only_drawn_says_that_send_is_absent_not_that_it_waits(
    tmp_path: Path,
) -> None:
    settings = {"corpora": ["send"], "scale": "paper", "figures": False, "compute": False}
    reasons = []
    for name in ("without", "with"):
        root = tmp_path / name
        root.mkdir()
        if name == "with":
            (root / "send").mkdir()
        found = reproduce(
            "tracing", only=["TRA-3", "TRA-13"], out=tmp_path / f"{name} out", data_root=root,
            **settings,
        )  # fmt: skip
        reasons.append({claim["reason"] for claim in found.studies[0].claims})
    assert len(reasons[0]) == 1
    assert reasons[0].pop().startswith("data absent: SEND is not in the data root")
    assert reasons[1] == {"not computed yet, and only finished steps were asked for"}


def test_a_recipe_that_is_not_trained_yet_hides_no_other(monkeypatch: pytest.MonkeyPatch) -> None:
    """X-V: four of five recipes are at hand."""
    up, most = Estimate(0.3, 0.2, 0.4, 9, "x"), Estimate(1.0, 0.6, 1.0, 5, "x")

    def bends(view: View, score: str, has_length: bool, variant: str) -> dict[str, Estimate]:
        if variant == "positions":
            raise Skipped("not computed yet")
        return {"b2": up, "seeds with p < .001": most}

    monkeypatch.setattr("heedful.studies.tracing.appendix.bends", bends)
    shares = [40.0, 40.1, 40.2, 40.3, 40.1]
    monkeypatch.setattr("heedful.studies.tracing.appendix.accuracies", lambda view, variant: shares)
    made = variants(Views(Results(Path(".")), STUDY.plan("paper", ["sst"])))
    assert made.table is not None
    assert made.table["recipe"].tolist() == [v for v in models.VARIANTS if v != "positions"]
    assert made.table["seeds up, b2"].tolist() == [5] * (len(models.VARIANTS) - 1)
    assert made.deviations == ("No positions: not computed yet.",)


def test_every_seed_has_its_own_start() -> None:
    plan = STUDY.plan("smoke")
    one, two = (tracing_steps.words(plan, "planted", seed) for seed in plan.seeds)
    assert one.name != two.name
    assert replace(one, inputs={}).needs[0].key != two.needs[0].key
