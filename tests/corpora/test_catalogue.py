"""Corpora by name: what is known, what is here, how tokens were cut."""

from pathlib import Path

import pytest

from heedful.corpora import (
    available,
    load_corpus,
    read_file,
    read_texts,
    recipe_of,
)
from heedful.corpora.catalogue import CATALOGUE, READERS, parse_name
from heedful.corpora.recipes import PLAIN, CorpusRecipe, Row, Wanted, build
from heedful.corpora.tokens import tokenise
from heedful.errors import InputError
from tests.corpus_files import put, sst_root


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("imbd:2", "Unknown corpus 'imbd'.*Did you mean 'imdb'"),
        ("sst:3", "Unknown task of sst '3'; known: 2, 5"),
        ("sst:2/polarty", "Did you mean 'polarity'"),
        ("sms:2", "Unknown task of sms"),
        ("planted:4", "Unknown task of planted '4'"),
        ("eraser_movies/jw", "Unknown recipe of eraser_movies"),
    ],
)
def test_unknown_names_are_refused_with_the_known_ones(name: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        load_corpus(name)


def test_names_and_defaults() -> None:
    entry, task, recipe = parse_name("sst")
    assert (entry.name, task, recipe) == ("sst", "2", "")
    assert parse_name("ag_news:world-business/jw")[1:] == ("world-business", "jw")
    assert load_corpus(sizes={"train": 3}).name == "planted:2"
    short = load_corpus("planted:3:short", sizes={"train": 3}, seed=5)
    assert short.name == "planted:3:short"
    assert short.splits["train"][0].id == "planted:3:short/5/train/0"
    assert recipe_of("imdb:2/jw").min_count == 10
    assert recipe_of("reviews.csv") is PLAIN


def test_a_file_is_a_corpus_too(tmp_path: Path) -> None:
    rows = "".join(f"text {i},{i % 2}\n" for i in range(20))
    path = put(tmp_path, "mine.csv", "text,label\n" + rows)
    assert len(load_corpus(str(path)).splits["train"]) == 14
    odd = put(tmp_path, "mine.txt", "x")
    with pytest.raises(InputError, match=r"suffix '.txt'"):
        load_corpus(str(odd))


def test_what_is_here_and_what_to_put_where(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("HEEDFUL_DATA", raising=False)
    rows = {row.name: row for row in available()}
    assert set(rows) == set(CATALOGUE)
    assert [name for name, row in rows.items() if row.is_present] == ["planted", "synthetic"]
    assert rows["sst"].missing == ("sst/train.txt.gz", "sst/dev.txt.gz", "sst/test.txt.gz")
    assert "stanford" in rows["sst"].source
    assert ".../polarity" in rows["sst"].variants
    assert {"iwslt14/train.de", "iwslt14/valid.en"} <= set(rows["iwslt14"].missing)
    assert "news-commentary/it-pt.pt" in rows["news-commentary"].missing
    assert "OPUS" in rows["news-commentary"].source
    put(tmp_path, "sst/train.txt", "x")
    put(tmp_path, "ag_news/train_subset.csv.gz", "x")
    put(tmp_path, "ag_news_csv/test.csv", "x")
    rows = {row.name: row for row in available(tmp_path)}
    assert rows["sst"].missing == ("sst/dev.txt.gz", "sst/test.txt.gz")
    assert rows["ag_news"].is_present
    with pytest.raises(InputError, match=r"data root .* does not exist"):
        available(tmp_path / "absent")


@pytest.mark.parametrize("name", READERS)
def test_a_missing_file_is_named_with_place_and_source(tmp_path: Path, name: str) -> None:
    with pytest.raises(InputError) as refused:
        load_corpus(name, tmp_path)
    message = str(refused.value)
    assert str(tmp_path) in message
    assert "comes from" in message
    assert any(Path(file).name.split(".")[0] in message for file in CATALOGUE[name].files)


def test_no_data_root_and_other_kinds_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("HEEDFUL_DATA", raising=False)
    with pytest.raises(InputError, match="--data-root or HEEDFUL_DATA"):
        load_corpus("sst")
    with pytest.raises(InputError, match="read it with load_parallel"):
        load_corpus("multi30k", tmp_path)
    with pytest.raises(InputError, match="read it with load_parallel"):
        load_corpus("iwslt14", tmp_path)
    with pytest.raises(InputError, match="read it with load_lexicon"):
        load_corpus("warriner", tmp_path)


def test_every_reader_says_how_its_tokens_were_cut(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = sst_root(tmp_path, monkeypatch)
    assert load_corpus("sst:2", root).tokeniser == "whitespace"
    assert load_corpus("sst:2/polarity", root).tokeniser == "polarity"
    rows = "".join(f"text {i},{i % 2}\n" for i in range(20))
    path = put(tmp_path, "mine.csv", "text,label\n" + rows)
    assert load_corpus(str(path)).tokeniser == "words"
    assert read_file(path, tokeniser="jw").corpus.tokeniser == "jw"
    assert read_texts(path, ("0", "1"), tokeniser="polarity").corpus.tokeniser == "polarity"
    given = {"train": [Row(f"r{i}", "It's 2 late, they said", i % 2) for i in range(40)]}
    wanted = Wanted(Path(), "", CorpusRecipe(tokeniser="jw"), 0, "mine")
    corpus = build(wanted, ("a", "b"), given)
    assert corpus.tokeniser == "jw"
    for document in corpus.splits["train"]:
        assert tokenise(document.text, corpus.tokeniser).tokens == document.tokens
