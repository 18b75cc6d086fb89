"""The pages of docs/studies: claims as the code has them, and headings for every citation."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path

import pytest

from heedful.reproduction.ledger import Side
from heedful.reproduction.study import Claim, Study

ROOT = Path(__file__).parents[2]
PAGES = ROOT / "docs" / "studies"
NAMES = ("erasure", "polarity", "tracing", "dynamics", "faithful")
READ = ("src", "tests", "benchmarks", "docs")
CITATION = re.compile(r'docs/studies/(\w+)\.md((?:,(?: and)? \\?"[^"]+")*)')
PRIVATE = re.compile(
    r"\b(?:erasure|polarity|tracing|dynamics|faithful)(?:\.md| study,)? §|\btraps? \d"
)
KEPT = {'{"rule": "faithful.md §2.4"}'}
"""Where the words are part of a step's key, so that results that were kept stay valid."""


def study(name: str) -> Study:
    found: Study = import_module(f"heedful.studies.{name}.study").STUDY
    return found


def sides(claim: Claim) -> str:
    """What is claimed of the statistic: one side, or the different ones of its parts."""
    given = [claim.side] if isinstance(claim.side, Side) else list(claim.side.values())
    return "; ".join(dict.fromkeys(side.text for side in given))


def claims_table(name: str) -> str:
    """The table under the heading Claims."""
    rows = ["| id | claim | statistic | claimed |", "|---|---|---|---|"]
    for claim in study(name).claims:
        cells = (claim.id, claim.sentence, claim.statistic, sides(claim))
        rows.append(f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in cells)} |")
    return "\n".join(rows)


def headings(page: Path) -> list[str]:
    return re.findall(r"^#+ (.+)$", page.read_text(), re.MULTILINE)


def flowing(path: Path) -> str:
    """The text of a file without line breaks, indentation and the signs of comments."""
    return re.sub(r"\s*\n\s*(?:#\s)?", " ", path.read_text())


def texts() -> Iterator[tuple[Path, str]]:
    for folder in READ:
        for path in sorted((ROOT / folder).rglob("*")):
            if path.suffix in (".py", ".md") and path != Path(__file__).resolve():
                yield path.relative_to(ROOT), flowing(path)


@pytest.mark.parametrize("name", NAMES)
def test_a_page_has_the_claims_of_the_code(name: str) -> None:
    _, _, claims = (PAGES / f"{name}.md").read_text().partition("\n## Claims\n")
    assert claims.strip().endswith(claims_table(name)), "python -m tests.docs.test_studies mends it"


@pytest.mark.parametrize("name", NAMES)
def test_headings_of_a_page_are_told_apart(name: str) -> None:
    found = headings(PAGES / f"{name}.md")
    assert len(found) == len(set(found))
    assert {"Question", "Models", "Corpora", "Measures", "Errata", "Claims"} <= set(found)


def test_citations_lead_to_a_heading() -> None:
    count = 0
    for path, text in texts():
        for name, cited in CITATION.findall(text):
            assert (PAGES / f"{name}.md").is_file(), f"{path} cites docs/studies/{name}.md"
            known = headings(PAGES / f"{name}.md")
            for heading in re.findall(r'"([^"\\]+)\\?"', cited):
                assert heading in known, f"{path} cites {heading!r} of docs/studies/{name}.md"
                count += 1
    assert count > 50


def test_nothing_cites_what_is_not_in_the_repository() -> None:
    for path, text in texts():
        for kept in KEPT:
            text = text.replace(kept, "")
        found = PRIVATE.search(text)
        assert not found, f"{path} cites {text[found.start() : found.end() + 8]!r}"


if __name__ == "__main__":
    for name in sys.argv[1:] or NAMES:
        page = PAGES / f"{name}.md"
        kept, heading, claims = page.read_text().partition("\n## Claims\n")
        told, _, _ = claims.partition("| id |")
        page.write_text(f"{kept}{heading}{told}{claims_table(name)}\n")
