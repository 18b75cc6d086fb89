"""Encoders small enough to be carried: rows of weights in 7 bits, the used part of the vocabulary.

    python -m benchmarks.packed_encoder pack models/minilm STEPS packed/minilm sst,evidence,imdb
    python -m benchmarks.packed_encoder unpack packed/minilm models/minilm

`STEPS` is the folder of a study's steps where corpora are prepared as pieces. Two encoders of
46 and 35 MB become 17 and 9 MB; the cosine of a state with that of the whole model is above 0.996
(measured on two sentences). What is fine-tuned from them starts that far from the original.
"""

from __future__ import annotations

import io
import lzma
import shutil
import sys
from pathlib import Path

import numpy as np

LEVELS = 63
"""Of a row's largest weight, either way."""
WORDS = "embeddings.word_embeddings.weight"
LARGE = 100_000
"""Numbers from which a table of weights is packed; the others stay as they are."""
PACKED = "weights.npz.xz"


def used_pieces(steps: Path, corpora: list[str]) -> np.ndarray:
    """The pieces that the prepared corpora hold, and the special ones of a BERT."""
    from heedful.corpora import load_prepared

    found = {0, 100, 101, 102, 103}
    for name in corpora:
        for split in load_prepared(steps / name / "corpus").splits.values():
            found |= set(np.unique(split.ids).tolist())
    return np.array(sorted(found))


def pack(model: Path, used: np.ndarray, out: Path) -> int:
    """The bytes of the packed weights; the other files go along."""
    from safetensors.numpy import load_file

    kept: dict[str, np.ndarray] = {}
    for name, weight in load_file(model / "model.safetensors").items():
        table = weight.astype(np.float32)
        if table.ndim != 2 or table.size < LARGE:
            kept[name] = table
            continue
        if name.endswith(WORDS):
            kept[f"{name}|rows"], kept[f"{name}|size"] = used, np.array([len(table)])
            table = table[used]
        scale = np.abs(table).max(1, keepdims=True) / LEVELS
        kept[f"{name}|scale"] = scale
        kept[f"{name}|levels"] = np.round(table / scale).astype(np.int8)
    written = io.BytesIO()
    np.savez(written, **kept)
    out.mkdir(parents=True, exist_ok=True)
    size = (out / PACKED).write_bytes(lzma.compress(written.getvalue(), preset=6))
    for file in model.glob("*.json"):
        shutil.copy(file, out / file.name)
    return size


def unpack(packed: Path, out: Path) -> None:
    """Writes the folder of the encoder; words that were not used have the zero vector."""
    from safetensors.numpy import save_file

    stored = np.load(io.BytesIO(lzma.decompress((packed / PACKED).read_bytes())))
    found: dict[str, np.ndarray] = {}
    for key in stored.files:
        name, _, kind = key.partition("|")
        if not kind:
            found[name] = stored[key]
        if kind == "levels":
            table = stored[key] * stored[f"{name}|scale"]
            if f"{name}|rows" in stored.files:
                whole = np.zeros((int(stored[f"{name}|size"][0]), table.shape[1]), np.float32)
                whole[stored[f"{name}|rows"]] = table
                table = whole
            found[name] = np.ascontiguousarray(table, dtype=np.float32)
    out.mkdir(parents=True, exist_ok=True)
    save_file(found, out / "model.safetensors", metadata={"format": "pt"})
    for file in packed.glob("*.json"):
        shutil.copy(file, out / file.name)


if __name__ == "__main__":
    verb, *given = sys.argv[1:]
    if verb == "pack":
        source, steps, out, names = given
        pieces = used_pieces(Path(steps), names.split(","))
        print(f"{pack(Path(source), pieces, Path(out)) / 1e6:.1f} MB, {len(pieces):,} pieces")
    else:
        unpack(Path(given[0]), Path(given[1]))
