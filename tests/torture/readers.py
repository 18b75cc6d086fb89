"""Every reader of something that a user, or someone who sends a file, can give; with valid seeds.

A reader takes the bytes of one file, puts them where they belong and reads them as a command does.
"""

from __future__ import annotations

import csv
import gzip
import io
import json
import tarfile
import unicodedata
from collections.abc import Callable, Sequence
from contextlib import suppress
from datetime import date, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from random import Random
from typing import Any, NamedTuple
from unittest import mock

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

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
from heedful.errors import LONGEST, InputError
from heedful.jobs.settings import read_settings
from heedful.models.recipe import looks_like_recipe, parse
from tests.corpus_files import TREES
from tests.torture.mutation import damaged, tampered

_DIRECTIONS = frozenset(["LRE", "RLE", "LRO", "RLO", "PDF", "LRI", "RLI", "FSI", "PDI"])


def sentence(error: InputError) -> str:
    """What an error says, if it is one line of bounded length that a terminal shows, not obeys."""
    said = str(error)
    if not 10 < len(said) < LONGEST + 10 or any(
        unicodedata.category(letter) in ("Cc", "Cs", "Zl", "Zp")
        or unicodedata.bidirectional(letter) in _DIRECTIONS
        or letter in "\u061c\u200e\u200f"
        for letter in said
    ):
        raise AssertionError(f"no sentence: {said[:300]!r}")
    return said


Damage = Callable[[Sequence[bytes], Random], bytes]


class Reader(NamedTuple):
    """How one kind of file is read, and valid ones to start from."""

    seeds: Sequence[bytes]
    read: Callable[[bytes], object]
    damage: Damage = damaged


class Family(NamedTuple):
    """A reader that is made in an empty folder of its own, and how many inputs a long run tries."""

    make: Callable[[Path], Reader]
    inputs: int


ROWS = [
    {"id": f"r{n}", "text": f"The food was {'good' if n % 2 else 'bad'}, {n} of us said so.",
     "label": ("neg", "pos")[n % 2], "split": ("train", "train", "dev", "test")[n % 4]}
    for n in range(16)
]  # fmt: skip
RATED = [{"review": f"So {n} so.", "stars": 0.5 * (n % 7)} for n in range(12)]
CLASSES = ("neg", "pos")


def _each(*attempts: Callable[[], object]) -> None:
    """Makes every attempt, whether those before it were refused or not; counts is the first."""
    refused = []
    for number, attempt in enumerate(attempts):
        try:
            attempt()
        except InputError as error:
            sentence(error)
            refused += [] if number else [error]
    if refused:
        raise refused[0]


def _read_documents(path: Path) -> None:
    def labelled(**options: Any) -> None:
        found = read_file(path, **options).corpus
        assert len(found.fingerprint) == 16
        encode(found)

    _each(
        labelled,
        lambda: labelled(threshold=1.5),
        lambda: labelled(labels="neg=a,pos=b"),
        lambda: read_texts(path, CLASSES),
    )


def table_file(
    suffix: str, seeds: Sequence[bytes], damage: Damage = damaged
) -> Callable[[Path], Reader]:
    """A file of documents with that suffix."""

    def make(folder: Path) -> Reader:
        path = folder / f"documents{suffix}"

        def read(data: bytes) -> None:
            path.write_bytes(data)
            _read_documents(path)

        return Reader(seeds, read, damage)

    return make


def _separated(rows: Sequence[dict[str, Any]], separator: str) -> bytes:
    text = io.StringIO()
    writer = csv.DictWriter(text, list(rows[0]), delimiter=separator)
    writer.writeheader()
    writer.writerows(rows)
    return text.getvalue().encode()


def _separated_seeds(separator: str) -> list[bytes]:
    quoted = [dict(row, text=f'He said "{row["id"]}",\nthen left.\tFine.') for row in ROWS]
    return [_separated(rows, separator) for rows in (ROWS, RATED, quoted)]


JSON_LINES = [b"".join(json.dumps(row).encode() + b"\n" for row in rows) for rows in (ROWS, RATED)]


def _odd_rows(is_lines: bool) -> Damage:
    """Half of the inputs: damaged bytes; half: well-formed JSON whose values are others."""

    def damage(seeds: Sequence[bytes], random: Random) -> bytes:
        if random.random() < 0.5:
            return damaged(seeds, random)
        rows = json.loads(tampered([json.dumps(ROWS).encode()], random, is_whole=True))
        if not is_lines or not isinstance(rows, list):
            return json.dumps(rows).encode()
        return b"".join(json.dumps(row).encode() + b"\n" for row in rows)

    return damage


def _parquet_bytes(table: pa.Table) -> bytes:
    file = io.BytesIO()
    pq.write_table(table, file)
    return file.getvalue()


KINDS: Sequence[Callable[[Random, int], pa.Array]] = (
    lambda r, n: pa.array([r.choice(("a b", "", "é", None)) for _ in range(n)], pa.string()),
    lambda r, n: pa.array([r.randint(-(2**63), 2**63 - 1) for _ in range(n)], pa.timestamp("us")),
    lambda r, n: pa.array([r.randint(-(2**63), 2**63 - 1) for _ in range(n)]).cast(
        pa.timestamp(r.choice(["ns", "us", "ms"]), tz=r.choice((None, "UTC", "+23:59")))
    ),
    lambda r, n: pa.array([r.randint(-(2**31), 2**31 - 1) for _ in range(n)], pa.int32()).cast(
        pa.date32()
    ),
    lambda r, n: pa.array([r.randint(0, 10**14) for _ in range(n)], pa.duration("s")),
    lambda r, n: pa.array([Decimal(r.randint(-99, 99)) for _ in range(n)], pa.decimal128(38, 30)),
    lambda r, n: pa.array([r.randbytes(4) for _ in range(n)], pa.binary()),
    lambda r, n: pa.Array.from_buffers(pa.string(), n, [None, *map(
        pa.py_buffer, (np.arange(0, 3 * n + 1, 3, np.int32), r.randbytes(3 * n))
    )]),
    lambda r, n: pa.array([r.choice((None, [], [1, None], [2])) for _ in range(n)]),
    lambda r, n: pa.array([{"a": r.random(), "b": None} for _ in range(n)]),
    lambda r, n: pa.array([[("k", 1)], None] * (n // 2) + [None] * (n % 2),
                          pa.map_(pa.string(), pa.int32())),
    lambda r, n: pa.array([r.choice((0.0, 1.0, float("nan"), 1e300)) for _ in range(n)]),
    lambda r, n: pa.array([r.choice((True, False, None)) for _ in range(n)]),
    lambda r, n: pa.array(["x", "y"] * (n // 2) + ["x"] * (n % 2)).dictionary_encode(),
    lambda r, n: pa.nulls(n),
    lambda r, n: pa.array([timedelta(days=r.randint(0, 9)) for _ in range(n)]),
    lambda r, n: pa.array([datetime(2026, 1, 1) for _ in range(n)]),
    lambda r, n: pa.array([date(1, 1, 1) for _ in range(n)]),
    lambda r, n: pa.array([("a", "b")[place % 2] for place in range(n)]),
)  # fmt: skip
"""Columns of every type that Parquet has, with values at the borders of what Python has."""


def _odd_parquet(seeds: Sequence[bytes], random: Random) -> bytes:
    """Half of the inputs: damaged bytes; half: whole files of odd columns."""
    if random.random() < 0.5:
        return damaged(seeds, random)
    names = ("text", "label", *random.sample(("id", "split", "x", "", "\x1b[2J", "set"), 2))
    size = random.choice((0, 1, 2, 12))
    columns = {name: random.choice(KINDS)(random, size) for name in names}
    sound = dict(zip(names, (KINDS[0], KINDS[-1]), strict=False))
    for name in random.sample(list(sound), random.randint(0, 2)):
        columns[name] = sound[name](random, size)
    return _parquet_bytes(pa.table(columns))


def parquet(folder: Path) -> Reader:
    """Parquet files."""
    seeds = [_parquet_bytes(pa.Table.from_pylist(rows)) for rows in (ROWS, RATED)]
    return table_file(".parquet", seeds, _odd_parquet)(folder)


def trees(folder: Path) -> Reader:
    """The Stanford trees, with any number of sentences."""
    (folder / "sst").mkdir()
    for split, text in TREES.items():
        (folder / "sst" / f"{split}.txt").write_text(text)

    def read(data: bytes) -> None:
        (folder / "sst" / "train.txt").write_bytes(data)
        with mock.patch.object(sst, "expect"):
            _each(
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
        _each(*(
            lambda name=name: parse(name, **found.model)  # type: ignore[misc]
            for name in ("bilstm+additive", "none+dot")
        ))  # fmt: skip

    return Reader([SETTINGS, SETTINGS.partition(b"[words]")[0], b"[train]\nepochs = 2\n"], read)


RECIPES = (
    b"bilstm+additive", b"han:bigru*2+dot@0.5+concat", b"none+scaled-dot+vw:1e-3",
    b"gru*1000+additive+tying:10+mlm:0.5", b"conv+uniform", b"affine+additive-relu+residual",
)  # fmt: skip


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
    path.write_bytes(_separated(ROWS, ","))
    seeds = (b"neg=LABEL_0,pos=LABEL_1", b"positive,negative", b"1=positive, 0=negative")

    def read(data: bytes) -> None:
        text = data.decode("utf-8", "surrogateescape")
        _each(
            lambda: Options(prompt="{text}", labels=text).asking(),
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
        _each(lambda: dev_rows(found.pairs), lambda: read_links(links, found))

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
    "CSV": Family(table_file(".csv", _separated_seeds(",")), 20_000),
    "TSV": Family(table_file(".tsv", _separated_seeds("\t")), 10_000),
    "JSON Lines": Family(table_file(".jsonl", JSON_LINES, _odd_rows(True)), 20_000),
    "JSON": Family(
        table_file(".json", [json.dumps(r).encode() for r in (ROWS, RATED)], _odd_rows(False)),
        10_000,
    ),
    "gzipped CSV": Family(
        table_file(".csv.gz", [gzip.compress(one, mtime=0) for one in _separated_seeds(",")]),
        10_000,
    ),
    "Parquet": Family(parquet, 20_000),
    "SST trees": Family(trees, 20_000),
    "rationale archive": Family(rationales, 10_000),
    "word vectors": Family(vectors, 150_000),
    "lexicon": Family(lexicon, 250_000),
    "TOML settings": Family(settings, 60_000),
    "recipe": Family(recipes, 400_000),
    "corpus name": Family(corpus_names, 60_000),
    "label option": Family(label_options, 20_000),
    "text": Family(texts, 10_000),
    "narratives": Family(narratives, 20_000),
    "pair files": Family(pairs, 20_000),
    "prepared corpus": Family(prepared, 5_000),
}
"""Readers of files and options; those of runs and models are in `opened`."""
