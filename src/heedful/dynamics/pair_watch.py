"""Watching a translator learn: which word goes with which first, then attention.

See docs/studies/dynamics.md, "Question".

First the probe β, what single source positions tell of the next word, comes to agree with counts of
which words meet; then attention moves to the positions with a large β, and so to where IBM Model 1
would align. Agreement is that of the largest unit with the top 5 %, ties split, so that chance is
the same for every curve.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import torch
from jaxtyping import Float, Int

from heedful.corpora.pairs import END, START, EncodedPairs, PairSplit
from heedful.corpora.pieces import PieceTokeniser, bleu
from heedful.corpora.splits import draw
from heedful.dynamics.agreement import admitted, agrees_split, concentration
from heedful.dynamics.cooccurrence import EM, CorpusSide, grid, looked_up, side, translation_table
from heedful.dynamics.pair_probes import probed_pairs
from heedful.models.saved_translator import translations
from heedful.models.translator import Translator
from heedful.runs.watched import entered, kept_entries
from heedful.training.loop import Moment

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
