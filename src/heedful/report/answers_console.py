"""What a terminal says of answers and their sources."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from heedful.audits.answer_measures import EVIDENCE, FORESEEN, FOUND, PRECISION
from heedful.audits.finding import Finding
from heedful.report.console import terminal
from heedful.statistics.estimates import Estimate

COLUMNS = {
    FOUND: "of the best drop",
    "drop at 1": "drop at 1",
    "drop at 3": "at 3",
    "drop at 5": "at 5",
    FORESEEN: "foresees removals",
    PRECISION: "precision",
    EVIDENCE: "on evidence",
}
"""Measures of an explanation, and how the table names them."""
COLOURS = {"attention as it is": "green", "these heads, so weighted": "yellow", "no": "red"}


def ordered(finding: Finding) -> list[str]:
    """Explanations, best first by the share of the best drop that they find."""
    shares = finding.by_method(FOUND)
    return sorted(shares, key=lambda name: -shares[name].value)


def shown(estimate: Estimate | None) -> str:
    """A number with its interval in two digits; nothing where it was not measured."""
    if estimate is None or estimate.value != estimate.value:
        return ""
    value = f"{estimate.value:.2f}"
    if estimate.low != estimate.low or estimate.low == estimate.high:
        return value
    return f"{value} [{estimate.low:.2f}, {estimate.high:.2f}]"


def print_answers(verdict: Mapping[str, Any], finding: Finding, answers: int, report: str) -> None:
    """Prints the word, every explanation with its measures, the notes and where the page is."""
    from rich.table import Table
    from rich.text import Text

    console = terminal()
    word = str(verdict["word"])
    head = Text("May what it attended to be shown as the reason?  ")
    head.append(word.upper(), f"bold {COLOURS.get(word, 'bright_black')}")
    console.print(head)
    console.print(Text(str(verdict["sentence"])))
    if verdict["advice"]:
        console.print(Text(f" → {verdict['advice']}"), soft_wrap=True)
    columns = [one for one in COLUMNS if finding.by_method(one)]
    table = Table(box=None, pad_edge=False)
    table.add_column("explanation", no_wrap=True)
    for one in columns:
        table.add_column(COLUMNS[one], no_wrap=True)
    for name in ordered(finding):
        cells = [shown(finding.get(one, name)) for one in columns]
        table.add_row(Text(name, "bold" if name == verdict["method"] else ""), *cells)
    console.print(Text(f"{answers:,} answers; drops in nats, their intervals in brackets:", "dim"))
    console.print(table)
    for note in finding.notes:
        console.print(Text(note, "dim"))
    console.print(Text("The page: ").append(report, "bold"), soft_wrap=True)
