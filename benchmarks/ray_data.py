"""Why shards are tasks of the engine and not blocks of Ray Data: what each costs and does.

    python -m benchmarks.ray_data [PIECES]

prints one line of JSON for each way to carry PIECES empty pieces by a local Ray of two cores (plain
tasks, Ray Data over tasks, Ray Data over two actors), and then for what `ray.data.read_parquet`
makes of four files of which one has other columns, and of which one cannot be read.
"""

from __future__ import annotations

import json
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import pandas as pd

ROWS = 50
"""Rows of a file."""


class Actor:
    """Does nothing with a batch; stands for a model that is opened once."""

    def __call__(self, batch: Any) -> Any:
        return batch


def carried(ray: Any, way: str, pieces: int) -> float:
    """Seconds until so many empty pieces are done."""
    began = time.perf_counter()
    if way == "plain tasks":
        remote = ray.remote(num_cpus=1)(lambda piece: piece)
        left = [remote.remote(piece) for piece in range(pieces)]
        while left:
            _, left = ray.wait(left, num_returns=1)
    else:
        names = ray.data.from_items(list(range(pieces)), override_num_blocks=pieces)
        if way == "Ray Data over actors":
            done = names.map_batches(Actor, batch_size=1, concurrency=2, num_cpus=1)
        else:
            done = names.map_batches(lambda batch: batch, batch_size=1, num_cpus=1)
        for _ in done.iter_batches(batch_size=None):
            pass
    return time.perf_counter() - began


def read(ray: Any, folder: Path) -> dict[str, Any]:
    """What comes of all files of the folder: rows that have a text, or the error."""
    try:
        found = ray.data.read_parquet(str(folder)).map_batches(lambda batch: batch).take_all()
    except Exception as error:  # the library's own, of any kind
        return {"error": f"{type(error).__name__}: {str(error).splitlines()[0]}"}
    texts = [row.get("text") for row in found]
    return {"rows": len(texts), "without a text": sum(text is None for text in texts)}


def main() -> None:
    import ray
    import ray.data

    pieces = int(sys.argv[1]) if len(sys.argv) > 1 else 200
    quiet: dict[str, Any] = {"log_to_driver": False, "logging_level": "ERROR"}
    local = {"num_cpus": 2, "include_dashboard": False, "_node_ip_address": "127.0.0.1"}
    ray.init("local", **local, **quiet)
    context = ray.data.DataContext.get_current()
    context.enable_progress_bars = False
    context.max_errored_blocks = -1  # every block may fail
    for way in ("plain tasks", "Ray Data over tasks", "Ray Data over actors"):
        for number in (1, pieces):
            told = {"way": way, "pieces": number, "seconds": round(carried(ray, way, number), 2)}
            print(json.dumps(told), flush=True)
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        table = pd.DataFrame({"text": ["a text"] * ROWS, "label": ["x"] * ROWS})
        for number in range(4):
            table.to_parquet(folder / f"part-{number}.parquet")
        table.rename(columns={"text": "review"}).to_parquet(folder / "part-1.parquet")
        print(json.dumps({"one file of other columns": read(ray, folder)}), flush=True)
        table.to_parquet(folder / "part-1.parquet")
        (folder / "part-2.parquet").write_bytes(b"PAR1 but no more")
        print(json.dumps({"one file that cannot be read": read(ray, folder)}), flush=True)
    ray.shutdown()


if __name__ == "__main__":
    main()
