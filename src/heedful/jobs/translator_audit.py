"""What a trained translator does with its dev pairs: words told, attention beside an alignment."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import torch
from jaxtyping import Bool, Int

from heedful.audits import AUDITS
from heedful.audits.alignment import BEYOND, CHANCE, outcome, with_links
from heedful.audits.finding import Finding
from heedful.corpora.pairs import END, PairSplit, pair_batches, pair_of
from heedful.corpora.parallel import Links
from heedful.corpora.pieces import bleu_counts, bleu_of_counts
from heedful.corpora.splits import draw
from heedful.importance import explain
from heedful.models.likelihoods import attended
from heedful.models.translator import Translator
from heedful.models.verbs import read
from heedful.statistics.draws import draws
from heedful.statistics.estimates import Estimate
from heedful.statistics.intervals import pooled

SENTENCES = 16
"""Pairs read together: a reading holds the logits of every piece to write."""
METHODS = ("attention",)
EXAMPLES = 6
LONGEST = 24
"""Units and pieces to write of a sentence that is drawn."""


class NextPieces(NamedTuple):
    """How well the next pieces are told under teacher forcing, beside always the same one."""

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

    told: NextPieces
    finding: Finding
    beyond_chance: Estimate
    """How much more often than chance the most attended piece is aligned."""

    @property
    def may_show(self) -> str:
        """Whether attention may be shown as an alignment: yes, partly or no; or not measured."""
        return outcome(self.finding) or "not measured"


def check(
    model: Translator,
    train: PairSplit,
    dev: PairSplit,
    links: Sequence[Links | None],
    device: torch.device,
    seed: int = 0,
) -> Checked:
    """Accuracy of the next piece and the audit against the links between pieces of the dev pairs.

    Pairs without known links count for accuracy alone.
    """
    audit = AUDITS["alignment"]
    attentive: Any = model  # it reads pairs, where the protocol says documents
    tables, is_right, labels, sentences = [], [], [], list[str]()
    for rows, pairs in pair_batches(dev, SENTENCES):
        batch: Any = pairs.to(device)
        here = read(attentive, batch)
        is_right.append((here.logits.argmax(-1) == here.batch.labels).cpu().numpy())
        labels.append(here.batch.labels.cpu().numpy())
        sentences += [pair_of(name) for name in here.names]
        own = [links[row] or () for row in rows.tolist()]
        # Units count the start symbol.
        marked = with_links(here, [tuple((unit + 1, step) for unit, step in one) for one in own])
        importance = explain(attentive, marked, METHODS, seed)
        tables.append(audit.rows(attentive, marked, importance, seed))
    finding = audit.summarise(pd.concat(tables, ignore_index=True))
    told = _told(np.concatenate(is_right), np.concatenate(labels), sentences, train)
    beyond = finding.get(BEYOND, CHANCE) or pooled((), (), is_difference=True)
    return Checked(told, finding, beyond)


def _told(
    is_right: Bool[np.ndarray, " word"],
    labels: Int[np.ndarray, " word"],
    sentences: Sequence[str],
    train: PairSplit,
) -> NextPieces:
    counts = np.bincount(train.target.ids)
    counts[END] += len(train)
    frequent = int(counts.argmax())
    is_usual = labels == frequent
    gain = is_right.astype(np.float64) - is_usual
    return NextPieces(
        pooled(is_right, sentences),
        frequent,
        pooled(is_usual, sentences),
        pooled(gain, sentences, is_difference=True),
    )


def scored(written: Sequence[str], dev: PairSplit) -> Estimate:
    """Corpus BLEU of translations, as sacrebleu gives it, with an interval over pairs."""
    return draws(partial(bleu_of_counts, bleu_counts(written, dev.texts)), dev.names).estimate()


def examples(
    model: Translator,
    dev: PairSplit,
    links: Sequence[Links | None],
    pieces: Sequence[str],
    device: torch.device,
    seed: int = 0,
) -> list[dict[str, Any]]:
    """Some dev pairs drawn at random among those that fit a page: attention and links.

    Where all are long it is the shortest one. `attention` is [piece to write, source unit]; units
    and pieces are with start and end.
    """
    sizes = np.maximum(dev.source.lengths + 2, dev.target.lengths + 1)
    known = [row for row in range(len(dev)) if links[row]]
    fits = [
        row
        for row in known
        if sizes[row] <= LONGEST and min(dev.source.lengths[row], dev.target.lengths[row]) >= 2
    ]
    if known and not fits:
        fits = [min(known, key=lambda row: int(sizes[row]))]
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
