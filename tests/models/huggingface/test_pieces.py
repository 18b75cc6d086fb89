"""Texts that nobody reads are not cut into pieces."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from heedful.corpora.batches import collate
from heedful.corpora.documents import Corpus
from heedful.corpora.texts import document_of
from tests.tiny_transformers import TEXTS, reader


def test_only_the_named_documents_are_cut_and_rows_stay_where_they_are(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    model = reader("bert")
    documents = [document_of(f"{n}", text, n % 3) for n, text in enumerate(TEXTS)]
    corpus = Corpus("some", model.classes, {"train": documents, "test": documents})
    whole = model.encode(corpus)
    cut: list[str] = []
    pieces = model.subwords.pieces

    def counted(texts: list[str], is_second: bool = False) -> object:
        cut.extend(texts)
        return pieces(texts, is_second)

    monkeypatch.setattr(model.subwords, "pieces", counted)
    some = model.encode(corpus, {"test": [1, 3]})
    assert cut == [TEXTS[1], TEXTS[3]]
    assert some.fingerprint == whole.fingerprint
    assert some.counts("train") == whole.counts("train")
    assert some.splits["test"].names == whole.splits["test"].names
    ours, theirs = (collate(one.splits["test"], [3, 1]) for one in (some, whole))
    for name in ("ids", "mask", "labels", "sentence"):
        assert torch.equal(getattr(ours, name), getattr(theirs, name))
    assert np.flatnonzero(some.splits["test"].lengths).tolist() == [1, 3]
