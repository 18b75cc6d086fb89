"""Documents on offer: filtered by label, decision and words."""

import numpy as np
import pytest

from heedful.corpora.documents import Corpus
from heedful.corpora.encoded import encode
from heedful.corpora.texts import document_of, pair_of
from heedful.errors import InputError
from heedful.explorer.documents import MOST_DOCUMENTS, OfferedDocuments, offered
from tests.explorer.serving_models import linear


def some() -> OfferedDocuments:
    texts = ("Good food", "bad SERVICE", "good Straße", "")
    known = [document_of(str(n), text, n % 2) for n, text in enumerate(texts)]
    known.append(pair_of("pair", "good", "bad", -1))
    return offered(Corpus("mine", ("negative", "positive"), {"test": known}))


def numbers(found: dict[str, object]) -> list[int]:
    return [line["number"] for line in found["documents"]]  # type: ignore[attr-defined]


def test_documents_are_found_by_label_and_by_words() -> None:
    documents = some()
    assert documents.page("", "", "", 0)["found"] == 4  # the empty one is left out
    assert numbers(documents.page("negative", "", "", 0)) == [0, 2]
    assert numbers(documents.page("", "", "GOOD", 0)) == [0, 2, 3]
    assert numbers(documents.page("", "", "strasse", 0)) == [2]
    assert numbers(documents.page("", "", "", 3)) == [3]
    assert documents.one(3) == {"text": "good", "second": "bad"}
    with pytest.raises(InputError, match="no document 4"):
        documents.one(4)


def test_documents_are_found_by_decision_once_they_are_read() -> None:
    corpus = Corpus("mine", ("negative", "positive"), {"test": [
        document_of(str(n), text, 0) for n, text in enumerate(("good food", "bad service"))
    ]})  # fmt: skip
    documents, explored = offered(corpus), linear()
    assert documents.page("", "positive", "", 0)["found"] == 0
    for step in documents.steps(explored):
        step.compute()
    assert numbers(documents.page("", "positive", "", 0)) == [0]
    assert numbers(documents.page("", "negative", "", 0)) == [1]
    assert documents.page("", "", "", 0)["documents"][0]["probability"] > 0.5


def test_documents_that_a_model_refuses_do_not_stop_the_others() -> None:
    documents, explored = some(), linear()  # one of them is a pair
    for step in documents.steps(explored):
        step.compute()
    found = documents.page("", "", "", 0)
    assert found["known"] == found["total"] == 4
    decisions = [line["decision"] for line in found["documents"]]
    assert decisions == ["positive", "negative", "positive", ""]


def test_a_corpus_of_ids_without_texts_offers_nothing() -> None:
    corpus = Corpus("mine", ("a", "b"), {"train": [document_of("0", "good", 0)]})
    encoded = encode(corpus)
    assert len(offered(encoded).documents) == 1
    train = encoded.splits["train"]
    without = type(train)(train.ids, train.starts, train.labels, train.sentence, train.names)
    bare = type(encoded)("mine", ("a", "b"), encoded.vocabulary, {"train": without}, "", {})
    assert not offered(bare).documents


def test_a_large_corpus_is_cut_and_says_so() -> None:
    one = document_of("0", "good", 0)
    documents = offered(Corpus("mine", ("a", "b"), {"test": [one] * (MOST_DOCUMENTS + 5)}))
    assert len(documents.documents) == MOST_DOCUMENTS
    assert documents.of == MOST_DOCUMENTS + 5
    assert np.all([document.label == "a" for document in documents.documents])
