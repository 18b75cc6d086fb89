"""What a trained translator does with its dev pairs: words told, attention beside an alignment."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import torch
from jaxtyping import Float64, Int

from heedful.audits import AUDITS
from heedful.audits.alignment import with_links
from heedful.audits.finding import Finding
from heedful.corpora.pair_files import Links
from heedful.corpora.pairs import END, PairSplit, pair_batches
from heedful.corpora.pieces import bleu, bleu_counts, bleu_of_counts
from heedful.corpora.splits import draw
from heedful.importance import explain
from heedful.models.likelihoods import attended
from heedful.models.translator import Translator
from heedful.models.verbs import read
from heedful.statistics.draws import draws
from heedful.statistics.estimates import Estimate

SENTENCES = 16
"""Pairs read together: a reading holds the logits of every word to write."""
METHODS = ("attention", "random")
EXAMPLES = 6
LONGEST = 24
"""Units and words of a sentence that is drawn."""


class Told(NamedTuple):
    """How well the next words are told under teacher forcing, beside always the same word."""

    accuracy: Estimate
    frequent: int
    """The id most often written in the training pairs; the end counts as one."""
    frequent_share: Estimate
    """How often it would be right."""
    gain: Estimate
    """Accuracy beyond that share."""

    @property
    def is_learnt(self) -> bool:
        """Whether the model surely does better."""
        return self.gain.side(0.0) == "above"


class Checked(NamedTuple):
    """The audit of all dev pairs."""

    told: Told
    finding: Finding
    beyond_chance: Estimate
    """How much more often than chance the most attended unit is aligned."""


def check(
    model: Translator,
    train: PairSplit,
    dev: PairSplit,
    links: Sequence[Links | None],
    device: torch.device,
    seed: int = 0,
) -> Checked:
    """Accuracy of the next word and the audit against the links between pieces of the dev pairs.

    Pairs without known links count for accuracy alone.
    """
    audit = AUDITS["alignment"]
    attentive: Any = model  # it reads pairs, where the protocol says documents
    words = dev.target.lengths + 1
    right = np.zeros(len(dev))
    tables = []
    for rows, pairs in pair_batches(dev, SENTENCES):
        batch: Any = pairs.to(device)
        here = read(attentive, batch)
        assert here.shared is not None, "a translator's reading shares its values"
        is_right = (here.logits.argmax(-1) == here.batch.labels).cpu().numpy()
        np.add.at(right, rows[here.shared.cpu().numpy()], is_right)
        own = [links[row] or () for row in rows.tolist()]
        # Units count the start symbol.
        marked = with_links(here, [[(unit + 1, step) for unit, step in one] for one in own])
        table = audit.rows(attentive, marked, explain(attentive, marked, METHODS, seed), seed)
        tables.append(table.assign(item=np.repeat(rows[here.shared.cpu().numpy()], len(METHODS))))
    table = pd.concat(tables, ignore_index=True)
    found = audit.summarise(table)
    hit = table[(table["ranking"] == "attention") & (table["links"] > 0)]
    excess = (hit["hit"] - hit["chance"]).to_numpy(dtype=np.float64)
    beyond = _mean_by_pair(excess, hit["item"].to_numpy(), dev)
    return Checked(_told(right, words, train, dev), found, beyond)


def _told(
    right: Float64[np.ndarray, "pair"],
    words: Int[np.ndarray, "pair"],
    train: PairSplit,
    dev: PairSplit,
) -> Told:
    counts = np.bincount(train.target.ids)
    counts[END] += len(train)
    frequent = int(counts.argmax())
    pair = np.repeat(np.arange(len(dev)), dev.target.lengths)
    usual = np.bincount(pair, weights=dev.target.ids == frequent, minlength=len(dev))
    usual += frequent == END
    accuracy, share, gain = (
        draws(partial(_ratio, top, words), dev.names, len(dev)).estimate()
        for top in (right, usual, right - usual)
    )
    return Told(accuracy, frequent, share, gain)


def _mean_by_pair(
    values: Float64[np.ndarray, "row"], item: Int[np.ndarray, "row"], dev: PairSplit
) -> Estimate:
    """The mean of rows that are resampled with their pairs."""
    total = np.bincount(item, weights=values, minlength=len(dev))
    count = np.bincount(item, minlength=len(dev))
    return draws(partial(_ratio, total, count), dev.names, int((count > 0).sum())).estimate()


def _ratio(
    top: np.ndarray[Any, Any], bottom: np.ndarray[Any, Any], weights: np.ndarray[Any, Any]
) -> np.ndarray[Any, Any]:
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.asarray((weights @ top) / (weights @ bottom))


def scored(written: Sequence[str], dev: PairSplit) -> Estimate:
    """Corpus BLEU of translations, as sacrebleu gives it, with an interval over pairs."""
    counts = bleu_counts(written, dev.texts)
    drawn = draws(partial(bleu_of_counts, counts), dev.names)
    found = drawn._replace(value=float(bleu(written, dev.texts).score)).estimate()
    # Without any match of some order sacrebleu smooths, resamples are 0.
    return replace(found, low=min(found.low, found.value), high=max(found.high, found.value))


def examples(
    model: Translator,
    dev: PairSplit,
    links: Sequence[Links | None],
    pieces: Sequence[str],
    device: torch.device,
    seed: int = 0,
) -> list[dict[str, Any]]:
    """Some dev pairs drawn at random among those that fit a page: attention and links.

    `attention` is [word to write, source unit]; units and words are with start and end.
    """
    fits = [
        row
        for row in range(len(dev))
        if links[row]
        and 2 <= dev.source.lengths[row] <= LONGEST - 2
        and 2 <= dev.target.lengths[row] <= LONGEST - 1
    ]
    chosen = [fits[place] for place in draw([dev.names[row] for row in fits], EXAMPLES, seed)]
    if not chosen:
        return []
    found = {}
    for places, pairs in pair_batches(dev.chosen(chosen), EXAMPLES):
        attention = attended(model, pairs.to(device)).attention.cpu()
        for place, weights, units, words in zip(
            places.tolist(), attention, pairs.source_lengths, pairs.target_lengths, strict=True
        ):
            row = chosen[place]
            ends = pieces[END]
            found[place] = {
                "name": dev.names[row],
                "units": ["<s>", *(pieces[i] for i in dev.source.row(row)), ends],
                "words": [*(pieces[i] for i in dev.target.row(row)), ends],
                "attention": [[round(w, 4) for w in r] for r in weights[:words, :units].tolist()],
                "links": [[unit + 1, step] for unit, step in links[row] or ()],
            }
    return [found[place] for place in sorted(found)]
