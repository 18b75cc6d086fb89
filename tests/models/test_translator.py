"""The translator of the dynamics study, and what the verbs make of it."""

import pytest
import torch
from torch import Tensor

from heedful.corpora.pairs import Pairs, collate_pairs
from heedful.errors import InputError
from heedful.models import curve, decide, erase, identity, ranked, read, uniform
from heedful.models.edits import Permute, Replace
from heedful.models.likelihoods import attended, saliency
from heedful.models.translator import (
    Translator,
    TranslatorConfig,
    build_translator,
    code_copying_config,
    copying_config,
)
from tests.pairs_by_hand import FORMS, pairs, split, translator

NAMES = tuple(FORMS)


def rerun(model: Translator, given: Pairs, attention: Tensor) -> Tensor:
    """Logits of the whole model with its attention rows [instance unit] replaced, all heads."""
    sentence, step = given.target_mask.nonzero(as_tuple=True)
    values, start = model.encode(model.embedding(given.source), given)
    states, _ = model.decode(given.before, start)
    heads = model.config.heads
    rows = attention.new_zeros(len(given), heads, given.target.shape[1], given.source.shape[1])
    rows[sentence, :, step] = attention[:, None].expand(-1, heads, -1)
    return model.output(states, rows, values)[sentence, step]


def test_the_published_model_has_its_published_size() -> None:
    model = Translator(TranslatorConfig())
    count = sum(parameter.numel() for parameter in model.parameters())
    assert count == 8_180_544
    assert count - model.embedding.weight.numel() == 6_132_544


def test_the_linear_model_lacks_one_layer() -> None:
    whole, linear = (
        sum(p.numel() for p in Translator(TranslatorConfig(output=output)).parameters())
        for output in ("relu", "linear")
    )
    assert whole - linear == 512 * 256 + 256


def test_the_copying_models_have_the_heads_their_forms_ask_for() -> None:
    one, eight = (Translator(copying_config(40, 8, heads)) for heads in (1, 8))
    grown = sum(p.numel() for p in eight.parameters()) - sum(p.numel() for p in one.parameters())
    assert grown == 7 * (8 * 8 + 8)  # the paper's: a query map each
    one, eight = (Translator(code_copying_config(40, 8, heads)) for heads in (1, 8))
    grown = sum(p.numel() for p in eight.parameters()) - sum(p.numel() for p in one.parameters())
    assert grown == 2 * 7 * (8 * 8 + 8)  # the code's: a projection each, too
    assert eight.embedding is not eight.target_embedding


@pytest.mark.parametrize("name", NAMES)
def test_reading_gives_what_a_plain_pass_gives(name: str) -> None:
    model, given = translator(name), pairs()
    sentence, step = given.target_mask.nonzero(as_tuple=True)
    found, reading = model(given), read(model, given)
    torch.testing.assert_close(reading.logits, found.logits[sentence, step], rtol=0, atol=1e-12)
    torch.testing.assert_close(
        reading.attention, found.attention.mean(1)[sentence, step], rtol=0, atol=1e-12
    )
    assert reading.names == tuple(
        f"{given.names[s]}:{t}" for s, t in zip(sentence.tolist(), step.tolist(), strict=True)
    )
    assert torch.equal(reading.labels, given.target[sentence, step])
    assert len(reading.values) == len(given) < len(reading.names)  # shared, not copied


@pytest.mark.parametrize("name", NAMES)
def test_padding_changes_nothing(name: str) -> None:
    model = translator(name)
    together = read(model, pairs())
    for row in range(4):
        alone = read(model, pairs((row,)))
        rows = together.shared == row
        torch.testing.assert_close(together.logits[rows], alone.logits, rtol=0, atol=1e-12)
        units = alone.mask.shape[1]
        torch.testing.assert_close(together.attention[rows][:, :units], alone.attention)
        assert bool((together.attention[rows][:, units:] == 0).all())


@pytest.mark.parametrize("name", NAMES)
def test_decisions_equal_running_the_model_with_the_edit(name: str) -> None:
    model, given = translator(name), pairs()
    reading = read(model, given)
    with torch.no_grad():
        flat = uniform(reading)
        expected = rerun(model, given, flat.attention[:, 0])
        torch.testing.assert_close(decide(model, reading, flat)[:, 0], expected, rtol=0, atol=1e-12)
        order = torch.where(reading.mask, reading.units[:, None] - 1 - reading.unit_of_token,
                            reading.unit_of_token)  # fmt: skip
        if model.config.heads == 1:
            turned = reading.attention.gather(1, order)
            expected = rerun(model, given, turned)
            found = decide(model, reading, Permute(order[:, None]))[:, 0]
            torch.testing.assert_close(found, expected, rtol=0, atol=1e-12)
            first = torch.zeros_like(reading.mask)
            first[:, 0] = True
            kept = reading.attention.masked_fill(first, 0)
            expected = rerun(model, given, kept / kept.sum(-1, keepdim=True))
            found = decide(model, reading, erase(first[:, None]))[:, 0]
            torch.testing.assert_close(found, expected, rtol=0, atol=1e-12)
    assert torch.equal(decide(model, reading, identity(reading))[:, 0], reading.logits)


def test_an_edit_acts_on_every_head() -> None:
    model, given = translator("sum of heads"), pairs()
    reading = read(model, given)
    assert reading.heads is not None
    first = torch.zeros_like(reading.mask)
    first[:, 0] = True
    kept = reading.heads.masked_fill(first[:, None], 0)
    kept = kept / kept.sum(-1, keepdim=True)
    sentence, step = given.target_mask.nonzero(as_tuple=True)
    with torch.no_grad():
        values, start = model.encode(model.embedding(given.source), given)
        states, _ = model.decode(given.before, start)
        rows = kept.new_zeros(len(given), 3, given.target.shape[1], given.source.shape[1])
        rows[sentence, :, step] = kept
        expected = model.output(states, rows, values)[sentence, step]
    found = decide(model, reading, erase(first[:, None]))[:, 0]
    torch.testing.assert_close(found, expected, rtol=0, atol=1e-12)


def test_a_curve_is_the_model_run_with_units_removed() -> None:
    model, given = translator("published"), pairs()
    reading = read(model, given)
    order = ranked(reading.attention, reading)[:, None]
    found = curve(model, reading, order)
    for step in range(1, reading.mask.shape[1]):
        kept = reading.attention.clone()
        kept.scatter_(1, order[:, 0, :step], 0.0)
        left = kept.sum(-1) > 0
        with torch.no_grad():
            expected = rerun(model, given, kept / kept.sum(-1, keepdim=True).clamp_min(1e-300))
        torch.testing.assert_close(found[left, 0, step], expected[left], rtol=0, atol=1e-10)


@pytest.mark.parametrize("name", NAMES)
def test_the_probe_is_all_attention_on_one_position(name: str) -> None:
    model, given = translator(name), pairs()
    found, reading = attended(model, given).probe, read(model, given)
    sentence, step = given.target_mask.nonzero(as_tuple=True)
    for unit in range(given.source.shape[1]):
        one_hot = torch.zeros_like(reading.attention)
        one_hot[:, unit] = 1
        with torch.no_grad():
            log_p = rerun(model, given, one_hot).log_softmax(-1)
        expected = log_p.gather(-1, reading.labels[:, None])[:, 0]
        real = reading.mask[:, unit]
        here = found[sentence, step, unit]
        torch.testing.assert_close(here[real], expected[real].exp().logit(), rtol=0, atol=1e-11)
        assert bool((here[~real] == -torch.inf).all())
        if model.config.heads == 1:
            asked = decide(model, reading, Replace(one_hot[:, None]))[:, 0].log_softmax(-1)
            asked = asked.gather(-1, reading.labels[:, None])[:, 0]
            torch.testing.assert_close(asked[real], expected[real], rtol=0, atol=1e-12)


def test_attention_probe_and_accuracy_come_from_one_pass() -> None:
    model, given = translator("published"), pairs()
    found, plain = attended(model, given), model(given)
    torch.testing.assert_close(found.attention, plain.attention.mean(1))
    mask = given.target_mask
    assert torch.equal(found.is_right[mask], (plain.logits.argmax(-1) == given.target)[mask])


@pytest.mark.parametrize("name", ["published", "linear", "uniform", "mean of gru heads"])
def test_saliency_is_the_derivative_by_a_gate_on_each_word(name: str) -> None:
    model = translator(name)
    model.train()  # dropout must not matter
    given = pairs()
    found = saliency(model, given, chunk=8)
    assert model.training
    assert model.encoder.dropout == FORMS[name].dropout * (FORMS[name].layers > 1)
    model.eval()

    def odds(gates: Tensor) -> Tensor:
        vectors = model.embedding(given.source) * gates[..., None]
        values, start = model.encode(vectors, given)
        states, _ = model.decode(given.before, start)
        attention = model.scores(states, values, given.source_mask).softmax(-1)
        p = model.output(states, attention, values).softmax(-1)
        return p.gather(-1, given.target[..., None])[..., 0].logit()

    ones = torch.ones(given.source.shape, dtype=torch.float64)
    with torch.no_grad():
        for unit in range(given.source.shape[1]):
            up, down = ones.clone(), ones.clone()
            up[:, unit] += 1e-5
            down[:, unit] -= 1e-5
            slope = (odds(up) - odds(down)) / 2e-5
            mask = given.target_mask
            torch.testing.assert_close(found[..., unit][mask], slope[mask], rtol=0, atol=1e-7)
    assert bool((found[~given.target_mask] == 0).all())


def test_uniform_attention_learns_nothing_about_attention() -> None:
    model = build_translator(FORMS["uniform"])
    found = model(pairs())
    found.logits[pairs().target_mask].log_softmax(-1).sum().backward()  # type: ignore[no-untyped-call]
    assert model.query.weight.grad is None
    sizes = pairs().source_mask.sum(-1)
    assert torch.allclose(found.attention[:, 0, 0, 0], 1 / sizes)


def test_bad_sizes_are_refused() -> None:
    with pytest.raises(InputError, match="at least 1"):
        TranslatorConfig(heads=0)


def test_pairs_keep_start_and_end() -> None:
    given = collate_pairs(split(), (1,))
    assert given.source.tolist() == [[1, 8, 2]]
    assert given.before.tolist() == [[1, 5, 6, 7, 8]]
    assert given.target.tolist() == [[5, 6, 7, 8, 2]]
