"""Made-up files of real corpora, in the places where readers look for them."""

import gzip
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from heedful.corpora.entries import CATALOGUE


def put(root: Path, name: str, text: str) -> Path:
    path = root / name
    path.parent.mkdir(parents=True, exist_ok=True)
    data = text.encode()
    path.write_bytes(gzip.compress(data) if name.endswith(".gz") else data)
    return path


TREES = {
    "train": "(3 (2 A) (3 (4 good-ish) (2 -LRB-)))\n(2 (2 So) (2 so))\n(1 (1 Bad) (2 1\\/2))\n",
    "dev": "(0 (0 Awful) (2 .))\n",
    "test": "(4 (4 Great) (2 !))\n",
}
TREE_COUNTS = {"train": (0, 1, 1, 1, 0), "dev": (1, 0, 0, 0, 0), "test": (0, 0, 0, 0, 1)}


def holding(monkeypatch: pytest.MonkeyPatch, name: str, counts: Mapping[str, Any]) -> None:
    """Lets the published files of a corpus hold so much."""
    known: Any = CATALOGUE[name].counts
    for key in list(known):
        monkeypatch.delitem(known, key)
    for key, count in counts.items():
        monkeypatch.setitem(known, key, count)


def sst_root(root: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for split, trees in TREES.items():
        put(root, f"sst/{split}.txt.gz", trees)
    holding(monkeypatch, "sst", TREE_COUNTS)
    return root
