"""What people see in a terminal: the verdict, coloured words, the list of corpora."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from heedful.errors import visible
from heedful.report.outcomes import outcome_of, share_of
from heedful.statistics.estimates import per_cent

if TYPE_CHECKING:
    from rich.console import Console

    from heedful.corpora.catalogue import Availability

OUTCOMES = {
    "supports": ("✓", "green"),
    "mixed": ("~", "yellow"),
    "contradicts": ("✗", "red"),
    "unknown": ("?", "bright_black"),
}
STANDINGS = {
    "better than random": ("▲", "green"),
    "better in part": ("△", "yellow"),
    "as random": ("·", "bright_black"),
    "worse than random": ("▼", "red"),
    "unknown": ("?", "bright_black"),
}
"""Other marks than those of the tests: they say nothing of what may be shown."""
TOP_WORDS = 8
"""Words that a method names where it cannot shade them."""
JOINED, UNTORN = "\N{NO-BREAK SPACE}", "\ue000"
"""A space at which no line ends, and what stands for it while lines are broken."""
INTERVAL, WITHIN = re.compile(r"(\[-?[\d.,]+,) (?=-?[\d.])"), "\ue001"
"""The first end of an interval, and what stands for the space behind it meanwhile."""
WORDS = {"yes": "green", "partly": "yellow", "no": "red", "cannot tell": "bright_black"}


def print_verdict(
    verdict: Mapping[str, Any],
    documents: int,
    report: str,
    accuracy: str = "",
    outside: str = "",
) -> None:
    """Prints the verdict, the tests behind it, the advice and where the page is."""
    from rich.text import Text

    console = terminal()
    word = str(verdict["word"])
    head = Text("May attention be shown as the reason?  ")
    head.append(word.upper(), f"bold {WORDS[word]}")
    if verdict["provisional"]:
        head.append("  (provisional)", "dim")
    console.print(head)
    console.print(Text(str(verdict["sentence"])))
    if accuracy:
        console.print(Text(f"Accuracy: {accuracy}."))
    if outside:
        console.print(Text(outside))
    asked = max((test["n"] for test in verdict["tests"]), default=documents)
    some = f"{asked:,} of {documents:,}" if 0 < asked < documents else f"{documents:,}"
    console.print(Text(f"Tests on {some} documents:", "dim"))
    for test in verdict["tests"]:
        outcome = outcome_of(test)
        mark, colour = OUTCOMES[outcome.mark]
        line = Text(f" {mark} ", f"bold {colour}")
        if test["outcome"] == "unknown":
            line.append(f"{test['name']}: ")
        line.append(str(test["sentence"]))
        if interval := share_of(test).partition("[")[2]:
            line.append(f"  [{interval}", "dim")
        if not outcome.is_settled:
            line.append(f"  not settled: {outcome.told}", "dim")
        console.print(line)
    for advice in verdict["advice"]:
        # A command must stay in one line to be pasted.
        console.print(Text(f" → {advice}"), soft_wrap="`heedful" in advice)
    if verdict.get("ranking"):
        _print_ranking(console, verdict["ranking"], verdict["advice"])
    console.print(Text("The page: ").append(report, "bold"), soft_wrap=True)


def terminal() -> Console:
    """A terminal on which text is shown as it is, whatever control characters it holds."""
    from rich.console import Console
    from rich.text import Text

    class Plainly(Console):
        def print(self, *objects: Any, **named: Any) -> None:
            for one in objects:
                if isinstance(one, Text):
                    plain = visible(one.plain).replace(JOINED, UNTORN)
                    one.plain = INTERVAL.sub(rf"\1{WITHIN}", plain)
            super().print(*objects, **named)

        def _render_buffer(self, buffer: Any) -> str:
            # rich breaks lines at every space, and so would tear numbers from signs, and intervals.
            return super()._render_buffer(buffer).replace(UNTORN, JOINED).replace(WITHIN, " ")

    return Plainly(highlight=False)


def _print_ranking(console: Console, ranking: Mapping[str, Any], said: Sequence[str]) -> None:
    """Prints every explanation with its place, best first."""
    from rich.table import Table
    from rich.text import Text

    console.print(Text(str(ranking["sentence"])))
    table = Table(box=None, pad_edge=False)
    for column in ("", "", "explanation", "above random", "faithfulness"):
        table.add_column(column, no_wrap=True)
    for place in ranking["places"]:
        mark, colour = STANDINGS[place["standing"]]
        beyond = place["beyond_random"]
        table.add_row(
            Text(f"{place['place'] or '':>2}", "dim"),
            Text("" if place["method"] == "random" else mark, f"bold {colour}"),
            Text(visible(str(place["method"])), "bold" if place["method"] == "attention" else ""),
            _interval(beyond) if beyond else "",
            Text(_interval(place["faithfulness"]), "dim"),
        )
    console.print(table)
    legend = ", ".join(f"{mark} {name}" for name, (mark, _) in STANDINGS.items())
    console.print(Text(legend, "dim"))
    if ranking["recommendation"] not in said:
        console.print(Text(f" → {ranking['recommendation']}"))


def _interval(estimate: Mapping[str, Any]) -> str:
    """A stored estimate as `0.420 [0.380, 0.460]`."""
    value, low, high = (estimate[end] for end in ("value", "low", "high"))
    if value is None or low is None or high is None:
        return "–" if value is None else f"{value:6.3f}"
    # Adding 0 turns -0.0 into 0.0.
    value, low, high = (round(end, 3) + 0.0 for end in (value, low, high))
    return f"{value:6.3f} [{low:.3f}, {high:.3f}]"


def print_explanation(
    explanation: Mapping[str, Any], alike: Mapping[str, str] | None = None
) -> None:
    """Prints the text once for each method, words shaded by their importance.

    Where there are no colours (a pipe, NO_COLOR) each method names its top words with their values.
    `alike` are methods that for this model are another one.
    """
    from rich.text import Text

    from heedful.importance import METHODS

    unsigned = {name for name, method in METHODS.items() if not method.is_signed}
    console = terminal()
    is_plain = console.no_color or console.color_system is None
    decided = explanation["decision"]
    said = ", ".join(f"{name} {p:.3f}" for name, p in explanation["probabilities"].items())
    console.print(Text("Decision: ").append(str(decided), "bold").append(f"  ({said})"))
    target = explanation.get("target") or decided
    if target != decided:
        console.print(Text("Reasons asked for: ").append(str(target), "bold"))
    unknown, units = set(explanation.get("unknown", ())), _as_written(explanation)
    width = max(map(len, explanation["importance"]), default=0)
    for method, values in explanation["importance"].items():
        line = Text(f"{method:>{width}}  ")
        shown = list(zip(units, map(str, explanation["units"]), values, strict=True))
        if is_plain:
            best = sorted(shown, key=lambda one: -abs(one[2]))[:TOP_WORDS]
            named = (
                (f"[{word}]" if unit in unknown else word, value) for word, unit, value in best
            )
            line.append(", ".join(f"{word} {value:.3g}" for word, value in named))
        else:
            top = max((abs(value) for value in values), default=0.0) or 1.0
            for word, unit, value in shown:
                shade = _shade(value / top, method in unsigned)
                style = f"{shade} underline".strip() if unit in unknown else shade
                line.append(word, style).append(" ")
        console.print(line, soft_wrap=is_plain)
    signed = [method for method in explanation["importance"] if method not in unsigned]
    if signed:
        towards = ("above 0", "below 0") if is_plain else ("green", "red")
        wanted = "the decision" if target == decided else str(target)
        legend = f"{towards[0]}: speaks for {wanted} · {towards[1]}: against it"
        console.print(Text(f"{legend} ({', '.join(signed)})", "dim"), soft_wrap=is_plain)
    if explanation.get("log_odds"):
        near = round(explanation["probabilities"][target])
        told = f"in log-odds, since the probability is next to {near}: "
        console.print(Text(told + ", ".join(explanation["log_odds"]), "dim"), soft_wrap=is_plain)
    for other, name in (alike or {}).items():
        if name in explanation["importance"]:
            told = f"{name} is {other} too: all positions of this model decide alike"
            console.print(Text(told, "dim"), soft_wrap=is_plain)
    off = explanation.get("missing")
    if off is not None:
        told = f"integrated adds up to the rise in probability but for {off:.1g}"
        console.print(Text(told, "dim"), soft_wrap=is_plain)
    outside = explanation.get("outside")
    if outside:
        told = f"{per_cent(outside)} of the audited attention lies on special tokens, which are "
        told += "no words; `attention` is the rest, made to sum to one"
        console.print(Text(told, "dim"), soft_wrap=is_plain)
    if explanation.get("words"):
        console.print(Text(f"per word: {explanation['words']}", "dim"), soft_wrap=is_plain)
    if unknown:
        mark = "in brackets" if is_plain else "underlined"
        told = f"not in the model's vocabulary, read as one unknown word ({mark}): "
        told += ", ".join(explanation["unknown"])
        console.print(Text(told, "dim"), soft_wrap=is_plain)


def _as_written(explanation: Mapping[str, Any]) -> list[str]:
    """The units as they stand in the text, which a model of heedful's own reads in lower case."""
    text, spans = explanation.get("text"), explanation.get("spans")
    if not text or not spans:
        return list(map(str, explanation["units"]))
    return [" ".join(text[start:end].split()) for start, end in spans]


def _shade(strength: float, is_unsigned: bool) -> str:
    """A background whose depth is the strength: green or red by the sign, blue without one."""
    level = int(min(abs(strength), 1.0) * 150)
    if level < 8:
        return ""
    dark, light = 30, 30 + level
    if is_unsigned:
        return f"bold white on rgb({dark},{dark},{light})"
    red, green = (dark, light) if strength > 0 else (light, dark)
    return f"bold white on rgb({red},{green},{dark})"


def print_corpora(rows: Sequence[Availability]) -> None:
    """Prints which corpora are present, and for the rest which files to put where."""
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    console = Console(highlight=False)
    table = Table(box=None, pad_edge=False)
    for column in ("corpus", "here", "what, and where to get it"):
        table.add_column(column, overflow="fold")
    for row in rows:
        here = Text("yes", "green") if row.is_present else Text("no", "red")
        told = [row.what]
        if row.variants:
            told.append(f"Variants: {', '.join(row.variants)}")
        if not row.is_present:
            told.append(f"Put {', '.join(row.missing)}; from {row.source}")
        table.add_row(Text(row.name, "bold"), here, Text(". ".join(told)))
    console.print(table)
