"""A grid of a user's own: every cell once, a table and a page at the end."""

import json
import re

import pandas as pd
import pytest

from heedful.cluster.sweep import read_grid, sweep
from heedful.errors import InputError
from heedful.runs import RunFolder
from tests.cluster.shard_files import saved_model
from tests.schemas import conforms

GRID = """
models = ["none+additive", "{model}"]
corpora = ["{file}"]
seeds = [0, 1]
audits = ["concentration", "substitution"]
methods = ["attention"]
documents = 40

[settings.short]
train = {{ epochs = 1 }}
"""


@pytest.fixture(scope="module")
def grid(tmp_path_factory):
    folder = tmp_path_factory.mktemp("sweep")
    words = [("fine", "positive"), ("bad", "negative"), ("great", "positive"), ("poor", "negative")]
    rows = [(f"a {w} film of number {i}", label) for i in range(40) for w, label in words]
    pd.DataFrame(rows, columns=["text", "label"]).to_csv(folder / "films.csv", index=False)
    path = folder / "grid.toml"
    path.write_text(GRID.format(model=saved_model(folder), file=folder / "films.csv"))
    return path


@pytest.mark.slow
def test_every_cell_is_audited_once_and_put_side_by_side(grid, capsys):
    done = sweep(grid, grid.parent / "out", device="cpu", show=True)
    assert len(done.table) == 4
    assert not done.table["skipped"].any()
    assert set(done.table["settings"]) == {"short"}
    assert done.table["accuracy"].notna().all()
    assert done.page is not None
    assert done.page.read_text().count("none+additive") >= 2
    assert "step 4/4" in capsys.readouterr().err
    assert len(conforms("sweep", json.dumps(done.to_json()))["cells"]) == 4
    assert done.lines()[-1] == f"Page: {done.page}"
    cells = done.table.to_dict("records")
    for line, cell in zip(done.lines()[1:], cells, strict=False):
        assert line.split()[-4] == str(cell["documents"])  # whole, not 60.0
        assert re.search(r"\d\.\d+ \[\d\.\d+, \d\.\d+\]$", line)
        audited = RunFolder.open(cell["run"]).record["audited"]
        assert cell["accuracy"] == audited["accuracy"]["value"]  # of all that were read once
        assert float(line.split()[-3]) == pytest.approx(cell["accuracy"], abs=0.05)
    journal = done.folder / "steps" / "journal.jsonl"
    before = journal.read_text()
    again = sweep(grid, grid.parent / "out", device="cpu")
    pd.testing.assert_frame_equal(again.table, done.table)
    assert journal.read_text() == before


@pytest.mark.slow
def test_a_cell_that_cannot_be_had_says_why_and_the_rest_goes_on(grid, tmp_path):
    asked = read_grid(grid) | {"corpora": ["nosuch.csv"], "seeds": [0]}
    asked["models"] = asked["models"][1:]
    asked["settings"] = {"=1+1": {}}
    done = sweep(asked, tmp_path / "out", device="cpu")
    assert done.page is None
    assert "nosuch.csv does not exist" in done.table["skipped"].iloc[0]
    assert done.lines()[1].split()[-2:] == ["skipped", "–"]
    assert done.lines()[2].startswith("Skipped (1): ")
    assert ",'=1+1," in (tmp_path / "out" / "table.csv").read_text()  # no formula


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("models = ['none+additive']", "has no corpora"),
        ("model = ['none+additive']", "model"),
        ("models = []", "models must be a filled list"),
        ("models = ['a']\ncorpora = ['planted']\nseeds = ['x']", "seeds must be whole numbers"),
        ("models = ", "is not valid TOML"),
        ("models = ['a']\ncorpora = ['b']\n[settings.x]\ntrian = {}", "trian"),
    ],
)
def test_a_wrong_grid_is_answered_in_a_sentence(text, said, tmp_path):
    path = tmp_path / "grid.toml"
    path.write_text(text)
    with pytest.raises(InputError, match=said):
        read_grid(path)
    with pytest.raises(InputError, match="does not exist"):
        read_grid(tmp_path / "none.toml")
