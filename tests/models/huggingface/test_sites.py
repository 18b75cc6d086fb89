"""Edits of one layer as one product of all its rows, against the whole layer run again."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch
from torch import nn

from heedful.models import Permute, Replace, Scale, read
from heedful.models.huggingface import FastTokeniser, PretrainedClassifier
from tests.models.huggingface.test_classifier import MeanPooled
from tests.tiny_transformers import TEXTS, enlarged, reader, tokenizer


def edits(mask: torch.Tensor) -> list[object]:
    """Erasures, weights, replaced rows and permutations, some of each."""
    generator = torch.Generator().manual_seed(0)
    noise = torch.rand(len(mask), 4, mask.shape[1], generator=generator, dtype=torch.float64)
    noise = noise * mask[:, None]
    order = torch.where(mask[:, None], noise, 2.0).argsort(-1)
    return [
        Scale((noise > 0.5).double()),
        Scale(noise),
        Replace(noise / noise.sum(-1, keepdim=True)),
        Permute(order),
    ]


def subjects() -> dict[str, PretrainedClassifier]:
    mean = PretrainedClassifier(enlarged(MeanPooled()), FastTokeniser(tokenizer()), ("no", "yes"))
    kinds = (("bert", "layer:0"), ("bert", "layer:1"), ("gpt2", "layer:0"), ("llama", "layer:1"),
             ("albert", "layer:1"), ("modernbert", "layer:1"))  # fmt: skip
    return {"mean": mean} | {f"{kind} {site}": reader(kind, site) for kind, site in kinds}


@pytest.mark.parametrize("name", list(subjects()))
def test_one_product_of_all_rows_decides_as_the_whole_layer_does(name: str) -> None:
    model = subjects()[name]
    reading = read(model, model.batch(TEXTS))
    assert model.passes.is_one_layer
    with torch.no_grad():
        quick = [model.answer(reading, edit) for edit in edits(reading.mask)]
    slopes = model.slopes(reading)
    model.layout = replace(model.layout, projections=((),) * len(model.layout.layers))
    assert not model.passes.is_one_layer
    again = read(model, model.batch(TEXTS))
    assert torch.equal(reading.logits, again.logits)
    for found, edit in zip(quick, edits(reading.mask), strict=True):
        with torch.no_grad():
            whole = model.answer(again, edit)
        torch.testing.assert_close(found, whole, rtol=0, atol=1e-10)
        assert float((found - reading.logits[:, None]).abs().max()) > 1e-3
    torch.testing.assert_close(slopes, model.slopes(again), rtol=0, atol=1e-10)


def test_layers_that_share_their_weights_are_run_whole_but_for_the_last() -> None:
    assert not reader("albert", "layer:0").passes.is_one_layer


def test_a_projection_that_serves_more_than_attention_is_run() -> None:
    model = enlarged(MeanPooled())
    attention = model.encoder.encoder.layer[0].attention

    class Gated(nn.Module):
        """Adds the queries to what leaves the layer's attention."""

        def __init__(self, inner: nn.Module) -> None:
            super().__init__()
            self.inner = inner

        def forward(self, hidden_states: torch.Tensor, *given: object, **named: object) -> object:
            output, *others = self.inner(hidden_states, *given, **named)
            return output + self.inner.self.query(hidden_states), *others

    model.encoder.encoder.layer[0].attention = Gated(attention)
    reading = PretrainedClassifier(model, FastTokeniser(tokenizer()), ("no", "yes"), site="layer:0")
    assert not reading.passes.is_one_layer
