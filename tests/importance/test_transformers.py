"""Every explanation of a Transformer, held against explicit matrices, brute force and captum."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from captum.attr import FeatureAblation, IntegratedGradients, Saliency
from torch import Tensor

from heedful.corpora.batches import Batch
from heedful.importance import explain, methods_of
from heedful.importance.inputs import integrated_gradients
from heedful.models import Reading, read
from heedful.models.huggingface import budgets
from heedful.models.huggingface.attending import attending, handling
from heedful.models.huggingface.calls import Call, softmax
from heedful.models.huggingface.pieces import framed
from heedful.models.rereading import chosen
from tests.tiny_transformers import OFF_INTERFACE, TEXTS, reader


def per_word(reading: Reading, at_pieces: Tensor) -> Tensor:
    """Sums over the pieces of each word by a plain loop."""
    found = torch.zeros(reading.mask.shape, dtype=torch.float64)
    for row, length in enumerate(reading.batch.lengths.tolist()):
        for piece in range(length):
            found[row, reading.unit_of_token[row, piece]] += at_pieces[row, piece]
    return found


@pytest.mark.parametrize("kind", ["bert", "gpt2", "llama", "modernbert"])
def test_attention_times_gradient_and_value_norms_are_those_of_the_matrices(kind: str) -> None:
    model = reader(kind)
    batch = model.batch(TEXTS)
    reading = read(model, batch)
    frame = framed(batch, model.subwords)
    weights: list[Tensor] = []
    lengths: list[Tensor] = []

    def keep(number: int, scores: Tensor) -> Tensor:
        weights.append(softmax(scores))
        weights[-1].retain_grad()
        return weights[-1]

    def note(call: Call) -> Tensor:
        lengths.append(call.value.norm(dim=-1))
        return call.output()

    with torch.enable_grad(), attending(model.model, keep):
        logits = model(batch).logits
        logits.softmax(-1).gather(1, reading.decision[:, None]).sum().backward()
    model.zero_grad()
    with torch.no_grad(), handling(model.model, note, is_fused=True):
        model(batch)
    real = frame.mask.double()
    even = (real / real.sum(-1, keepdim=True))[:, None, :, None]
    product, norms = 0, 0
    for attention, length in zip(weights, lengths, strict=True):
        assert attention.grad is not None
        product = product + (attention * attention.grad).sum((1, 2))
        norms = norms + ((attention * even).sum(2) * length).mean(1) / len(weights)
    found = explain(model, reading, ["attention-gradient", "value-norm"])
    for name, wanted in (("attention-gradient", product), ("value-norm", norms)):
        wanted = per_word(reading, frame.at_pieces(wanted.detach()))
        torch.testing.assert_close(found[name], wanted, rtol=1e-8, atol=1e-11)


def leaving(model: Any, batch: Batch, layer: int, gone: Tensor | None) -> Tensor:
    """The states that leave a layer of the whole model, with some keys' values zero there."""
    kept: list[Tensor] = []

    def note(module: object, args: object, output: Any) -> None:
        kept.append(output[0] if isinstance(output, tuple) else output)

    def handle(call: Call) -> Tensor:
        if call.number == layer and gone is not None:
            value = call.value.clone()
            value[:, :, gone] = 0
            call = replace(call, value=value)
        return call.output()

    hooks = [m.register_forward_hook(note) for m in dict.fromkeys(model.layout.layers)]
    with torch.no_grad(), handling(model.model, handle, is_fused=True):
        model(batch)
    for hook in hooks:
        hook.remove()
    return kept[layer][0]


@pytest.mark.parametrize("kind", ["bert", "albert", "gpt2"])
def test_value_zeroing_compares_states_with_and_without_a_word_s_values(kind: str) -> None:
    model = reader(kind)
    batch = model.batch(TEXTS[:1])
    place = framed(batch, model.subwords).place[0]
    unit_of_token = read(model, batch).unit_of_token[0]
    keys = {word: place[unit_of_token == word] for word in range(8)}
    assert len(keys[3]) > 1
    mixed = model.mixed(batch)
    for layer in range(2):
        before = leaving(model, batch, layer, None)
        for word in (0, 3):
            after = leaving(model, batch, layer, keys[word])
            turned = 1 - torch.cosine_similarity(after, before, dim=-1)
            for other in range(8):
                torch.testing.assert_close(
                    mixed.layers[layer, 0, other, word],
                    turned[keys[other]].mean(),
                    atol=1e-9,
                    rtol=0,
                )
    assert float(mixed.pooling.sum()) == pytest.approx(1)


@pytest.mark.parametrize("kind", ["bert", "albert", "distilbert", "modernbert", "gpt2", "llama"])
def test_value_zeroing_of_a_text_does_not_depend_on_the_texts_beside_it(
    kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = reader(kind)
    texts = TEXTS[:3]  # three, so that no other axis is taken for that of texts
    together = explain(model, read(model, model.batch(texts)), ["value-zeroing"])["value-zeroing"]
    monkeypatch.setattr(budgets, "CACHED_TOKENS", 50)  # in several passes
    for row, text in enumerate(texts):
        reading = read(model, model.batch([text]))
        alone = explain(model, reading, ["value-zeroing"])["value-zeroing"][0]
        torch.testing.assert_close(together[row, : len(alone)], alone, atol=1e-12, rtol=1e-9)
        assert not together[row, len(alone) :].any()


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["bert", "gpt2"])
def test_captum_agrees_on_gradients_integrals_and_occlusion(kind: str) -> None:
    model = reader(kind)
    batch = model.batch(TEXTS[:3])
    reading = read(model, batch)
    ours = explain(model, reading, ["input-gradient", "occlusion"])
    integrated = integrated_gradients(model, reading, error=1e-10)
    for document in range(3):
        alone = chosen(batch, np.array([document]), int(batch.lengths[document]))
        decided, units = int(reading.decision[document]), int(reading.units[document])
        word_of = reading.unit_of_token[document, : alone.mask.shape[1]]

        def top(inputs: Tensor, alone: Batch = alone, decided: int = decided) -> Tensor:
            rows = [model.from_inputs(row[None], alone).logits for row in inputs]
            return torch.cat(rows).softmax(-1)[:, decided]

        def of_ids(ids: Tensor, alone: Batch = alone, decided: int = decided) -> Tensor:
            rows = [model(replace(alone, ids=row[None])).logits for row in ids]
            return torch.cat(rows).softmax(-1)[:, decided]

        inputs = model.embed(alone).detach()
        slope = Saliency(top).attribute(inputs.clone().requires_grad_(), abs=False)[0]
        path = IntegratedGradients(top).attribute(inputs, n_steps=60, method="gausslegendre")[0]
        with torch.no_grad():
            ablated = FeatureAblation(of_ids).attribute(
                alone.ids, baselines=batch.unknown, feature_mask=word_of[None]
            )[0]
        for word in range(units):
            mine = word_of == word
            for found, wanted in (
                (ours["input-gradient"], slope[mine].norm(dim=-1).sum()),
                (integrated, path[mine].sum()),
                (ours["occlusion"], ablated[mine][0]),
            ):
                assert float(found[document, word]) == pytest.approx(float(wanted), abs=1e-7)


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["bert", "modernbert", "gpt2", "deberta-v2", "xlnet"])
def test_padding_and_the_batch_change_no_explanation(kind: str) -> None:
    model = reader(kind)
    batch = model.batch(TEXTS)
    names = methods_of(model, costly=True)
    assert {"rollout", "trace", "integrated", "occlusion", "attention-flow"} <= set(names)
    assert (kind in OFF_INTERFACE) == ("value-norm" not in names)
    together = explain(model, read(model, batch), names)
    for row in range(len(TEXTS)):
        reading = read(model, chosen(batch, np.array([row]), int(batch.lengths[row])))
        units = int(reading.units[0])
        for name, alone in explain(model, reading, names).items():
            if name == "random":  # keyed by the name of the text, the same for both
                assert torch.equal(alone[0, :units], together[name][row, :units])
            torch.testing.assert_close(
                alone[0, :units], together[name][row, :units], rtol=1e-6, atol=1e-8, msg=name
            )


def test_frozen_weights_are_explained_too() -> None:
    model = reader("bert")
    reading = read(model, model.batch(TEXTS))
    before = explain(model, reading, ["attention-gradient", "input-gradient"])
    model.requires_grad_(False)
    after = explain(model, reading, ["attention-gradient", "input-gradient"])
    for name in before:
        torch.testing.assert_close(after[name], before[name])
    assert all(weight.grad is None for weight in model.parameters())


def test_a_decoder_is_offered_what_it_has() -> None:
    model = reader("bart")
    names = methods_of(model)
    assert "rollout" not in names
    assert "value-norm" not in names
    assert {"attention", "leave-one-out", "occlusion"} <= set(names)
