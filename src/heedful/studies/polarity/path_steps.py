"""Steps of a study of words that look at training itself: watched runs, and the flow's formulas."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from itertools import combinations_with_replacement
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import torch
from jaxtyping import Float64, Int
from torch import Tensor
from torch.func import functional_call, jvp
from torch.nn import functional

from heedful.audits.erasure import five_numbers
from heedful.corpora import EncodedCorpus
from heedful.corpora.batches import batches
from heedful.corpora.encoded import Encoded
from heedful.dynamics import by_class, flow, token_classes
from heedful.dynamics.flow import Flow, dot_product_rate, pair_means, parts_of
from heedful.dynamics.scores import WordScores, polarity_of, read_flat, word_scores, words_alone
from heedful.dynamics.token_classes import TokenClasses
from heedful.models import AttentionClassifier, Recipe
from heedful.models.recipe import described
from heedful.reproduction.results import Results, Step
from heedful.runs import JSON, TABLES
from heedful.studies.polarity.word_steps import (
    StackMember,
    Tables,
    built,
    by_seed,
    fit_members,
    inputs_of,
    joined,
    score_columns,
)
from heedful.training import TrainConfig
from heedful.training.loop import Moment


class Rates(NamedTuple):
    """ṡ and ȧ of every word."""

    polarity: Float64[Tensor, "word output"]
    attention: Float64[Tensor, " word"]


def gradients(model: AttentionClassifier, encoded: Encoded) -> dict[str, Tensor]:
    """∇ℓ of the mean cross-entropy over the whole split, in float64, by parameter."""
    exact = copy.deepcopy(model).double().eval()
    for batch in batches(encoded, 256):
        batch = batch.to(exact.head.weight.device)
        loss = functional.cross_entropy(exact(batch).logits, batch.labels, reduction="sum")
        (loss / len(encoded)).backward()  # type: ignore[no-untyped-call]
    return {
        name: torch.zeros_like(p) if p.grad is None else p.grad
        for name, p in exact.named_parameters()
    }


def rates(model: AttentionClassifier, encoded: Encoded) -> Rates:
    """ṡ and ȧ as the derivative of the scores along −∇ℓ; any flat model without recurrence."""
    exact = copy.deepcopy(model).double().eval()
    weights = {name: p.detach() for name, p in exact.named_parameters()}
    against = {name: -value for name, value in gradients(model, encoded).items()}
    ids = torch.arange(len(model.vocabulary), device=model.head.weight.device)

    def scores(weights: dict[str, Tensor]) -> tuple[Tensor, Tensor]:
        attended = functional_call(exact, weights, (words_alone(ids),)).attended
        return attended.values[:, 0] @ weights["head.weight"].T, attended.scores[:, 0]

    found: Any = jvp(scores, (weights,), (against,))
    return Rates(*found[1])


def printed_dot_products(
    model: AttentionClassifier, found: Flow, chosen: Int[Tensor, " chosen"]
) -> Float64[Tensor, "chosen chosen"]:
    """dΩ/dτ with the supplement's extra 1/λ in A_ik, whose a_k holds it already: wrong."""
    m, scale = len(found.reading.labels), parts_of(model).scale
    said = found.scores.logits[:, int(model.config.one_logit) :]
    one_way = torch.outer(found.rho[chosen], found.scores.scores[chosen]) / scale
    one_way = (one_way + found.pi[chosen] @ said[chosen].T) / m
    return one_way + one_way.T


def printed_classes(model: AttentionClassifier, found: Flow) -> Rates:
    """The supplement's multi-class rates: no α in two sums of ṡ, 1/λ for 1/λ² in ȧ: wrong."""
    parts, reading = parts_of(model), found.reading
    m, scale = len(reading.labels), parts.scale
    said = found.scores.logits[:, int(model.config.one_logit) :]
    error = found.error[reading.document]
    logits = reading.logits[:, int(model.config.one_logit) :]
    pi = torch.zeros_like(said).index_add(0, reading.word, error)
    against = ((said[reading.word] - logits[reading.document]) * error).sum(1)
    rho = torch.zeros_like(found.rho).index_add(0, reading.word, against)
    own = rho[:, None] * (parts.head @ parts.query) / scale + pi @ (parts.head @ parts.head.T)
    polarity = own / m + found.polarity["C"]
    attention = found.attention["D"] + found.attention["E"] + found.attention["F"] * scale
    return Rates(polarity, attention)


PAIRED = 1_000
"""Words of a class whose pairs are looked at one by one."""


def watched(
    text: Step[EncodedCorpus],
    name: str,
    members: Sequence[StackMember],
    config: TrainConfig,
    flows_at: Sequence[int],
    every: int = 1,
) -> Step[Tables]:
    """The stack of each seed watched while it learns; tables `path`, `terms`, `words` and `pairs`.

    `path` has what `followed` gives at the start and after `every` so many epochs,
    `terms` the flow's terms by class of word at the start and after the epochs in `flows_at`. The
    weights are those of the last epoch, not of the best: it is the path that is looked at. `words`
    has the scores at the end, `pairs` box plots of the word vectors' dot products.
    """

    def of(seed: int, members: Sequence[StackMember]) -> Step[Tables]:
        inputs = inputs_of(members, config) | {"flows_at": list(flows_at), "every": every}

        def compute(results: Results) -> Tables:
            return _watched(results, results[text], members, config, flows_at, every)

        return Step(text.beside(name, seed, "path"), compute, inputs, TABLES, (text,))

    return by_seed(text.beside(name, "path"), members, of)


def _watched(
    results: Results,
    corpus: EncodedCorpus,
    members: Sequence[StackMember],
    config: TrainConfig,
    flows_at: Sequence[int],
    every: int,
) -> Tables:
    """What is kept of one seed's stack, watched."""
    classes = token_classes(corpus)
    models = [model.to(results.device) for model in built(corpus, members)]
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
                scores = score_columns(model)
                table = pd.DataFrame(keys | {"id": np.arange(len(corpus.vocabulary))})
                words.append(table.assign(**scores))

    def observe(moment: Moment) -> None:
        epoch = round(moment.epoch)
        if epoch % every == 0 or epoch in (*flows_at, config.epochs):
            log(epoch, moment.model.models)

    log(0, models)
    fit_members(models, members, corpus, config, observe, results)
    found = {"path": pd.DataFrame(path), "terms": joined(terms), "words": joined(words)}
    return found | {"pairs": pd.DataFrame(pairs)}


def identities(text: Step[EncodedCorpus], recipe: Recipe, seed: int = 0) -> Step[dict[str, float]]:
    """How far the flow's terms and the printed forms are from automatic differentiation.

    Largest differences over the largest rate, of an untrained model in float64.
    """

    def compute(results: Results) -> dict[str, float]:
        corpus = results[text]
        (model,) = built(corpus, [StackMember("", recipe, seed)])
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
    return Step(text.beside("identities"), compute, inputs, JSON, (text,))


def _apart(found: torch.Tensor, expected: torch.Tensor) -> float:
    return float((found - expected).abs().max() / expected.abs().max())


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


def followed(
    model: AttentionClassifier,
    classes: TokenClasses,
    encoded: Encoded,
    start: Float64[Tensor, "output width"],
) -> dict[str, float]:
    """The state of training in named numbers; `start` is the head's first weight.

    `polarity/CLASS`, `attention/CLASS` are means over the class's words (in several classes the
    polarity is the word's own class's logit); `dot/A-B` means over pairs of word vectors,
    `pair/A-B` one fixed pair, `value dot/A-B` the same behind an affine map; `V·W`, `|W|²`,
    `W·W(0)`; `β` is the mean error of the texts.
    """
    parts, scores = parts_of(model), word_scores(model)
    groups = torch.from_numpy(classes.kind).to(scores.scores.device)
    found = _class_means(scores, classes, groups)
    found |= _pairs("dot", parts.words, classes, groups)
    found |= _fixed_pairs(parts.words, classes, groups)
    head, query = parts.head, parts.query
    if parts.matrix is not None and not parts.is_additive:
        values = parts.words @ parts.matrix.T
        found |= _pairs("value dot", values, classes, groups)
        head, query = head @ parts.matrix, query @ parts.matrix
    if not parts.is_additive:
        found["V·W"] = float((head @ query)[-1])
    found["|W|²"] = float(parts.head.square().sum())
    found["W·W(0)"] = float((parts.head * start).sum())
    reading = read_flat(model, encoded, scores)
    right = reading.logits.softmax(-1).gather(1, reading.labels[:, None])
    found["β"] = float((1 - right).mean())
    return found


def _class_means(
    scores: WordScores, classes: TokenClasses, groups: Int[Tensor, " word"]
) -> dict[str, float]:
    found = {}
    last = len(classes.names) - 1
    for number, name in enumerate(classes.names):
        chosen = groups == number
        logits = scores.logits[chosen]
        if last == 2:
            own = polarity_of(logits)
        else:
            own = logits[:, number] if number < last else logits.abs().amax(1)
        found[f"polarity/{name}"] = float(own.mean())
        found[f"attention/{name}"] = float(scores.scores[chosen].mean())
    return found


def _pairs(
    kind: str, vectors: Tensor, classes: TokenClasses, groups: Int[Tensor, " word"]
) -> dict[str, float]:
    means = pair_means(vectors, vectors, groups, len(classes.names))
    names = enumerate(classes.names)
    return {
        f"{kind}/{a}-{b}": float(means[i, k])
        for (i, a), (k, b) in combinations_with_replacement(names, 2)
    }


def _fixed_pairs(
    vectors: Tensor, classes: TokenClasses, groups: Int[Tensor, " word"]
) -> dict[str, float]:
    """The first word of one class with the second of the other, by id."""
    firsts = [torch.nonzero(groups == k)[:2, 0] for k in range(len(classes.names))]
    found = {}
    for (i, a), (k, b) in combinations_with_replacement(enumerate(classes.names), 2):
        if len(firsts[i]) and len(firsts[k]) > 1:
            found[f"pair/{a}-{b}"] = float(vectors[firsts[i][0]] @ vectors[firsts[k][1]])
    return found
