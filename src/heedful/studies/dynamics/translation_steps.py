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
from heedful.dynamics.proxy import ProxyConfig, train_proxy
from heedful.dynamics.trajectory import FollowedRun, kept_checkpoints, load_followed, save_followed
from heedful.dynamics.watch import pair_sides
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
from heedful.studies.dynamics.optimal_attention import descended, optimal_attention
from heedful.studies.dynamics.word_predictors import (
    LOG_ODDS,
    PREDICTORS,
    Predictors,
    count_tables,
    proxy_epochs,
)
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
    beam: int = 1,
) -> Step[FollowedRun]:
    """A translator trained and followed: α, β, right words and BLEU at every grid step.

    Splits are `dev` and `train` (a subset of its size). Saliency is that of each split at its best
    step by accuracy, and under `dev bleu` and `train bleu` at its best by BLEU.
    """

    def compute(results: Results) -> _Trained:
        corpus = results[text]
        model = build_translator(config, seed)
        pieces = PieceTokeniser(corpus.model)
        folder = results.scratch(step)
        log = PairLog(folder, followed_splits(corpus), pieces, with_saliency, beam)
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

    inputs = {"model": asdict(config), "seed": seed, "saliency": with_saliency, "beam": beam}
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


AFTER = (10, 100, 1_000)
"""Plain gradient steps after which attention is looked at: a search may not have converged."""


def optimal(
    text: Step[EncodedPairs],
    run: Step[FollowedRun],
    other: Step[FollowedRun],
    sentences: int = 256,
) -> Step[pd.DataFrame]:
    """The best attention of a linear model for each dev word: one row per word.

    `item` is the sentence, `agreement` whether the best attention's largest position is among the
    top 5 % of the probe, `chance` its baseline, `attention` the same for the model's own attention,
    `gap` the certificate, `loss` and `own loss` the nats under the best and the own attention.
    `no state`, `other` and `other, no state` have the probe without what the decoder's state says,
    and that of another run; `chance other` is its baseline. `stayed` says whether the best unit
    alone was the optimum, so that the search never left its start, `from uniform` what a search
    from even attention agrees with, `after 10`, 100 and 1,000 what so many plain gradient steps
    from there do.
    """

    def compute(results: Results) -> pd.DataFrame:
        model, second = (_run(results, o).translator(results.device).model for o in (run, other))
        dev = results[text].splits["dev"]
        chosen = dev.chosen(range(min(sentences, len(dev))))
        seen, theirs = (probed_pairs(m, chosen, results.device) for m in (model, second))
        lengths, item = pair_rows(chosen)
        best, columns = _best_attention(model, chosen, results.device)
        alone, theirs_alone = (_without_state(m, chosen, results.device) for m in (model, second))
        probe = seen.probe[0]
        found = {
            "item": item,
            "agreement": agrees(best["optimum"], probe, lengths),
            "attention": agrees(seen.attention[0], probe, lengths),
            "no state": agrees(best["optimum"], alone, lengths),
            "other": agrees(best["optimum"], theirs.probe[0], lengths),
            "other, no state": agrees(best["optimum"], theirs_alone, lengths),
            "chance other": chance(theirs.probe[0], lengths),
        }
        found |= {n: agrees(a, probe, lengths) for n, a in best.items() if n != "optimum"}
        return pd.DataFrame(found | {"chance": chance(probe, lengths)} | columns)

    name = run.beside("optimal")
    inputs = {"sentences": sentences, "after": list(AFTER)}
    return Step(name, compute, inputs, TABLE, (text, run, other), LOG_ODDS)


def _without_state(model: Any, split: PairSplit, device: torch.device | str) -> np.ndarray:
    """What each source position says of every word by itself: the log of its share, flat."""
    flat: list[Any] = [None] * len(split)
    for rows, pairs in pair_batches(split, _per_call(model, split, device)):
        here = pairs.to(device)
        with evaluating(model):
            values, _ = model.encode(model.embedding(here.source), here)
            nothing = values.new_zeros(len(pairs), 1, model.config.width)
            _, message = model.said(nothing, values, torch.float64)
            said = (message[:, 0] @ model.words.weight.double().T).log_softmax(-1)
        for row, one, target, words, units in zip(
            rows.tolist(), said, here.target, pairs.target_lengths.tolist(),
            pairs.source_lengths.tolist(), strict=True,
        ):  # fmt: skip
            flat[row] = one[:units, target[:words]].T.flatten().cpu().numpy()
    return np.concatenate(flat)


def _per_call(model: Any, split: PairSplit, device: torch.device | str) -> int:
    """Sentences whose best attention is searched together."""
    longest = int(split.source.lengths.max()) + 2
    words = int(split.target.lengths.max()) + 1
    most = ROWS_AT_ONCE.get(torch.device(device).type, ROWS_AT_ONCE["cpu"])
    return max(most // (longest * words * int(model.config.vocabulary)), 1)


def _best_attention(
    model: Any, split: PairSplit, device: torch.device | str
) -> tuple[dict[str, np.ndarray], dict[str, np.ndarray]]:
    """The attention that the searches end with, flat, and the best one's loss and gap, by word.

    By name: `optimum`, `from uniform` and those of `AFTER`; the columns stand beside the own loss.
    """
    if model.config.output != "linear" or model.config.heads > 1:
        raise ValueError("the loss is convex in attention for a linear output and one head only")
    names = ("optimum", "from uniform", *(f"after {steps}" for steps in AFTER))
    flat: dict[str, list[Any]] = {name: [None] * len(split) for name in names}
    told: list[Any] = [None] * len(split)
    for rows, pairs in pair_batches(split, _per_call(model, split, device)):
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
            given = unit_logits, here.source_mask, offset, right, sentence
            found = optimal_attention(*given)
            even = optimal_attention(*given, is_even=True)
            ends = found.attention, even.attention, *descended(*given, after=AFTER)
            own = model(here).logits[sentence, step].double().log_softmax(-1)
            own_loss = -own.gather(1, right[:, None])[:, 0]
        counts = pairs.target_lengths.tolist()
        kept = [found.loss, found.gap, own_loss, found.stayed.double(), even.gap]
        columns = torch.split(torch.stack(kept, 1).cpu(), counts)
        widths = pairs.source_lengths.tolist()
        for name, attention in zip(names, ends, strict=True):
            parts = torch.split(attention.cpu(), counts)
            for row, weights, width in zip(rows.tolist(), parts, widths, strict=True):
                flat[name][row] = weights[:, :width].flatten()
        for row, numbers in zip(rows.tolist(), columns, strict=True):
            told[row] = numbers
    table = torch.cat(told).numpy()
    measured = ("loss", "gap", "own loss", "stayed", "gap from uniform")
    attentions = {name: torch.cat(parts).numpy() for name, parts in flat.items()}
    return attentions, {n: table[:, i] for i, n in enumerate(measured)}


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
        words = pd.DataFrame({"id": np.arange(types)})
        return Predictors(splits, words, proxy_epochs(proxy))

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
