"""What people see in a terminal: the verdict, coloured words, the list of corpora."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from heedful.corpora.catalogue import Availability

OUTCOMES = {
    "supports": ("✓", "green"),
    "mixed": ("~", "yellow"),
    "contradicts": ("✗", "red"),
    "unknown": ("?", "bright_black"),
}
WORDS = {"yes": "green", "partly": "yellow", "no": "red", "cannot tell": "bright_black"}


def print_verdict(verdict: Mapping[str, Any], documents: int, report: str) -> None:
    """Prints the verdict, the tests behind it, the advice and where the page is."""
    from rich.console import Console
    from rich.text import Text

    console = Console(highlight=False)
    word = str(verdict["word"])
    head = Text("May attention be shown as the reason?  ")
    head.append(word.upper(), f"bold {WORDS[word]}")
    if verdict["provisional"]:
        head.append("  (provisional)", "dim")
    console.print(head)
    console.print(Text(str(verdict["sentence"])))
    console.print(Text(f"Tests on {documents:,} documents:", "dim"))
    for test in verdict["tests"]:
        mark, colour = OUTCOMES[test["outcome"]]
        line = Text(f" {mark} ", f"bold {colour}")
        line.append(str(test["sentence"]))
        if test["low"] is not None:
            line.append(f"  [{100 * test['low']:.0f}, {100 * test['high']:.0f}]", "dim")
        console.print(line)
    for advice in verdict["advice"]:
        console.print(Text(f" → {advice}"))
    console.print(Text("The page: ").append(report, "bold"), soft_wrap=True)


def print_explanation(explanation: Mapping[str, Any]) -> None:
    """Prints the text once for each method, words shaded by their importance."""
    from rich.console import Console
    from rich.text import Text

    console = Console(highlight=False)
    decided = explanation["decision"]
    said = ", ".join(f"{name} {p:.3f}" for name, p in explanation["probabilities"].items())
    console.print(Text("Decision: ").append(str(decided), "bold").append(f"  ({said})"))
    for method, values in explanation["importance"].items():
        top = max((abs(value) for value in values), default=0.0) or 1.0
        line = Text(f"{method:>14}  ")
        for unit, value in zip(explanation["units"], values, strict=True):
            line.append(str(unit), _shade(value / top))
            line.append(" ")
        console.print(line)
    console.print(Text("green: speaks for the decision · red: against it", "dim"))


def _shade(strength: float) -> str:
    """A background whose depth is the strength, green for positive and red for negative."""
    level = int(min(abs(strength), 1.0) * 150)
    if level < 8:
        return ""
    dark, light = 30, 30 + level
    red, green = (dark, light) if strength > 0 else (light, dark)
    return f"bold white on rgb({red},{green},{dark})"


def print_corpora(rows: Sequence[Availability]) -> None:
    """Prints which corpora are present, and for the rest which files to put where."""
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    console = Console(highlight=False)
    table = Table(box=None, pad_edge=False)
    for column in ("corpus", "here", "what", "where from and where to"):
        table.add_column(column, overflow="fold")
    for row in rows:
        here = Text("yes", "green") if row.is_present else Text("no", "red")
        where = "" if row.is_present else f"put {', '.join(row.missing)}; from {row.source}"
        variants = f" Variants: {', '.join(row.variants)}." if row.variants else ""
        table.add_row(Text(row.name, "bold"), here, Text(row.what + variants), Text(where))
    console.print(table)
