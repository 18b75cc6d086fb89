"""Readers of a user's documents: CSV, TSV, JSON and JSON Lines, Parquet, plain or gzipped."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable, Sequence
from datetime import date, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from heedful.corpora.encoded import encode
from heedful.corpora.files import read_file, read_texts
from tests.torture.mutation import damaged, tampered
from tests.torture.reader import Damage, Reader, each

ROWS = [
    {"id": f"r{n}", "text": f"The food was {'good' if n % 2 else 'bad'}, {n} of us said so.",
     "label": ("neg", "pos")[n % 2], "split": ("train", "train", "dev", "test")[n % 4]}
    for n in range(16)
]  # fmt: skip
RATED = [{"review": f"So {n} so.", "stars": 0.5 * (n % 7)} for n in range(12)]
CLASSES = ("neg", "pos")


def _read_documents(path: Path) -> None:
    def labelled(**options: Any) -> None:
        found = read_file(path, **options).corpus
        assert len(found.fingerprint) == 16
        encode(found)

    each(
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


def separated(rows: Sequence[dict[str, Any]], separator: str) -> bytes:
    text = io.StringIO()
    writer = csv.DictWriter(text, list(rows[0]), delimiter=separator)
    writer.writeheader()
    writer.writerows(rows)
    return text.getvalue().encode()


def separated_seeds(separator: str) -> list[bytes]:
    quoted = [dict(row, text=f'He said "{row["id"]}",\nthen left.\tFine.') for row in ROWS]
    return [separated(rows, separator) for rows in (ROWS, RATED, quoted)]


JSON_LINES = [b"".join(json.dumps(row).encode() + b"\n" for row in rows) for rows in (ROWS, RATED)]


def odd_rows(is_lines: bool) -> Damage:
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
