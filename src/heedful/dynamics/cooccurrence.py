"""Which word goes with which: co-occurrence counts and IBM Model 1 (Brown et al. 1993).

The count table of the first step is what a model can learn while attention is still uniform
(docs/studies/dynamics.md, "Co-occurrence"). It is the sparse product C = Xᵀ Y of X, each source
sentence's word counts divided by its length, and Y, each target's word counts: linear in the token
pairs. Rows of C are source words, columns are target words.

Expectation maximisation is two sparse products per iteration. With A the incidence of (pair,
target word) and table entry, each with the source word's multiplicity, and b the target words'
multiplicity,

    p ← p · Aᵀ(b / A p), each source word's entries then divided by their sum,

so that repeated words cost nothing extra. Memory: 12 bytes per token pair (types within a sentence)
for A, 12 bytes per entry of the table; Multi30k with 8,000 pieces has about 5.6 million and 1.1
million of them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

import numpy as np
from jaxtyping import Float64, Int
from scipy.sparse import csr_array

EM = 5
"""Iterations of a translation table that is more than counts."""
PAIRS_AT_ONCE = 2**21
"""Token pairs whose probabilities are looked up together."""


class CorpusSide(NamedTuple):
    """One side of a parallel corpus: sentence m owns ids `starts[m]` to `starts[m + 1]`."""

    ids: Int[np.ndarray, " token"]
    starts: Int[np.ndarray, " start"]
    types: int
    """Ids lie below this."""

    def __len__(self) -> int:
        return len(self.starts) - 1

    @property
    def lengths(self) -> Int[np.ndarray, " sentence"]:
        """Tokens of each sentence."""
        return np.diff(self.starts)

    def counts(self) -> csr_array:
        """How often each sentence has each word: [sentence type]."""
        row = np.repeat(np.arange(len(self)), self.lengths)
        ones = np.ones(len(self.ids))
        return csr_array((ones, (row, self.ids)), shape=(len(self), self.types))


def side(sentences: Iterable[Sequence[int]], types: int) -> CorpusSide:
    """Sentences of ids as one side."""
    rows = [np.asarray(sentence, dtype=np.int64) for sentence in sentences]
    starts = np.cumsum([0] + [len(row) for row in rows])
    ids = np.concatenate(rows) if rows else np.zeros(0, dtype=np.int64)
    if len(ids) and not 0 <= ids.min() <= ids.max() < types:
        raise ValueError(f"ids must lie from 0 to {types - 1}, got {ids.min()} to {ids.max()}")
    return CorpusSide(ids, starts, types)


def with_empty_word(source: CorpusSide) -> CorpusSide:
    """The side with one more type, the empty word, at the start of every sentence."""
    ids = np.insert(source.ids, source.starts[:-1], source.types)
    return CorpusSide(ids, source.starts + np.arange(len(source) + 1), source.types + 1)


def cooccurrence(source: CorpusSide, target: CorpusSide) -> csr_array:
    """C[i, o]: occurrences of o in targets, shared evenly among the positions of their sources.

    Σₘ Σₗₜ 1[xₗ = i] 1[yₜ = o] / Lₘ; a sentence without words counts nothing.
    """
    _check(source, target)
    shares = source.counts()
    shares.data /= np.repeat(source.lengths, np.diff(shares.indptr))
    return csr_array(shares.T.tocsr() @ target.counts())


def normalised(counts: csr_array) -> csr_array:
    """The table with each source word's entries divided by their sum: Trans(o | i)."""
    table = counts.astype(np.float64)
    totals = np.asarray(counts.sum(1)).ravel()
    table.data /= np.repeat(totals, np.diff(table.indptr))
    return csr_array(table)


class Iteration(NamedTuple):
    """The translation table after an iteration."""

    number: int
    table: csr_array
    """Trans(o | i) [source type target type]; rows of words that were seen sum to 1."""
    loss: float
    """Nats per target word before the iteration, of log Σₗ Trans(y | xₗ) / L."""


def iterate(
    source: CorpusSide, target: CorpusSide, iterations: int, counts_repeats: bool = True
) -> Iterator[Iteration]:
    """IBM Model 1 by expectation maximisation from a uniform table, one iteration at a time.

    The first iteration's table is the normalised count table. Without `counts_repeats` a target
    word that a sentence repeats counts once, which is how nltk's Model 1 counts.
    """
    _check(source, target)
    left, right = source.counts(), target.counts()
    wide = np.diff(left.indptr)
    pair = np.repeat(np.arange(len(target)), np.diff(right.indptr))
    # Of each (pair, target word) all source words of the pair, one after the other.
    sizes = wide[pair]
    starts = np.concatenate([[0], np.cumsum(sizes)])
    owner = np.repeat(np.arange(len(pair)), sizes)
    place = np.arange(starts[-1]) - starts[owner] + left.indptr[pair][owner]
    key = left.indices[place].astype(np.int64) * target.types + right.indices[owner]
    entries, entry = np.unique(key, return_inverse=True)
    shape = (len(pair), len(entries))
    incidence = csr_array((left.data[place], _short(entry), _short(starts)), shape=shape)
    row, columns = np.divmod(entries, target.types)
    columns, indptr = _short(columns), _short(np.searchsorted(row, np.arange(source.types + 1)))
    seen = np.flatnonzero(np.diff(indptr))  # words in no pair with a target have no entries
    often = right.data if counts_repeats else np.ones_like(right.data)
    is_linked = sizes > 0
    lengths = np.maximum(source.lengths[pair], 1)
    words = float(right.data[is_linked].sum())
    # Uniform over target words up to a factor that no iteration sees.
    p: Float64[np.ndarray, "entry"] = np.full(len(entries), 1 / max(target.types, 1))
    for number in range(1, iterations + 1):
        explained = incidence @ p
        # A target whose source is empty is explained by nothing: 1 leaves it out of both sums.
        explained = np.where(is_linked, incidence @ p, 1.0)
        loss = float((right.data * (np.log(lengths) - np.log(explained))).sum())
        p = p * (incidence.T @ (often / explained))
        sums = np.add.reduceat(p, indptr[seen]) if len(seen) else np.zeros(0)
        p = p / np.repeat(sums, np.diff(indptr)[seen])
        table = csr_array((p, columns, indptr), shape=(source.types, target.types))
        yield Iteration(number, table, loss / words if words else float("nan"))


def translation_table(
    source: CorpusSide, target: CorpusSide, iterations: int = 1, counts_repeats: bool = True
) -> csr_array:
    """Trans(o | i) after so many iterations."""
    if iterations < 1:
        raise ValueError(f"at least one iteration makes a table, got {iterations}")
    *_, last = iterate(source, target, iterations, counts_repeats)
    return last.table


def table_bytes(table: csr_array) -> int:
    """Memory of a sparse table."""
    return int(table.data.nbytes + table.indices.nbytes + table.indptr.nbytes)


def looked_up(
    table: csr_array, sources: Int[np.ndarray, " pair"], targets: Int[np.ndarray, " pair"]
) -> Float64[np.ndarray, " pair"]:
    """The entries of (source, target) pairs; 0 where the table has none."""
    types = table.shape[1]
    rows = np.repeat(np.arange(table.shape[0]), np.diff(table.indptr))
    known = rows * types + table.indices
    if not table.has_sorted_indices:
        raise ValueError("the table's columns must be sorted within rows; call sort_indices")
    found = np.zeros(len(sources))
    for start in range(0, len(sources), PAIRS_AT_ONCE):
        part = slice(start, start + PAIRS_AT_ONCE)
        key = sources[part].astype(np.int64) * types + targets[part]
        place = np.minimum(np.searchsorted(known, key), max(len(known) - 1, 0))
        if len(known):
            found[part] = np.where(known[place] == key, table.data[place], 0.0)
    return found


class Grid(NamedTuple):
    """All (target position, source position) pairs of a parallel corpus, target by target.

    Row r is one target token; its units are the tokens of its source sentence, one after the other.
    """

    source_token: Int[np.ndarray, " flat"]
    """Place in the source's ids."""
    target_token: Int[np.ndarray, " flat"]
    lengths: Int[np.ndarray, " row"]
    item: Int[np.ndarray, " row"]
    """The sentence of each row."""


def grid(source: CorpusSide, target: CorpusSide) -> Grid:
    """The rows of every target token; targets of empty sources have none."""
    _check(source, target)
    item = np.repeat(np.arange(len(target)), target.lengths)
    kept = source.lengths[item] > 0
    token, item = np.arange(len(target.ids))[kept], item[kept]
    lengths = source.lengths[item]
    starts = np.concatenate([[0], np.cumsum(lengths)])
    owner = np.repeat(np.arange(len(item)), lengths)
    place = np.arange(starts[-1]) - starts[owner] + source.starts[item][owner]
    return Grid(place, token[owner], lengths, item)


def alignments(
    table: csr_array, source: CorpusSide, target: CorpusSide, empty_word: int | None = None
) -> list[tuple[tuple[int, int], ...]]:
    """The links (i, j) of each pair: for each target position j its most probable source i.

    The first of equal ones. A word that nothing translates to, and one whose best source is the
    empty word (the id it has in `source`, where it stands first), has no link.
    """
    found: list[list[tuple[int, int]]] = [[] for _ in range(len(target))]
    pairs = grid(source, target)
    if not len(pairs.lengths):
        return [() for _ in found]
    chance = looked_up(table, source.ids[pairs.source_token], target.ids[pairs.target_token])
    starts = np.concatenate([[0], np.cumsum(pairs.lengths)[:-1]])
    best = np.maximum.reduceat(chance, starts)
    is_best = chance == np.repeat(best, pairs.lengths)
    position = np.arange(len(chance)) - np.repeat(starts, pairs.lengths)
    first = np.minimum.reduceat(np.where(is_best, position, len(chance)), starts)
    chosen = source.ids[pairs.source_token[starts + first]]
    j = pairs.target_token[starts] - target.starts[pairs.item]
    linked = best > 0
    if empty_word is not None:
        linked &= chosen != empty_word
        first = first - 1  # the empty word stands before the sentence
    for row in np.flatnonzero(linked).tolist():
        found[int(pairs.item[row])].append((int(first[row]), int(j[row])))
    return [tuple(sorted(links)) for links in found]


def _short(index: Int[np.ndarray, " n"]) -> Int[np.ndarray, " n"]:
    """The index in 4 bytes where that holds it: both of a sparse array's must be of one kind."""
    return index if index.max(initial=0) >= 2**31 else index.astype(np.int32)


def _check(source: CorpusSide, target: CorpusSide) -> None:
    if len(source) != len(target):
        raise ValueError(f"{len(source)} source sentences but {len(target)} target sentences")
