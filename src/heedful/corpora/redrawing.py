"""Splits drawn again from the documents of a prepared corpus: does a number hang on the split?"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from heedful.corpora.encoded import Encoded, EncodedCorpus
from heedful.corpora.samples import subset
from heedful.corpora.splits import keyed_split
from heedful.errors import InputError

Pools = Mapping[str, Mapping[str, float]]
"""Splits put together (`train+dev`), and the shares of the new splits drawn from them; a share
named `left out` is in none."""
LEFT_OUT = "left out"


def redrawn(corpus: EncodedCorpus, seed: int, pools: Pools | None = None) -> EncodedCorpus:
    """The corpus with new splits, each class cut in the same shares, drawn by (seed, id).

    Without pools all documents are put together and cut in splits as large as those they had. The
    vocabulary stays: its ids name the same words.
    """
    sizes = {split: float(len(part)) for split, part in corpus.splits.items()}
    found: dict[str, list[Encoded]] = {}
    for names, shares in (pools or {"+".join(sizes): sizes}).items():
        unknown = [name for name in names.split("+") if name not in corpus.splits]
        if unknown:
            raise InputError(f"{corpus.name} has no split {unknown[0]!r} to draw from.")
        pool = together([corpus.splits[name] for name in names.split("+")])
        drawn = keyed_split(pool.names, pool.labels.tolist(), shares, seed)
        for split, rows in drawn.items():
            if split != LEFT_OUT:
                found.setdefault(split, []).append(subset(pool, rows))
    splits = {split: together(parts) for split, parts in found.items()}
    return replace(corpus, splits=splits)


def together(parts: Sequence[Encoded]) -> Encoded:
    """The documents of several splits, one split after the other, without the raw text.

    Evidence and labels of words stay only where every split has them.
    """
    if len(parts) == 1:
        return parts[0]
    evidence = [part.evidence for part in parts if part.evidence is not None]
    labels = [part.word_labels for part in parts if part.word_labels is not None]
    return replace(
        parts[0],
        ids=np.concatenate([part.ids for part in parts]),
        starts=np.concatenate([[0], np.cumsum(np.concatenate([p.lengths for p in parts]))]),
        labels=np.concatenate([part.labels for part in parts]),
        sentence=np.concatenate([part.sentence for part in parts]),
        names=tuple(name for part in parts for name in part.names),
        evidence=np.concatenate(evidence) if len(evidence) == len(parts) else None,
        documents=None,
        word_labels=np.concatenate(labels) if len(labels) == len(parts) else None,
    )
