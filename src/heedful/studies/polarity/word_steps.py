"""Steps of a study of words: many models trained at once, and what is kept of each as tables.

Models themselves are not kept: a grid of them has more bytes than anyone wants to carry, and all
that is asked of them later is a row per word, a row per run, or a row per moment of training.

A seed is a step of its own, since the models of a stack share their batches and seeds must not:
what differs between seeds is all that a new run would draw. More seeds are more steps, and those
of the others stay as they are.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import torch

from heedful.corpora import Encoded, EncodedCorpus, batches, redrawn, with_rare_unknown
from heedful.corpora.splits import Pools
from heedful.dynamics import TokenRule, occurrence_scores, token_classes
from heedful.dynamics.scores import read_flat, word_scores
from heedful.dynamics.token_classes import TokenClasses
from heedful.models import AttentionClassifier, Recipe, build
from heedful.models.classifier_stack import ClassifierStack
from heedful.models.recipe import described
from heedful.reproduction.results import Results, Step
from heedful.runs import JSON, TABLE, TABLES
from heedful.training import TrainConfig
from heedful.training.evaluation import EVALUATION_TOKENS
from heedful.training.loop import History, Moment, Observer
from heedful.training.stacked import fit_stacked

Tables = Mapping[str, pd.DataFrame]
LOGGED = ("step", "epoch", "loss", "dev_accuracy", "dev_loss", "learning_rate")
"""What is kept of an evaluation while training."""
RULES: Mapping[str, TokenRule] = {
    "kind": TokenRule(),
    "strict": TokenRule(with_ends=False),
    "documents": TokenRule(unit="documents"),
}
"""The paper's token classes, without γ = ±1, and by documents; the first is used unless said."""


class StackMember(NamedTuple):
    """One model of a stack."""

    setting: str
    """What tells it from others of its seed, e.g. its λ."""
    recipe: Recipe
    seed: int


def word_classes(text: Step[EncodedCorpus]) -> Step[pd.DataFrame]:
    """One row per word: its counts by class and its class by every rule."""

    def compute(results: Results) -> pd.DataFrame:
        corpus = results[text]
        found = {name: token_classes(corpus, rule) for name, rule in RULES.items()}
        first = found["kind"]
        table = {"id": np.arange(len(corpus.vocabulary)), "word": list(corpus.vocabulary.words)}
        counts = {f"count {name}": first.counts[:, k] for k, name in enumerate(corpus.classes)}
        gamma = {"association": first.association}
        kinds = {name: _named(classes) for name, classes in found.items()}
        return pd.DataFrame(table | counts | gamma | kinds)

    inputs = {"rules": {name: asdict(rule) for name, rule in RULES.items()}}
    return Step(text.beside("words"), compute, inputs, TABLE, (text,))


def corpus_sizes(text: Step[EncodedCorpus]) -> Step[dict[str, Any]]:
    """Mean length, vocabulary and documents of each class, by split."""

    def compute(results: Results) -> dict[str, Any]:
        corpus = results[text]
        lengths = np.concatenate([part.lengths for part in corpus.splits.values()])
        counts = {
            split: np.bincount(part.labels, minlength=len(corpus.classes)).tolist()
            for split, part in corpus.splits.items()
        }
        facts = {"words": len(corpus.vocabulary), "length": float(lengths.mean())}
        return facts | {"classes": list(corpus.classes), "documents": counts}

    return Step(text.beside("sizes"), compute, {}, JSON, (text,))


def scored(
    text: Step[EncodedCorpus],
    name: str,
    members: Sequence[StackMember],
    config: TrainConfig,
    kept: Sequence[str],
    weighed: Sequence[str] = (),
    local: Sequence[str] = (),
    least: int = 0,
    pools: Pools | None = None,
) -> Step[Tables]:
    """The members of each seed trained as a stack; tables `runs`, `words` and, if asked, `weights`.

    `runs` has a row per member: accuracies, with uniform attention too, total variation from
    uniform, V·W over training, class means of the scores. `words` has the scores of the classed
    words for the settings in `kept`, with averages over training texts (`local …`) for those in
    `local`; `weights` the mean attention weights in test texts for `weighed`.
    `log` has every evaluation while training. Words with fewer than `least` training occurrences
    read as unknown. Splits redrawn from `pools` (see `corpora.splits`) are each seed's own.
    """

    def of(seed: int, members: Sequence[StackMember]) -> Step[Tables]:
        inputs = inputs_of(members, config) | {"kept": list(kept), "weighed": list(weighed)}
        inputs |= {"local": list(local), "least": least}
        inputs |= {} if pools is None else {"redrawn": {"seed": seed, "pools": pools}}

        def compute(results: Results) -> Tables:
            corpus = results[text] if pools is None else redrawn(results[text], seed, pools)
            corpus = with_rare_unknown(corpus, least)
            return _scored(results, corpus, members, config, kept, weighed, local)

        return Step(text.beside(name, seed, "scores"), compute, inputs, TABLES, (text,))

    return by_seed(text.beside(name, "scores"), members, of)


def by_seed(
    name: str,
    members: Sequence[StackMember],
    step_of: Callable[[int, Sequence[StackMember]], Step[Tables]],
) -> Step[Tables]:
    """A step for each seed's members, and the one that puts their tables one under the other."""
    seeds = list(dict.fromkeys(member.seed for member in members))
    parts = tuple(step_of(seed, [m for m in members if m.seed == seed]) for seed in seeds)

    def compute(results: Results) -> Tables:
        found = [results[part] for part in parts]
        return {key: joined([tables[key] for tables in found]) for key in found[0]}

    return Step(name, compute, {}, TABLES, parts)


def _scored(
    results: Results,
    corpus: EncodedCorpus,
    members: Sequence[StackMember],
    config: TrainConfig,
    kept: Sequence[str],
    weighed: Sequence[str],
    local: Sequence[str],
) -> Tables:
    """What is kept of one seed's stack."""
    models = built(corpus, members)
    drift: list[list[float]] = []

    def observe(moment: Moment) -> None:
        if "dot" in moment.model.config.attention:
            drift.append(moment.model.alignments().detach()[:, -1].tolist())

    histories = fit_members(models, members, corpus, config, observe, results)
    classes = {key: token_classes(corpus, rule) for key, rule in RULES.items()}
    known = np.any([found.is_member for found in classes.values()], axis=0)
    stack = ClassifierStack(models, results.device)
    tested = _tested(stack, corpus.splits["test"], results.device)
    stack.release()
    runs, words, weights = [], [], []
    log: list[dict[str, Any]] = []
    for row, (member, model) in enumerate(zip(members, models, strict=True)):
        keys: dict[str, Any] = {"setting": member.setting, "seed": member.seed}
        scores = score_columns(model)
        log.extend(
            keys | {name: entry[name] for name in LOGGED} for entry in histories[row].entries
        )
        runs.append(keys | {"dev": histories[row].best, "best step": histories[row].best_step})
        runs[-1] |= {key: float(values[row]) for key, values in tested.items()}
        if drift:
            path = [moment[row] for moment in drift]
            runs[-1] |= {"V·W mean": float(np.mean(path)), "V·W last": path[-1]}
        runs[-1] |= _class_means(scores, classes["kind"])
        if member.setting in kept:
            if member.setting in local:
                scores |= _local_columns(model, corpus.splits["train"])
            table = pd.DataFrame(keys | {"id": np.flatnonzero(known)})
            for column, values in scores.items():
                table[column] = values[known].astype(np.float32)
            words.append(table)
        if member.setting in weighed:
            seen = weight_table(model, corpus.splits["test"])
            weights.append(seen[known[seen["word"]]].assign(**keys))
    found = {"runs": pd.DataFrame(runs), "words": joined(words), "log": pd.DataFrame(log)}
    return found | ({"weights": joined(weights)} if weights else {})


def built(corpus: EncodedCorpus, members: Sequence[StackMember]) -> list[AttentionClassifier]:
    """The untrained models, each from its seed."""
    words, classes = corpus.vocabulary, corpus.classes
    return [
        build(member.recipe.model, words, classes, member.seed, None, corpus.tokeniser)
        for member in members
    ]


def fit_members(
    models: Sequence[AttentionClassifier],
    members: Sequence[StackMember],
    corpus: EncodedCorpus,
    config: TrainConfig,
    observe: Observer,
    results: Results,
) -> list[History]:
    """Trains the models as a stack, in place, each with its member's penalties and seed."""
    return fit_stacked(
        models,
        corpus,
        config,
        [member.recipe.penalties for member in members],
        seeds=[member.seed for member in members],
        device=results.device,
        observers=[observe],
        show=results.show,
    )


def _tested(
    stack: ClassifierStack, encoded: Encoded, device: str
) -> dict[str, np.ndarray[Any, np.dtype[np.float64]]]:
    """Accuracy, accuracy with uniform attention, and mean total variation between the two."""
    totals = np.zeros((3, len(stack)))
    with torch.no_grad():
        for batch in batches(encoded, 256, max_tokens=EVALUATION_TOKENS):
            here = batch.to(device)
            passed = stack.forward(here)
            even = here.mask / here.mask.sum(-1, keepdim=True)
            even = even.to(passed.values.dtype)
            pooled = (even[:, None] @ passed.values)[..., 0, :]
            moved = (passed.scores.softmax(-1) - even).abs().sum(-1) / 2
            right = (passed.logits.argmax(-1) == here.labels).sum(1)
            flat = (stack.head(pooled).argmax(-1) == here.labels).sum(1)
            totals += torch.stack([right, flat, moved.sum(1)]).double().cpu().numpy()
    accuracy, uniform, variation = totals / len(encoded)
    return {"accuracy": accuracy, "uniform accuracy": uniform, "total variation": variation}


def score_columns(model: AttentionClassifier) -> dict[str, np.ndarray[Any, Any]]:
    """Global scores of all words: `polarity` (or one per class) and `attention`."""
    scores = word_scores(model)
    return _columns("", scores.logits, scores.scores)


def _local_columns(model: AttentionClassifier, encoded: Encoded) -> dict[str, np.ndarray[Any, Any]]:
    local = occurrence_scores(model, encoded)
    return _columns("local ", local.logits, local.scores)


def _columns(
    prefix: str, logits: torch.Tensor, scores: torch.Tensor
) -> dict[str, np.ndarray[Any, Any]]:
    said = logits.cpu().numpy()
    found = {f"{prefix}attention": scores.cpu().numpy()}
    if said.shape[1] == 2:
        return found | {f"{prefix}polarity": said[:, 1] - said[:, 0]}
    return found | {f"{prefix}polarity {k}": said[:, k] for k in range(said.shape[1])}


def _class_means(
    scores: Mapping[str, np.ndarray[Any, Any]], classes: TokenClasses
) -> dict[str, float]:
    return {
        f"{column}/{name}": float(values[classes.of(name)].mean()) if size else float("nan")
        for column, values in scores.items()
        for name, size in classes.sizes.items()
    }


def _named(classes: TokenClasses) -> list[str]:
    names = (*classes.names, "")
    return [names[kind] for kind in classes.kind]


def joined(tables: Sequence[pd.DataFrame]) -> pd.DataFrame:
    """The tables one under the other."""
    return pd.concat(tables, ignore_index=True) if tables else pd.DataFrame({"setting": []})


def inputs_of(members: Sequence[StackMember], config: TrainConfig) -> dict[str, Any]:
    """What the training of a stack depends on."""
    listed = [
        {"setting": m.setting, "seed": m.seed, "model": described(m.recipe.model)}
        | {"penalties": asdict(m.recipe.penalties)}
        for m in members
    ]
    return {"members": listed, "train": config.described()}


def weight_table(model: AttentionClassifier, encoded: Encoded) -> pd.DataFrame:
    """For each word of the split: its mean weight, and in what texts it stands.

    Columns `word` (id), `weight` (mean over occurrences), `times`, `length` (median tokens of its
    texts) and `low` (share of its occurrences in texts where every attention score is negative).
    A weight is relative to its text: a plain word weighs much where nothing else asks for it.
    """
    scores = word_scores(model)
    reading = read_flat(model, encoded, scores)
    top = torch.full((len(reading.labels),), -torch.inf, dtype=torch.float64)
    top = top.to(scores.scores.device)
    top = top.scatter_reduce(0, reading.document, scores.scores[reading.word], "amax")
    tokens = pd.DataFrame(
        {
            "word": reading.word.cpu().numpy(),
            "weight": reading.attention.cpu().numpy(),
            "length": reading.lengths[reading.document].cpu().numpy(),
            "low": (top < 0)[reading.document].cpu().numpy(),
        }
    )
    grouped = tokens.groupby("word")
    return pd.DataFrame(
        {
            "weight": grouped["weight"].mean(),
            "times": grouped.size(),
            "length": grouped["length"].median(),
            "low": grouped["low"].mean(),
        }
    ).reset_index()
