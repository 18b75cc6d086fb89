"""Every architecture that is claimed: parity, padding, edits against brute force, tracing.

The table in docs/architectures.md is made of what these tests find; run this file with
HEEDFUL_WRITE_DOCS=1 to write it again.
"""

from __future__ import annotations

import os
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
import torch
from torch import Tensor

from heedful.errors import UnsupportedModel
from heedful.models import Permute, Reading, Scale, curve, decide, ranked, read, uniform
from heedful.models.huggingface import attending
from heedful.models.huggingface.calls import softmax
from heedful.models.huggingface.checking import SUPPORTED
from heedful.models.huggingface.layout import logits_of
from heedful.models.huggingface.pieces import framed
from heedful.models.huggingface.units_of_keys import unit_of_key
from heedful.models.tracing import lat, layers_of, rollout
from tests.tiny_transformers import (
    CAUSAL,
    CONFIGS,
    OFF_INTERFACE,
    TEXTS,
    TWO_STACKS,
    reader,
    transformer,
)

PAGE = Path(__file__).parents[3] / "docs" / "architectures.md"
SITES = ("pooled", "layer:0", "all")
KINDS = tuple(CONFIGS)
LAYERS, HEADS = 2, 2


@cache
def opened(kind: str, site: str = "pooled") -> tuple[Any, Reading]:
    """A model of that architecture in float64, and its reading of some texts side by side."""
    model = reader(kind, site)
    return model, read(model, model.batch(TEXTS))


def calls_of(kind: str) -> tuple[int, ...]:
    """The audited calls of one forward pass, known by hand."""
    return (3, 5) if kind in TWO_STACKS else (0, 1)


class Parity(NamedTuple):
    """How far our attention is from the library's own."""

    eager: float
    own: float
    calls: int
    backend: str


@cache
def parity(kind: str, precision: torch.dtype) -> Parity:
    """Logits with attention in our hands and doing nothing, against the untouched model's.

    Relative to the largest logit. The sums are the same and their order is the processor's, so that
    they agree to rounding and, on some processors only, to the bit.
    """
    model, inputs = transformer(kind).to(precision), opened(kind)[1].state.inputs
    backend = model.config._attn_implementation
    with torch.no_grad():
        own = model(**inputs).logits
        with attending(model, lambda number, scores: softmax(scores)) as watched:
            ours = model(**inputs).logits
        assert model.config._attn_implementation == backend
        if kind not in OFF_INTERFACE:
            model.set_attn_implementation("eager")
        eager = model(**inputs).logits
    scale = float(own.abs().max())
    differences = (float((ours - other).abs().max()) / scale for other in (eager, own))
    return Parity(*differences, watched.calls, backend)


ROUNDINGS = 2 * 3 * 9 * 24
"""Unit roundoffs that a logit may be off by: twice the terms that are summed on the way to it.

At most three layers, nine sums each (six products, two norms, a softmax), of at most 24 terms. The
factor two is for what a layer makes of the differences of the layer before.
"""


def roundings(precision: torch.dtype) -> float:
    return ROUNDINGS * torch.finfo(precision).eps / 2


@pytest.mark.parametrize("kind", KINDS)
def test_our_attention_equals_the_librarys(kind: str) -> None:
    single, double = parity(kind, torch.float32), parity(kind, torch.float64)
    assert max(single.eager, single.own) < roundings(torch.float32)
    assert double.own < roundings(torch.float64)
    # Some eager functions take their softmax in float32 whatever the model's precision is.
    assert double.eager < roundings(torch.float32)
    for found in (single, double):
        assert found.calls == (3 * LAYERS if kind in TWO_STACKS else LAYERS)


@pytest.mark.parametrize("kind", KINDS)
def test_a_reading_decides_as_the_untouched_model(kind: str) -> None:
    model, reading = opened(kind)
    with torch.no_grad():
        untouched = model(reading.batch).logits
    assert float((reading.logits - untouched).abs().max()) < 1e-12


@cache
def padding(kind: str, site: str) -> float:
    """What reading a text beside longer ones changes, in attention and under every erasure."""
    model, reading = opened(kind, site)
    worst = 0.0
    for row, text in enumerate(TEXTS):
        alone = read(model, model.batch([text]))
        units = int(alone.units[0])
        erasing = Scale(1 - torch.eye(units, dtype=torch.float64)[None])
        beside = Scale(torch.ones(len(TEXTS), units, reading.mask.shape[1], dtype=torch.float64))
        beside.weights[row, :, :units] = erasing.weights[0]
        pairs = (
            (alone.attention[0], reading.attention[row, :units]),
            (alone.logits[0], reading.logits[row]),
            (decide(model, alone, erasing)[0], decide(model, reading, beside)[row]),
        )
        worst = max(worst, *(float((one - other).abs().max()) for one, other in pairs))
    return worst


@pytest.mark.parametrize("site", SITES)
@pytest.mark.parametrize("kind", KINDS)
def test_padding_changes_nothing(kind: str, site: str) -> None:
    assert padding(kind, site) < 1e-12


def edited_row(
    weights: np.ndarray, units: np.ndarray, visible: np.ndarray, kind: str, edit: np.ndarray
) -> np.ndarray:
    """One attention row under one edit of words, written out word by word."""
    words = [int(u) for u in sorted(set(units[units >= 0]))]
    seen = [u for u in words if visible[units == u].any()]
    row = weights.copy()
    if kind == "scale":
        for u in words:
            row[units == u] *= edit[u]
        return row / row.sum() if row.sum() > 0 else row
    share = sum(weights[units == u].sum() for u in seen)
    if kind == "replace":
        total = sum(edit[u] for u in seen)
        wanted = {u: share * edit[u] / total for u in seen}
    else:
        wanted = {u: weights[(units == edit[u]) & visible].sum() for u in seen}
        if len(seen) < len(words):
            left = sum(wanted.values())
            wanted = {u: share * value / left if left > 0 else 0.0 for u, value in wanted.items()}
    for u in seen:
        pieces = (units == u) & visible
        row[pieces] = wanted[u] * weights[pieces] / weights[pieces].sum()
    return row


def brute_force(model: Any, kind: str, site: str, text: str, how: str, edit: np.ndarray) -> Tensor:
    """Logits of one text, alone, by a whole forward pass with every row edited by hand."""
    batch = model.batch([text])
    frame = framed(batch, model.subwords)
    units = unit_of_key(batch, frame, read(model, batch).unit_of_token)[0].numpy()
    calls = {"pooled": calls_of(kind)[-1:], "layer:0": calls_of(kind)[:1], "all": calls_of(kind)}
    keys = len(units)
    position = keys - 1 if kind in (*CAUSAL, *TWO_STACKS, "xlnet") else 0

    def change(number: int, scores: Tensor) -> Tensor:
        weights = softmax(scores)
        if number not in calls[site]:
            return weights
        new = weights.numpy().copy()
        for head in range(HEADS):
            for query in range(keys) if site != "pooled" else [position]:
                visible = scores[0, head, query].numpy() > -1e4
                old = new[0, head, query].copy()
                new[0, head, query] = edited_row(old, units, visible, how, edit)
        return torch.from_numpy(new)

    with torch.no_grad(), attending(model.model, change):
        return logits_of(model.run(model.inputs_of(frame)))[0]


@cache
def edits(kind: str, site: str) -> float:
    """How far the batched answers from the edited layer on are from the brute force."""
    model, reading = opened(kind, site)
    generator = torch.Generator().manual_seed(0)
    shape = (len(TEXTS), 3, reading.mask.shape[1])
    noise = torch.rand(shape, generator=generator, dtype=torch.float64)
    kept = (noise > 0.4).double()
    kept[:, 0] = 0.0  # nothing is left but special tokens
    order = noise.masked_fill(~reading.mask[:, None], 2.0).argsort(-1)
    place = torch.arange(shape[-1]).expand(shape)
    order = torch.where(reading.mask[:, None], order, place)
    even = uniform(reading)
    asked = (
        ("scale", Scale(kept), kept.numpy()),
        ("replace", even, even.attention.numpy()),
        ("permute", Permute(order), order.numpy()),
    )
    worst = 0.0
    for how, edit, values in asked:
        answers = decide(model, reading, edit)
        for row, text in enumerate(TEXTS):
            for number in range(values.shape[1]):
                units = int(reading.units[row])
                expected = brute_force(model, kind, site, text, how, values[row, number, :units])
                worst = max(worst, float((answers[row, number] - expected).abs().max()))
    return worst


@pytest.mark.slow
@pytest.mark.parametrize("site", SITES)
@pytest.mark.parametrize("kind", KINDS)
def test_edits_equal_a_whole_forward_pass_with_them(kind: str, site: str) -> None:
    assert edits(kind, site) < 1e-10


@pytest.mark.parametrize("kind", KINDS)
def test_erasing_moves_the_decision_and_keeping_all_does_not(kind: str) -> None:
    model, reading = opened(kind)
    order = ranked(reading.attention, reading)[:, None]
    logits = curve(model, reading, order)
    assert torch.equal(logits[:, 0, 0], reading.logits)
    assert float((logits[:, 0, 1] - logits[:, 0, 0]).abs().max()) > 1e-3


@cache
def tracing(kind: str) -> float | None:
    """How far LAT and rollout without matrices are from products of the matrices themselves."""
    model, reading = opened(kind)
    if kind in TWO_STACKS:
        return None
    matrices: list[Tensor] = []

    def keep(number: int, scores: Tensor) -> Tensor:
        matrices.append(softmax(scores))
        return matrices[-1]

    with torch.no_grad(), attending(model.model, keep):
        model.run(reading.state.inputs)
    stack = layers_of(model, reading.batch)
    worst = 0.0
    for row, position in enumerate(reading.state.position.tolist()):
        below = [matrix[row] for matrix in matrices]
        head_by_head = below[1][:, position][:, None] @ below[0]
        rolled = [0.5 * matrix.mean(0) + 0.5 * torch.eye(matrix.shape[-1]) for matrix in below]
        expected = (head_by_head[:, 0].sum(0), (rolled[1] @ rolled[0])[position])
        found = (lat(stack).total[row], rollout(stack).total[row])
        pairs = zip(expected, found, strict=True)
        worst = max(worst, *(float((one - other).abs().max()) for one, other in pairs))
    return worst


@pytest.mark.parametrize("kind", KINDS)
def test_tracing_equals_the_product_of_the_matrices(kind: str) -> None:
    found = tracing(kind)
    if found is None:
        with pytest.raises(UnsupportedModel, match="encoder with a decoder"):
            layers_of(opened(kind)[0], opened(kind)[1].batch)
    else:
        assert found < 1e-12


HEADER = """# Architectures

What `heedful audit` reads of `transformers`, tested on tiny random models with enlarged weights.
This table is made by `tests/models/huggingface/test_architectures.py`, which also
checks that it is the committed one; run with `HEEDFUL_WRITE_DOCS=1`, it writes it again.

* **attention**: how it gets into our hands. *interface*: one function registered with the library,
  together with the eager mask function. *softmax*: the softmax over keys is watched.
* **parity**: logits with our attention doing nothing against the library's eager attention and
  against the backend that the model opens with, relative to the largest logit. Everything here is
  in float64, but for the eager attention, which some models take in float32 whatever they are
  opened in. Nothing is claimed to the bit: the order in which a sum is taken is the processor's.
* **padding**: the largest change of attention, decision and every single erasure when a text stands
  beside longer ones.
* **edits**: erasing, uniform and permuted attention at `pooled`, `layer:0` and `all`, batched and
  from the edited layer on, against a whole forward pass of each text with every row edited by hand.
* **tracing**: LAT and rollout without matrices against products of the matrices.
* **pooled edits cost**: *one position*: the rest of the last layer for the pooled position alone;
  *one layer*: the last layer for all positions; *whole model*: layers hand on more than their
  states, so that no pass can begin in the middle.

"""
FOOTER = """
Any other model is tried: it is opened only if a padded batch shows that its attention in our hands
changes nothing and that it attends as often as it has layers. Otherwise, and for Longformer, whose
attention is a band and not a row, the error names the model type, the difference and what to do.
`torch.compile` was not tried.
"""


def below(value: float | None, bound: float = 1e-12) -> str:
    """The class of agreement that holds on every processor: a bound, never what was found."""
    if value is None:
        return "refused by name"
    assert value < bound
    return f"< {bound:g}"


@cache
def row(kind: str) -> str:
    """The line of one architecture, from what its tests measured."""
    model, _ = opened(kind)
    found, ways = parity(kind, torch.float64), ("whole model", "one layer")
    cells = (
        kind,
        "interface" if model.layout.is_on_interface else "softmax",
        found.backend,
        {"first": "first token", "last": "last token"}[model.layout.pooled],
        f"{below(parity(kind, torch.float32).eager, 1e-4)}; {below(found.own)}",
        below(max(padding(kind, site) for site in SITES)),
        below(max(edits(kind, site) for site in SITES)),
        below(tracing(kind)),
        "one position" if model.passes.is_short else ways[model.layout.is_skippable],
    )
    return f"| {' | '.join(cells)} |"


@pytest.mark.slow
def test_the_table_in_the_docs_is_what_the_tests_found() -> None:
    assert sorted(KINDS) == sorted(SUPPORTED)
    names = ("model type", "attention", "backend", "decision read at", "parity: eager; own backend",
             "padding", "edits", "tracing", "pooled edits cost")  # fmt: skip
    lines = [f"| {' | '.join(names)} |", "|" + "---|" * len(names), *map(row, sorted(KINDS))]
    page = HEADER + "\n".join(lines) + "\n" + FOOTER
    if os.environ.get("HEEDFUL_WRITE_DOCS"):
        PAGE.write_text(page)
    assert PAGE.read_text() == page, "run this file with HEEDFUL_WRITE_DOCS=1 and look at the diff"
