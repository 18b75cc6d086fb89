from pathlib import Path

import numpy as np
import pytest

from heedful.corpora import (
    Corpus,
    Document,
    document_of,
    encode,
    load_prepared,
    planted,
    prepare,
    recipe_of,
    recipes,
)
from heedful.corpora.encoded import Encoded
from heedful.corpora.recipes import Row
from heedful.errors import InputError
from heedful.models import build, load_model, parse, save_model


def same(left: Encoded, right: Encoded) -> None:
    assert left.names == right.names
    for name in ("ids", "starts", "labels", "sentence"):
        assert np.array_equal(getattr(left, name), getattr(right, name)), name
    assert (left.evidence is None) == (right.evidence is None)
    if left.evidence is not None:
        assert np.array_equal(left.evidence, right.evidence)


def test_a_prepared_corpus_is_the_encoded_one_without_documents(tmp_path: Path) -> None:
    corpus = planted(3, sizes={"train": 60, "dev": 20, "test": 20})
    expected = encode(corpus, min_count=2)
    prepare(corpus, tmp_path / "out", min_count=2)
    loaded = load_prepared(tmp_path / "out")
    assert loaded.vocabulary == expected.vocabulary
    assert loaded.classes == expected.classes
    assert loaded.fingerprint == expected.fingerprint
    assert loaded.notes == expected.notes
    assert loaded.vectors is None
    for split, part in expected.splits.items():
        same(loaded.splits[split], part)
        assert loaded.splits[split].documents is None


def odd_corpus() -> Corpus:
    """Empty, unlabelled, oddly named and long documents; over 65,536 words; no evidence."""
    many = " ".join(f"w{number}" for number in range(70_000))
    documents: list[Document] = [
        document_of("empty", "", 0),
        document_of("name with \n and é \ud800", "One. Two. Three.", 1),
        document_of("many", many, 0),
        document_of("unlabelled", "a b", -1),
    ]
    return Corpus("odd", ("a", "b"), {"train": documents, "test": []})


@pytest.mark.slow
def test_odd_documents_and_large_vocabularies_survive(tmp_path: Path) -> None:
    expected = encode(odd_corpus(), max_tokens=100_000)
    prepare(odd_corpus(), tmp_path / "out", max_tokens=100_000)
    loaded = load_prepared(tmp_path / "out")
    assert len(loaded.vocabulary) > 65_536
    for split, part in expected.splits.items():
        same(loaded.splits[split], part)


@pytest.mark.slow
def test_vectors_of_the_vocabulary_are_kept_and_missing_ones_are_nan(tmp_path: Path) -> None:
    (tmp_path / "v.txt").write_text("the 0.5 -1.25\nfilm 2 3\n", encoding="utf-8")
    corpus = planted(2, sizes={"train": 80})
    prepare(corpus, tmp_path / "out", vectors=tmp_path / "v.txt")
    loaded = load_prepared(tmp_path / "out")
    assert loaded.vectors is not None
    assert loaded.vectors.dtype == np.float32
    row = loaded.vectors[loaded.vocabulary.ids["the"]]
    assert row.tolist() == [0.5, -1.25]
    assert np.isnan(loaded.vectors).all(-1).sum() == len(loaded.vocabulary) - 2


def test_same_corpus_same_bytes(tmp_path: Path) -> None:
    corpus = planted(2, sizes={"train": 50})
    for name in ("a", "b"):
        prepare(corpus, tmp_path / name)
    for file in (tmp_path / "a").iterdir():
        assert file.read_bytes() == (tmp_path / "b" / file.name).read_bytes()


@pytest.mark.slow
def test_a_word_costs_less_than_two_bytes(tmp_path: Path) -> None:
    corpus = planted(2, sizes={"train": 2_000})
    encoded = prepare(corpus, tmp_path / "out")
    size = sum(file.stat().st_size for file in (tmp_path / "out").iterdir())
    assert size / len(encoded.splits["train"].ids) < 2


def test_a_damaged_or_missing_folder_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="holds no prepared corpus"):
        load_prepared(tmp_path)
    prepare(planted(2, sizes={"train": 10}), tmp_path / "out")
    tokens = tmp_path / "out" / "tokens.safetensors.gz"
    tokens.write_bytes(tokens.read_bytes()[:-5])
    with pytest.raises(InputError, match=r"tokens.safetensors.gz is missing or damaged"):
        load_prepared(tmp_path / "out")


def test_a_failed_preparation_leaves_the_old_one(tmp_path: Path) -> None:
    corpus = planted(2, sizes={"train": 10})
    prepare(corpus, tmp_path / "out")
    with pytest.raises(InputError, match="cannot be read"):
        prepare(corpus, tmp_path / "out", vectors=tmp_path / "absent.txt")
    assert load_prepared(tmp_path / "out").fingerprint == corpus.fingerprint
    assert [path.name for path in tmp_path.iterdir()] == ["out"]


def test_a_model_keeps_the_token_rule_of_its_corpus(tmp_path: Path) -> None:
    given = {"train": [Row(f"r{i}", "It's not good" + " (2)" * (i % 7), i % 2) for i in range(40)]}
    wanted = recipes.Wanted(Path(), "2", recipe_of("imdb:2/jw"), 0, "mine")
    corpus = recipes.build(wanted, ("a", "b"), given)
    assert encode(corpus).tokeniser == "polarity"
    assert prepare(corpus, tmp_path / "prepared").tokeniser == "polarity"
    data = load_prepared(tmp_path / "prepared")
    config = parse("none+dot", embedding_dim=2).model
    model = build(config, data.vocabulary, data.classes, tokeniser=data.tokeniser)
    save_model(model, tmp_path / "model")
    again = load_model(tmp_path / "model")
    assert again.tokeniser == "polarity"
    words = again.batch(["It's good!"]).documents
    assert words is not None
    assert words[0].tokens == ("it", "s", "good")
