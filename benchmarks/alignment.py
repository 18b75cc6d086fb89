"""IBM Model 1: one iteration of expectation maximisation against nltk's."""

from __future__ import annotations

import time

import numpy as np

from benchmarks.cases import Disagreement
from benchmarks.table import Row
from heedful.dynamics.cooccurrence import (
    cooccurrence,
    iterate,
    looked_up,
    side,
    table_bytes,
    with_empty_word,
)

ITERATIONS = 4
WORDS = (15_000, 10_000)
"""Types of source and target; frequencies fall as in text (Zipf)."""
LENGTH = 13
"""Mean words of a sentence, those of Multi30k."""


def _sentences(pairs: int, types: int, seed: int) -> list[list[int]]:
    generator = np.random.default_rng(seed)
    weights = 1 / (np.arange(types) + 2.7)
    lengths = np.maximum(generator.poisson(LENGTH, pairs), 1)
    drawn = generator.choice(types, int(lengths.sum()), p=weights / weights.sum())
    return [part.tolist() for part in np.split(drawn, np.cumsum(lengths)[:-1])]


def alignment_rows(pairs: int) -> list[Row]:
    """Seconds per iteration on so many pairs, after checking that probabilities are the same."""
    from nltk.translate import AlignedSent, IBMModel1  # type: ignore[import-untyped]

    sources, targets = (_sentences(pairs, types, seed) for seed, types in enumerate(WORDS))
    source, target = with_empty_word(side(sources, WORDS[0])), side(targets, WORDS[1])
    started = time.perf_counter()
    counts = cooccurrence(source, target)
    counting = time.perf_counter() - started
    seconds, tables = [], []
    started = time.perf_counter()
    for step in iterate(source, target, ITERATIONS, counts_repeats=False):
        seconds.append(time.perf_counter() - started)
        tables.append(step.table)
        started = time.perf_counter()
    ours = float(np.median(seconds[1:]))
    # Numbers as words: nltk has nothing to cut, only its own work is timed.
    bitext = [AlignedSent(list(y), list(x)) for x, y in zip(sources, targets, strict=True)]
    model = IBMModel1(bitext[:1], 0)
    model.trg_vocab = set(target.ids.tolist())
    model.set_uniform_probabilities(bitext)
    theirs = []
    for _ in range(2):
        started = time.perf_counter()
        model.train(bitext)
        theirs.append(time.perf_counter() - started)
    _check(tables[1], model.translation_table, WORDS[0])
    peer = theirs[1]
    return [
        Row(
            f"IBM Model 1, one iteration on {pairs:,} pairs",
            1e3 * ours,
            peer / ours,
            "nltk's IBMModel1.train",
            f"Two sparse products over {int(tables[0].nnz):,} word pairs that meet "
            f"({table_bytes(tables[0]) / 1e6:.0f} MB); the probabilities are nltk's to 1e-8. "
            f"Laying the products out once takes {seconds[0] - ours:.2f} s, the count table alone "
            f"{counting:.2f} s ({table_bytes(counts) / 1e6:.0f} MB).",
            peer=1e3 * peer,
            at_least=25,
        )
    ]


def _check(table: object, theirs: dict[int, dict[int | None, float]], empty: int) -> None:
    """Raises where any probability of nltk's differs from ours by more than 1e-8."""
    entries = [
        (empty if i is None else i, o, p) for o, row in theirs.items() for i, p in row.items()
    ]
    rows, columns, wanted = (np.array(column) for column in zip(*entries, strict=True))
    found = looked_up(table, rows, columns)  # type: ignore[arg-type]
    farthest = float(np.abs(found - wanted).max())
    if farthest > 1e-8:
        raise Disagreement(f"A translation probability differs from nltk's by {farthest:.1e}.")
