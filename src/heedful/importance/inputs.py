"""Importance of what a model reads: gradients on the word vectors, and words taken away.

All of it is per unit. What a model reads in several tokens (the pieces of a word, the words of a
sentence) is summed into its unit, so that a word counts the same however it is cut.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any, Protocol, runtime_checkable

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from heedful.corpora.batches import Batch
from heedful.errors import UnsupportedModel
from heedful.importance.steep import integral
from heedful.models.reading import Reading
from heedful.models.rereading import chosen, passes, probability, read_again
from heedful.models.verbs import AttentiveModel, evaluating, frozen, positions
from heedful.runs.memory import halving
from heedful.runs.meter import passed

PATH_TOKENS, ON_A_CARD = 6 * 2**10, 2**15
"""Tokens that go through a model side by side when gradients are taken, unless it says itself how
many fit (`gradient_tokens`): with more, what is kept for the way back leaves a processor's caches.
"""
STATED_ERROR = 0.01
"""What integrated gradients may be off from the rise in probability that they share out."""
FIRST_PARTS, SMOOTH_POINTS, MOST_POINTS = 8, 63, 1023
"""The whole path is cut in so many parts at first, which are doubled up to so many points; where
these do not do, it is cut where it is steep, up to so many points in all."""
OCCLUDED = 64
"""Units of a document that are taken away in one go."""


@runtime_checkable
class FromInputs(Protocol):
    """A model that starts from word vectors, so that gradients on them can be taken."""

    def from_inputs(self, inputs: Float[Tensor, "batch token dim"], batch: Batch) -> Any:
        """Something with `logits` [batch class]."""


def starts_from_inputs(model: AttentiveModel) -> bool:
    """Whether gradients on word vectors can be taken."""
    return isinstance(model, FromInputs)


def input_gradient(model: AttentiveModel, reading: Reading) -> Float[Tensor, "batch unit"]:
    """‖∂p_y / ∂x_t‖ of the word vectors x_t, summed over the tokens of a unit."""
    return reading.per_unit(_slopes(model, reading).norm(dim=-1))


def gradient_input(model: AttentiveModel, reading: Reading) -> Float[Tensor, "batch unit"]:
    """⟨x_t, ∂p_y / ∂x_t⟩, summed over the tokens of a unit: signed."""
    return reading.per_unit((_slopes(model, reading) * reading.inputs.double()).sum(-1))


def integrated_gradients(
    model: AttentiveModel,
    reading: Reading,
    error: float = STATED_ERROR,
    most: int = MOST_POINTS,
) -> Float[Tensor, "batch unit"]:
    """Integrated gradients of the target's probability from zero vectors to the word vectors.

    Summed over dimensions, then over the tokens of a unit, they must add up to what the probability
    rises by. Points of the path are doubled until they do within `error` and no token moves by more
    than twice that, for each document by itself; where 63 do not do, the path is halved where it is
    steep (`importance/steep.py`), until there are `most`. `missing` tells what is left. Fejér's
    second rule: the points of a rule are every second one of the next, so none is computed twice,
    and neither end, where some models have no gradient, is among them.
    """
    risen, device = _risen(model, reading), reading.inputs.device
    found = torch.zeros(reading.batch.mask.shape, dtype=torch.float64, device=device)
    lengths = reading.batch.lengths.cpu().numpy()
    order = np.argsort(lengths, kind="stable")
    # As many texts of similar length at a time as fit with the first points of their paths.
    for some in passes(order, lengths, _most_tokens(model, reading) // FIRST_PARTS):
        rows = torch.from_numpy(some).to(device)
        part = _some(reading, rows, int(lengths[some].max()))
        integrated = _integrated(model, part, risen[rows], error, most)
        found[rows, : integrated.shape[1]] = integrated
    return reading.per_unit(found)


def _integrated(
    model: AttentiveModel,
    reading: Reading,
    risen: Float[Tensor, " batch"],
    error: float,
    most: int,
) -> Float[Tensor, "batch token"]:
    """The same of each token, for texts whose paths are gone along side by side."""
    inputs = reading.inputs.detach()
    found = torch.zeros(reading.batch.mask.shape, dtype=torch.float64, device=inputs.device)
    left, known, parts = torch.arange(len(inputs), device=inputs.device), None, FIRST_PARTS
    while True:
        place = torch.arange(1, parts, 1 if known is None else 2, device=inputs.device)
        points = ((1 - torch.cos(place.double() * torch.pi / parts)) / 2).to(inputs)
        part = _some(reading, left)
        products = _along(model, part, points, _products)
        if known is not None:
            both = products.new_empty(parts - 1, *products.shape[1:])
            both[0::2], both[1::2] = products, known
            products = both
        products = products.masked_fill(~part.batch.mask, 0)
        total = torch.einsum("p,pbt->bt", _fejer(parts).to(products), products)
        half = torch.einsum("p,pbt->bt", _fejer(parts // 2).to(products), products[1::2])
        found[left] = total
        is_off = (total.sum(-1) - risen[left]).abs() > error
        # Words may be off and still add up.
        is_off |= (total - half).abs().amax(-1) > 2 * error
        parts *= 2
        left, known = left[is_off], products[:, is_off]
        if parts > min(most, SMOOTH_POINTS) + 1 or not len(left):
            break
    if len(left) and most > parts - 1:
        for row in torch.split(left, 1):
            found[row] = _steep(model, _some(reading, row), error, most - (parts // 2 - 1))
    return found


def _steep(
    model: AttentiveModel, reading: Reading, error: float, most: int
) -> Float[Tensor, "batch token"]:
    """The same integral of one text, by points where its probability is steep."""

    assert isinstance(model, FromInputs)

    def slopes(points: Float[Tensor, " point"]) -> Float[Tensor, "point token"]:
        made = _along(model, reading, points.to(reading.inputs), _products)
        return made[:, 0].masked_fill(~reading.batch.mask, 0)

    def height(points: Float[Tensor, " point"]) -> Float[Tensor, " point"]:
        parts = []
        for some in torch.split(points.to(reading.inputs), _at_once(model, reading)):
            batch, target = reading.batch.repeated(len(some)), reading.target.repeat(len(some))
            passed(positions(model, batch))
            with evaluating(model):
                scaled = (reading.inputs.detach() * some.view(-1, 1, 1, 1)).flatten(0, 1)
                logits = model.from_inputs(scaled, batch).logits
            parts.append(probability(logits[:, None].double(), target)[:, 0])
        return torch.cat(parts)

    return integral(slopes, height, error, most)[None]


def missing(
    model: AttentiveModel, reading: Reading, integrated: Float[Tensor, "batch unit"]
) -> Float[Tensor, " batch"]:
    """How far integrated gradients are from adding up to the rise of the target's probability."""
    return (integrated.sum(-1).double() - _risen(model, reading)).abs()


def _risen(model: AttentiveModel, reading: Reading) -> Float[Tensor, " batch"]:
    """By how much the target's probability with the text lies above that with zero vectors."""
    if not isinstance(model, FromInputs):
        raise UnsupportedModel("gradients on inputs need a model that starts from word vectors.")
    passed(positions(model, reading.batch))
    with evaluating(model):
        empty = model.from_inputs(torch.zeros_like(reading.inputs), reading.batch).logits
    both = torch.stack([empty.double(), reading.logits.double()], 1)
    return probability(both, reading.target).diff(dim=1)[:, 0]


def _fejer(parts: int) -> Float[Tensor, " point"]:
    """Weights on [0, 1] at sin²(kπ/2n), k = 1 … n - 1, for n `parts` (Fejér's second rule)."""
    angle = torch.arange(1, parts, dtype=torch.float64) * torch.pi / parts
    odd = 2 * torch.arange(parts // 2, dtype=torch.float64) + 1
    return 2 / parts * angle.sin() * ((angle[:, None] * odd).sin() / odd).sum(-1)


def occlusion(model: AttentiveModel, reading: Reading) -> Float[Tensor, "batch unit"]:
    """How much the target's probability falls when the unit's tokens are replaced by `<unk>`."""
    after = probability(occluded(model, reading), reading.target)
    before = probability(reading.logits[:, None], reading.target)
    return (before - after).masked_fill(~reading.mask, 0)


def occluded(model: AttentiveModel, reading: Reading) -> Float[Tensor, "batch unit class"]:
    """Logits with each unit's tokens replaced by `<unk>`, read again."""
    parts = []
    every = torch.arange(reading.mask.shape[1], device=reading.mask.device)
    for units in torch.split(every, OCCLUDED):
        kept = reading.unit_of_token[:, None] != units[:, None]
        parts.append(read_again(model, reading.batch, kept, "replaced"))
    return torch.cat(parts, 1)


def _slopes(model: AttentiveModel, reading: Reading) -> Float[Tensor, "batch token dim"]:
    """∂p_y / ∂x at the word vectors themselves."""

    def compute() -> Tensor:
        one = torch.ones(1).to(reading.inputs)
        return _along(model, reading, one, lambda slopes, x: slopes)[0].double()

    return reading.once("input slopes", compute)


def _products(slopes: Tensor, inputs: Tensor) -> Tensor:
    """⟨x_t, ∂p_y / ∂x_t⟩ of each token."""
    return (slopes * inputs).sum(-1).double()


def _at_once(model: AttentiveModel, reading: Reading) -> int:
    """Texts of a reading, padded as they are, that go through the model side by side."""
    length = reading.batch.ids.shape[1]
    return max(_most_tokens(model, reading) // max(length, 1), 1)


def _along(
    model: AttentiveModel,
    reading: Reading,
    points: Float[Tensor, " point"],
    made: Callable[[Tensor, Tensor], Tensor],
) -> Float[Tensor, "point batch token ..."]:
    """What is made of ∂p_y / ∂x at s·x and of x, in passes of bounded size.

    A pass is of some texts, or of some points of all.
    """
    texts, most = len(reading.batch), _at_once(model, reading)
    inputs = reading.inputs.detach()
    every = torch.arange(texts, device=inputs.device)
    if most < texts:
        parts = [_some(reading, some) for some in torch.split(every, most)]
        return torch.cat([_along(model, part, points, made) for part in parts], 1)
    ask = partial(_at_points, model, reading, points, most // texts, made)
    found: Tensor = halving(ask, every, partial(torch.cat, dim=1))
    return found


def _at_points(
    model: AttentiveModel,
    reading: Reading,
    points: Float[Tensor, " point"],
    at_once: int,
    made: Callable[[Tensor, Tensor], Tensor],
    rows: Int[Tensor, " some"],
) -> Float[Tensor, "point some token ..."]:
    """The same for some texts, so many points in a pass."""
    reading = _some(reading, rows)
    inputs, found = reading.inputs.detach(), []
    for some in torch.split(points, at_once):
        scaled = inputs * some.view(-1, 1, 1, 1)
        found.append(made(_slopes_at(model, reading.batch, reading.target, scaled), inputs))
    return torch.cat(found)


def _most_tokens(model: AttentiveModel, reading: Reading) -> int:
    """Tokens that go through the model side by side when gradients are taken."""
    usual = ON_A_CARD if reading.inputs.is_cuda else PATH_TOKENS
    return int(getattr(model, "gradient_tokens", usual))


def _some(reading: Reading, rows: Int[Tensor, " some"], width: int | None = None) -> Reading:
    """What gradients need of some documents of a reading, padded as before or to so many tokens."""
    if width is None and len(rows) == len(reading.batch):
        return reading
    width = width or reading.batch.ids.shape[1]
    return replace(
        reading, batch=chosen(reading.batch, rows.cpu().numpy(), width),
        inputs=reading.inputs[rows, :width], explained=reading.target[rows],
    )  # fmt: skip


def _slopes_at(
    model: AttentiveModel,
    batch: Batch,
    target: Int[Tensor, " batch"],
    points: Float[Tensor, "point batch token dim"],
) -> Float[Tensor, "point batch token dim"]:
    """∂p_y / ∂x at several points, all in one pass."""
    if not isinstance(model, FromInputs):
        raise UnsupportedModel("gradients on inputs need a model that starts from word vectors.")
    tokens = len(points) * positions(model, batch)
    passed(tokens, backward=tokens)
    # cuDNN has no backward pass for recurrent cells in evaluation mode.
    with (
        evaluating(model),
        frozen(model),
        torch.enable_grad(),
        torch.backends.cudnn.flags(enabled=False),
    ):
        inputs = points.flatten(0, 1).requires_grad_()
        batch = batch if len(points) == 1 else batch.repeated(len(points))
        logits: Tensor = model.from_inputs(inputs, batch).logits
        # In 64 bits: the slope of a sure model's probability rounds to 0 in fewer.
        top = logits.double().softmax(-1).gather(1, target.repeat(len(points))[:, None]).sum()
        (slope,) = torch.autograd.grad(top, inputs)
    return slope.view(points.shape)
