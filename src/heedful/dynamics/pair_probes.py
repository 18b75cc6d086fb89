"""Attention, probe and saliency of a translator, word by word of its output.

A row is one word to write of one pair, the end included; its units are the source's pieces with
start and end. Rows follow the pairs, and within a pair the target.
"""

from __future__ import annotations

import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import torch
from jaxtyping import Float32, Int
from safetensors.torch import load_file, save_file
from torch import Tensor

from heedful.corpora.pairs import END, START, Pairs, PairSplit, pair_batches
from heedful.corpora.pieces import PieceTokeniser, bleu
from heedful.dynamics.trajectory import (
    ACCURACY,
    SECONDS,
    Trajectory,
    keep_checkpoint,
    kept_checkpoints,
    saliency_name,
)
from heedful.models.likelihoods import attended, saliency
from heedful.models.saved_translator import translations
from heedful.models.translator import Translator
from heedful.runs.atomic import writing
from heedful.training.loop import Moment

SENTENCES = {"cpu": 64, "cuda": 512}
"""Pairs read together: on a GPU a pass costs its launches, whatever their number."""
PERFORMANCES = (ACCURACY, "bleu")


def pair_rows(
    split: PairSplit,
) -> tuple[Int[np.ndarray, " row"], Int[np.ndarray, " row"]]:
    """The units of each row, and the pair it belongs to."""
    words = split.target.lengths + 1
    item = np.repeat(np.arange(len(split)), words)
    return (split.source.lengths + 2)[item], item


def probed_pairs(
    model: Translator, split: PairSplit, device: torch.device | str = "cpu", step: int = 0
) -> Trajectory:
    """The trajectory of this one moment."""
    found: dict[int, tuple[np.ndarray, ...]] = {}
    for rows, pairs in pair_batches(
        split, SENTENCES.get(torch.device(device).type, SENTENCES["cpu"])
    ):
        here = pairs.to(device)
        did = attended(model, here)
        special = (pairs.source == START) | (pairs.source == END)
        blocks = _blocks(pairs, did.attention, did.probe, special[:, None].expand(did.probe.shape))
        for row, right, count, *block in zip(
            rows.tolist(), did.is_right.cpu().numpy(), pairs.target_lengths.tolist(), *blocks,
            strict=True,
        ):  # fmt: skip
            found[row] = (right[:count], *block)
    right, attention, probe, is_special = (
        np.concatenate(part) for part in zip(*(found[r] for r in sorted(found)), strict=True)
    )
    lengths, item = pair_rows(split)
    return Trajectory(
        steps=np.array([step]),
        attention=attention.astype(np.float32)[None],
        probe=probe.astype(np.float32)[None],
        correct=right[None],
        lengths=lengths,
        item=item,
        is_special=is_special,
    )


def saliency_of_pairs(
    model: Translator, split: PairSplit, device: torch.device | str = "cpu"
) -> Float32[np.ndarray, " flat"]:
    """Δ of every source position for every word to write (docs/studies/dynamics.md, "Saliency")."""
    found: dict[int, np.ndarray] = {}
    for rows, pairs in pair_batches(split, SENTENCES["cpu"]):  # `saliency` has its own size
        (blocks,) = _blocks(pairs, saliency(model, pairs.to(device)))
        found |= dict(zip(rows.tolist(), blocks, strict=True))
    return np.concatenate([found[row] for row in sorted(found)]).astype(np.float32)


def _blocks(pairs: Pairs, *laid: Tensor) -> list[list[np.ndarray]]:
    """What each pair owns of padded [sentence step unit] tensors, flat."""
    sizes = list(zip(pairs.target_lengths.tolist(), pairs.source_lengths.tolist(), strict=True))
    return [
        [block[:t, :u].ravel() for block, (t, u) in zip(one.cpu().numpy(), sizes, strict=True)]
        for one in laid
    ]


class PairLog:
    """An observer that keeps α, β, right words and BLEU of some pairs at every evaluation.

    One file per split and evaluation, so that a killed run loses none, with the seconds since the
    observer was made; translations are greedy, or the best of a beam. Where `with_saliency` asks
    for `best_saliency`, the weights of each split's best evaluation so far, by accuracy and by
    BLEU, are kept too.
    """

    def __init__(
        self,
        folder: Path,
        splits: dict[str, PairSplit],
        pieces: PieceTokeniser,
        with_saliency: bool = True,
        beam: int = 1,
    ) -> None:
        self.folder, self.splits, self.pieces = folder, splits, pieces
        self.with_saliency, self.beam = with_saliency, beam
        self.started = time.perf_counter()

    def __call__(self, moment: Moment) -> None:
        """Keeps the moment."""
        for name, split in self.splits.items():
            found = probed_pairs(moment.model, split, moment.device, moment.step)
            written = translations(moment.model, split, self.pieces, beam=self.beam)
            score = bleu(written, split.texts).score
            seconds = time.perf_counter() - self.started
            scores = {"bleu": np.array([score]), SECONDS: np.array([seconds])}
            keep_checkpoint(self.folder, name, replace(found, scores=scores))
            if self.with_saliency:
                self._keep_best(name, moment)

    def _keep_best(self, name: str, moment: Moment) -> None:
        whole = kept_checkpoints(self.folder, name)
        for performance in PERFORMANCES:
            if int(whole.steps[whole.best(performance)]) == moment.step:
                self._keep_weights(name, performance, moment.model)

    def _keep_weights(self, name: str, performance: str, model: Translator) -> None:
        weights = {n: w.detach().cpu().contiguous() for n, w in model.state_dict().items()}
        with writing(self._weights(name, performance)) as path:
            save_file(weights, path)

    def _weights(self, name: str, performance: str) -> Path:
        return self.folder / f"weights {saliency_name(name, performance)}.safetensors"

    def best_saliency(
        self, model: Translator, device: torch.device | str = "cpu"
    ) -> dict[str, Float32[np.ndarray, " flat"]]:
        """Δ of each split at its best evaluations, by `saliency_name`; the model is borrowed."""
        found = {}
        for name, split in self.splits.items():
            for performance in PERFORMANCES:
                model.load_state_dict(load_file(self._weights(name, performance)))
                key = saliency_name(name, performance)
                found[key] = saliency_of_pairs(model, split, device)
        return found
