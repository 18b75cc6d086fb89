"""Audits over shards, measured: documents per second and peak memory, in a process of its own.

    python -m benchmarks.shards FOLDER MODEL DOCUMENTS [--each 10000] [-- options of heedful audit]

writes generated documents (`planted:2:short`) into FOLDER once, audits MODEL on all of them and
prints one line of JSON.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import time
from pathlib import Path

import pandas as pd

from heedful.corpora import load_corpus


def written(folder: Path, documents: int, each: int) -> Path:
    """Shards of generated documents, those of a smaller number first."""
    place = folder / f"documents-{each}"
    place.mkdir(parents=True, exist_ok=True)
    for shard in range(documents // each):
        path = place / f"part-{shard:05d}.parquet"
        if not path.is_file():
            sizes = {"train": 2, "dev": 2, "test": each}
            corpus = load_corpus("planted:2:short", seed=1000 + shard, sizes=sizes)
            rows = [
                {"id": f"{shard}-{row}", "text": one.text, "label": corpus.classes[one.label]}
                for row, one in enumerate(corpus.splits["test"])
            ]
            pd.DataFrame(rows).to_parquet(path)
    chosen = folder / f"first-{documents}-{each}"
    chosen.mkdir(exist_ok=True)
    for shard in range(documents // each):
        link = chosen / f"part-{shard:05d}.parquet"
        if not link.exists():
            link.symlink_to(place / link.name)
    return chosen


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", type=Path)
    parser.add_argument("model")
    parser.add_argument("documents", type=int)
    parser.add_argument("--each", type=int, default=10_000)
    parser.add_argument("options", nargs="*")
    given = parser.parse_args()
    shards = written(given.folder.resolve(), given.documents, given.each)
    out = given.folder / f"audit-{Path(given.model).name}-{given.documents}-{given.each}"
    command = [sys.executable, "-m", "heedful", "audit", given.model, "--out", str(out)]
    command += ["--data", f"{shards}/*.parquet", "--documents", "0", "--json", *given.options]
    before, started = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    after, seconds = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter() - started
    busy = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    print(
        json.dumps(
            {
                "model": given.model,
                "documents": given.documents,
                "seconds": round(seconds, 1),
                "processor seconds": round(busy, 1),
                "documents per second": round(given.documents / seconds),
                "documents per processor second": round(given.documents / busy),
                "peak memory, MB": round(after.ru_maxrss / 1024),
                "findings, MB": round(_size(out) / 1e6),
            }
        ),
        flush=True,
    )


def _size(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())


if __name__ == "__main__":
    main()
