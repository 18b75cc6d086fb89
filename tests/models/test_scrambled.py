"""Weights drawn anew are drawn once, until somebody changes them."""

from __future__ import annotations

import pytest
import torch

from heedful.models import scrambled as module
from heedful.models.scrambled import parts_from_top, scrambled
from tests.tiny import classifier


def test_a_draw_is_made_once_for_weights_that_stay_and_anew_for_others(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    model = classifier("bilstm+additive")
    parts = parts_from_top(model)
    drawn: list[tuple[object, ...]] = []
    draw = module.numpy_generator
    monkeypatch.setattr(
        module, "numpy_generator", lambda *given: drawn.append(given) or draw(*given)
    )
    before = {name: weight.detach().clone() for name, weight in model.named_parameters()}

    def scrambles(seed: int = 0) -> dict[str, torch.Tensor]:
        with scrambled(parts, seed):
            return {name: weight.detach().clone() for name, weight in model.named_parameters()}

    first = scrambles()
    count = len(drawn)
    assert count == len(before)
    for name, weight in model.named_parameters():
        assert torch.equal(weight, before[name])
        assert torch.equal(first[name].flatten().sort()[0], weight.flatten().sort()[0])
    again = scrambles()
    assert len(drawn) == count
    assert all(torch.equal(first[name], again[name]) for name in before)
    assert not torch.equal(scrambles(1)["embedding.weight"], first["embedding.weight"])
    drawn.clear()
    with torch.no_grad():
        model.head.weight += 1
    changed = scrambles(1)
    assert [given[-1] for given in drawn] == ["weight"]
    assert float(changed["head.weight"].mean()) == pytest.approx(
        float(model.head.weight.detach().mean())
    )
