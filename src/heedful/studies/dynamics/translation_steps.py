"""Steps of translation: a corpus as pieces, runs followed over training, what words tell.

`followed_pairs` gives what `studies.dynamics.run_steps` compares; its folder keeps the best model
too, so that `translated` (beam search) and `optimal` (best attention of a linear model) need no
training.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import torch

from heedful.corpora.pairs import EncodedPairs, PairSplit, load_pairs, pair_batches
from heedful.corpora.pairs import save_pairs as _save_pairs
from heedful.corpora.parallel import Parallel
from heedful.corpora.pieces import MAX_PIECES, PieceTokeniser, bleu_counts, encode_parallel
from heedful.dynamics.agreement import agrees, chance
from heedful.dynamics.cooccurrence import EM, grid, looked_up, translation_table
from heedful.dynamics.pair_probes import PairLog, pair_rows, probed_pairs
from heedful.dynamics.pair_watch import pair_sides
from heedful.dynamics.proxy import ProxyConfig, train_proxy
from heedful.dynamics.trajectory import FollowedRun, kept_checkpoints, load_followed, save_followed
from heedful.models.saved_translator import (
    SavedTranslator,
    load_translator,
    save_translator,
    translations,
)
from heedful.models.translator import TranslatorConfig, build_translator
from heedful.models.verbs import evaluating
from heedful.reproduction.results import Results, Step, named
from heedful.runs import TABLE, Form
from heedful.runs.randomness import numpy_generator
from heedful.studies.dynamics.optimal_attention import optimal_attention
from heedful.studies.dynamics.run_steps import LOG_ODDS, PREDICTORS, Predictors, count_tables
from heedful.training.sequences import SequenceConfig, fit_translator

ROWS_AT_ONCE = {"cpu": 2**25, "cuda": 2**28}
"""Numbers of a batch of rows x units x pieces whose best attention is searched together: on a GPU
2 GiB, since there a search costs its launches and not its arithmetic."""

PAIRS: Form[EncodedPairs] = Form("", lambda folder, found: _save_pairs(found, folder), load_pairs)
"""How a parallel corpus lies on disk as the result of a step."""


def encoded(
    corpus: str, load: Callable[[], Parallel], size: int, inputs: dict[str, Any]
) -> Step[EncodedPairs]:
    """A parallel corpus as ids; its pieces are learnt from both sides of the training pairs."""

    def compute(results: Results) -> EncodedPairs:
        return encode_parallel(load(), size)

    asked = {"corpus": corpus, "pieces": size, "longest": MAX_PIECES} | inputs
    return Step(named(corpus, "pairs"), compute, asked, PAIRS)


def followed_splits(corpus: EncodedPairs) -> dict[str, PairSplit]:
    """The dev pairs, and as many training pairs drawn by seed 1."""
    dev, train = corpus.splits["dev"], corpus.splits["train"]
    order = numpy_generator(1, "followed training pairs").permutation(len(train))
    return {"dev": dev, "train": train.chosen(np.sort(order[: len(dev)]).tolist())}


class TranslatedRun(FollowedRun):
    """A followed run whose best model (by dev token accuracy) lies beside it."""

    folder: Path

    def translator(self, device: torch.device | str = "cpu") -> SavedTranslator:
        """The model, in evaluation mode."""
        return load_translator(self.folder / "model", device)


class _Trained(NamedTuple):
    """A run as it is written."""

    followed: FollowedRun
    saved: SavedTranslator


def _save_run(folder: Path, run: _Trained) -> None:
    save_followed(folder, run.followed)
    save_translator(run.saved, folder / "model")


def _load_run(folder: Path) -> TranslatedRun:
    run = TranslatedRun(*load_followed(folder))
    run.folder = folder
    return run


# What goes in is a model with what was seen of it, what comes back reads it from its folder.
RUN: Form[Any] = Form("", _save_run, _load_run)


def followed_pairs(
    text: Step[EncodedPairs],
    name: str,
    config: TranslatorConfig,
    seed: int,
    training: SequenceConfig,
    with_saliency: bool = False,
) -> Step[FollowedRun]:
    """A translator trained and followed: α, β, right words and greedy BLEU at every grid step.

    Splits are `dev` and `train` (a subset of its size). Saliency is that of each split at its best
    step by accuracy, and under `dev bleu` and `train bleu` at its best by BLEU.
    """

    def compute(results: Results) -> _Trained:
        corpus = results[text]
        model = build_translator(config, seed)
        pieces = PieceTokeniser(corpus.model)
        folder = results.scratch(step)
        log = PairLog(folder, followed_splits(corpus), pieces, with_saliency)
        fit_translator(
            model, corpus, training, seed=seed, device=results.device, observers=[log],
            folder=folder,
        )  # fmt: skip
        splits = {split: kept_checkpoints(folder, split) for split in log.splits}
        saved = SavedTranslator(model, pieces)
        found: dict[str, Any] = {}
        if with_saliency:
            again = build_translator(config).to(results.device)
            found = log.best_saliency(again, results.device)
        return _Trained(FollowedRun(splits, found), saved)

    inputs = {"model": asdict(config), "seed": seed, "saliency": with_saliency}
    inputs |= {"training": _training(training)}
    place = text.beside(name, seed, "run")
    step: Step[Any] = Step(place, compute, inputs, RUN, (text,), LOG_ODDS)
    return step


def _training(config: SequenceConfig) -> dict[str, Any]:
    """What a run depends on: not how often it saves itself."""
    return {n: v for n, v in asdict(config).items() if n != "checkpoint_seconds"}


def translated(
    text: Step[EncodedPairs], run: Step[FollowedRun], split: str = "test", beam: int = 5
) -> Step[pd.DataFrame]:
    """The translations of a run's best model, with the counts that corpus BLEU is made of."""

    def compute(results: Results) -> pd.DataFrame:
        corpus = results[text]
        saved = _run(results, run).translator(results.device)
        pairs = corpus.splits[split]
        written = translations(saved.model, pairs, saved.pieces, beam)
        table = pd.DataFrame({"name": list(pairs.names), "translation": written})
        table["reference"] = list(pairs.texts)
        return table.join(bleu_counts(written, pairs.texts))

    name = run.beside(f"{split} beam={beam}", "translations")
    return Step(name, compute, {"split": split, "beam": beam}, TABLE, (text, run))


def optimal(
    text: Step[EncodedPairs], run: Step[FollowedRun], sentences: int = 256
) -> Step[pd.DataFrame]:
    """The best attention of a linear model for each dev word: one row per word.

    `item` is the sentence, `agreement` whether the best attention's largest position is among the
    top 5 % of the probe, `chance` its baseline, `attention` the same for the model's own attention,
    `gap` the certificate, `loss` and `own loss` the nats under the best and the own attention.
    """

    def compute(results: Results) -> pd.DataFrame:
        model = _run(results, run).translator(results.device).model
        dev = results[text].splits["dev"]
        chosen = dev.chosen(range(min(sentences, len(dev))))
        seen = probed_pairs(model, chosen, results.device)
        lengths, item = pair_rows(chosen)
        best, columns = _best_attention(model, chosen, results.device)
        agreed, own = (agrees(a, seen.probe[0], lengths) for a in (best, seen.attention[0]))
        found = {"item": item, "agreement": agreed, "attention": own}
        return pd.DataFrame(found | {"chance": chance(seen.probe[0], lengths)} | columns)

    name = run.beside("optimal")
    return Step(name, compute, {"sentences": sentences}, TABLE, (text, run))


def _best_attention(
    model: Any, split: PairSplit, device: torch.device | str
) -> tuple[np.ndarray, dict[str, np.ndarray]]:
    """The best attention of all words, flat, and its loss and gap beside the own loss."""
    if model.config.output != "linear" or model.config.heads > 1:
        raise ValueError("the loss is convex in attention for a linear output and one head only")
    flat: list[Any] = [None] * len(split)
    told: list[Any] = [None] * len(split)
    longest = int(split.source.lengths.max()) + 2
    words = int(split.target.lengths.max()) + 1
    most = ROWS_AT_ONCE.get(torch.device(device).type, ROWS_AT_ONCE["cpu"])
    per_call = max(most // (longest * words * model.config.vocabulary), 1)
    for rows, pairs in pair_batches(split, per_call):
        here = pairs.to(device)
        with evaluating(model):
            values, start = model.encode(model.embedding(here.source), here)
            states, _ = model.decode(here.before, start)
            base, message = model.said(states, values, torch.float64)
            sentence, step = here.target_mask.nonzero(as_tuple=True)
            table = model.words.weight.double()
            unit_logits = message[:, 0] @ table.T
            offset = base[sentence, step] @ table.T + model.words.bias.double()
            right = here.target[sentence, step]
            found = optimal_attention(unit_logits, here.source_mask, offset, right, sentence)
            own = model(here).logits[sentence, step].double().log_softmax(-1)
            own_loss = -own.gather(1, right[:, None])[:, 0]
        counts = pairs.target_lengths.tolist()
        attention = torch.split(found.attention.cpu(), counts)
        columns = torch.split(torch.stack([found.loss, found.gap, own_loss], 1).cpu(), counts)
        widths = pairs.source_lengths.tolist()
        for row, weights, numbers, width in zip(
            rows.tolist(), attention, columns, widths, strict=True
        ):
            flat[row], told[row] = weights[:, :width].flatten(), numbers
    table = torch.cat(told).numpy()
    names = ("loss", "gap", "own loss")
    return torch.cat(flat).numpy(), {n: table[:, i] for i, n in enumerate(names)}


def pair_predictors(
    text: Step[EncodedPairs], config: ProxyConfig, seed: int = 0
) -> Step[Predictors]:
    """The proxy and the count tables of a parallel corpus, for every followed word and position.

    Sources with start and end, targets with the end. There is no regression: `proxy`,
    `counts` and `em`.
    """

    def compute(results: Results) -> Predictors:
        corpus = results[text]
        types = len(corpus.pieces)
        sides = {name: pair_sides(part, types) for name, part in _parts(corpus).items()}
        proxy = train_proxy(
            *sides["train"], sides["held out"], config, seed=seed, device=results.device
        )
        tables = {
            "counts": translation_table(*sides["train"], 1),
            "em": translation_table(*sides["train"], EM),
        }
        splits = {}
        for name, part in followed_splits(corpus).items():
            source, target = pair_sides(part, types)
            cells = grid(source, target)
            words, answers = source.ids[cells.source_token], target.ids[cells.target_token]
            splits[name] = {"proxy": proxy.probe(words, answers)} | {
                key: looked_up(table, words, answers) for key, table in tables.items()
            }
        return Predictors(splits, pd.DataFrame({"id": np.arange(types)}))

    inputs: dict[str, Any] = {"proxy": asdict(config), "em": EM, "seed": seed}
    return Step(text.beside("predictors"), compute, inputs, PREDICTORS, (text,), LOG_ODDS)


def pair_sizes(text: Step[EncodedPairs]) -> Step[dict[str, Any]]:
    """Median lengths of both sides without start and end, pairs, pieces (T9)."""

    def compute(results: Results) -> dict[str, Any]:
        corpus = results[text]
        found: dict[str, Any] = {"vocabulary": len(corpus.pieces)}
        for split in ("train", "dev"):
            part = corpus.splits[split]
            medians = [float(np.median(one.lengths)) for one in (part.source, part.target)]
            found[split] = {"documents": len(part), "median": medians}
        return found

    return Step(text.beside("sizes"), compute, {}, needs=(text,))


def pair_tables(text: Step[EncodedPairs]) -> Step[dict[str, Any]]:
    """`count_tables` of a parallel corpus (DYN-15)."""

    def compute(results: Results) -> dict[str, Any]:
        corpus = results[text]
        return count_tables(*pair_sides(corpus.splits["train"], len(corpus.pieces)))

    return Step(text.beside("tables"), compute, {}, needs=(text,))


def _parts(corpus: EncodedPairs) -> dict[str, PairSplit]:
    return {"train": corpus.splits["train"], "held out": corpus.splits["dev"]}


def _run(results: Results, run: Step[FollowedRun]) -> TranslatedRun:
    found = results[run]
    assert isinstance(found, TranslatedRun), "the step is one of `followed_pairs`"
    return found
