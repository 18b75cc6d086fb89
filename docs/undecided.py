"""What is still undecided, study by study, and which n would decide it.

    python docs/undecided.py docs/results

prints it from the published `claims.json` files; `docs/publish.py` writes the same to
`undecided.md` and the counts into the README of the results.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from heedful.reproduction.ledger import EVERY, Side, sides_of
from heedful.statistics import Estimate

STUDIES = ("erasure", "polarity", "tracing", "dynamics", "faithful", "transformers")
NOT_THE_PAPERS = {("faithful", "evidence"), ("faithful", "eraser")}
"""Corpora that we added; those that stand in for a paper's say so themselves."""
FEW = 30
"""Up to so many values an interval is taken for Student's, where its method was not published."""
MARK = "<!-- undecided: python docs/publish.py docs/results -->"
"""Stands in the README before and after the counts."""


class Open(NamedTuple):
    """An undecided verdict."""

    study: str
    claim: str
    corpus: str
    kind: str
    """One of KINDS."""
    parts: tuple[str, ...]
    """Each undecided part with its number, the side claimed, and what would decide it; none of a
    verdict over all corpora, which repeats others."""
    count: int
    """Of so many parts."""


KINDS = ("on the paper's data", "on other data", "over all corpora")


def undecided(results: Path) -> Iterator[Open]:
    """Those of every study, in their order."""
    for study in STUDIES:
        file = results / study / "claims.json"
        for claim in json.loads(file.read_text()) if file.is_file() else []:
            if claim["verdict"] != "undecided":
                continue
            every = claim["parts"] or [claim]
            still = [part for part in every if part["verdict"] == "undecided"]
            kind = _kind(study, claim)
            told = () if kind == KINDS[2] else tuple(_told(part, claim) for part in still)
            yield Open(study, claim["id"], claim["corpus"], kind, told, len(every))


def _kind(study: str, claim: Mapping[str, Any]) -> str:
    if claim["corpus"] == EVERY:
        return KINDS[2]
    is_other = claim["stand_in_for"] or (study, claim["corpus"]) in NOT_THE_PAPERS
    return KINDS[1] if is_other else KINDS[0]


def _told(part: Mapping[str, Any], claim: Mapping[str, Any]) -> str:
    name = f"{part['part']}: " if "part" in part else ""
    side = part.get("side", claim["side"])
    if part["interval"] is None:
        return f"{name}no interval; no n would decide it"
    low, high = part["interval"]
    found = Estimate(part["ours"], low, high, part["n"], "student-t" if part["n"] <= FEW else "")
    return f"{name}{found}, claimed {side}; {_power(part, found, side)}"


def _power(part: Mapping[str, Any], found: Estimate, side: str) -> str:
    """As it was published, else from the interval."""
    published = str(part["reason"]).rpartition("; ")[2] if "reason" in part else ""
    if "would decide it" in published:
        return published
    claimed = sides_of(side)
    assert isinstance(claimed, Side)
    if " before (" in str(part.get("reason", "")) and claimed.judge(found) != "undecided":
        return "hangs on the verdict that it repeats"
    return claimed.power(found)


def counts(results: Path) -> str:
    """How many, by study and data, as a table."""
    found = list(undecided(results))
    lines = [f"| undecided verdicts | {' | '.join(KINDS)} |", "|---|---|---|---|"]
    for study in (*STUDIES, "sum"):
        own = [one for one in found if study in (one.study, "sum")]
        numbers = [sum(one.kind == kind for one in own) for kind in KINDS]
        lines.append(f"| {study} | {' | '.join(map(str, numbers))} |")
    return "\n".join(lines)


def listed(results: Path) -> str:
    """Every one on one corpus with its parts, as a page."""
    lines = [
        "# What is undecided, and what would decide it",
        "",
        "Made by `python docs/publish.py docs/results` from the published `claims.json` files; `python docs/undecided.py docs/results` prints it.",  # noqa: E501
        f"n counts what the interval rests on: trainings where it is {FEW} or less, else mostly texts; the chance is that of deciding should value and spread stay as they are",  # noqa: E501
        "(`heedful.statistics.power`). Where a verdict was published without that line, it is reckoned from the published interval. Tasks that a paper made up itself count as its data; verdicts over all corpora repeat those below.",  # noqa: E501
        "",
        counts(results),
        "",
        "| study | claim | corpus | parts undecided | ours, claimed, what would decide it |",
        "|---|---|---|---|---|",
    ]
    for one in undecided(results):
        if one.kind != KINDS[2]:
            told = "<br>".join(part.replace("|", "\\|") for part in one.parts)
            corpus = one.corpus + ("" if one.kind == KINDS[0] else " (not the paper's)")
            size = f"{len(one.parts)} of {one.count}"
            lines.append(f"| {one.study} | {one.claim} | {corpus} | {size} | {told} |")
    return "\n".join(lines) + "\n"


def with_counts(readme: str, results: Path) -> str:
    """The README with the counts of now between its two marks."""
    before, _, rest = readme.partition(MARK)
    _, mark, after = rest.partition(MARK)
    if not mark:
        raise SystemExit(f"The README of the results has no two lines {MARK}.")
    return f"{before}{MARK}\n{counts(results)}\n{MARK}{after}"


def write(results: Path) -> Path:
    """Writes the page and the counts in the README; the page's path."""
    readme = results / "README.md"
    if readme.is_file():
        readme.write_text(with_counts(readme.read_text(), results))
    (results / "undecided.md").write_text(listed(results))
    return results / "undecided.md"


if __name__ == "__main__":
    print(listed(Path(sys.argv[1])), end="")
