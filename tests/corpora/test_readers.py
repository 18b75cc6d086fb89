"""Readers of the real corpora, on made-up files in their formats."""

import hashlib
import io
import json
import tarfile
from pathlib import Path

import pytest

from heedful.corpora import (
    eraser,
    imdb,
    load_corpus,
    load_lexicon,
    load_parallel,
    messages,
    newsgroups,
    zhang,
)
from heedful.errors import InputError
from tests.corpus_files import TREES, holding, put, sst_root


def test_sst_trees_give_tokens_with_word_labels(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = sst_root(tmp_path, monkeypatch)
    first, second = load_corpus("sst:2", root).splits["train"]
    assert first.tokens == ("a", "good-ish", "(")
    assert first.word_labels is not None
    assert first.word_labels.tolist() == [2, 4, 2]
    assert (first.label, second.label) == (1, 0)
    assert second.tokens == ("bad", "1/2")
    first, second = load_corpus("sst:2/polarity", root).splits["train"]
    assert first.tokens == ("a", "good", "ish")
    assert first.word_labels is not None
    assert first.word_labels.tolist() == [2, 4, 4]
    assert second.tokens == ("bad", "1", "2")
    assert [d.label for d in load_corpus("sst:5", root).splits["train"]] == [3, 2, 1]


def test_a_half_file_is_told_by_count_and_by_checksum(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = sst_root(tmp_path, monkeypatch)
    put(root, "sst/train.txt.gz", TREES["train"].splitlines(keepends=True)[0])
    with pytest.raises(InputError, match=r"train.txt.gz should have 1 sentences.*found 0"):
        load_corpus("sst:2", root)
    whole = put(root, "sst/train.txt.gz", TREES["train"])
    digest = hashlib.sha256(whole.read_bytes()).hexdigest()
    put(root, "SHA256SUMS", f"{digest}  sst/train.txt.gz\n")
    load_corpus("sst:2", root)
    put(root, "SHA256SUMS", f"{'0' * 64}  sst/train.txt.gz\n")
    with pytest.raises(InputError, match=r"train.txt.gz does not have the checksum"):
        load_corpus("sst:2", root)
    (root / "SHA256SUMS").unlink()
    whole.write_bytes(whole.read_bytes()[:-6])
    with pytest.raises(
        InputError, match=r"train.txt.gz is not a whole gzip file .*; fetch it again"
    ):
        load_corpus("sst:2", root)


def test_imdb_by_sign_and_stars(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    stars = [star for star in imdb.STARS for _ in range(10)]
    lines = "".join(
        f"{'pos' if int(star) > 5 else 'neg'}\t{star}\t{n}\tGood<br /><br />film {n}.\n"
        for n, star in enumerate(stars)
    )
    for split in ("train", "test"):
        put(tmp_path, f"imdb/{split}.tsv.gz", lines)
    holding(monkeypatch, "imdb", {"train": (10,) * 8, "test": (10,) * 8})
    corpus = load_corpus("imdb", tmp_path)
    assert corpus.counts("train") == {"negative": 36, "positive": 36}
    assert corpus.counts("dev") == {"negative": 4, "positive": 4}
    document = corpus.splits["test"][0]
    assert document.tokens == ("good", "film", "0", ".")
    assert document.sentence.tolist() == [0, 1, 1, 1]
    assert corpus.stand_in_for is None
    starred = load_corpus("imdb:stars", tmp_path)
    assert set(starred.counts("test").values()) == {10}
    assert starred.stand_in_for is not None


def test_imdb_of_diao(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    reviews = [{"rating": 1 + i % 10, "review": f"r {i}", "user": "u"} for i in range(200)]
    put(tmp_path, "imdb_diao/data1.json", json.dumps(reviews[:120]))
    second = "".join(json.dumps(review) + "\n" for review in reviews[120:])
    put(tmp_path, "imdb_diao/data2.json", second)
    holding(monkeypatch, "imdb_diao", {"reviews": 200})
    corpus = load_corpus("imdb_diao", tmp_path)
    assert {split: len(d) for split, d in corpus.splits.items()} == {
        "train": 160, "dev": 20, "test": 20,
    }  # fmt: skip
    assert corpus.classes == tuple(map(str, range(1, 11)))
    put(tmp_path, "imdb_diao/data2.json", '[{"rating": 11, "review": "x"}]')
    with pytest.raises(InputError, match=r"data2.json, record 1: expected .* `rating`"):
        load_corpus("imdb_diao", tmp_path)


def ag_root(root: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    rows = "".join(
        f'"{1 + n % 4}","Title {n}","Profit of ""us"" is #36;5\\nand Tom #39;s"\n'
        for n in range(80)
    )
    put(root, "ag_news/train_subset.csv.gz", rows)
    put(root, "ag_news_csv/test.csv", rows)
    monkeypatch.setattr(zhang, "AG_SUBSET_COUNTS", (20, 20, 20, 20))
    holding(monkeypatch, "ag_news", {"train": 400, "test": 80})
    return root


def test_ag_news_classes_escapes_and_subset(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = ag_root(tmp_path, monkeypatch)
    corpus = load_corpus("ag_news", root)
    assert corpus.classes == ("World", "Sports", "Business", "Sci/Tech")
    assert corpus.notes["training rows of the official set that are not here"] == 320
    assert corpus.splits["test"][0].text == 'Title 0\n\nProfit of "us" is$5\nand Tom\'s'
    assert load_corpus("ag_news/erasure", root).stand_in_for is not None
    pair = load_corpus("ag_news:world-business", root)
    assert pair.classes == ("World", "Business")
    assert pair.counts("test") == {"World": 20, "Business": 20}
    bare = load_corpus("ag_news:business-world/faithful", root)
    assert bare.classes == ("Business", "World")
    assert bare.splits["test"][0].tokens[0] == "profit"
    assert sum(map(len, load_corpus("ag_news", root, limit=7).splits.values())) == 14
    with pytest.raises(InputError, match=r"Unknown class of ag_news 'wrld'.*'world'"):
        load_corpus("ag_news:wrld-business", root)
    with pytest.raises(InputError, match="one class only"):
        load_corpus("ag_news:world", root)


def test_large_csv_folders_and_cut_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    holding(monkeypatch, "yelp_full", {"train": 50, "test": 10})
    rows = "".join(f'"{1 + n % 5}","One. Two. {n}"\n' for n in range(50))
    put(tmp_path, "yelp_full/train.csv.gz", rows)
    put(tmp_path, "yelp_review_full_csv/test.csv", "".join(rows.splitlines(keepends=True)[:10]))
    corpus = load_corpus("yelp_full/erasure", tmp_path)
    assert corpus.counts("train") == dict.fromkeys("12345", 9)
    assert corpus.counts("dev") == dict.fromkeys("12345", 1)
    put(tmp_path, "yelp_full/train.csv.gz", rows[:-40])
    with pytest.raises(InputError, match=r"train.csv.gz should have 10 rows of class"):
        load_corpus("yelp_full", tmp_path)
    put(tmp_path, "yelp_full/train.csv.gz", "id,text\n")
    with pytest.raises(InputError, match="record 1: expected a class number"):
        load_corpus("yelp_full", tmp_path)


POST = """From: a@b.c
Subject: Goals

In article <1@x> d@e writes:
> who won
JD> and why
We won. Lines: 3 is no header here.

The goalie was great.
--
A. Fan
a@b.c
"""


def test_posts_lose_headers_footers_and_quotes_unless_kept() -> None:
    stripped = newsgroups.strip_post(POST)
    assert stripped == "We won. Lines: 3 is no header here.\n\nThe goalie was great."
    assert "Subject: Goals" in newsgroups.strip_post(POST, ("headers",))
    assert "A. Fan" in newsgroups.strip_post(POST, ("footers",))
    assert "> who won" in newsgroups.strip_post(POST, ("quotes",))
    assert newsgroups.strip_post(POST, newsgroups.REMOVABLE) == POST.strip()
    with pytest.raises(InputError, match="Did you mean 'quotes'"):
        newsgroups.strip_post(POST, ("quote",))


def test_newsgroups_by_full_or_short_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    posts = [
        {"label": newsgroups.GROUPS[n % 20], "id": str(n), "text": POST.replace("great", f"g{n}")}
        for n in range(400)
    ]
    lines = "".join(json.dumps(post) + "\n" for post in posts)
    for split in ("train", "test"):
        put(tmp_path, f"20newsgroups/bydate_{split}.jsonl.gz", lines)
    holding(monkeypatch, "20newsgroups", {"train": 400, "test": 400})
    corpus = load_corpus("20newsgroups:rec.sport.hockey,baseball", tmp_path)
    assert corpus.classes == ("rec.sport.hockey", "rec.sport.baseball")
    assert corpus.counts("test") == {"rec.sport.hockey": 20, "rec.sport.baseball": 20}
    assert len(load_corpus("20newsgroups", tmp_path).splits["test"]) == 400
    pooled = load_corpus("20newsgroups:baseball,hockey/jw", tmp_path)
    assert [len(pooled.splits[split]) for split in ("train", "dev", "test")] == [52, 12, 16]
    kept = load_corpus("20newsgroups:baseball,hockey", tmp_path, keep=("headers",))
    assert kept.splits["test"][0].tokens[0] == "from"
    with pytest.raises(InputError, match="Unknown newsgroup 'hardware'"):
        load_corpus("20newsgroups:hardware,hockey", tmp_path)


def test_sms_and_amazon(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    put(tmp_path, "sms_spam/SMSSpamCollection.tsv", "ham\thi\tthere\nspam\twin\n" * 20)
    holding(monkeypatch, "sms", {"ham": 20, "spam": 20})
    corpus = load_corpus("sms", tmp_path)
    assert corpus.counts("test") == {"ham": 3, "spam": 3}
    assert sum(map(len, corpus.splits.values())) == 40
    lines = "".join(
        f"{domain}\t{sign}\t{stars}.0\tA title\tSome text.\n"
        for domain in messages.AMAZON.counts
        for sign, stars in (("positive", 5), ("positive", 4), ("negative", 1), ("negative", 2))
        for _ in range(10)
    )
    put(tmp_path, "amazon_mds/reviews.tsv.gz", lines)
    holding(monkeypatch, "amazon", dict.fromkeys(messages.AMAZON.counts, 20))
    assert load_corpus("amazon", tmp_path).counts("test") == {"negative": 12, "positive": 12}
    starred = load_corpus("amazon:stars", tmp_path)
    assert starred.classes == ("1", "2", "4", "5")
    assert set(starred.counts("test").values()) == {6}
    assert starred.splits["test"][0].sentence.tolist() == [0, 0, 1, 1, 1]
    put(tmp_path, "sms_spam/SMSSpamCollection.tsv", "ham hi\n")
    with pytest.raises(InputError, match="line 1: expected 2 fields, found 1"):
        load_corpus("sms", tmp_path)


def eraser_archive(root: Path, end: int) -> None:
    span = {"docid": "a.txt", "start_token": 2, "end_token": end, "text": "so bad"}
    files = {"movies/docs/a.txt": "it was so bad .\nreally so .\n"}
    for part in ("train", "val", "test"):
        record = {"annotation_id": "a.txt", "classification": "NEG", "evidences": [[span]]}
        files[f"movies/{part}.jsonl"] = json.dumps(record) + "\n"
    path = root / eraser.ENTRY.files[0]
    path.parent.mkdir(exist_ok=True)
    with tarfile.open(path, "w:gz") as archive:
        for name, text in files.items():
            member = tarfile.TarInfo(name)
            member.size = len(text.encode())
            archive.addfile(member, io.BytesIO(text.encode()))


def test_eraser_rationales_are_evidence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    one = {"NEG": 1, "POS": 0}
    holding(monkeypatch, "eraser_movies", dict.fromkeys(("train", "val", "test"), one))
    eraser_archive(tmp_path, end=4)
    corpus = load_corpus("eraser_movies", tmp_path)
    assert corpus.tokeniser == "whitespace"
    document = corpus.splits["dev"][0]
    assert document.evidence is not None
    assert document.evidence.tolist() == [False, False, True, True] + [False] * 4
    assert document.sentence.tolist() == [0, 0, 0, 0, 0, 1, 1, 1]
    eraser_archive(tmp_path, end=5)
    with pytest.raises(InputError, match=r"rationale of a.txt does not fit"):
        load_corpus("eraser_movies", tmp_path)


def test_parallel_text_is_line_aligned(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    holding(monkeypatch, "multi30k", {"train": ("train", 2)})
    put(tmp_path, "multi30k/train.en.gz", "a dog\na cat\n")
    put(tmp_path, "multi30k/train.de.gz", "ein Hund\neine Katze\n")
    pairs = load_parallel("multi30k", tmp_path)
    assert pairs.splits["train"] == [("ein Hund", "a dog"), ("eine Katze", "a cat")]
    assert load_parallel("multi30k", tmp_path, ("en", "de")).splits["train"][0][0] == "a dog"
    put(tmp_path, "multi30k/train.en.gz", "a dog\n")
    with pytest.raises(InputError, match=r"train.en.gz should have 2 sentences, found 1"):
        load_parallel("multi30k", tmp_path)


def test_lexicons_of_two_columns(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    put(tmp_path, "warriner/warriner_valence.csv", "good,7.5\rBad,2.5\rAIDS,1\raids,4")
    holding(monkeypatch, "warriner", {"words": 4})
    expected = {"good": 7.5, "bad": 2.5, "AIDS": 1.0, "aids": 4.0}
    assert load_lexicon("warriner", tmp_path) == expected
    tabs = put(tmp_path, "mine.tsv", "word\tvalence\r\ngood\t1\r\n")
    assert load_lexicon(str(tabs)) == {"good": 1.0}
    for text, message in (
        ("good,1\nbad,x\n", "line 2: expected a word and a number"),
        ("", "has no words"),
    ):
        with pytest.raises(InputError, match=message):
            load_lexicon(str(put(tmp_path, "bad.csv", text)))
