import json
from pathlib import Path

import pandas as pd
import pytest

from heedful.studies import quicklook, reproduce
from heedful.training import TrainConfig
from tests.schemas import conforms


@pytest.fixture
def tiny(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(quicklook.SIZES, "smoke", {"train": 160, "dev": 40, "test": 60})  # type: ignore[attr-defined]
    monkeypatch.setitem(quicklook.TRAIN, "smoke", TrainConfig(epochs=2, learning_rate=1e-2))  # type: ignore[attr-defined]


@pytest.mark.slow
@pytest.mark.usefixtures("tiny")
def test_the_quick_look_has_its_table_figure_and_claims(tmp_path: Path) -> None:
    found = reproduce("quicklook", out=tmp_path, seeds=1)
    folder = tmp_path / "quicklook"
    table = pd.read_csv(folder / "T1.csv")
    assert list(table["model"]) == 2 * list(quicklook.RECIPES)
    assert table["accuracy"].between(0, 1).all()
    drawn = pd.read_csv(folder / "F1.csv")
    assert len(drawn) == 2 * 2 * 3
    assert (drawn["q1"] <= drawn["median"]).all()
    assert "<svg" in (folder / "F1.svg").read_text()
    claims = json.loads((folder / "claims.json").read_text())
    assert [(one["id"], one["corpus"]) for one in claims] == [
        ("QL-1", "planted"), ("QL-1", "planted-3"), ("QL-1", "all"),
        ("QL-2", "planted"), ("QL-2", "planted-3"),
    ]  # fmt: skip
    assert all(one["scale"] == "smoke" for one in claims)
    assert conforms("reproduce", found)["studies"][0]["study"] == "quicklook"
    rows = list((folder / "steps").rglob("erasure.parquet"))
    assert len(rows) == 4

    again = reproduce("quicklook", out=tmp_path, seeds=1, compute=False)
    assert again.studies[0].claims == found.studies[0].claims


@pytest.mark.slow
def test_the_smoke_scale_confirms_what_must_hold_by_construction(tmp_path: Path):
    found = reproduce("quicklook", out=tmp_path)
    verdicts = {(one["id"], one["corpus"]): one["verdict"] for one in found.studies[0].claims}
    assert verdicts["QL-1", "all"] == "confirmed"
