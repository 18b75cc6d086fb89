"""Audited runs side by side."""

import shutil
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from heedful.errors import InputError
from heedful.jobs.compare import compare
from heedful.runs import RunFolder, read_json, write_json
from tests.demo_run import demo


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    folder = tmp_path_factory.mktemp("runs")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("heedful.report.page.draw", lambda *given: "<svg></svg>")  # not compared
        demo(folder / "plain", test=30, train=60, epochs=1)
    shutil.copytree(folder / "plain", folder / "tied")
    verdict = read_json(folder / "tied" / "findings" / "verdict.json")
    write_json(
        folder / "tied" / "findings" / "verdict.json",
        verdict | {"word": "yes", "sentence": "<script>alert(1)</script>"},
    )
    return [folder / "plain", folder / "tied"]


@pytest.mark.slow
def test_verdicts_tests_and_measures_stand_side_by_side(runs: list[Path], tmp_path: Path) -> None:
    found = compare(runs, tmp_path / "page.html")
    page = found.page.read_text()
    assert [one.run for one in found.columns] == ["plain", "tied"]
    assert [one["verdict"] for one in found.to_json()["runs"]][1] == "yes"
    assert "2 runs side by side" in page
    for name in ("substitution", "erasure", "decisions changed"):
        assert name in page
    assert page.count("<th>tied</th>") >= 2
    assert any(line.startswith("tied ") for line in found.lines())


@pytest.mark.slow
def test_the_page_is_self_contained_and_runs_nothing(runs: list[Path], tmp_path: Path) -> None:
    page = compare(runs, tmp_path / "page.html").page.read_text()
    assert "<script" not in page
    assert "&lt;script&gt;" in page
    assert "http://" not in page
    assert "https://" not in page
    assert "default-src &#39;none&#39;" in page or "default-src 'none'" in page


@pytest.mark.slow
def test_other_documents_are_said(runs: list[Path], tmp_path: Path) -> None:
    RunFolder.open(runs[1]).update(corpus="something else")
    assert "different documents" in compare(runs, tmp_path / "page.html").notes[0]
    RunFolder.open(runs[1]).update(corpus="")


@pytest.mark.slow
def test_one_run_or_one_without_an_audit_is_refused(runs: list[Path], tmp_path: Path) -> None:
    with pytest.raises(InputError, match="at least two"):
        compare(runs[:1])
    RunFolder.create(tmp_path / "new", {"kind": "train"})
    with pytest.raises(InputError, match="has not been audited"):
        compare([runs[0], tmp_path / "new"])


@pytest.mark.slow
def test_the_difference_of_accuracy_is_paired_by_document(runs: list[Path], tmp_path: Path) -> None:
    kinds = (tmp_path / "plain", tmp_path / "tied")
    rng, rows = np.random.default_rng(0), []
    for run, folder, accuracy in zip(runs, kinds, (0.9, 0.5), strict=True):
        shutil.copytree(run, folder)
        label = rng.integers(0, 2, 120)
        decision = np.where(rng.random(120) < accuracy, label, 1 - label)
        names = [f"document {n}" for n in range(120)]
        rows.append(pd.DataFrame({"instance": names, "label": label, "decision": decision}))
    rows[1] = rows[1].iloc[20:].sample(frac=1, random_state=1)  # fewer, and in another order
    for folder, table in zip(kinds, rows, strict=True):
        table.to_parquet(folder / "findings" / "substitution.parquet")
    found = compare(kinds, tmp_path / "page.html")
    both = rows[0].merge(rows[1], on="instance")
    right = [both[f"label_{side}"] == both[f"decision_{side}"] for side in "xy"]
    (gain,) = found.gains
    assert gain.value == pytest.approx(right[1].mean() - right[0].mean())
    assert gain.low < gain.value < gain.high < 0
    assert gain.n == 100
    said = "On the 100 documents that all runs were audited on, tied is right "
    (line,) = [line for line in found.lines() if line.startswith(said)]
    assert line.startswith(f"{said}{-100 * gain.value:.1f} [")
    assert line.endswith("points less often than plain.")


@pytest.mark.slow
def test_every_run_has_one_accuracy_with_its_documents(runs: list[Path], tmp_path: Path) -> None:
    RunFolder.open(runs[0]).update(test={"accuracy": 0.123})  # what training noted, on more texts
    found = compare(runs, tmp_path / "page.html")
    lines = found.lines()
    place = lines.index("accuracy on the documents that were read:")
    for line, column in zip(lines[place + 1 :], found.columns, strict=False):
        assert column.accuracy is not None
        right = column.accuracy
        ends = f"[{100 * right.low:.1f}, {100 * right.high:.1f}]"
        said = f"{100 * right.value:.1f}\xa0% {ends} of {right.n} documents"
        assert line.endswith(said)
    assert "0.123" not in found.page.read_text()
    assert "[" in lines[lines.index("Decisions depend on where attention lies:") + 1]
