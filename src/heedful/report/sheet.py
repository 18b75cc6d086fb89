"""The evidence sheet: a page to file and a part of a model card, from a run's files alone.

Question, verdict, tests with intervals, data, model, limits, date, command; no machine's paths.
"""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from markupsafe import Markup

from heedful.report.html import asset, encodable, shareable, template
from heedful.report.notebook import colours
from heedful.report.page import facts_of, findings_of, policies_of, shown_tests, told_of
from heedful.runs.atomic import write_text
from heedful.runs.folder import RunFolder
from heedful.statistics.estimates import per_cent

QUESTION = "May this model’s attention be shown to someone as the reason for its decisions?"
LIMITS = (
    "The answer holds for these weights, this attention and texts like these; after a retraining, "
    "or on other texts, audit again.",
    "It says whether attention shows what decides, not whether the decisions are right or fair.",
)
PROVISIONAL = "The word is provisional: its borders are not calibrated for this kind of model."
NEAR = "The word is near a border: with other texts like these it could have been {near}."
NO_COMMAND = "not kept by the heedful that audited it"
OFFERED = 3
"""Explanations that the sheet names, best first."""


@dataclass(frozen=True)
class Sheets:
    """The two forms of a sheet on disk."""

    html: Path
    markdown: Path

    def lines(self) -> list[str]:
        """The same for the terminal."""
        return [f"The sheet: {self.html}", f"For a model card: {self.markdown}"]


def render_sheet(run_folder: Path | str, out: Path | str | None = None) -> Sheets:
    """The sheet of an audited run, written into its folder or another one."""
    run = RunFolder.open(run_folder)
    filled = _filled(run)
    folder = run.path if out is None else Path(out)
    made = Sheets(folder / "sheet.html", folder / "sheet.md")
    style = Markup(colours() + asset("sheet.css"))
    write_text(made.html, encodable(template("sheet.html").render(style=style, **filled)))
    write_text(made.markdown, encodable(_markdown(**filled)))
    return made


def _filled(run: RunFolder) -> dict[str, Any]:
    """What both forms say."""
    record, verdict = run.record, told_of(run)
    findings = findings_of(run)
    audited, configuration = record.get("audited", {}), record["configuration"]
    facts = facts_of(run, findings)
    trained = configuration.get("kind") == "train"
    facts["Weights"] = str((record.get("weights") if trained else configuration.get("model")) or "")
    facts["Fingerprint"] = str(record.get("corpus", ""))
    facts["heedful"] = str(record.get("versions", {}).get("heedful", ""))
    done = record.get("steps", {}).get("audit", {})
    facts["Date"] = str(done.get("at") or record.get("created", ""))[:10]
    tests = [
        shown | {"n": test.get("n")}
        for shown, test in zip(shown_tests(verdict), verdict["tests"], strict=True)
    ]
    limits = [*LIMITS]
    limits += [PROVISIONAL] if verdict["provisional"] else []
    limits += [NEAR.format(near=verdict["near"])] if verdict.get("near") else []
    return {
        "question": QUESTION,
        "verdict": verdict,
        "facts": {name: value for name, value in facts.items() if value},
        "tests": tests,
        "limits": [*limits, *policies_of(record)],
        "ranking": _ranking(verdict["ranking"]),
        "command": shareable_command(audited.get("command") or "") or NO_COMMAND,
    }


def _ranking(ranking: Mapping[str, Any] | None) -> str:
    """Which explanations do best, in a sentence."""
    if not ranking:
        return ""
    best = [place["method"] for place in ranking["places"] if place["place"]][:OFFERED]
    return f"{ranking['sentence']} Best first: {', '.join(best)}."


def shareable_command(command: str) -> str:
    """A command without the folders of somebody's machine.

    >>> shareable_command("heedful audit /home/ada/my-model --data '/home/ada/new reviews.csv'")
    "heedful audit my-model --data 'new reviews.csv'"
    """
    if not command.startswith("heedful "):
        return command
    words = []
    for word in shlex.split(command):
        prefix, colon, place = word.partition(":")
        is_named = colon and prefix in ("hf", "lm")
        words.append(f"{prefix}:{shareable(place)}" if is_named else str(shareable(word)))
    return shlex.join(words)


def _markdown(
    question: str,
    verdict: Mapping[str, Any],
    facts: Mapping[str, str],
    tests: Sequence[Mapping[str, Any]],
    limits: Sequence[str],
    ranking: str,
    command: str,
) -> str:
    """The sheet as a section of a model card."""
    word = str(verdict["word"]).upper() + (" (provisional)" if verdict["provisional"] else "")
    lines = ["## Attention as a reason", "", f"**{question}** {word}", ""]
    lines += [_escaped(verdict["sentence"]), ""]
    lines += [f"| test | result | {per_cent(0.95)} interval | n |", "|---|---|---|---|"]
    lines += [
        f"| {_escaped(test['sentence'])} | {test['told']} | {test['shown']} | {test['n']} |"
        for test in tests
    ]
    lines += ["", "| | |", "|---|---|"]
    lines += [f"| {name} | {_escaped(value)} |" for name, value in facts.items()]
    lines += ["", *([_escaped(ranking), ""] if ranking else [])]
    lines += [f"- {_escaped(line)}" for line in limits]
    return "\n".join([*lines, "", f"Made by: `{command}`", ""])


def _escaped(text: str) -> str:
    """Text that stays text in a table of Markdown."""
    marks = {"&": "&amp;", "<": "&lt;", ">": "&gt;", "|": "\\|", "\n": " ", "[": "\\[", "*": "\\*"}
    return "".join(marks.get(letter, letter) for letter in str(text))
