"""One examination: read once, explain once, ask every audit about its own documents."""

import numpy as np
import pandas as pd
import pytest

from heedful.audits import AUDITS, examination
from heedful.audits.examination import Portion, examine, readings
from heedful.corpora import EncodedCorpus, encode, planted
from heedful.importance import explain
from heedful.models import AttentionClassifier, build, parse

METHODS = ("random", "attention", "gradient")
ASKED = {name: AUDITS[name].rows for name in ("erasure", "substitution", "concentration")}
AT_ONCE = Portion(7, 120)


@pytest.fixture(scope="module")
def corpus() -> EncodedCorpus:
    return encode(planted(2, "short", sizes={"train": 20, "dev": 2, "test": 24}))


@pytest.fixture(scope="module")
def model(corpus: EncodedCorpus) -> AttentionClassifier:
    recipe = parse("bilstm+additive", embedding_dim=6, width=6)
    return build(recipe.model, corpus.vocabulary, corpus.classes)


def test_rows_are_those_of_each_audit_alone(
    model: AttentionClassifier, corpus: EncodedCorpus
) -> None:
    documents = corpus.splits["test"]
    found = examine(model, documents, ASKED, METHODS, seed=3, at_once=AT_ONCE)
    assert list(found) == list(ASKED)
    for name, rows in ASKED.items():
        alone = [
            rows(model, reading, explain(model, reading, METHODS, 3), 3)
            for reading in readings(model, documents, at_once=AT_ONCE)
        ]
        pd.testing.assert_frame_equal(found[name], pd.concat(alone, ignore_index=True))


def test_every_document_is_read_once_whichever_audits_look_at_it(
    model: AttentionClassifier, corpus: EncodedCorpus, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[str] = []
    once = examination.read

    def counted(model, batch):
        seen.extend(batch.names)
        return once(model, batch)

    monkeypatch.setattr(examination, "read", counted)
    documents = corpus.splits["test"]
    few = np.array([3, 1, 8])
    among = {"erasure": few, "concentration": np.array([], dtype=np.int64)}
    found = examine(model, documents, ASKED, ("attention",), among=among)
    named = [documents.names[row] for row in few]
    assert sorted(seen) == sorted(documents.names)
    assert set(found["erasure"]["instance"]) == set(named)
    assert set(found["substitution"]["instance"]) == set(documents.names)
    assert not len(found["concentration"])
    assert "instance" in found["concentration"]


def test_without_methods_nothing_is_explained(
    model: AttentionClassifier, corpus: EncodedCorpus
) -> None:
    def given(model, reading, importance, seed):
        return pd.DataFrame({"instance": reading.names, "methods": len(importance)})

    documents = corpus.splits["dev"]
    assert set(examine(model, documents, {"given": given})["given"]["methods"]) == {0}
    every = examine(model, documents, {"given": given}, None)["given"]["methods"]
    assert every.min() >= len(METHODS)
