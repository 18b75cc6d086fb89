"""Steps of a study of words: many models trained at once, and what is kept of each as tables.

Models themselves are not kept: a grid of them has more bytes than anyone wants to carry, and all
that is asked of them later is a row per word, a row per run, or a row per moment of training.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from itertools import combinations_with_replacement
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import torch

from heedful.audits.erasure import five_numbers
from heedful.corpora import Encoded, EncodedCorpus, batches, with_rare_unknown
from heedful.dynamics import TokenRule, by_class, flow, occurrence_scores, token_classes
from heedful.dynamics.flow import dot_product_rate
from heedful.dynamics.scores import word_scores
from heedful.dynamics.token_classes import TokenClasses
from heedful.models import AttentionClassifier, Recipe, build
from heedful.models.classifier_stack import Stack
from heedful.models.recipe import described
from heedful.reproduction.results import Results, Step, named
from heedful.runs import JSON, TABLE, TABLES
from heedful.studies.polarity.derivatives import (
    gradients,
    printed_classes,
    printed_dot_products,
    rates,
)
from heedful.studies.polarity.paths import followed
from heedful.studies.polarity.weights import weight_table
from heedful.training import TrainConfig
from heedful.training.evaluation import EVALUATION_TOKENS
from heedful.training.loop import Moment
from heedful.training.stacked import fit_stacked

PAIRED = 1_000
"""Words of a class whose pairs are looked at one by one."""
Tables = Mapping[str, pd.DataFrame]
RULES: Mapping[str, TokenRule] = {
    "kind": TokenRule(),
    "strict": TokenRule(with_ends=False),
    "documents": TokenRule(unit="documents"),
}
"""The paper's token classes, without γ = ±1, and by documents; the first is used unless said."""


class Member(NamedTuple):
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
    return Step(_place(text, "words"), compute, inputs, TABLE, (text,))


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

    return Step(_place(text, "sizes"), compute, {}, JSON, (text,))


def scored(
    text: Step[EncodedCorpus],
    name: str,
    members: Sequence[Member],
    config: TrainConfig,
    kept: Sequence[str],
    weighed: Sequence[str] = (),
    local: Sequence[str] = (),
    least: int = 0,
) -> Step[Tables]:
    """All members trained as one stack; tables `runs`, `words` and, where asked for, `weights`.

    `runs` has a row per member: accuracies, with uniform attention too, total variation from
    uniform, V·W over training, class means of the scores. `words` has the scores of the classed
    words for the settings in `kept`, with averages over training texts (`local …`) for those in
    `local`; `weights` the mean attention weights in test texts for `weighed`.
    Words with fewer than `least` training occurrences read as unknown.
    """

    def compute(results: Results) -> Tables:
        corpus = with_rare_unknown(results[text], least)
        models = _built(corpus, members)
        drift: list[list[float]] = []

        def observe(moment: Moment) -> None:
            if "dot" in moment.model.config.attention:
                drift.append(moment.model.alignments().detach()[:, -1].tolist())

        histories = fit_stacked(
            models,
            corpus,
            config,
            [member.recipe.penalties for member in members],
            seeds=[member.seed for member in members],
            device=results.device,
            observers=[observe],
            show=results.show,
        )
        classes = {key: token_classes(corpus, rule) for key, rule in RULES.items()}
        known = np.any([found.is_member for found in classes.values()], axis=0)
        stack = Stack(models, results.device)
        tested = _tested(stack, corpus.splits["test"], results.device)
        stack.release()
        runs, words, weights = [], [], []
        for row, (member, model) in enumerate(zip(members, models, strict=True)):
            keys: dict[str, Any] = {"setting": member.setting, "seed": member.seed}
            scores = _score_columns(model)
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
        found = {"runs": pd.DataFrame(runs), "words": _joined(words)}
        return found | ({"weights": _joined(weights)} if weights else {})

    inputs = _inputs(members, config) | {"kept": list(kept), "weighed": list(weighed)}
    inputs |= {"local": list(local), "least": least}
    return Step(_place(text, name, "scores"), compute, inputs, TABLES, (text,))


def watched(
    text: Step[EncodedCorpus],
    name: str,
    members: Sequence[Member],
    config: TrainConfig,
    flows_at: Sequence[int],
    every: int = 1,
) -> Step[Tables]:
    """A stack watched while it learns; tables `path`, `terms`, `words` and `pairs`.

    `path` has what `studies.polarity.paths.followed` gives at the start and after `every` so many
    epochs, `terms` the flow's terms by class of word at the start and after the epochs in
    `flows_at`. The weights are those of the last epoch, not of the best: it is the path that is
    looked at. `words` has the scores at the end, `pairs` box plots of the word vectors' dot
    products.
    """

    def compute(results: Results) -> Tables:
        corpus = results[text]
        classes = token_classes(corpus)
        models = [model.to(results.device) for model in _built(corpus, members)]
        heads = [model.head.weight.detach().double().clone() for model in models]
        train = corpus.splits["train"]
        path: list[dict[str, Any]] = []
        terms: list[pd.DataFrame] = []
        words: list[pd.DataFrame] = []
        pairs: list[dict[str, Any]] = []

        def log(epoch: int, now: Sequence[AttentionClassifier]) -> None:
            for member, model, head in zip(members, now, heads, strict=True):
                keys: dict[str, Any] = {"setting": member.setting, "seed": member.seed}
                keys["epoch"] = epoch
                found = followed(model, classes, train, head)
                path.extend(keys | {"quantity": q, "value": value} for q, value in found.items())
                if epoch == 0 or epoch in flows_at:
                    terms.append(by_class(flow(model, train), classes).assign(**keys))
                if epoch == config.epochs:
                    pairs.extend(keys | row for row in _pair_boxes(model, classes))
                    scores = _score_columns(model)
                    table = pd.DataFrame(keys | {"id": np.arange(len(corpus.vocabulary))})
                    words.append(table.assign(**scores))

        def observe(moment: Moment) -> None:
            epoch = round(moment.epoch)
            if epoch % every == 0 or epoch in (*flows_at, config.epochs):
                log(epoch, moment.model.models)

        log(0, models)
        fit_stacked(
            models,
            corpus,
            config,
            [member.recipe.penalties for member in members],
            seeds=[member.seed for member in members],
            device=results.device,
            observers=[observe],
            show=results.show,
        )
        found = {"path": pd.DataFrame(path), "terms": _joined(terms), "words": _joined(words)}
        return found | {"pairs": pd.DataFrame(pairs)}

    inputs = _inputs(members, config) | {"flows_at": list(flows_at), "every": every}
    return Step(_place(text, name, "path"), compute, inputs, TABLES, (text,))


def identities(text: Step[EncodedCorpus], recipe: Recipe, seed: int = 0) -> Step[dict[str, float]]:
    """How far the flow's terms and the printed forms are from automatic differentiation.

    Largest differences over the largest rate, of an untrained model in float64.
    """

    def compute(results: Results) -> dict[str, float]:
        corpus = results[text]
        (model,) = _built(corpus, [Member("", recipe, seed)])
        model = model.double()
        train = corpus.splits["train"]
        found, exact = flow(model, train), rates(model, train)
        chosen = torch.arange(min(len(corpus.vocabulary), 200))
        words = model.embedding.weight.detach()[chosen]
        moves = -gradients(model, train)["embedding.weight"][chosen]
        products = moves @ words.T + words @ moves.T
        printed = printed_classes(model, found)
        return {
            "polarity": _apart(found.polarity_rate, exact.polarity),
            "attention": _apart(found.attention_rate, exact.attention),
            "dot products": _apart(dot_product_rate(model, found, chosen), products),
            "printed polarity": _apart(printed.polarity, exact.polarity),
            "printed attention": _apart(printed.attention, exact.attention),
            "printed dot products": _apart(printed_dot_products(model, found, chosen), products),
        }

    inputs = {"model": described(recipe.model), "seed": seed}
    return Step(_place(text, "identities"), compute, inputs, JSON, (text,))


def _apart(found: torch.Tensor, expected: torch.Tensor) -> float:
    return float((found - expected).abs().max() / expected.abs().max())


def _built(corpus: EncodedCorpus, members: Sequence[Member]) -> list[AttentionClassifier]:
    words, classes = corpus.vocabulary, corpus.classes
    return [
        build(member.recipe.model, words, classes, member.seed, None, corpus.tokeniser)
        for member in members
    ]


def _tested(
    stack: Stack, encoded: Encoded, device: str
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


def _score_columns(model: AttentionClassifier) -> dict[str, np.ndarray[Any, Any]]:
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


def _pair_boxes(model: AttentionClassifier, classes: TokenClasses) -> list[dict[str, Any]]:
    """Five numbers of e_i·e_k, i ≠ k, for every two classes of words."""
    vectors = model.embedding.weight.detach().double().cpu()
    rows = []
    for a, b in combinations_with_replacement(classes.names, 2):
        first, second = (np.flatnonzero(classes.of(n))[:PAIRED] for n in (a, b))
        products = (vectors[first] @ vectors[second].T).numpy()
        different = first[:, None] != second[None]
        if different.any():
            rows.append({"group": f"{a}-{b}"} | five_numbers(products[different]))
    return rows


def _named(classes: TokenClasses) -> list[str]:
    names = (*classes.names, "")
    return [names[kind] for kind in classes.kind]


def _joined(tables: Sequence[pd.DataFrame]) -> pd.DataFrame:
    return pd.concat(tables, ignore_index=True) if tables else pd.DataFrame({"setting": []})


def _inputs(members: Sequence[Member], config: TrainConfig) -> dict[str, Any]:
    listed = [
        {"setting": m.setting, "seed": m.seed, "model": described(m.recipe.model)}
        | {"penalties": asdict(m.recipe.penalties)}
        for m in members
    ]
    return {"members": listed, "train": config.described()}


def _place(text: Step[EncodedCorpus], *parts: str) -> str:
    return named(*text.name.split("/")[:-1], *parts)
