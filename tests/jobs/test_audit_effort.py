"""An audit looks at as many documents as it takes, says so, and says what it cost."""

from pathlib import Path

import pandas as pd
import pytest
import torch
from pandas.testing import assert_frame_equal

import heedful
from heedful.audits import AUDITS
from heedful.audits.effort import ALL, MOST_ASKED, SETTLED
from heedful.audits.examination import Portion, examine
from heedful.audits.finding import Finding
from heedful.corpora import encode, planted
from heedful.corpora.batches import collate
from heedful.errors import InputError
from heedful.importance import methods_of
from heedful.jobs.audit import audit, estimate
from heedful.jobs.settings import settings_of
from heedful.runs import RunFolder, read_json

CORPUS = planted(2, "short", sizes={"train": 400, "dev": 40, "test": 160})


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    run = tmp_path_factory.mktemp("effort") / "trained"
    heedful.train("none+additive", CORPUS, out=run, settings=settings_of({"train": {"epochs": 3}}))
    return run


@pytest.fixture(scope="module")
def normal(trained: Path) -> Path:
    return audit(trained, CORPUS, trained.parent / "normal").folder


@pytest.fixture(scope="module")
def exhaustive(trained: Path) -> Path:
    return audit(trained, CORPUS, trained.parent / "exhaustive", effort="exhaustive").folder


def test_each_audit_says_how_many_documents_it_used_and_why(normal: Path) -> None:
    told = RunFolder.open(normal).record["audited"]
    assert told["effort"] == "normal"
    looked = told["looked at"]
    assert looked["input-erasure"]["documents"] in (50, 100)
    assert looked["input-erasure"]["why"] == SETTLED
    assert looked["agreement"]["documents"] == looked["input-erasure"]["documents"]
    assert looked["confidence"] == {"documents": 160, "of": 160, "why": ALL, "looks": 1}
    assert looked["randomisation"]["documents"] < 50
    for name, stop in looked.items():
        rows = pd.read_parquet(normal / "findings" / f"{name}.parquet")
        assert rows["instance"].nunique() <= stop["documents"]
    page = (normal / "report.html").read_text()
    assert "drawn by key, were looked at: what it is for is settled" in page
    assert "times forward and" in page


def test_accuracy_is_told_of_every_document_that_was_read_not_of_those_that_settled_it(
    trained: Path, normal: Path, exhaustive: Path
) -> None:
    model = heedful.load(trained)
    encoded = encode(CORPUS, model.vocabulary).splits["test"]
    with torch.no_grad():
        decided = torch.cat([model(collate(encoded, [row])).logits for row in range(160)])
    right = float((decided.argmax(-1).numpy() == encoded.labels).mean())
    for run in (normal, exhaustive):
        again = audit(trained, CORPUS, run, effort=run.name)  # kept: read from the folder
        told = again.quality["test accuracy"]
        assert (told["value"], told["n"]) == (right, 160)
        assert f"{100 * right:.1f}\xa0% [" in (run / "report.html").read_text()
    shuffled = Finding.from_json(read_json(normal / "findings" / "substitution.json"))
    paired = shuffled.get("accuracy", "trained")  # stands beside uniform on the same documents
    assert paired is not None
    assert paired.n in (50, 100)


def test_randomisation_asks_of_the_methods_that_the_ranking_names(
    normal: Path, exhaustive: Path
) -> None:
    few, every = (
        set(pd.read_parquet(one / "findings" / "randomisation.parquet")["ranking"])
        for one in (normal, exhaustive)
    )
    assert {"random", "attention"} < few < every


def test_documents_of_an_early_stop_are_those_of_all_and_say_the_same(
    normal: Path, exhaustive: Path
) -> None:
    keys = ["instance", "method", "share", "mode"]
    some, every = (
        pd.read_parquet(one / "findings" / "input-erasure.parquet").sort_values(keys)
        for one in (normal, exhaustive)
    )
    same = every[every["instance"].isin(set(some["instance"]))]
    assert 0 < len(same) < len(every)
    assert_frame_equal(
        some.reset_index(drop=True), same.reset_index(drop=True), atol=1e-6, check_exact=False
    )


def test_exhaustive_is_all_documents_side_by_side_with_plain_intervals(
    trained: Path, exhaustive: Path
) -> None:
    model = heedful.load(trained)
    encoded = encode(CORPUS, model.vocabulary).splits["test"]
    audits = {"input-erasure": AUDITS["input-erasure"].rows}
    stops = RunFolder.open(exhaustive).record["audited"]["looked at"]
    assert all(one["looks"] == 1 for one in stops.values())
    assert stops["input-erasure"]["documents"] == 160
    assert stops["randomisation"] == {"documents": 50, "of": 160, "why": MOST_ASKED, "looks": 1}
    found = examine(model, encoded, audits, methods_of(model), at_once=Portion(16, None))
    kept = pd.read_parquet(exhaustive / "findings" / "input-erasure.parquet")
    keys = ["instance", "method", "share", "mode"]
    assert_frame_equal(
        kept.sort_values(keys).reset_index(drop=True),
        found["input-erasure"].sort_values(keys).reset_index(drop=True),
        atol=1e-6,
        check_exact=False,
    )


def test_the_cost_is_counted_and_explaining_fewer_documents_costs_less(
    normal: Path, exhaustive: Path
) -> None:
    few, every = (RunFolder.open(one).record["audited"]["cost"] for one in (normal, exhaustive))
    parts = {part["of"]: part for part in every["parts"]}
    assert every["forward"] == pytest.approx(
        sum(part["forward"] for part in every["parts"]), abs=0.05
    )
    # One backward pass for each forward pass of the path; occlusion is not tried of one row.
    assert parts["integrated"]["backward"] > 5
    assert parts["exchange"]["forward"] > 1
    assert few["forward"] < 0.75 * every["forward"]
    assert few["backward"] < 0.6 * every["backward"]


def test_the_word_alone_is_the_same_word_for_the_tests_alone(trained: Path, normal: Path) -> None:
    found = audit(trained, CORPUS, trained.parent / "word", only="verdict")
    assert list(found.findings) == ["exchange"]
    before = audit(trained, CORPUS, normal)
    assert found.verdict.word == before.verdict.word
    assert found.verdict.tests == before.verdict.tests
    cost = RunFolder.open(found.folder).record["audited"]["cost"]
    assert {part["of"] for part in cost["parts"]} == {"exchange"}
    assert "should not be shown as the reason" in found.report.read_text()


def test_another_effort_in_the_same_folder_is_another_audit(trained: Path) -> None:
    out = trained.parent / "again"
    one = audit(trained, CORPUS, out, effort="quick", audits=["erasure"], methods=["attention"])
    other = audit(
        trained, CORPUS, out, effort="exhaustive", audits=["erasure"], methods=["attention"]
    )
    counts = [
        next(m.estimate.n for m in found.findings["erasure"].measures) for found in (one, other)
    ]
    assert counts == [50, 160]


def test_what_it_would_take_is_said_without_a_trace_on_disk(trained: Path) -> None:
    told = estimate(trained, CORPUS, trained.parent / "never", effort="normal")
    assert not (trained.parent / "never").exists()
    assert told.looks == (50, 160)
    assert 0 < told.word < told.least < told.most
    assert told.memory > 10**8
    assert len(told.lines()) == 3
    with pytest.raises(InputError, match="has to be trained first"):
        estimate("none+additive", CORPUS)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"effort": "norml"}, "norml"),
        ({"minutes": 0}, "above 0"),
        ({"only": "vredict"}, "vredict"),
        ({"only": "verdict", "audits": ["erasure"]}, "alone needs no other"),
    ],
)
def test_what_cannot_be_asked_is_one_sentence(trained: Path, given: dict, said: str) -> None:  # type: ignore[type-arg]
    with pytest.raises(InputError, match=said):
        audit(trained, CORPUS, trained.parent / "refused", **given)
