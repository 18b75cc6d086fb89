"""The erasure study: every item of the checklist, every claim, on the engine."""

import json
import shutil
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from heedful.corpora import Corpus, planted
from heedful.corpora.texts import document_of
from heedful.errors import InputError
from heedful.reproduction.results import Results
from heedful.reproduction.view import Views
from heedful.studies import reproduce, study_of
from heedful.studies.erasure import corpora, models, study
from heedful.studies.erasure.corpora import sentence_counts, without_empty
from heedful.studies.erasure.examination import Erased
from heedful.studies.erasure.printed import TABLE_2, TABLE_3
from heedful.studies.erasure.tables import CELLS, beside_published
from heedful.training import TrainConfig

CHECKLIST = ["T1", "T2", "T3", *(f"F{k}" for k in range(3, 14)), *(f"N{k}" for k in range(1, 7))]
CLAIMS = [*(f"ERA-{k}" for k in range(1, 22)), *(f"ERA-A{k}" for k in range(1, 8))]
STUDY = study.STUDY


@pytest.fixture
def tiny(monkeypatch: pytest.MonkeyPatch) -> None:
    for split, size in {"train": 60, "dev": 20, "test": 40}.items():
        monkeypatch.setitem(corpora.SMOKE_SIZES, split, size)
    train = TrainConfig(batch_size=16, learning_rate=1e-2)
    monkeypatch.setattr(models, "SMOKE_TRAIN", train)
    monkeypatch.setattr(models, "SMOKE", models.UpdateSchedule(4, 0, 4))


def test_every_item_of_the_checklist_is_declared_once() -> None:
    ids = [artifact.id for artifact in STUDY.artifacts]
    assert [id for id in ids if not id.startswith("X")] == CHECKLIST
    assert [claim.id for claim in STUDY.claims] == CLAIMS
    assert study_of("erasure") is STUDY


def test_every_claim_has_a_statistic_a_place_and_a_paper_value() -> None:
    for claim in STUDY.claims:
        assert claim.sentence.endswith(".")
        assert claim.statistic
        assert claim.where
        assert claim.paper
        assert claim.measure or claim.measure_all


def test_thresholds_that_are_not_the_papers_say_so() -> None:
    ours = {"ERA-1", "ERA-2", "ERA-3", "ERA-12", "ERA-16", "ERA-A4", "ERA-A5"}
    assert {claim.id for claim in STUDY.claims if "(ours)" in claim.statistic} == ours


def test_the_scales_have_their_corpora_and_stand_ins_are_named() -> None:
    assert STUDY.plan("smoke").corpora == ("planted-2", "planted-5")
    plan = STUDY.plan("paper")
    assert plan.corpora == ("20newsgroups", "imdb-stars", "amazon-stars", "ag-news")
    assert all(plan.source(corpus).stand_in_for for corpus in plan.corpora)
    originals = {source.name for source in STUDY.sources if not source.scales}
    assert originals == {"yahoo-answers", "imdb-ratings", "amazon-full", "yelp-full"}
    assert STUDY.plan("paper", sorted(originals)).corpora == tuple(
        source.name for source in STUDY.sources if source.name in originals
    )


def test_paper_scale_uses_the_presets_of_the_corpus_it_stands_for() -> None:
    plan = STUDY.plan("paper")
    preset = models.preset_of(plan, "amazon-stars", "FLANconv")
    assert (preset.recipe, preset.model["dropout"]) == ("conv+additive", 0.6)
    preset = models.preset_of(plan, "ag-news", "HANrnn")
    assert (preset.recipe, preset.model["head_dropout"]) == ("han:bigru+additive", 0.3749)


def test_the_papers_tables_are_whole() -> None:
    cells = TABLE_2[list(CELLS.values())]
    np.testing.assert_allclose(cells.sum(axis=1), 100, atol=0.11)
    assert TABLE_3[list(models.MODELS)].notna().all().all()


def test_the_papers_rows_stand_beside_ours_and_the_rest_at_the_end() -> None:
    ours = pd.DataFrame({"corpus": ["ag-news", "20newsgroups", "planted-2"], "both": [1.0, 2, 3]})
    found = beside_published(ours, TABLE_2[["published", "both"]])
    assert found["corpus"].tolist()[:3] == ["ag-news", "20newsgroups", "planted-2"]
    assert found["both, paper"].tolist()[:2] == [0.5, 0.5]
    assert np.isnan(found["both, paper"][2])
    assert set(found["published"][3:]) == {"IMDB", "Amazon", "Yelp"}


@pytest.mark.slow
@pytest.mark.usefixtures("tiny")
def test_a_tiny_run_of_two_families_has_all_columns(tmp_path: Path) -> None:
    only = ["T1", "T2", "F3", "F4", "F6", "N3", "ERA-6", "ERA-14"]
    found = reproduce("erasure", only=only, corpora=["planted-2"], out=tmp_path, figures=False)
    folder = tmp_path / "erasure"
    rows = [Erased(pd.read_parquet(path)) for path in folder.rglob("erased/rows.parquet")]
    logs = [pd.read_parquet(path) for path in folder.rglob("erased/log.parquet")]
    assert all(len(log) == 1 and 0 < log["dev_entropy"][0] <= 1 for log in logs)
    assert len(rows) == 3  # HANrnn, HANnoenc, FLANnoenc
    assert all(len(one) == 40 for one in rows)
    tables = {id: pd.read_csv(folder / f"{id}.csv") for id in only if not id.startswith("E")}
    assert tables["T1"]["test"][0] == 40
    assert {"both, paper", "only top, difference", "rule", "p", "left out"} <= set(tables["T2"])
    ours = tables["T2"][tables["T2"]["corpus"] == "planted-2"]
    assert ours["rule"].tolist() == ["any other item", "published"]
    np.testing.assert_allclose(ours[list(CELLS)].sum(axis=1), 100)
    assert list(tables["F3"]) == ["corpus", "model", "Δα", "ΔJS"]
    np.testing.assert_allclose(tables["F4"]["left"], np.arange(50) / 50)
    assert tables["F6"]["ranking"].tolist()[:4] == ["Random", "Attention", "Gradient", "Attn*Grad"]
    assert {"low", "q1", "median", "q3", "high", "n", "never flips"} <= set(tables["F6"])
    assert len(tables["N3"]) == 4
    claims = {(one["id"], one["corpus"]): one for one in found.studies[0].claims}
    assert claims["ERA-6", "planted-2"]["n"] == 40
    assert {part["part"] for part in claims["ERA-14", "all"]["parts"]} == {
        "HANnoenc: ratio, lower end", "FLANnoenc: ratio, lower end", "models with product lowest",
    }  # fmt: skip


@pytest.mark.usefixtures("tiny")
def test_two_machines_share_the_work_through_steps(tmp_path: Path) -> None:
    """Prepare here, train there without the texts, draw here without the models."""
    settings = {"corpora": ["planted-2"], "figures": False}
    reproduce("erasure", only=["T1"], out=tmp_path / "here", **settings)
    steps = tmp_path / "here" / "erasure" / "steps"
    assert sorted(path.name for path in (steps / "planted-2").iterdir() if path.is_dir()) == [
        "corpus"
    ]
    shutil.copytree(steps, tmp_path / "gpu" / "erasure" / "steps")

    def forbidden(plan: object) -> Corpus:
        raise InputError("there are no texts on this machine")

    source = STUDY.source("planted-2")
    kept = source.load
    object.__setattr__(source, "load", forbidden)
    try:
        bare = reproduce("erasure", only=["T2"], out=tmp_path / "bare", **settings)
        assert all("no texts on this machine" in w for w in bare.studies[0].skipped.values())
        assert bare.studies[0].skipped
        there = reproduce("erasure", only=["T2", "ERA-6"], out=tmp_path / "gpu", **settings)
    finally:
        object.__setattr__(source, "load", kept)
    for pattern in ("erased/*.parquet", "erased.step.json"):
        for path in (tmp_path / "gpu" / "erasure" / "steps").rglob(pattern):
            place = steps / path.relative_to(tmp_path / "gpu" / "erasure" / "steps")
            place.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(path, place)
    home = reproduce(
        "erasure", only=["T2", "ERA-6"], out=tmp_path / "here", compute=False, **settings
    )
    numbers = [
        [c["ours"] for c in r.studies[0].claims if c["id"] == "ERA-6"] for r in (there, home)
    ]
    assert numbers[0] == numbers[1]
    assert None not in numbers[0]
    assert not list(steps.rglob("model.safetensors"))


@pytest.mark.slow
@pytest.mark.usefixtures("tiny")
def test_the_whole_study_makes_every_item_and_judges_every_claim(tmp_path: Path) -> None:
    found = reproduce("erasure", out=tmp_path)
    folder = tmp_path / "erasure"
    assert not found.studies[0].skipped
    for id in CHECKLIST:
        record = json.loads((folder / f"{id}.json").read_text())
        assert record["rows"] > 0, id
        assert record["sentence"], id
        assert (folder / f"{id}.svg").read_text().startswith("<svg")
    judged = {(one["id"], one["corpus"]) for one in found.studies[0].claims}
    assert {id for id, _ in judged} == set(CLAIMS)
    assert {id for id, corpus in judged if corpus == "all"} == set(CLAIMS)
    table = pd.read_csv(folder / "F9.csv")
    assert len(table) == 12
    assert table["model"].tolist()[:6] == list(models.MODELS)
    assert len(pd.read_csv(folder / "F8.csv")) == 12 * 50
    counts = pd.read_csv(folder / "N1.csv")
    assert {"share", "share low", "share of the test set", "count"} <= set(counts)
    sums = counts.groupby(["corpus", "model", "compared"])["share"].sum()
    np.testing.assert_allclose(sums, 1)


def test_documents_without_words_are_dropped_and_counted() -> None:
    corpus = planted(2, "short", sizes={"train": 2, "dev": 1, "test": 1})
    empty = document_of("empty", "", 0)
    splits = {**corpus.splits, "test": [*corpus.splits["test"], empty]}
    found = without_empty(Corpus("toy", corpus.classes, splits))
    assert [document.id for document in found.splits["test"]] == [corpus.splits["test"][0].id]
    assert found.notes["documents without words, dropped"] == 1


def test_sentences_are_counted_within_documents() -> None:
    from heedful.corpora import encode

    texts = ["One.", "One here. Two there. Three.", "Only one here"]
    documents = [document_of(str(number), text, 0) for number, text in enumerate(texts)]
    encoded = encode(Corpus("toy", ("a", "b"), {"train": documents}))
    assert sentence_counts(encoded.splits["train"]).tolist() == [1, 3, 1]


def test_a_document_of_very_many_sentences_is_read_whole(tmp_path: Path) -> None:
    """No bound on sentences: only tokens are cut, at 2,000, and counted."""
    from heedful.corpora import collate, encode
    from heedful.importance import explain
    from heedful.models import build, parse, read
    from heedful.studies.erasure.examination import METHODS, erase

    long = document_of("long", "Good film. " * 300, 0)
    longer = document_of("longer", "Good film. " * 900, 1)
    encoded = encode(Corpus("toy", ("a", "b"), {"train": [long, longer]}))
    assert encoded.notes == {"train: cut to the token limit": 1}
    model = build(parse("han:none+additive", embedding_dim=6).model, encoded.vocabulary, ("a", "b"))
    reading = read(model, collate(encoded.splits["train"], [0, 1]))
    rows = Erased(erase(model, reading, explain(model, reading, METHODS), 0))
    assert rows.units[0] == 300
    assert rows.units[1] == np.ceil(2_000 / 3)


def test_a_class_that_is_never_decided_for_is_counted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from heedful.studies.erasure.tables import accuracies

    plan = STUDY.plan("smoke", ["planted-5"])
    table = pd.DataFrame({"instance": ["a", "b"], "label": [0, 4], "decision": [0, 1], "units": 3})
    known = {"counts": {"classes": list("abcde")}, "erased": {"rows": table.assign(seed=0)}}
    monkeypatch.setattr(
        Results, "__getitem__", lambda self, step: known[step.name.rpartition("/")[2]]
    )
    made = accuracies(Views(Results(tmp_path), plan))
    assert made.table is not None
    assert made.table["classes never decided"].tolist() == [3] * 6
    assert made.table["accuracy"].tolist() == [50] * 6
