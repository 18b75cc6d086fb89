"""Watching a training: when words are learnt, and when attention follows.

See docs/studies/dynamics.md, "Question".

First the probe β, what single units tell of the right class, comes to agree with a bag of words;
then attention moves to the units with a large β. Both show as curves over the evaluations of a
training, between agreement by chance and 1. `PairWatch` does the same of a translator: the probe
comes to agree with counts of which words meet, then attention moves where IBM Model 1 would align.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from heedful.corpora.batches import Batch
from heedful.corpora.encoded import EncodedCorpus
from heedful.corpora.pairs import END, START, EncodedPairs, PairSplit
from heedful.corpora.pieces import PieceTokeniser, bleu
from heedful.corpora.samples import subset
from heedful.corpora.splits import draw
from heedful.dynamics.agreement import admitted, agrees, agrees_split, chance, concentration
from heedful.dynamics.cooccurrence import EM, CorpusSide, grid, looked_up, side, translation_table
from heedful.dynamics.pair_probes import probed_pairs
from heedful.dynamics.probes import groups
from heedful.dynamics.proxy import Regression, logistic_sweep
from heedful.errors import InputError
from heedful.models.classifier import AttentionClassifier
from heedful.models.log_odds import log_odds
from heedful.models.reading import Reading
from heedful.models.saved_translator import translations
from heedful.models.translator import Translator
from heedful.models.verbs import AttentiveModel, alone, read
from heedful.runs.watched import entered, kept_entries
from heedful.training.loop import Moment

DOCUMENTS = 256
"""Dev documents watched; an eighth where every unit alone needs a pass of its own."""
PENALTIES = (1.0, 1e2, 1e4)
"""Strengths tried for the bag of words."""


class Watch:
    """An observer that logs how attention, probe and a bag of words agree on dev documents.

    `fit(observers=[Watch(corpus)])`; with a folder every entry is kept in `watched.jsonl`, and a
    resumed training goes on with it.
    """

    def __init__(self, corpus: EncodedCorpus, folder: Path | None = None, seed: int = 0) -> None:
        train, dev = corpus.splits["train"], corpus.splits["dev"]
        labelled = [np.flatnonzero(part.labels >= 0) for part in (train, dev)]
        if not all(map(len, labelled)):
            raise InputError(f"Watching needs labelled train and dev documents of {corpus.name}.")
        train, dev = (subset(part, rows) for part, rows in zip((train, dev), labelled, strict=True))
        types = len(corpus.vocabulary)
        bags = [CorpusSide(part.ids.astype(np.int64), part.starts, types) for part in (train, dev)]
        self.bag: Regression = logistic_sweep(
            bags[0], train.labels, bags[1], dev.labels, PENALTIES, iterations=200
        )
        self.dev, self.folder, self.seed = dev, folder, seed
        self.entries: list[dict[str, Any]] = kept_entries(folder)

    def __call__(self, moment: Moment) -> None:
        """Logs the moment."""
        self.log(moment.step, moment.epoch, moment.model, moment.device)

    def log(
        self, step: int, epoch: float, model: AttentiveModel, device: torch.device | str
    ) -> None:
        """One entry; those of later steps, left by a run that was killed, are dropped."""
        entry = {"step": step, "epoch": round(epoch, 4)} | self.agreements(model, device)
        self.entries = entered(entry, self.entries, self.folder)

    def agreements(self, model: AttentiveModel, device: torch.device | str) -> dict[str, float]:
        """The agreements of this moment, by what the chart calls them."""
        is_linear = isinstance(model, AttentionClassifier)
        count = DOCUMENTS if is_linear else DOCUMENTS // 8
        rows = np.array(draw(self.dev.names, count, self.seed))
        parts: list[tuple[np.ndarray, ...]] = []
        for _, batch in groups(subset(self.dev, rows)):
            parts.append(self._vectors(model, batch.to(device)))
        attention, probe, bag, lengths = (np.concatenate(part) for part in zip(*parts, strict=True))
        return {
            "probe ~ bag of words": float(agrees(bag, probe, lengths).mean()),
            "attention ~ probe": float(agrees(attention, probe, lengths).mean()),
            "attention ~ bag of words": float(agrees(attention, bag, lengths).mean()),
            "chance": float(chance(probe, lengths).mean()),
            "entropy of attention": float(concentration(attention, lengths).mean()),
        }

    def _vectors(self, model: AttentiveModel, batch: Batch) -> tuple[np.ndarray, ...]:
        """Attention, probe and bag of words of every unit, and the units of each document."""
        reading = read(model, batch)
        said = alone(model, reading)
        told = log_odds(said, reading.labels[:, None].expand(said.shape[:2]))
        words = reading.batch.ids.cpu().numpy()
        right = np.broadcast_to(reading.labels.cpu().numpy()[:, None], words.shape)
        alike = self.bag.probe(words.ravel(), right.ravel()).reshape(words.shape)
        bag = _mean_per_unit(torch.from_numpy(alike).to(said), reading)
        found = (reading.attention, told, bag)
        flat = [values[reading.mask].double().cpu().numpy() for values in found]
        return (*flat, reading.units.cpu().numpy())


def _mean_per_unit(
    per_token: Float[Tensor, "batch token"], reading: Reading
) -> Float[Tensor, "batch unit"]:
    """The mean over the tokens of each unit: a sentence says what its words say."""
    count = reading.per_unit(torch.ones_like(per_token))
    return reading.per_unit(per_token) / count.clamp_min(1)


PAIRS = 100
"""Dev pairs watched: the probe asks about every source position of every word to write."""
COUNTED = 50_000
"""Training pairs counted at most: a table costs memory by token pairs."""


class PairWatch:
    """An observer that logs how attention, probe and counts agree on dev pairs, and greedy BLEU.

    `fit_translator(observers=[PairWatch(corpus)])`; with a folder every entry is kept in
    `watched.jsonl`, and a resumed training goes on with it.
    """

    def __init__(self, corpus: EncodedPairs, folder: Path | None = None, seed: int = 0) -> None:
        train, dev = corpus.splits["train"], corpus.splits["dev"]
        types = len(corpus.pieces)
        counted = pair_sides(train.chosen(draw(train.names, COUNTED, seed)), types)
        self.split = dev.chosen(draw(dev.names, PAIRS, seed))
        source, target = pair_sides(self.split, types)
        cells = grid(source, target)
        words, answers = source.ids[cells.source_token], target.ids[cells.target_token]
        self.told: dict[str, Float[np.ndarray, " flat"]] = {
            name: looked_up(translation_table(*counted, iterations), words, answers)
            for name, iterations in {"counts": 1, "IBM 1": EM}.items()
        }
        self.lengths: Int[np.ndarray, " row"] = cells.lengths
        self.pieces, self.folder = PieceTokeniser(corpus.model), folder
        self.entries: list[dict[str, Any]] = kept_entries(folder)

    def __call__(self, moment: Moment) -> None:
        """Logs the moment."""
        entry: dict[str, Any] = {"step": moment.step}
        entry |= self.agreements(moment.model, moment.device)
        written = translations(moment.model, self.split, self.pieces, beam=1)
        entry |= {"greedy bleu": round(bleu(written, self.split.texts).score, 4)}
        self.entries = entered(entry, self.entries, self.folder)

    def agreements(self, model: Translator, device: torch.device | str) -> dict[str, float]:
        """The agreements of this moment, by what the chart calls them."""
        seen = probed_pairs(model, self.split, device)
        attention, probe = seen.attention[0], seen.probe[0]
        compared = {
            "probe ~ counts": (self.told["counts"], probe),
            "attention ~ probe": (attention, probe),
            "attention ~ counts": (attention, self.told["counts"]),
            "attention ~ IBM 1": (attention, self.told["IBM 1"]),
        }
        found = {
            name: float(agrees_split(first, second, self.lengths).mean())
            for name, (first, second) in compared.items()
        }
        return found | {
            "chance": float((admitted(self.lengths) / self.lengths).mean()),
            "entropy of attention": float(concentration(attention, self.lengths).mean()),
        }


def pair_sides(split: PairSplit, types: int) -> tuple[CorpusSide, CorpusSide]:
    """Sources between start and end, targets with the end: the units and words of a translator."""
    rows = range(len(split))
    sources = side([[START, *split.source.row(row), END] for row in rows], types)
    return sources, side([[*split.target.row(row), END] for row in rows], types)
