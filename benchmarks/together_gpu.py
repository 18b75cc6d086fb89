"""Transformers of the tracing study trained side by side: seconds of an epoch, as one JSON.

`python -m benchmarks.together_gpu --device cuda` needs no corpus: documents have the lengths of
SST's sentences and random words. One model by `fit`, then stacks, with orders of batches of their
own and shared; `minutes` is what 200 epochs would take.
"""

from __future__ import annotations

import argparse
import json
import time
from dataclasses import replace
from typing import Any

import numpy as np
import torch

from heedful.corpora import Encoded, EncodedCorpus, Vocabulary
from heedful.corpora.vocabulary import SPECIALS
from heedful.models import TransformerConfig, build
from heedful.training import fit
from heedful.training.presets import PRESETS, TRACING_VARIANTS
from heedful.training.together import fit_together

WORDS, CLASSES = 16_000, ("--", "-", "o", "+", "++")
SIZES = {"train": 8_544, "dev": 1_101}
RECIPES = ("", "/first-epoch-dropout", "/cross-entropy")
EPOCHS = 200


def sentences(share: float = 1.0) -> EncodedCorpus:
    """Random sentences, as many and as long as SST's: 19 words on average, at most 56."""
    rng = np.random.default_rng(0)
    vocabulary = Vocabulary(SPECIALS + tuple(f"w{number}" for number in range(WORDS)))
    splits = {}
    for split, size in SIZES.items():
        count = max(int(size * share), 10)
        lengths = np.clip(rng.gamma(4.2, 4.6, count).round(), 2, 56).astype(np.int64)
        starts = np.concatenate([[0], np.cumsum(lengths)])
        splits[split] = Encoded(
            ids=rng.integers(len(SPECIALS), len(vocabulary), starts[-1]),
            sentence=np.zeros(starts[-1], dtype=np.int64),
            starts=starts,
            labels=rng.integers(0, len(CLASSES), count),
            names=tuple(f"{split}/{row}" for row in range(count)),
        )
    return EncodedCorpus("sentences", CLASSES, vocabulary, splits, "0" * 16, {})


def measured(device: str, epochs: int, share: float, dim: int) -> list[dict[str, Any]]:
    """Seconds of an epoch, without what a training costs before and after."""
    corpus = sentences(share)
    train = replace(PRESETS["tracing/sst"].train, epochs=1)
    rng = np.random.default_rng(1)
    vectors = rng.normal(0, 0.4, (len(corpus.vocabulary), dim)).astype(np.float32)
    config = TransformerConfig(embedding_dim=dim)

    def fresh(recipe: str, seed: int) -> Any:
        changed = replace(config, **TRACING_VARIANTS[recipe])
        return build(changed, corpus.vocabulary, CLASSES, seed, vectors)

    def timed(learn: Any) -> float:
        spent = []
        for last in (1, 1, 1 + epochs):  # the first one warms the card up
            started = time.perf_counter()
            learn(replace(train, epochs=last))
            if device.startswith("cuda"):
                torch.cuda.synchronize()
            spent.append(time.perf_counter() - started)
        return (spent[2] - spent[1]) / epochs

    rows = [{"models": 1, "by": "fit", "seconds": timed(
        lambda setting: fit(fresh("", 0), corpus, setting, seed=0, device=device)
    )}]  # fmt: skip
    for recipes, order in ((RECIPES[:1], None), (RECIPES, None), (RECIPES, 0)):
        members = [(recipe, seed) for recipe in recipes for seed in range(5)]

        def together(setting: Any, members: Any = members, order: Any = order) -> None:
            fit_together(
                [fresh(*member) for member in members], corpus, replace(setting, order_seed=order),
                seeds=[seed for _, seed in members], device=device,
            )  # fmt: skip

        by = "together, own orders" if order is None else "together, one order"
        rows.append({"models": len(members), "by": by, "seconds": timed(together)})
    return [row | {"minutes": row["seconds"] * EPOCHS / 60} for row in rows]


def main() -> None:
    """Prints the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--epochs", type=int, default=4)
    parser.add_argument("--share", type=float, default=1.0, help="of the documents")
    parser.add_argument("--dim", type=int, default=100)
    given = parser.parse_args()
    for row in measured(given.device, given.epochs, given.share, given.dim):
        print(json.dumps(row), flush=True)
    if given.device.startswith("cuda"):
        print(json.dumps({"peak GiB": torch.cuda.max_memory_allocated() / 2**30}))


if __name__ == "__main__":
    main()
