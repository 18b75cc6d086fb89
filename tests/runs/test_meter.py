"""Tokens that go through a model are counted, for whom they were read."""

import pytest
import torch

from heedful.importance import explain
from heedful.models import read
from heedful.runs import memory
from heedful.runs.memory import halving
from heedful.runs.meter import metering, passed, spent_on
from tests.tiny import batch_of, classifier


def test_what_is_read_is_counted_for_who_asked_and_only_while_it_is_metered() -> None:
    passed(1000)
    with metering() as meter:
        passed(3)
        with spent_on("deletion"):
            passed(5)
            with spent_on(method="occlusion"):
                passed(7, backward=2)
    passed(1000)
    rows = meter.table().set_index(["audit", "method"])
    assert rows.loc[("", "")].tolist() == [3, 0]
    assert rows.loc[("deletion", "")].tolist() == [5, 0]
    assert rows.loc[("deletion", "occlusion")].tolist() == [7, 2]


def test_methods_cost_the_passes_that_they_make() -> None:
    batch, model = batch_of(), classifier("none+additive")
    one = batch.ids.numel()
    reading = read(model, batch)
    with metering() as meter:
        explain(model, reading, ["attention", "input-gradient", "occlusion"])
    spent = {method: tokens for (_, method), tokens in meter.spent.items()}
    assert "attention" not in spent  # arithmetic on the reading
    assert spent["input-gradient"] == [one, one]
    units = int(reading.units.max())
    assert len(batch) * units / 2 < spent["occlusion"][0] / batch.ids.shape[1] <= len(batch) * units


def test_what_does_not_fit_is_asked_in_halves_and_said_once(
    capsys: pytest.CaptureFixture[str],
) -> None:
    asked: list[int] = []

    def ask(rows: torch.Tensor) -> torch.Tensor:
        asked.append(len(rows))
        if len(rows) > 3:
            raise RuntimeError("CUDA out of memory. Tried to allocate 2 GiB")
        return 2 * rows

    memory.tell_halved.cache_clear()
    rows = torch.arange(8)
    for _ in range(2):
        assert torch.equal(halving(ask, rows, torch.cat), 2 * rows)
    assert asked[:7] == [8, 4, 2, 2, 4, 2, 2]
    said = capsys.readouterr().err
    assert said.count("8 texts at once; they are read in halves") == 1

    def other(rows: torch.Tensor) -> torch.Tensor:
        raise RuntimeError("sizes do not match")

    with pytest.raises(RuntimeError, match="sizes do not match"):
        halving(other, rows, torch.cat)

    def never(rows: torch.Tensor) -> torch.Tensor:
        raise MemoryError("out of memory")

    with pytest.raises(MemoryError):
        halving(never, rows, torch.cat)
