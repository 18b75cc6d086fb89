import sys

import numpy as np
import pytest

from heedful.corpora import Vocabulary, encode, planted
from heedful.corpora.vocabulary import PAD, UNKNOWN
from heedful.errors import InputError
from heedful.studies.erasure.corpora import pack, train_vectors, unpack


@pytest.fixture(scope="module")
def corpus():
    found = planted(2, "short", sizes={"train": 150, "dev": 20, "test": 10})
    return encode(found, Vocabulary.of(found.splits["train"], min_count=3))


def test_every_word_seen_has_a_vector_of_length_one(corpus) -> None:
    vectors = train_vectors(corpus, dim=8, passes=2)
    assert vectors.shape == (len(corpus.vocabulary), 8)
    seen = np.unique(np.concatenate([corpus.splits[s].ids for s in ("train", "dev")]))
    assert UNKNOWN in seen  # words below min_count stand as unknown, which is trained too
    np.testing.assert_allclose(np.linalg.norm(vectors[seen], axis=1), 1, atol=1e-5)
    assert (vectors[PAD] == 0).all()
    unseen = np.setdiff1d(np.arange(len(corpus.vocabulary)), [*seen, PAD])
    assert np.isnan(vectors[unseen]).all()


def test_the_same_seed_gives_the_same_vectors(corpus) -> None:
    first, again = (train_vectors(corpus, dim=8, passes=1, seed=3) for _ in range(2))
    np.testing.assert_array_equal(first, again)


def test_words_used_alike_come_close() -> None:
    """Two words that never meet but stand in the same sentences end up nearer than others."""
    from dataclasses import replace

    from heedful.corpora.texts import document_of

    texts = [f"{a} {b} {c}." for a in ("red", "blue") for b in ("car", "bus") for c in "xyz"] * 40
    texts += [
        f"{a} {b} {c}." for a in ("soup", "cake") for b in ("hot", "cold") for c in "uvw"
    ] * 40
    documents = [document_of(str(i), text, 0) for i, text in enumerate(texts)]
    found = replace(planted(2, "short", sizes={"train": 1}), splits={"train": documents})
    encoded = encode(found)
    vectors = train_vectors(encoded, dim=10, passes=30)
    word = {w: vectors[encoded.vocabulary.ids[w]] for w in ("red", "blue", "soup", "cake")}
    assert word["red"] @ word["blue"] > word["red"] @ word["soup"]
    assert word["soup"] @ word["cake"] > word["blue"] @ word["cake"]


def test_packed_vectors_come_back_within_half_a_step() -> None:
    vectors = np.random.default_rng(0).normal(size=(5, 20)).astype(np.float32)
    vectors[1], vectors[2] = 0, np.nan
    found = unpack(pack(vectors))
    assert (found[1] == 0).all()
    assert np.isnan(found[2]).all()
    step = np.abs(vectors).max(1) / 127
    defined = [0, 1, 3, 4]
    assert (np.abs(found - vectors)[defined] <= 0.5001 * step[defined, None]).all()


def test_without_gensim_the_error_names_the_extra(corpus, monkeypatch) -> None:
    monkeypatch.setitem(sys.modules, "gensim.models", None)
    with pytest.raises(InputError, match=r"heedful\[pretrain\]"):
        train_vectors(corpus, dim=4, passes=1)
