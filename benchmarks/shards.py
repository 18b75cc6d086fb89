"""Audits over shards, measured: documents per second and peak memory, in a process of its own.

    python -m benchmarks.shards [--each 10000] FOLDER MODEL DOCUMENTS [-- options of heedful audit]
    python -m benchmarks.shards --whole FOLDER MODEL DOCUMENTS [-- options of heedful audit]

writes generated documents (`planted:2:short`) into FOLDER once, audits MODEL on all of them and
prints one line of JSON. With `--whole` all of them lie in one file, which is audited in memory; the
line then says how far its measures are from those of the run over shards, where there is one: with
`--effort exhaustive` as an option, since usually not all documents of one file are looked at.
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


def together(shards: Path) -> Path:
    """All documents of the shards in one file."""
    path = shards.with_suffix(".parquet")
    if not path.is_file():
        parts = [pd.read_parquet(part) for part in sorted(shards.iterdir())]
        pd.concat(parts, ignore_index=True).to_parquet(path)
    return path


def distance(one: Path, other: Path) -> dict[str, object]:
    """How far the measures of two audits are apart, as a share of their size."""
    worst, count, differ = 0.0, 0, []
    for path in sorted((one / "findings").glob("*.json")):
        found, wanted = (
            json.loads((run / "findings" / path.name).read_text()) for run in (one, other)
        )
        if not isinstance(found, dict) or "measures" not in found:
            continue
        for left, right in zip(found["measures"], wanted["measures"], strict=True):
            count += 1
            for name, value in left.items():
                if isinstance(value, float) and isinstance(right[name], float):
                    worst = max(worst, abs(value - right[name]) / max(abs(right[name]), 1e-300))
                elif value != right[name]:
                    differ.append(f"{path.stem} {left['measure']} {name}")
        if found.get("answer") != wanted.get("answer"):
            differ.append(f"{path.stem} answer")
    return {"measures": count, "largest relative difference": worst, "differ": differ}


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", type=Path)
    parser.add_argument("model")
    parser.add_argument("documents", type=int)
    parser.add_argument("--each", type=int, default=10_000)
    parser.add_argument("--whole", action="store_true")
    parser.add_argument("options", nargs="*")
    given = parser.parse_args()
    shards = written(given.folder.resolve(), given.documents, given.each)
    name = f"audit-{Path(given.model).name}-{given.documents}"
    streamed = given.folder / f"{name}-{given.each}"
    out = given.folder / f"{name}-whole" if given.whole else streamed
    data = str(together(shards)) if given.whole else f"{shards}/*.parquet"
    command = [sys.executable, "-m", "heedful", "audit", given.model, "--out", str(out)]
    command += ["--data", data, "--documents", "0", "--json", *given.options]
    before, started = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    after, seconds = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter() - started
    busy = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    compared = distance(streamed, out) if given.whole and streamed.is_dir() else {}
    print(
        json.dumps(
            {
                "whole": given.whole,
                "model": given.model,
                "documents": given.documents,
                "seconds": round(seconds, 1),
                "processor seconds": round(busy, 1),
                "documents per second": round(given.documents / seconds),
                "documents per processor second": round(given.documents / busy),
                "peak memory, MB": round(after.ru_maxrss / 1024),
                "findings, MB": round(_size(out) / 1e6),
            }
            | compared
        ),
        flush=True,
    )


def _size(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())


if __name__ == "__main__":
    main()
