"""An audit over shards says what one over all documents together says."""

import json

import numpy as np
import pandas as pd
import pytest

import heedful
from heedful.cluster import shards
from heedful.cluster.shards import SHARD, ShardFound, keys_of, sums_in
from heedful.corpora import read_texts
from heedful.corpora.samples import sampled
from heedful.errors import InputError
from heedful.statistics.sums import Sums
from tests.cluster.shard_files import AUDITS, METHODS, saved_model, written_shards

pytestmark = pytest.mark.slow
DRAWN = 100


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    folder = tmp_path_factory.mktemp("shards")
    written_shards(folder)
    saved_model(folder)
    return folder


def audited(place, out, pattern="shards/*.parquet", **options):
    chosen = {"audits": AUDITS, "methods": METHODS, "documents": 0, "device": "cpu"} | options
    return shards.audit_shards(place / "model", str(place / pattern), place / out, **chosen)


@pytest.fixture(scope="module")
def streamed(place):
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(shards, "MOST_DOCUMENTS", DRAWN)
        return audited(place, "streamed")


def test_measures_are_those_of_all_documents_together(place, streamed):
    model = heedful.load(place / "model")
    corpus = read_texts(place / "whole.parquet", model.classes).corpus
    whole = heedful.audit(
        model, corpus, place / "together", audits=AUDITS, methods=METHODS, documents=0,
        effort="exhaustive", device="cpu",
    )  # fmt: skip
    assert streamed.documents == whole.documents == 450
    of_all = of_some = 0
    for name in AUDITS:
        for one in streamed.findings[name].measures:
            if one.estimate.n <= DRAWN and whole.findings[name].get(one.name, one.method).n > DRAWN:
                of_some += 1
                assert one.name.startswith(("accuracy", "macro F1", "F1 of")), one
                continue
            of_all += 1
            other = whole.findings[name].get(one.name, one.method)
            assert (one.estimate.n, one.estimate.method) == (other.n, other.method), one
            found, wanted = ((e.value, e.low, e.high) for e in (one.estimate, other))
            assert found == pytest.approx(wanted, rel=1e-6, abs=1e-9, nan_ok=True), one
        if name != "substitution":  # whose accuracy under shuffling is of the documents by key
            assert streamed.findings[name].answer == whole.findings[name].answer
    assert of_all > 90 > of_some


def test_the_page_has_the_documents_that_a_smaller_audit_draws(place, streamed):
    names = list(pd.read_parquet(place / "whole.parquet")["id"])
    wanted = {names[row] for row in sampled(names, DRAWN, 0)}
    rows = pd.read_parquet(streamed.folder / "findings" / "concentration.parquet")
    assert set(rows["instance"]) == wanted
    note = streamed.findings["concentration"].notes[-1]
    assert note.startswith("Measures are over all 450 documents;")
    page = " ".join(streamed.report.read_text().split())
    assert f"The {DRAWN} documents were drawn by key; measures that add up are over all 450" in page


def test_rows_of_every_document_lie_beside_their_shard(place, streamed):
    files = sorted((streamed.folder / "shards").glob("*/found/erasure.parquet"))
    rows = pd.concat([pd.read_parquet(file) for file in files])
    assert len(files) == 3
    assert rows["instance"].nunique() == 450


def test_a_finished_shard_is_not_computed_again(place, streamed):
    journal = streamed.folder / "shards" / "journal.jsonl"
    before = journal.read_text()
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(shards, "MOST_DOCUMENTS", DRAWN)
        again = audited(place, "streamed")
    assert journal.read_text() == before
    assert json.dumps(again.to_json()) == json.dumps(streamed.to_json())


def test_shards_that_cannot_be_read_are_named_and_counted(tmp_path):
    folder = written_shards(tmp_path, 3, 40)
    saved_model(tmp_path)
    (folder / "part-0.parquet").write_bytes(b"PAR1 but no more")
    other = pd.read_parquet(folder / "part-2.parquet").rename(columns={"text": "review"})
    other.to_parquet(folder / "part-2.parquet")
    done = audited(tmp_path, "out", audits=("concentration",))
    told = json.loads((done.folder / "run.json").read_text())["audited"]
    assert (done.documents, told["shards"]) == (40, 1)
    first, second = told["skipped shards"].values()
    assert "part-0.parquet is not a readable Parquet file" in first
    assert "part-2.parquet has no text column 'text'" in second
    page = " ".join(done.report.read_text().split())
    assert "2 of 3 files were skipped" in page
    assert "part-2.parquet has no text column" in page
    assert str(tmp_path) not in page
    few = audited(tmp_path, "few", documents=10, audits=("concentration",))
    told = json.loads((few.folder / "run.json").read_text())["audited"]
    assert (told["of"], len(told["skipped shards"])) == (40, 2)
    assert "2 of 3 files were skipped" in few.report.read_text()
    with pytest.raises(InputError, match=r"part-0\.parquet is not a readable Parquet file"):
        audited(tmp_path, "none", "shards/part-0*")


def test_fewer_documents_are_drawn_by_key_and_audited_alone(place):
    done = audited(place, "few", documents=50, audits=("concentration",))
    names = list(pd.read_parquet(place / "whole.parquet")["id"])
    rows = pd.read_parquet(done.folder / "findings" / "concentration.parquet")
    assert set(rows["instance"]) == {names[row] for row in sampled(names, 50, 0)}
    assert not list((done.folder / "shards").glob("*/found/concentration.parquet"))


def test_an_unknown_audit_is_refused_by_name(place):
    with pytest.raises(InputError, match="erasur"):
        audited(place, "unknown", audits=("erasur",))


def test_sums_come_back_as_they_were_and_shared_ones_are_kept_once(tmp_path):
    shared = np.arange(6.0).reshape(3, 2)
    sums = {
        ("erasure", "area", "random"): Sums(shared, 5, 1, np.array([[0.5, 5.0]])),
        ("erasure", "efficiency", "random"): Sums(shared, 5),
        ("substitution", "accuracy", ""): Sums(np.array([[3.0]]), 7),
    }
    sample = pd.DataFrame({"key": [1], "id": ["a"]})
    SHARD.save(tmp_path, ShardFound({}, sums, sample, {"documents": 5, "notes": {}}))
    found = dict(sums_in(SHARD.load(tmp_path)))
    assert list(found) == list(sums)
    for key, one in sums.items():
        assert (found[key].n, found[key].undefined) == (one.n, one.undefined)
        np.testing.assert_array_equal(found[key].totals, one.totals)
    np.testing.assert_array_equal(found["erasure", "area", "random"].few, [[0.5, 5.0]])
    assert len(np.unique([len(one.totals) for one in found.values()])) == 2


def test_a_shard_without_audits_has_no_sums(tmp_path):
    SHARD.save(tmp_path, ShardFound({}, {}, pd.DataFrame({"id": []}), {"documents": 0}))
    assert not list(sums_in(tmp_path))


def test_the_first_by_key_are_taken_each_name_once():
    table = pd.DataFrame({"key": [5, -2, 5, 9], "id": ["b", "a", "b", "c"]})
    assert keys_of(table, 2).tolist() == [1, 0]
    assert keys_of(table, 9).tolist() == [1, 0, 3]
