"""What lies under docs/results: somebody reads each file, and intervals end where numbers do."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

ROOT = Path(__file__).parents[2]
RESULTS = ROOT / "docs" / "results"
RECORDS = {"README.md", "index.html", "claims.json", "study.json", "runs.csv.gz"}
"""What every study has: read by the pages and by `heedful reproduce`."""
TABLES = sorted(path for path in RESULTS.rglob("*.csv*") if path.name != "runs.csv.gz")
RANGES = ((0, 1), (0, 100), (-1, 1))
WITHOUT_END = {("dynamics/E1.csv", "difference"), ("tracing/R1.shown.csv", "b2")}
"""Differences in BLEU and slopes, whose values happen to lie in a range."""
OLD = {
    ("transformers/T2.csv", "The decision depends on where attention lies"),
    ("transformers/T2.csv", "The attended units say the decision themselves"),
    ("transformers/T2.csv", "Deleting an attended unit hurts at least as much as deleting any"),
    ("transformers/T3.csv", "beyond random"),
    ("transformers/T3.csv", "claims belied"),
}
"""Of the run before intervals were held to their range, which was not repeated yet."""
BOUNDED = re.compile(r"\b(share|AUC|AUPRC|probability|fraction|agreement|Spearman|correlat|cosine)")
SIGNED = re.compile(r"Spearman|correlat|cosine")
OTHERWISE = re.compile(
    r"minus|differ|points|change|ratio|gap|times|s\.d\.|spread|median|loss|later| - |less|step"
    r"|per cent|upswing|nats|slope|verdict|[A-Z]{3}-A?\d"
)
"""What a bounded number may be made of that is not bounded itself."""


def name_of(path: Path) -> str:
    return path.relative_to(RESULTS).as_posix()


def documents() -> list[str]:
    pages = [*(ROOT / "docs").glob("*.md"), *(ROOT / "docs" / "studies").glob("*.md")]
    return [page.read_text() for page in (*pages, ROOT / "README.md")]


def test_somebody_reads_every_file() -> None:
    told = documents()
    unread = []
    for path in sorted(RESULTS.rglob("*")):
        if path.is_dir() or path.name in RECORDS:
            continue
        index = path.parent / "index.html"
        is_linked = index.is_file() and f'href="{path.name}"' in index.read_text()
        above = [folder / "README.md" for folder in path.parents if folder.is_relative_to(RESULTS)]
        is_named = any(page.is_file() and path.name in page.read_text() for page in above)
        folder = f"results/{name_of(path.parent)}"
        is_cited = any(folder in text and path.name in text for text in told)
        if not (is_linked or is_named or is_cited):
            unread.append(name_of(path))
    assert unread == []


def outside(table: pd.DataFrame) -> Iterator[str]:
    """The columns whose values lie in a range and whose intervals leave it."""
    for name in [column[: -len(" low")] for column in table if column.endswith(" low")]:
        if name not in table or not pd.api.types.is_numeric_dtype(table[name]):
            continue
        values, low, high = table[name].dropna(), table[f"{name} low"], table[f"{name} high"]
        ends = next((it for it in RANGES if values.between(*it).all()), None)
        if ends and ((low < ends[0] - 1e-9) | (high > ends[1] + 1e-9)).any():
            yield name


def test_a_column_whose_interval_leaves_its_range_is_found() -> None:
    columns = {"share": [0.5, 1.0], "share low": [0.4, 0.9], "share high": [0.6, 1.0005]}
    assert list(outside(pd.DataFrame(columns))) == ["share"]
    assert list(outside(pd.DataFrame(columns | {"share high": [0.6, 1.0]}))) == []


def test_intervals_in_tables_end_where_their_number_does() -> None:
    assert len(TABLES) > 150
    found = {(name_of(path), name) for path in TABLES for name in outside(pd.read_csv(path))}
    assert found - WITHOUT_END == OLD


def numbers() -> Iterator[tuple[str, dict[str, Any]]]:
    """Every number of every claim, and what it is."""
    for path in sorted(RESULTS.rglob("claims.json")):
        for claim in json.loads(path.read_text()):
            for part in claim["parts"] or [claim | {"part": ""}]:
                if part["interval"] is not None:
                    yield f"{part['part']}: {claim['statistic']}", part


def test_intervals_of_claims_hold_their_value_and_end_where_it_does() -> None:
    count = 0
    for what, number in numbers():
        low, high = number["interval"]
        assert low - 1e-9 <= number["ours"] <= high + 1e-9, what
        if BOUNDED.search(what) and not OTHERWISE.search(what):
            count += 1
            least = -1 if SIGNED.search(what) else 0
            assert least - 1e-9 <= low, f"{what}: {number}"
            assert high <= 1 + 1e-9, f"{what}: {number}"
    assert count > 200


def test_a_claim_s_place_is_in_a_paper_or_ours() -> None:
    places = {
        claim["where"]
        for path in RESULTS.rglob("claims.json")
        for claim in json.loads(path.read_text())
    }
    assert [place for place in places if re.search(r"\btraps? ", place)] == []


@pytest.mark.parametrize("study", sorted(path.parent.name for path in RESULTS.glob("*/study.json")))
def test_a_study_has_its_readme_page_and_claims(study: str) -> None:
    for name in ("README.md", "index.html", "claims.json"):
        assert (RESULTS / study / name).is_file()


@pytest.mark.parametrize("study", ["erasure", "polarity", "tracing", "dynamics", "faithful", ""])
def test_largest_differences_to_the_paper_have_a_reason_each(study: str) -> None:
    text = (RESULTS / study / "README.md").read_text()
    _, heading, rest = text.partition("\n## Largest remaining differences to the paper")
    assert heading
    rows = [line.split(" | ") for line in rest.partition("\n#")[0].splitlines() if "|" in line][2:]
    assert len(rows) >= (12 if not study else 6)
    for row in rows:
        cell, ours, paper, reason = (one.strip("| ") for one in row)
        assert all((cell, ours, paper)), cell
        assert len(reason) >= len("seeds"), cell
    if not study:
        for name in ("erasure", "polarity", "tracing", "dynamics", "faithful"):
            assert any(name in row[0] for row in rows), name
