"""decide, curve, alone and without_each against running the model again with other attention."""

from __future__ import annotations

from dataclasses import replace
from itertools import product

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor, nn

from heedful.models import (
    AttentionClassifier,
    Permute,
    Reading,
    Replace,
    Scale,
    alone,
    curve,
    decide,
    erase,
    evaluating,
    identity,
    ranked,
    read,
    without_each,
)
from heedful.models.recipe import ATTENTIONS, ENCODERS, JOINS
from heedful.runs.randomness import seeded
from tests.tiny import assert_close, batch_of, brute_force, chosen, classifier, padded

RECIPES = [
    f"{prefix}{encoder}+{attention}" + ("" if join == "none" else f"+{join}")
    for prefix, encoder, attention, join in product(("", "han:"), ENCODERS, ATTENTIONS, JOINS)
]
HEADS: list[tuple[int, dict[str, bool]]] = [
    (2, {}),
    (3, {}),
    (5, {}),
    (2, {"one_logit": True}),
    (3, {"head_bias": False}),
]
BATCH = batch_of()


def any_model() -> AttentionClassifier:
    return classifier("bigru+additive")


@pytest.mark.parametrize("recipe", RECIPES)
def test_every_verb_equals_running_the_model_again_with_other_attention(recipe: str) -> None:
    model = classifier(recipe)
    documents = [Said(model, document) for document in range(len(BATCH))]
    for classes, settings in HEADS:
        give_head(model, classes, **settings)
        reading = read(model, BATCH)
        generator = np.random.default_rng(classes)
        shape = (len(BATCH), 2, reading.mask.shape[1])
        mask = reading.mask.numpy()[:, None]
        weights = generator.uniform(0, 2, shape) * (generator.random(shape) < 0.6)
        other = generator.exponential(1, shape) * mask
        other /= other.sum(-1, keepdims=True)
        noise = np.where(mask, generator.random(shape), 2 + np.arange(shape[2]))
        order = noise.argsort(-1)
        scaled = decide(model, reading, Scale(torch.from_numpy(weights)))
        replaced = decide(model, reading, Replace(torch.from_numpy(other)))
        permuted = decide(model, reading, Permute(torch.from_numpy(order)))
        removed = curve(model, reading, torch.from_numpy(order))
        single, without = alone(model, reading), without_each(model, reading)
        for document, units in enumerate(reading.units.tolist()):
            said = documents[document]
            attention, each = said.attention, np.eye(units)
            for edit in range(2):
                ranking = order[document, edit, :units]
                ours = [scaled, replaced, permuted]
                rows = weights[document, edit, :units] * attention
                rows = np.stack([rows, other[document, edit, :units], attention[ranking]])
                assert_close(torch.stack([logits[document, edit] for logits in ours]), said(rows))
                # The unit at place j of the ranking is kept while fewer than j + 1 are removed.
                kept = np.arange(shape[2] + 1)[:, None] <= ranking.argsort()
                assert_close(removed[document, edit], said(attention * kept))
            assert_close(single[document, :units], said(each))
            assert_close(without[document, :units], said(attention * (1 - each)))
            assert bool(single[document, units:].isnan().all())
            assert bool(without[document, units:].isnan().all())


class Said:
    """What one document's values, read without any other document, say under given weights."""

    def __init__(self, model: AttentionClassifier, document: int) -> None:
        with torch.no_grad():
            attended = model(chosen(BATCH, [document])).attended
        self.values = attended.values[0].numpy()
        scores = attended.scores[0].numpy()
        self.attention = np.exp(scores - scores.max())
        self.attention /= self.attention.sum()
        self.model = model

    def __call__(self, rows: np.ndarray) -> np.ndarray:
        mass = rows.sum(-1, keepdims=True)
        context = rows / np.where(mass == 0, 1, mass) @ self.values
        head = self.model.head
        said = context @ head.weight.detach().numpy().T
        said = said if head.bias is None else said + head.bias.detach().numpy()
        return np.pad(said, ((0, 0), (1, 0))) if self.model.config.one_logit else said


def give_head(
    model: AttentionClassifier, classes: int, one_logit: bool = False, head_bias: bool = True
) -> None:
    model.config = replace(model.config, one_logit=one_logit, head_bias=head_bias)
    model.classes = tuple(f"class {c}" for c in range(classes))
    outputs = 1 if one_logit else classes
    with seeded(classes):
        head = nn.Linear(model.level.dim, outputs, bias=head_bias, dtype=torch.float64)
    model.head = head.requires_grad_(False)


@pytest.mark.parametrize("recipe", ["bilstm+additive", "han:conv+dot+concat"])
def test_the_numpy_oracle_equals_the_modules_own_head(recipe: str) -> None:
    model = classifier(recipe, 2, one_logit=True)
    for document in range(len(BATCH)):
        said = Said(model, document)
        assert_close(
            torch.from_numpy(said(said.attention[None])[0]),
            brute_force(model, BATCH, document, said.attention),
        )


@pytest.mark.parametrize("recipe", RECIPES)
def test_a_reading_holds_the_logits_of_the_untouched_forward_pass(recipe: str) -> None:
    model = classifier(recipe)
    assert_close(read(model, BATCH).logits, model(BATCH).logits.detach())
    model.float()
    assert_close(read(model, BATCH).logits, model(BATCH).logits.detach(), 1e-5)


@pytest.mark.parametrize("edits", [1, 2, 7, 64])
def test_an_edit_that_changes_nothing_gives_the_logits_back_to_the_bit(edits: int) -> None:
    model = any_model()
    reading = read(model, BATCH)
    units = reading.mask.shape[1]
    same = torch.arange(units).expand(len(BATCH), edits, units)
    for edit in (
        Scale(identity(reading).weights.expand(-1, edits, -1)),
        Replace(reading.attention[:, None].expand(-1, edits, -1)),
        Permute(same),
        erase((~reading.mask)[:, None].expand(-1, edits, -1)),
    ):
        logits = decide(model, reading, edit)
        assert torch.equal(logits, reading.logits[:, None].expand_as(logits))


def test_an_unchanged_row_is_exact_beside_changed_ones() -> None:
    model = any_model()
    reading = read(model, BATCH)
    weights = torch.ones(len(BATCH), 3, reading.mask.shape[1], dtype=torch.float64)
    weights[:, 1, 0] = 0.5
    logits = decide(model, reading, Scale(weights))
    assert torch.equal(logits[:, 0], reading.logits)
    assert torch.equal(logits[:, 2], reading.logits)
    assert not torch.equal(logits[1:, 1], reading.logits[1:])


@pytest.mark.parametrize("recipe", [f"{r}+{a}" for r in ENCODERS for a in ("additive", "dot")])
@pytest.mark.parametrize("prefix", ["", "han:"])
def test_padding_and_batch_order_change_no_number(recipe: str, prefix: str) -> None:
    model = classifier(prefix + recipe)
    order = [2, 0, 3, 1]
    together = read(model, BATCH)
    orders = ranked(together.attention, together)[:, None]
    for other in (padded(BATCH, 3), chosen(BATCH, order)):
        reading = read(model, other)
        rows = list(range(len(BATCH))) if other.names == BATCH.names else order
        assert_same(model, together, orders, reading, rows)
    for document in range(len(BATCH)):
        assert_same(model, together, orders, read(model, chosen(BATCH, [document])), [document])


def assert_same(
    model: AttentionClassifier, whole: Reading, orders: Tensor, reading: Reading, rows: list[int]
) -> None:
    order = ranked(reading.attention, reading)[:, None]
    curves, ours = curve(model, whole, orders), curve(model, reading, order)
    without, single = without_each(model, whole), alone(model, whole)
    for here, there in enumerate(rows):
        units = int(whole.units[there])
        assert units == int(reading.units[here])
        assert reading.texts[here] == whole.texts[there]
        assert_close(reading.attention[here, :units], whole.attention[there, :units], 1e-12)
        assert_close(reading.logits[here], whole.logits[there], 1e-12)
        assert torch.equal(order[here, 0, :units], orders[there, 0, :units])
        assert_close(ours[here, 0, : units + 1], curves[there, 0, : units + 1], 1e-12)
        assert_close(without_each(model, reading)[here, :units], without[there, :units], 1e-12)
        assert_close(alone(model, reading)[here, :units], single[there, :units], 1e-12)


def test_ranking_puts_the_highest_first_ties_by_position_and_padding_last() -> None:
    reading = read(any_model(), batch_of(((3,), (5,))))
    importance = torch.tensor([[1.0, 1.0, 2.0, 9, 9], [torch.nan, -torch.inf, 0.0, torch.inf, 0.0]])
    assert ranked(importance, reading).tolist() == [[2, 0, 1, 3, 4], [3, 2, 4, 0, 1]]


def test_weights_that_underflow_are_ranked_by_their_scores() -> None:
    reading = read(any_model(), batch_of(((3,), (5,))))
    scores = torch.tensor([[-900.0, 0, -800, 0, 0], [-3000, -1000, -1, 0, -2000]]).double()
    scores = scores.masked_fill(~reading.mask, -torch.inf)
    lost = replace(reading, scores=scores, attention=scores.softmax(-1))
    assert int((lost.attention == 0).sum()) == 2 + 2 + 3
    assert ranked(lost.attention, lost).tolist() == [[1, 2, 0, 3, 4], [3, 2, 1, 4, 0]]
    # What another method says comes first: scores only order what it has nothing to say of.
    says = torch.tensor([[0.0, 0, 1, 0, 0], [0, 0, 0, 0, 0.5]]).double()
    assert ranked(says, lost).tolist() == [[2, 1, 0, 3, 4], [4, 2, 3, 1, 0]]


@pytest.mark.slow
@given(st.lists(st.floats(allow_nan=True, allow_infinity=True), min_size=5, max_size=5))
def test_a_ranking_is_always_a_permutation_with_padding_at_the_end(values: list[float]) -> None:
    reading = read(any_model(), batch_of(((3,), (5,))))
    order = ranked(torch.tensor([values, values], dtype=torch.float64), reading)
    assert order.sort(-1).values.tolist() == [list(range(5))] * 2
    assert sorted(order[0, :3].tolist()) == [0, 1, 2]


@pytest.mark.parametrize("was_training", [True, False])
def test_a_model_is_given_back_in_the_mode_it_was_in(was_training: bool) -> None:
    model = classifier("none+dot", dropout=0.5, head_dropout=0.5)
    model.train(was_training)
    first, second = read(model, BATCH), read(model, BATCH)
    assert torch.equal(first.logits, second.logits)
    assert model.training == was_training
    assert torch.is_grad_enabled()
    with pytest.raises(RuntimeError, match="inside"), evaluating(model):  # noqa: PT012
        assert not model.training
        raise RuntimeError("inside")
    assert model.training == was_training
