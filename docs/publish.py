"""Copies a study's page with its tables and figures to where they are committed.

    python docs/publish.py OUT/polarity docs/results/polarity

Tables above 60 kB are packed (`.csv.gz`, the same bytes every time) and the page links to them so;
a figure above 300 kB is refused. What the README of the results says is written by hand.
"""

from __future__ import annotations

import gzip
import shutil
import sys
from pathlib import Path

LARGE_TABLE, LARGE_FIGURE = 60 * 1024, 300 * 1024
COPIED = (".csv", ".json", ".svg", ".html")


def publish(study: Path, target: Path) -> list[str]:
    """The tables that were packed."""
    files = sorted(file for file in study.iterdir() if file.suffix in COPIED)
    heavy = [f.name for f in files if f.suffix == ".svg" and f.stat().st_size > LARGE_FIGURE]
    if heavy:
        raise SystemExit(f"{', '.join(heavy)}: above {LARGE_FIGURE // 1024} kB; rasterise it.")
    packed = [f.name for f in files if f.suffix == ".csv" and f.stat().st_size > LARGE_TABLE]
    target.mkdir(parents=True, exist_ok=True)
    for file in files:
        unpacked, smaller = target / file.name, target / f"{file.name}.gz"
        if file.name in packed:
            smaller.write_bytes(gzip.compress(file.read_bytes(), mtime=0))
            unpacked.unlink(missing_ok=True)
            continue
        smaller.unlink(missing_ok=True)
        if file.suffix in (".html", ".json"):
            text = file.read_text()
            for name in packed:
                for before, after in ('""', "><"):
                    text = text.replace(f"{before}{name}{after}", f"{before}{name}.gz{after}")
            unpacked.write_text(text)
        else:
            shutil.copyfile(file, unpacked)
    return packed


if __name__ == "__main__":
    print("packed:", ", ".join(publish(*map(Path, sys.argv[1:3]))) or "none")
