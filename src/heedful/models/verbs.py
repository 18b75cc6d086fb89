"""What would the model have decided, had it attended differently? read, decide, curve.

With a linear head the answers are exact arithmetic on one reading: no second forward pass. With any
other head they are batched calls of the head. Signatures are the same, so every audit is written
once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Protocol

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from heedful.corpora.batches import Batch
from heedful.errors import InputError
from heedful.models import edits
from heedful.models.edits import SMALLEST_MASS, Edit, Scale
from heedful.models.reading import Reading
from heedful.runs.meter import passed

WEIGHTS = 2**20
"""Edited weights per call of a head that is not linear: 8 MiB of attention."""


class AttentiveModel(Protocol):
    """What a model offers so that it can be read and asked."""

    classes: tuple[str, ...]

    def read(self, batch: Batch) -> Reading:
        """Reads a batch and keeps what the audited attention saw and did."""

    def answer(self, reading: Reading, edit: Edit) -> Float[Tensor, "batch edit class"]:
        """Logits under the edited attention; called only when the head is not linear."""


def positions(model: object, batch: Batch) -> int:
    """Positions that a pass over a batch reads, with padding, special tokens and a prompt."""
    return batch.ids.numel() + len(batch) * specials_of(model)


def specials_of(model: object) -> int:
    """Positions around every text: special tokens, a prompt, labels."""
    return int(getattr(model, "specials", 0))


@contextmanager
def evaluating(model: object) -> Iterator[None]:
    """Lends the model in evaluation mode, without gradients, and gives it back as it was."""
    if not isinstance(model, nn.Module):
        with torch.no_grad():
            yield
        return
    was_training = model.training
    model.eval()
    try:
        with torch.no_grad():
            yield
    finally:
        model.train(was_training)


@contextmanager
def frozen(model: object) -> Iterator[None]:
    """Lends the model with weights that get no gradient, and gives it back as it was.

    Gradients on inputs alone then keep about half of what a backward pass usually keeps.
    """
    weights = list(model.parameters()) if isinstance(model, nn.Module) else []
    learning = [weight for weight in weights if weight.requires_grad]
    try:
        for weight in learning:
            weight.requires_grad_(False)
        yield
    finally:
        for weight in learning:
            weight.requires_grad_(True)


def read(model: AttentiveModel, batch: Batch) -> Reading:
    """One forward pass over the batch, kept; a document without any token is refused.

    >>> from heedful.models import example
    >>> model = example()
    >>> reading = read(model, model.batch(["good food", "bad"]))
    >>> reading.texts
    (('good', 'food'), ('bad',))
    >>> reading.attention.shape, reading.logits.shape
    (torch.Size([2, 2]), torch.Size([2, 2]))
    """
    if hasattr(batch, "mask"):  # pairs of a translator have masks of their own
        is_empty = ~batch.mask.any(-1)
        if bool(is_empty.any()):
            raise InputError(
                f"Document {batch.names[int(is_empty.int().argmax())]} has no token, so that there "
                "is nothing to attend to; give it the unknown word, as encoding an empty text does."
            )
        passed(positions(model, batch))
    with evaluating(model):
        return model.read(batch)


def decide(
    model: AttentiveModel, reading: Reading, edit: Edit
) -> Float[Tensor, "batch edit class"]:
    """Logits under each alternative attention.

    An edit that changes nothing gives back `reading.logits` to the bit. A row with nothing left
    gives the head an empty context: with a linear head, the offset decides.

    >>> from heedful.models import erase, example, uniform
    >>> model = example()
    >>> reading = read(model, model.batch(["good food and bad service"]))
    >>> decide(model, reading, uniform(reading)).shape  # one document, one edit, two classes
    torch.Size([1, 1, 2])
    >>> good = torch.tensor([[[True, False, False, False, False]]])
    >>> without = decide(model, reading, erase(good))
    >>> model.classes[reading.decision[0]], model.classes[without.argmax()]
    ('positive', 'negative')
    """
    changed = edits.rows(reading, edit)
    if reading.unit_logits is not None and reading.offset is not None:
        logits = weigh(changed.attention, reading.unit_logits) + reading.offset[:, None]
    else:
        with evaluating(model):
            logits = model.answer(reading, edit)
    return torch.where(changed.unchanged[..., None], reading.logits[:, None], logits)


def weigh(
    attention: Float[Tensor, "batch edit unit"], unit_logits: Float[Tensor, "batch unit class"]
) -> Float[Tensor, "batch edit class"]:
    """Σ_i α_i z_i for each row of attention."""
    return torch.bmm(attention, unit_logits)


def curve(
    model: AttentiveModel, reading: Reading, order: Int[Tensor, "batch ranking unit"]
) -> Float[Tensor, "batch ranking step class"]:
    """Logits after removing the first 0, 1, … units of each ranking.

    `order` lists each document's units from first to last removed, padding at the end (see
    `ranked`). Step 0 is the reading's own decision to the bit; at step n and after it nothing is
    left. With a linear head (docs/studies/erasure.md, "All steps of a ranking at once")

        ℓ_k = b + Σ_{j>k} α_j z_j / Σ_{j>k} α_j,

    summed from the tail: subtracting a prefix from the total would leave only rounding when the
    removed units held nearly all mass.

    >>> from heedful.models import example
    >>> model = example()
    >>> reading = read(model, model.batch(["good food and bad service"]))
    >>> order = ranked(reading.attention, reading)[:, None]  # one ranking: by attention
    >>> curve(model, reading, order).argmax(-1)  # steps 0 to 5: flips as soon as `good` is gone
    tensor([[[1, 0, 0, 0, 0, 0]]])
    """
    if reading.unit_logits is None or reading.offset is None:
        return _curve_by_answers(model, reading, order)
    documents, rankings, units = order.shape
    classes = reading.unit_logits.shape[-1]
    # Weighted logits and weights side by side, so that one gather of rows and one scan serve both;
    # the scan runs from the tail, hence backwards, and starts from a row of zeros.
    weights = reading.attention[..., None]
    rows = torch.cat([weights * reading.unit_logits, weights], -1).flatten(0, 1)
    rows = torch.cat([rows, torch.zeros_like(rows[:1])])
    first_row = torch.arange(documents, device=order.device)[:, None, None] * units
    nothing = torch.full_like(order[..., :1], len(rows) - 1)
    index = torch.cat([nothing, order.flip(-1) + first_row], -1)
    left = rows.index_select(0, index.flatten()).view(documents, rankings, units + 1, classes + 1)
    left = left.cumsum(2)
    mass = left[..., -1:]
    offset = reading.offset[:, None, None]
    logits = offset.addcdiv(left[..., :-1], mass.clamp_min(SMALLEST_MASS)).flip(2)
    remaining = torch.arange(units, -1, -1, device=order.device) < reading.units[:, None, None]
    lost = ((mass[..., 0] < SMALLEST_MASS) & remaining).flatten(1).any(-1)
    if bool(lost.any()):
        scores, said = reading.scores[lost], reading.unit_logits[lost]
        logits[lost, :, :-1] = _tail_means_from_scores(scores, said, order[lost]) + offset[lost]
    logits[:, :, 0] = reading.logits[:, None]
    return logits


def ranked(importance: Float[Tensor, "batch unit"], reading: Reading) -> Int[Tensor, "batch unit"]:
    """The order of removal that an importance asks for: highest first, ties by position.

    Units of no importance whose weight is 0, as a softmax's that underflows, follow their scores.
    """
    # nan counts as very low, yet above -inf; after negation only padding is nan, which sorts last.
    filled = importance.double().nan_to_num(
        nan=-torch.finfo(torch.float64).max, posinf=torch.inf, neginf=-torch.inf
    )
    filled = (-filled).masked_fill(~reading.mask, torch.nan)
    is_lost = reading.mask & (importance == 0) & (reading.attention == 0)
    if not bool(is_lost.any()):
        return filled.argsort(dim=-1, stable=True)
    by_score = (-reading.scores.double()).masked_fill(~is_lost, -torch.inf)
    by_score = by_score.argsort(dim=-1, stable=True)
    return by_score.gather(1, filled.gather(1, by_score).argsort(dim=-1, stable=True))


def alone(model: AttentiveModel, reading: Reading) -> Float[Tensor, "batch unit class"]:
    """Logits if all attention lay on one unit, for every unit; nan at padding."""
    if reading.unit_logits is not None and reading.offset is not None:
        logits = reading.unit_logits + reading.offset[:, None]
    else:
        logits = _each(model, reading, lambda one_hot: edits.Replace(one_hot.double()))
    return logits.masked_fill(~reading.mask[..., None], torch.nan)


def without_each(model: AttentiveModel, reading: Reading) -> Float[Tensor, "batch unit class"]:
    """Logits with one unit erased and the rest renormalised, for every unit; nan at padding.

    With a linear head by exclusive prefix and suffix sums (docs/studies/erasure.md, "All single
    erasures at once"): the short form (total - own) / (1 - α) cancels when one weight is near 1.
    """
    if reading.unit_logits is None or reading.offset is None:
        logits = _each(model, reading, edits.erase)
        return logits.masked_fill(~reading.mask[..., None], torch.nan)
    weighted = reading.attention[..., None] * reading.unit_logits
    mass = _others(reading.attention[..., None])
    logits = _others(weighted) / mass.clamp_min(SMALLEST_MASS) + reading.offset[:, None]
    lost = (mass[..., 0] < SMALLEST_MASS) & reading.mask & (reading.units > 1)[:, None]
    for document, unit in lost.nonzero().tolist():
        scores = reading.scores[document].clone()
        scores[unit] = -torch.inf
        logits[document, unit] = (
            scores.softmax(-1) @ reading.unit_logits[document] + reading.offset[document]
        )
    return logits.masked_fill(~reading.mask[..., None], torch.nan)


def _tail_sums(x: Float[Tensor, "... unit class"]) -> Float[Tensor, "... unit class"]:
    return x.flip(-2).cumsum(-2).flip(-2)


def _others(x: Float[Tensor, "batch unit class"]) -> Float[Tensor, "batch unit class"]:
    zero = torch.zeros_like(x[:, :1])
    before = torch.cat([zero, x[:, :-1]], 1).cumsum(1)
    after = _tail_sums(torch.cat([x[:, 1:], zero], 1))
    return before + after


def _tail_means_from_scores(
    scores: Float[Tensor, "batch unit"],
    unit_logits: Float[Tensor, "batch unit class"],
    order: Int[Tensor, "batch ranking unit"],
) -> Float[Tensor, "batch ranking unit class"]:
    """Tail means when the weights themselves underflow: log-sum-exp scans from the tail.

    Positive and negative parts are summed apart, since a logarithm has no sign.
    """
    document = torch.arange(len(order), device=order.device)[:, None, None]
    scores, said = scores[document, order], unit_logits[document, order]

    def scan(x: Tensor) -> Tensor:
        return x.flip(2).logcumsumexp(2).flip(2)

    total = scan(scores)[..., None]
    scores = scores[..., None]
    positive = scan(scores + said.clamp_min(0).log()) - total
    negative = scan(scores + (-said).clamp_min(0).log()) - total
    return (positive.exp() - negative.exp()).nan_to_num(nan=0.0)


def _curve_by_answers(
    model: AttentiveModel, reading: Reading, order: Int[Tensor, "batch ranking unit"]
) -> Float[Tensor, "batch ranking step class"]:
    rankings, units = order.shape[1:]
    place = torch.empty_like(order).scatter_(
        2, order, torch.arange(units, device=order.device).expand(order.shape)
    )
    steps = []
    per_call = max(_edits_per_call(reading) // rankings, 1)
    for start in range(0, units + 1, per_call):
        step = torch.arange(start, min(start + per_call, units + 1), device=order.device)
        kept = (place[:, :, None] >= step[:, None]).flatten(1, 2)
        first, answer = _distinct(kept)
        kept = kept.gather(1, first[..., None].expand(-1, -1, units))
        logits = decide(model, reading, Scale(kept.double()))
        logits = logits.gather(1, answer[..., None].expand(-1, -1, logits.shape[-1]))
        steps.append(logits.reshape(len(order), rankings, len(step), -1))
    return torch.cat(steps, 2)


def _distinct(
    kept: Bool[Tensor, "batch edit unit"],
) -> tuple[Int[Tensor, "batch distinct"], Int[Tensor, "batch edit"]]:
    """The first of every kind of equal edits of each document, and the kind of each edit.

    Rankings often agree on what goes first and last. Where a document has fewer kinds than
    another, its first is repeated.
    """
    bits = np.packbits(kept.cpu().numpy(), axis=-1)
    found = [np.unique(rows, axis=0, return_index=True, return_inverse=True)[1:] for rows in bits]
    first = np.zeros((len(kept), max(len(places) for places, _ in found)), dtype=np.int64)
    for row, (places, _) in enumerate(found):
        first[row, : len(places)] = places
    answer = np.stack([kinds.reshape(-1) for _, kinds in found])
    return torch.from_numpy(first).to(kept.device), torch.from_numpy(answer).to(kept.device)


def _each(
    model: AttentiveModel,
    reading: Reading,
    edit_of: Callable[[Bool[Tensor, "batch edit unit"]], Edit],
) -> Float[Tensor, "batch unit class"]:
    """Answers for one edit per unit, in chunks of units."""
    units = reading.mask.shape[1]
    eye = torch.eye(units, dtype=torch.bool, device=reading.mask.device)
    parts = [
        decide(model, reading, edit_of(chunk.expand(len(reading.mask), -1, -1)))
        for chunk in torch.split(eye, _edits_per_call(reading))
    ]
    return torch.cat(parts, 1)


def _edits_per_call(reading: Reading) -> int:
    return max(WEIGHTS // reading.mask.numel(), 1)
