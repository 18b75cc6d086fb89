"""The sanity check: explanations before and after the weights are drawn anew."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pandas as pd
import pytest
import torch
from torch import nn

from heedful.audits import AUDITS, randomisation
from heedful.audits.randomisation import KEPT
from heedful.corpora.planted import planted
from heedful.importance import METHODS, Method, explain
from heedful.jobs.audit import audit
from heedful.jobs.settings import settings_of
from heedful.models import read
from heedful.models.scrambled import parts_from_top, scrambled
from tests.hand import model_of, random_reading
from tests.tiny import batch_of, classifier

BATCH = batch_of(((8,), (12,), (9, 4), (15,), (3, 3, 3)))


def test_parts_go_from_the_head_to_the_words() -> None:
    assert [p.name for p in parts_from_top(classifier("bilstm+additive"))] == [
        "head", "level", "embedding",
    ]  # fmt: skip
    names = [p.name for p in parts_from_top(classifier("han:gru+additive"))]
    assert names == ["head", "level", "words", "embedding"]


def test_a_stack_of_layers_is_one_part_each_and_wrappers_are_opened() -> None:
    stack = nn.ModuleDict(
        {
            "embeddings": nn.Embedding(5, 2),
            "encoder": nn.ModuleDict({"layer": nn.ModuleList([nn.Linear(2, 2) for _ in range(3)])}),
            "dropout": nn.Dropout(),
        }
    )
    model = nn.Sequential(nn.ModuleDict({"base": stack, "classifier": nn.Linear(2, 2)}))
    assert [p.name for p in parts_from_top(model)] == [
        "classifier", "base.encoder.layer.2", "base.encoder.layer.1", "base.encoder.layer.0",
        "base.embeddings",
    ]  # fmt: skip


def test_weights_that_are_in_no_module_are_drawn_anew_with_the_input() -> None:
    class Positioned(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.positions = nn.Parameter(torch.arange(12.0))
            self.table, self.head = nn.Embedding(5, 2), nn.Linear(2, 2)

    model = Positioned()
    parts = parts_from_top(model)
    assert [p.name for p in parts] == ["head", "table", "other weights"]
    with scrambled(parts):
        assert not torch.equal(model.positions, torch.arange(12.0))
    assert torch.equal(model.positions, torch.arange(12.0))


def test_scrambling_moves_the_numbers_and_gives_them_back() -> None:
    model = classifier("bilstm+additive")
    before = {name: value.clone() for name, value in model.state_dict().items()}
    parts = parts_from_top(model)
    with scrambled(parts[:2], 1):
        once = {name: value.clone() for name, value in model.state_dict().items()}
        torch.testing.assert_close(once["embedding.weight"], before["embedding.weight"])
        assert not torch.equal(once["head.weight"], before["head.weight"])
        assert torch.equal(
            once["head.weight"].flatten().sort().values,
            before["head.weight"].flatten().sort().values,
        )
    with scrambled(parts, 1):
        assert torch.equal(model.state_dict()["head.weight"], once["head.weight"])
    with pytest.raises(KeyError), scrambled(parts, 2):
        raise KeyError
    assert all(torch.equal(value, before[name]) for name, value in model.state_dict().items())


def test_what_reads_the_model_loses_its_order_and_what_reads_the_text_keeps_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def by_text(model: object, reading: object) -> torch.Tensor:
        return reading.batch.ids.double()  # type: ignore[attr-defined]

    monkeypatch.setitem(METHODS, "single", Method(by_text, "The word's number."))
    model = classifier("bilstm+additive", 2)
    reading = read(model, BATCH)
    names = ["random", "attention", "gradient", "single", "leave-one-out"]
    rows = randomisation.rows(model, reading, explain(model, reading, names), 0)
    finding = randomisation.summarise(rows)
    kept = {m: finding.get(KEPT, m) for m in names}
    assert all(estimate is not None for estimate in kept.values())
    assert kept["single"].value == 1  # type: ignore[union-attr]
    for method in ("random", "attention", "gradient", "leave-one-out"):
        assert abs(kept[method].value) < 0.6  # type: ignore[union-attr]
    assert finding.get(f"{KEPT}, down to head", "attention").value == 1  # type: ignore[union-attr]
    assert finding.get(f"{KEPT}, down to head", "gradient").value < 1  # type: ignore[union-attr]
    assert finding.drawn["down to"] == ["head", "level", "embedding"]


def test_the_class_explained_stays_that_of_the_model_as_it_was() -> None:
    model = classifier("none+dot", 2)
    head = model.head.weight
    with torch.no_grad():
        head[:] = torch.tensor([[-0.1], [0.1]]) * torch.linspace(1, 2, head.shape[1])
        model.head.bias.zero_()
        trained = read(model, BATCH)
        was = explain(model, trained, ["gradient"])["gradient"]
        head *= -1  # every decision turns
    turned = replace(read(model, BATCH), explained=trained.decision)
    assert not torch.equal(turned.decision, trained.decision)
    torch.testing.assert_close(explain(model, turned, ["gradient"])["gradient"].sign(), -was.sign())


def test_a_model_without_weights_has_nothing_to_draw_anew() -> None:
    reading = random_reading([4, 5], 2)
    importance = {"attention": reading.attention}
    rows = randomisation.rows(model_of(2), reading, importance, 0)
    assert rows.empty
    assert "it takes weights" in randomisation.summarise(rows).answer


@pytest.mark.slow
@pytest.mark.usefixtures("sketched")
def test_a_slow_audit_looks_at_a_draw_of_the_documents(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    few = AUDITS["randomisation"]._replace(most=7)
    monkeypatch.setitem(AUDITS, "randomisation", few)
    corpus = planted(2, "short", 0, {"train": 60, "dev": 10, "test": 20})
    small = settings_of({"train": {"epochs": 1}})
    tests = ["randomisation", "concentration"]
    seen = {}
    for documents in (20, 12):
        out = tmp_path / str(documents)
        options = {"settings": small, "audits": tests, "methods": ["random", "attention"]}
        audit("none+dot", corpus, out, documents=documents, **options)
        for name in tests:
            rows = pd.read_parquet(out / "findings" / f"{name}.parquet")
            seen[name, documents] = set(rows["instance"])
    assert len(seen["concentration", 20]) == 20
    assert len(seen["randomisation", 20]) == 7
    assert seen["randomisation", 20] == seen["randomisation", 12]  # a smaller audit draws the same
