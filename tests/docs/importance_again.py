"""What matters of a text, by every explanation, found again from plain passes.

Nothing of `heedful.importance` or `heedful.models.tracing` is called here: gradients are torch's
own, attention that of `plain_passes`, integrals are taken at many points, flows by a linear
program.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import torch
from scipy.optimize import linprog
from torch import Tensor
from torch.nn import functional

from tests.docs.intervals_again import hashed
from tests.docs.plain_passes import Layers, Plain, forbidden, given_anew, odds_of

POINTS = 400
"""Of an integral's path, by Gauss and Legendre."""


SURE = 0.99
"""From here on what words cost is told in log-odds."""
SLOPES = ("gradient", "product", "centred", "input-gradient", "gradient-input",
          "attention-gradient")  # fmt: skip
LOSSES = ("leave-one-out", "occlusion")


def importance(plain: Plain, words: tuple[str, ...], method: str) -> np.ndarray:
    """One number for each word, towards the decision."""
    found = np.asarray(FOUND[method](plain, words))
    assert len(found) == len(words)
    p = float(plain.probabilities(words)[_decided(plain, words)])
    if p < SURE or method not in (*SLOPES, *LOSSES):
        return found
    if method in SLOPES:
        return found / (p * (1 - p))
    without = p - found
    return np.asarray(np.log(p / (1 - p)) - np.log(without / (1 - without)))


def _random(plain: Plain, words: tuple[str, ...]) -> np.ndarray:
    noise = hashed(["0"], ("random importance",), len(words))[0]
    return (noise >> np.uint64(11)) * 2.0**-53


def _attention(plain: Plain, words: tuple[str, ...]) -> np.ndarray:
    return plain.attention(words).weights


def _single(plain: Plain, words: tuple[str, ...]) -> np.ndarray:
    n, decided = len(words), _decided(plain, words)
    alone = plain.under(words, [given_anew(np.eye(n)[unit]) for unit in range(n)])
    return np.asarray(odds_of(alone)[:, decided])


def _leave_one_out(plain: Plain, words: tuple[str, ...]) -> np.ndarray:
    decided = _decided(plain, words)
    without = odds_of(plain.under(words, [forbidden([unit]) for unit in range(len(words))]))
    return np.asarray(plain.probabilities(words)[decided] - without[:, decided])


def _occlusion(plain: Plain, words: tuple[str, ...]) -> np.ndarray:
    decided = _decided(plain, words)
    unknown = "qqqq"  # no word of any of the models here
    after = [plain.probabilities((*words[:n], unknown, *words[n + 1 :])) for n in range(len(words))]
    return np.asarray(plain.probabilities(words)[decided] - np.stack(after)[:, decided])


def _decided(plain: Plain, words: tuple[str, ...]) -> int:
    return int(plain.logits(words).argmax())


def _slopes(plain: Plain, words: tuple[str, ...]) -> tuple[np.ndarray, np.ndarray]:
    """The weights of the rows that decide, [head row word], and ∂p by each."""
    decided = _decided(plain, words)
    if plain.is_own:
        attended = plain.model(plain.model.batch([" ".join(words)])).attended
        weights = attended.scores[0].double().softmax(-1).detach().requires_grad_()
        logits = plain.model.head((weights @ attended.values[0].detach().double()).float())
        (slope,) = torch.autograd.grad(logits.double().softmax(-1)[decided], weights)
        return tuple(np.asarray(x.detach())[None, None] for x in (weights, slope))  # type: ignore[return-value]
    layers, slopes = _with_slopes(plain, words, decided)
    return tuple(
        np.asarray(x[-1][0].double().detach())[:, plain.deciding, plain.inside]
        for x in (layers.weights, slopes)
    )  # type: ignore[return-value]


def _with_slopes(
    plain: Plain, words: tuple[str, ...], decided: int
) -> tuple[Layers, tuple[Tensor, ...]]:
    """A pass, and ∂p by the attention of every layer."""

    def watched(place: int, weights: Tensor) -> Tensor:
        return weights if weights.requires_grad else weights.requires_grad_()

    layers = plain.passed(words, watched)
    top = layers.logits[0].softmax(-1)[decided]
    return layers, torch.autograd.grad(top, layers.weights)


def _gradient(plain: Plain, words: tuple[str, ...]) -> np.ndarray:
    return np.asarray(_slopes(plain, words)[1].sum((0, 1)))


def _product(plain: Plain, words: tuple[str, ...]) -> np.ndarray:
    weights, slopes = _slopes(plain, words)
    # Heads are told apart, rows of a mean are not.
    return np.asarray((weights.mean(1) * slopes.sum(1)).sum(0))


def _centred(plain: Plain, words: tuple[str, ...]) -> np.ndarray:
    ((weights,),), ((slopes,),) = _slopes(plain, words)
    return np.asarray(weights * (slopes - weights @ slopes))


@contextmanager
def _scaled(plain: Plain, scale: float) -> Iterator[list[Tensor]]:
    """Word vectors times a number; special tokens keep theirs."""
    kept: list[Tensor] = []

    def put(module: Any, args: Any, vectors: Tensor) -> Tensor:
        whole = vectors.detach().clone()
        words = whole[:, plain.inside].clone()
        kept.append((scale * words).requires_grad_())
        kept.append(words)
        whole[:, plain.inside] = 0
        pad = (0, 0, plain.inside.start or 0, -(plain.inside.stop or 0))
        return whole + functional.pad(kept[0], pad)

    handle = plain.table.register_forward_hook(put)
    try:
        yield kept
    finally:
        handle.remove()


def _at(plain: Plain, words: tuple[str, ...], scale: float) -> tuple[np.ndarray, np.ndarray, float]:
    """Vectors of the words, ∂p by them at a multiple, and p there."""
    decided = _decided(plain, words)
    with _scaled(plain, scale) as kept:
        if plain.is_own:
            logits = plain.model(plain.model.batch([" ".join(words)])).logits
        else:
            logits = plain.model(**plain._given(words)).logits
        top = logits[0].double().softmax(-1)[decided]
        (slope,) = torch.autograd.grad(top, kept[0])
    return np.asarray(kept[1][0].double()), np.asarray(slope[0].double()), float(top.detach())


def _input_gradient(plain: Plain, words: tuple[str, ...]) -> np.ndarray:
    return np.asarray(np.linalg.norm(_at(plain, words, 1.0)[1], axis=-1))


def _gradient_input(plain: Plain, words: tuple[str, ...]) -> np.ndarray:
    vectors, slopes, _ = _at(plain, words, 1.0)
    return np.asarray((vectors * slopes).sum(-1))


def _integrated(plain: Plain, words: tuple[str, ...]) -> np.ndarray:
    places, weights = np.polynomial.legendre.leggauss(POINTS)
    found = np.zeros(len(words))
    for place, weight in zip((places + 1) / 2, weights / 2, strict=True):
        vectors, slopes, _ = _at(plain, words, float(place))
        found += weight * (vectors * slopes).sum(-1)
    return found


def rise(plain: Plain, words: tuple[str, ...]) -> float:
    """By how much the probability lies above that with zero vectors."""
    return _at(plain, words, 1.0)[2] - _at(plain, words, 0.0)[2]


@torch.no_grad()
def _matrices(plain: Plain, words: tuple[str, ...]) -> np.ndarray:
    """The attention of every layer, [layer head query key]."""
    return np.stack([np.asarray(one[0].double()) for one in plain.passed(words).weights])


def _start(plain: Plain, matrices: np.ndarray) -> np.ndarray:
    """One unit where the decision is read."""
    start = np.zeros(matrices.shape[-1])
    start[plain.deciding] = 1
    return np.asarray(start / start.sum())


def _row(plain: Plain, words: tuple[str, ...], how: str) -> np.ndarray:
    matrices = _matrices(plain, words)
    rows = (_start(plain, matrices) @ matrices)[..., plain.inside]
    return np.asarray(rows.mean((0, 1)) if how == "mean" else rows.max((0, 1)))


def _received(plain: Plain, words: tuple[str, ...], layers: slice) -> np.ndarray:
    return np.asarray(_matrices(plain, words)[layers].mean((0, 1, 2))[plain.inside])


def traced(plain: Plain, words: tuple[str, ...]) -> np.ndarray:
    """Where each head's unit of attention ends up, [head word]."""
    matrices = _matrices(plain, words)
    found = []
    for head in range(matrices.shape[1]):
        here = _start(plain, matrices)
        for layer in reversed(matrices):
            here = here @ layer[head]
        found.append(here[plain.inside])
    return np.stack(found)


def _rollout(plain: Plain, words: tuple[str, ...]) -> np.ndarray:
    matrices = _matrices(plain, words)
    here = _start(plain, matrices)
    for layer in reversed(matrices):
        here = here / 2 + here @ layer.mean(0) / 2
    return np.asarray(here[plain.inside])


@torch.no_grad()
def _value_norm(plain: Plain, words: tuple[str, ...]) -> np.ndarray:
    layers = plain.passed(words)
    lengths = np.stack([np.asarray(one[0].double().norm(dim=-1)) for one in layers.values])
    received = _matrices(plain, words).mean(2)
    return np.asarray((received * lengths).mean((0, 1))[plain.inside])


def _attention_gradient(plain: Plain, words: tuple[str, ...]) -> np.ndarray:
    layers, slopes = _with_slopes(plain, words, _decided(plain, words))
    found = [(w * g).double().sum((0, 1, 2)) for w, g in zip(layers.weights, slopes, strict=True)]
    return np.asarray(sum(found).detach())[plain.inside]  # type: ignore[union-attr]


@torch.no_grad()
def _value_zeroing(plain: Plain, words: tuple[str, ...]) -> np.ndarray:
    before = plain.passed(words)
    keys = before.weights[0].shape[-1]
    here = _start(plain, _matrices(plain, words))
    blocks = _blocks(plain)
    for layer in reversed(range(len(before.weights))):
        turned = np.zeros((keys, keys))
        own = _leaving(plain, words, blocks[layer], layer, None)
        for key in range(keys):
            after = _leaving(plain, words, blocks[layer], layer, key)
            turned[:, key] = np.asarray(1 - torch.cosine_similarity(after, own, dim=-1).double())
        total = turned.sum(-1, keepdims=True)
        rows = np.where(total > 0, turned / np.where(total > 0, total, 1), np.eye(keys))
        here = here @ rows
    return np.asarray(here[plain.inside])


def _blocks(plain: Plain) -> Any:
    base = plain.model.base_model
    return base.layers if plain.is_causal else base.encoder.layer


def _leaving(
    plain: Plain, words: tuple[str, ...], block: Any, layer: int, gone: int | None
) -> Tensor:
    """What leaves a layer, with the values of one key zero there."""
    kept: list[Tensor] = []

    def without(place: int, values: Tensor) -> Tensor:
        values = values.clone()
        if place == layer and gone is not None:
            values[:, :, gone] = 0
        return values

    def note(module: Any, args: Any, output: Any) -> None:
        kept.append(output[0] if isinstance(output, tuple) else output)

    handle = block.register_forward_hook(note)
    plain.passed(words, value=without)
    handle.remove()
    return kept[0][0].double()


def _flow(plain: Plain, words: tuple[str, ...]) -> np.ndarray:
    """The largest flow to each word: a linear program over the edges of all layers."""
    matrices = _matrices(plain, words)
    layers, keys = len(matrices), matrices.shape[-1]
    half = [one.mean(0) / 2 + np.eye(keys) / 2 for one in matrices]
    start = _start(plain, matrices)
    edges = layers * keys * keys
    inside = np.arange(keys)[plain.inside]
    # An edge is (layer, query, key); what leaves a position is at most what reaches it.
    at_most = np.zeros((layers * keys, edges))
    room = np.concatenate([start, np.zeros((layers - 1) * keys)])
    for layer in range(layers):
        depth = layers - 1 - layer
        for query in range(keys):
            row = depth * keys + query
            leaves = layer * keys * keys + query * keys
            at_most[row, leaves : leaves + keys] = 1
            if depth:
                at_most[row, (layer + 1) * keys * keys + query :: keys][:keys] = -1
    bounds = [(0, float(c)) for one in half for c in one.ravel()]
    found = []
    for word in inside:
        gain = np.zeros(edges)
        gain[word : keys * keys : keys] = -1
        found.append(-linprog(gain, at_most, room, bounds=bounds, method="highs").fun)
    return np.array(found)


FOUND: dict[str, Callable[[Plain, tuple[str, ...]], np.ndarray]] = {
    "random": _random,
    "attention": _attention,
    "gradient": _gradient,
    "product": _product,
    "centred": _centred,
    "single": _single,
    "leave-one-out": _leave_one_out,
    "input-gradient": _input_gradient,
    "gradient-input": _gradient_input,
    "integrated": _integrated,
    "occlusion": _occlusion,
    "trace": lambda plain, words: np.asarray(traced(plain, words).sum(0)),
    "rollout": _rollout,
    "mean-attention": lambda plain, words: _row(plain, words, "mean"),
    "max-attention": lambda plain, words: _row(plain, words, "max"),
    "last-attention": lambda plain, words: _received(plain, words, slice(-1, None)),
    "received-attention": lambda plain, words: _received(plain, words, slice(None)),
    "value-norm": _value_norm,
    "attention-gradient": _attention_gradient,
    "value-zeroing": _value_zeroing,
    "attention-flow": _flow,
}
"""Every explanation that needs no other package."""
