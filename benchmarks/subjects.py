"""What is measured: a random BiLSTM with additive attention, and what it read in random words."""

from __future__ import annotations

from collections.abc import Sequence

import torch

from heedful.corpora.batches import Batch
from heedful.corpora.vocabulary import PAD, SPECIALS, Vocabulary
from heedful.models import AttentionClassifier, build, parse

WORDS = Vocabulary(SPECIALS + tuple(f"word{index}" for index in range(5_000)))
RANKINGS = ("random", "attention", "gradient", "product")
"""The four rankings of the erasure study."""


def bilstm(classes: int) -> AttentionClassifier:
    """An untrained `bilstm+additive` of the default sizes, in float32.

    Words differ more and scores are sharper than at a random start, as after training, so that
    attention is far from even and decisions flip somewhere in the middle of a ranking.
    """
    model = build(parse("bilstm+additive").model, WORDS, tuple(map(str, range(classes))), seed=0)
    with torch.no_grad():
        model.embedding.weight *= 2
        model.level.attention.query.weight *= 12  # type: ignore[union-attr, operator]
        model.head.weight *= 4
    return model.eval()


def batch_of(lengths: Sequence[int], seed: int = 0) -> Batch:
    """Documents of random words with the given numbers of words."""
    generator = torch.Generator().manual_seed(seed)
    count, longest = len(lengths), max(lengths)
    mask = torch.arange(longest) < torch.tensor(list(lengths))[:, None]
    ids = torch.randint(len(SPECIALS), len(WORDS), (count, longest), generator=generator)
    return Batch(
        ids=ids.masked_fill(~mask, PAD),
        mask=mask,
        labels=torch.randint(0, 2, (count,), generator=generator),
        sentence=torch.zeros_like(ids),
        names=tuple(f"{seed}/{row}" for row in range(count)),
    )
