"""What is followed while a model learns: class means of scores, dot products, norms."""

from __future__ import annotations

from itertools import combinations_with_replacement

import torch
from jaxtyping import Float64, Int
from torch import Tensor

from heedful.corpora.encoded import Encoded
from heedful.dynamics.flow import pair_means, parts_of
from heedful.dynamics.scores import WordScores, polarity_of, read_flat, word_scores
from heedful.dynamics.token_classes import TokenClasses
from heedful.models.classifier import AttentionClassifier


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
    scores: WordScores, classes: TokenClasses, groups: Int[Tensor, "word"]
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
    kind: str, vectors: Tensor, classes: TokenClasses, groups: Int[Tensor, "word"]
) -> dict[str, float]:
    means = pair_means(vectors, vectors, groups, len(classes.names))
    names = enumerate(classes.names)
    return {
        f"{kind}/{a}-{b}": float(means[i, k])
        for (i, a), (k, b) in combinations_with_replacement(names, 2)
    }


def _fixed_pairs(
    vectors: Tensor, classes: TokenClasses, groups: Int[Tensor, "word"]
) -> dict[str, float]:
    """The first word of one class with the second of the other, by id."""
    firsts = [torch.nonzero(groups == k)[:2, 0] for k in range(len(classes.names))]
    found = {}
    for (i, a), (k, b) in combinations_with_replacement(enumerate(classes.names), 2):
        if len(firsts[i]) and len(firsts[k]) > 1:
            found[f"pair/{a}-{b}"] = float(vectors[firsts[i][0]] @ vectors[firsts[k][1]])
    return found
