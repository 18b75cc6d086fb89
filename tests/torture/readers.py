"""Every reader of something that a user, or someone who sends a file, can give; with valid seeds.

A reader takes the bytes of one file, puts them where they belong and reads them as a command does.
"""

from __future__ import annotations

import gzip
import io
import json
import tarfile
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from random import Random
from typing import Any
from unittest import mock

from heedful.cluster.sweep import read_grid
from heedful.corpora import eraser, load_corpus, sst
from heedful.corpora.catalogue import parse_name
from heedful.corpora.documents import Corpus
from heedful.corpora.encoded import encode
from heedful.corpora.files import read_file, read_texts
from heedful.corpora.labels import Labelling
from heedful.corpora.lexicon import read_ratings
from heedful.corpora.narratives import read_narratives, windowed
from heedful.corpora.pair_files import dev_rows, read_links, usable_pairs
from heedful.corpora.planted import planted
from heedful.corpora.prepared import load_prepared, prepare
from heedful.corpora.texts import document_of
from heedful.corpora.tokens import TOKENISERS
from heedful.corpora.vectors import load_vectors
from heedful.corpora.vocabulary import SPECIALS, Vocabulary
from heedful.jobs.settings import read_settings
from heedful.models.recipe import looks_like_recipe, parse
from tests.corpus_files import TREES
from tests.torture.mutation import damaged, tampered
from tests.torture.reader import Family, Reader, each
from tests.torture.table_files import (
    CLASSES,
    JSON_LINES,
    RATED,
    ROWS,
    odd_rows,
    parquet,
    separated,
    separated_seeds,
    table_file,
)


def trees(folder: Path) -> Reader:
    """The Stanford trees, with any number of sentences."""
    (folder / "sst").mkdir()
    for split, text in TREES.items():
        (folder / "sst" / f"{split}.txt").write_text(text)

    def read(data: bytes) -> None:
        (folder / "sst" / "train.txt").write_bytes(data)
        with mock.patch.object(sst, "expect"):
            each(
                lambda: load_corpus("sst:2", folder),
                lambda: load_corpus("sst:5", folder),
                lambda: load_corpus("sst:2/polarity", folder),
            )

    return Reader([text.encode() for text in TREES.values()], read)


def _archive(files: dict[str, bytes]) -> bytes:
    held = io.BytesIO()
    with tarfile.open(fileobj=held, mode="w") as archive:
        for name, data in files.items():
            entry = tarfile.TarInfo(name)
            entry.size = len(data)
            archive.addfile(entry, io.BytesIO(data))
    return held.getvalue()


def _rationales(label: str, id: str) -> dict[str, Any]:
    span = {"start_token": 1, "end_token": 3, "text": "good food", "docid": id}
    return {"annotation_id": id, "classification": label, "evidences": [[span]]}


def rationales(folder: Path) -> Reader:
    """The archive of film reviews with rationales: its bytes, and the records inside."""
    (folder / "eraser_movies").mkdir()
    path = folder / eraser.ENTRY.files[0]
    records = [_rationales(label, f"r{n}.txt") for n, label in enumerate(("POS", "NEG", "POS"))]
    docs = {f"movies/docs/r{n}.txt": b"some good food .\nfine !" for n in range(3)}

    def packed(lines: bytes) -> bytes:
        return _archive(docs | {f"movies/{n}.jsonl": lines for n in ("train", "val", "test")})

    whole = packed(b"\n".join(json.dumps(record).encode() for record in records))
    inner = [json.dumps(record).encode() for record in records]

    def damage(seeds: Sequence[bytes], random: Random) -> bytes:
        how = random.random()
        if how < 0.2:
            return damaged(seeds, random)
        inside = packed(tampered(inner, random).replace(b"\n", b" "))
        return gzip.compress(damaged([whole], random) if how < 0.5 else inside, 1, mtime=0)

    def read(data: bytes) -> None:
        path.write_bytes(data)
        with mock.patch.object(eraser, "expect"):
            load_corpus("eraser_movies", folder)

    return Reader([gzip.compress(whole, mtime=0)], read, damage)


def vectors(folder: Path) -> Reader:
    """Word vectors, plain or gzipped."""
    words = Vocabulary((*SPECIALS, "good", "bad", "food"))
    plain = b"3 4\ngood 1 2 3 4\nbad 0.5 -1 1e3 0\nfood 0 0 0 1\n"

    def read(data: bytes) -> None:
        path = folder / ("vectors.txt.gz" if data[:2] == b"\x1f\x8b" else "vectors.txt")
        path.write_bytes(data)
        load_vectors(path, words)

    return Reader([plain, plain[4:], gzip.compress(plain, mtime=0)], read)


def lexicon(folder: Path) -> Reader:
    """Words with values."""
    path = folder / "lexicon.csv"

    def read(data: bytes) -> None:
        path.write_bytes(data)
        read_ratings(path)

    seeds = [
        b"word,valence\ngood,7.5\nbad,2\nAIDS,1\naids,2\n",
        b"good\t1.5\t0.3\t[1, 2]\n:(\t-2\n",
    ]
    return Reader(seeds, read)


SETTINGS = b"""[model]
embedding_dim = 20
dropout = 0.5
scale = 2
[train]
epochs = 3
learning_rate = 1e-3
evaluate_at = [1, 2]
[words]
min_count = 1
max_size = 100
words_of = ["train", "dev"]
[penalties]
tying_over = "sum"
"""


def settings(folder: Path) -> Reader:
    """TOML settings, put together with a recipe."""
    path = folder / "settings.toml"

    def read(data: bytes) -> None:
        path.write_bytes(data)
        found = read_settings(path)
        each(*(
            lambda name=name: parse(name, **found.model)  # type: ignore[misc]
            for name in ("bilstm+additive", "none+dot")
        ))  # fmt: skip

    return Reader([SETTINGS, SETTINGS.partition(b"[words]")[0], b"[train]\nepochs = 2\n"], read)


RECIPES = (
    b"bilstm+additive", b"han:bigru*2+dot@0.5+concat", b"none+scaled-dot+vw:1e-3",
    b"gru*1000+additive+tying:10+mlm:0.5", b"conv+uniform", b"affine+additive-relu+residual",
)  # fmt: skip


GRID = b"""models = ["none+additive", "runs/mine"]
corpora = ["planted:2:short", "mine.csv"]
seeds = [0, 1]
audits = ["exchange"]
methods = ["attention", "random"]
documents = 20
[settings.usual]
[settings.small.model]
embedding_dim = 6
"""


def grids(folder: Path) -> Reader:
    """Grids of a sweep."""
    path = folder / "grid.toml"

    def read(data: bytes) -> None:
        path.write_bytes(data)
        read_grid(path)

    return Reader([GRID, GRID.partition(b"audits")[0]], read)


def recipes(folder: Path) -> Reader:
    """Recipes as typed."""

    def read(data: bytes) -> None:
        text = data.decode("utf-8", "surrogateescape")
        looks_like_recipe(text)
        recipe = parse(text)
        assert parse(str(recipe)) == recipe

    return Reader(RECIPES, read)


def corpus_names(folder: Path) -> Reader:
    """Names of corpora, tasks and their recipes as typed."""
    seeds = (
        b"planted:2:short",
        b"synthetic:data1",
        b"sst:2/polarity",
        b"20newsgroups:hockey,baseball",
        b"imdb:stars",
    )

    def read(data: bytes) -> None:
        text = data.decode("utf-8", "surrogateescape")
        entry = parse_name(text)[0]
        if entry.name not in ("planted", "synthetic"):
            load_corpus(text, folder)

    return Reader(seeds, read)


def label_options(folder: Path) -> Reader:
    """`--labels`, on a file and as a language model's words."""
    from heedful.cli.options import Options

    path = folder / "documents.csv"
    path.write_bytes(separated(ROWS, ","))
    seeds = (b"neg=LABEL_0,pos=LABEL_1", b"positive,negative", b"1=positive, 0=negative")

    def read(data: bytes) -> None:
        text = data.decode("utf-8", "surrogateescape")
        each(
            lambda: Options(prompt="{text}", labels=text).asking("lm:model"),
            lambda: Labelling.of(text),
            lambda: read_texts(path, CLASSES, labels=text),
            lambda: read_file(path, labels=text),
        )

    return Reader(seeds, read)


def texts(folder: Path) -> Reader:
    """A document's text under every token rule."""
    seeds = ("Good food. Bad service!\n\nIt wasn't <br /> it's 3.5 of 10.", "漢字 かな e\u0301 😀")

    def read(data: bytes) -> None:
        text = data.decode("utf-8", "replace")
        documents = {
            rule: document_of("one", text, 0, rule)
            for rule in TOKENISERS
        }  # fmt: skip
        for rule, document in documents.items():
            corpus = Corpus("text", CLASSES, {"train": [document]}, tokeniser=rule)
            encode(corpus, min_count=1)

    return Reader([text.encode() for text in seeds], read)


def narratives(folder: Path) -> Reader:
    """A folder of words and ratings over time; either file may be the damaged one."""
    good = {
        "words": b"time\tword\n0.5\tso\n1.5\tgood\n6\tthen\n11.5\tbad\n",
        "ratings": b"time,rating\n0.5,50\n4,60\n6,70\n9,0\n12,100\n",
    }
    for split in ("train", "dev"):
        for kind, suffix in (("words", "tsv"), ("ratings", "csv")):
            (folder / split / kind).mkdir(parents=True)
            (folder / split / kind / f"1.{suffix}").write_bytes(good[kind])

    def read(data: bytes) -> None:
        is_words = b"word" in data[:40] or b"rating" not in data[:40]
        for kind, suffix in (("words", "tsv"), ("ratings", "csv")):
            given = data if is_words == (kind == "words") else good[kind]
            (folder / "train" / kind / f"1.{suffix}").write_bytes(given)
        found = read_narratives(folder)
        assert len(found.fingerprint) == 16
        for one in found.splits["train"]:
            windowed(one)

    return Reader(list(good.values()), read)


def pairs(folder: Path) -> Reader:
    """Two files of sentences, and the links between their words."""
    source, target, links = (folder / name for name in ("a.txt", "b.txt", "links.txt"))
    target.write_text("".join(f"ein satz {n}\n" for n in range(12)))
    lines = "".join(f"one sentence {n}\n" for n in range(12)).encode()
    linked = b"0-0 1-1 2-2\n" * 12

    def read(data: bytes) -> None:
        is_links = b"-" in data[:4]
        source.write_bytes(lines if is_links else data)
        links.write_bytes(data if is_links else linked)
        found = usable_pairs(source, target)
        each(lambda: dev_rows(found.pairs), lambda: read_links(links, found))

    return Reader([lines, linked], read)


def prepared(folder: Path) -> Reader:
    """A prepared corpus: its header and tokens, with checksums that fit the damage."""
    import hashlib

    from heedful.corpora.prepared import _HEADER, _TOKENS

    place = folder / "prepared"
    prepare(planted(2, "short", 0, {"train": 6, "dev": 2, "test": 2}), place)
    header = (place / _HEADER).read_bytes()
    whole = gzip.decompress((place / _TOKENS).read_bytes())
    packed = (place / _TOKENS).read_bytes()

    def damage(seeds: Sequence[bytes], random: Random) -> bytes:
        how = random.random()
        if how < 0.5:
            return tampered([header], random)
        if how < 0.8:
            return gzip.compress(damaged([whole], random), mtime=0)
        return damaged([packed], random)

    def read(data: bytes) -> None:
        is_tokens = data[:1] == b"\x1f"
        (place / _TOKENS).write_bytes(data if is_tokens else packed)
        said = header if is_tokens else data
        with suppress(ValueError, AttributeError, TypeError, KeyError, RecursionError):
            known = json.loads(said)
            if _TOKENS in known["sha256"]:
                known["sha256"][_TOKENS] = hashlib.sha256(
                    (place / _TOKENS).read_bytes()
                ).hexdigest()
            said = json.dumps(known).encode() if is_tokens else said
        (place / _HEADER).write_bytes(said)
        load_prepared(place)

    return Reader([header, packed], read, damage)


FAMILIES: dict[str, Family] = {
    "CSV": Family(table_file(".csv", separated_seeds(",")), 20_000),
    "TSV": Family(table_file(".tsv", separated_seeds("\t")), 10_000),
    "JSON Lines": Family(table_file(".jsonl", JSON_LINES, odd_rows(True)), 20_000),
    "JSON": Family(
        table_file(".json", [json.dumps(r).encode() for r in (ROWS, RATED)], odd_rows(False)),
        10_000,
    ),
    "gzipped CSV": Family(
        table_file(".csv.gz", [gzip.compress(one, mtime=0) for one in separated_seeds(",")]),
        10_000,
    ),
    "Parquet": Family(parquet, 20_000),
    "SST trees": Family(trees, 20_000),
    "rationale archive": Family(rationales, 10_000),
    "word vectors": Family(vectors, 150_000),
    "lexicon": Family(lexicon, 250_000),
    "TOML settings": Family(settings, 60_000),
    "grid of a sweep": Family(grids, 30_000),
    "recipe": Family(recipes, 400_000),
    "corpus name": Family(corpus_names, 60_000),
    "label option": Family(label_options, 20_000),
    "text": Family(texts, 10_000),
    "narratives": Family(narratives, 20_000),
    "pair files": Family(pairs, 20_000),
    "prepared corpus": Family(prepared, 5_000),
}
"""Readers of files and options; those of runs and models are in `opened`."""
