"""The terms of gradient flow of a whole vocabulary, against one epoch of training."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import torch

from benchmarks.table import Row
from benchmarks.timing import side_by_side
from heedful.corpora import Encoded, EncodedCorpus, Vocabulary
from heedful.corpora.vocabulary import SPECIALS
from heedful.dynamics import flow
from heedful.models import build, parse
from heedful.training import fit
from heedful.training.presets import PRESETS

MEAN = 17.5
"""Words of a sentence of SST."""


def sentences(documents: int, words: int, seed: int = 0) -> Encoded:
    """Documents of about the lengths of SST, their words drawn by Zipf's law."""
    draw = np.random.default_rng(seed)
    lengths = np.clip(draw.normal(MEAN, 8, documents), 1, 52).astype(int)
    starts = np.concatenate([[0], np.cumsum(lengths)])
    frequency = 1 / np.arange(3, words + 3)
    ids = draw.choice(words, starts[-1], p=frequency / frequency.sum()) + len(SPECIALS)
    return Encoded(
        ids=ids.astype(np.int32),
        starts=starts,
        labels=draw.integers(0, 2, documents),
        sentence=np.zeros(starts[-1], np.int32),
        names=tuple(f"{seed}/{row}" for row in range(documents)),
    )


def flow_row(documents: int, words: int, repeats: int) -> Row:
    """All terms of every word from one reading of the training texts, DP at λ = 10."""
    preset = PRESETS["polarity/dp@10"]
    vocabulary = Vocabulary(SPECIALS + tuple(f"word{number}" for number in range(words)))
    train = sentences(documents, words)
    splits = {"train": train, "dev": sentences(max(documents // 8, 1), words, seed=1)}
    corpus = EncodedCorpus("sst-like", ("no", "yes"), vocabulary, splits, "generated", {})
    model = build(parse(preset.recipe, **preset.model).model, vocabulary, corpus.classes)
    config = replace(preset.train, epochs=1)

    def epoch() -> None:
        with torch.enable_grad():
            fit(model, corpus, config)

    timed = side_by_side({"flow": lambda: flow(model, train), "epoch": epoch}, repeats)
    ours, theirs = timed["flow"].seconds, timed["epoch"].seconds
    return Row(
        f"six terms of gradient flow of {words:,} words, {documents:,} texts",
        1e3 * ours,
        ours / theirs,
        "one epoch of training",
        f"One reading of {len(train.ids):,} words gives π and ρ of each word; the terms of all "
        "words are then two products with the table of word vectors, in float64. The epoch "
        "evaluates its dev texts, as training does.",
        naive=1e3 * theirs,
        at_most=1,
    )
