"""The page of a reproduced study: ours beside the paper's, and a verdict on every claim."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any

import pandas as pd

from heedful.report.html import asset, template
from heedful.reproduction.readable_tables import Readable, readable

VERDICTS = ("confirmed", "refuted", "undecided", "not measurable")
NAMED = 3
"""Parts that do not hold are named up to so many; all stand below."""


@dataclass(frozen=True)
class ShownArtifact:
    """An artifact as the page shows it."""

    record: Mapping[str, Any]
    """Its JSON file."""
    table: pd.DataFrame | None
    """What the page shows as a table, if anything."""
    svg: str
    """The picture, an SVG file of our own making; empty when there is none."""


@dataclass(frozen=True)
class StudyPage:
    """Everything on the page, as data."""

    title: str
    reference: str
    facts: Mapping[str, str]
    """Command, commit, device, time and the like, by name."""
    corpora: Sequence[Mapping[str, str]]
    """name, title, stand_in_for, state."""
    symbols: Mapping[str, str]
    """What the paper's symbols mean; empty where nothing needs to be explained."""
    deviations: Sequence[str]
    artifacts: Sequence[ShownArtifact]
    claims: Sequence[Mapping[str, Any]]
    """The objects of `claims.json`."""
    skipped: Mapping[str, str]
    """Reasons by step."""
    is_smoke: bool


def render_study(page: StudyPage) -> str:
    """The page as HTML that opens from disk: no script, no network, all text escaped."""
    from markupsafe import Markup

    from heedful.report.drawing import themed

    counts = Counter(claim["verdict"] for claim in page.claims)
    return template("study.html").render(
        css=Markup(asset("page.css")),
        page=page,
        counts=[(word, counts[word]) for word in VERDICTS if counts[word]],
        claims=_folded(page.claims),
        skipped=_by_reason(page.skipped),
        artifacts=[
            {
                "record": one.record,
                "anchor": f"item-{one.record['id']}",
                "svg": Markup(themed(one.svg)),
                "table": _table(one),
            }
            for one in page.artifacts
        ],
    )


def _table(one: ShownArtifact) -> Readable | None:
    return None if one.table is None or not len(one.table.columns) else readable(one.table)


def _by_reason(skipped: Mapping[str, str]) -> dict[str, list[str]]:
    """The steps that share a reason: many wait for the same data."""
    found: dict[str, list[str]] = {}
    for step, reason in skipped.items():
        found.setdefault(reason, []).append(step)
    return found


def _folded(claims: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """The rows of the claims table; corpora on which a claim cannot be measured share its last one.

    A claim that has nothing but such corpora shows the first of them in full. The first row of a
    claim `says` it, with the paper's value where that is the same on every corpus.
    """
    rows = []
    for _, group in groupby(claims, key=lambda claim: claim["id"]):
        own = [_claim(claim) for claim in group]
        papers = {one["paper"] for one in own}
        lacking = [one for one in own if _is_lacking(one)]
        shown = [one for one in own if not _is_lacking(one)] or [lacking.pop(0)]
        if lacking:
            shown.append(lacking[0] | {"lacking": lacking})
        shown[0]["says"] = True
        rows += [one | {"has_own_paper": len(papers) > 1} for one in shown]
    return rows


def _is_lacking(claim: Mapping[str, Any]) -> bool:
    """Whether data of one corpus is missing; what is said of all corpora is never folded."""
    return bool(claim["verdict"] == "not measurable" and claim["corpus"] != "all")


def _claim(claim: Mapping[str, Any]) -> dict[str, Any]:
    """A row of the claims table, with its number and its ends as text."""
    ends = claim["interval"]
    interval = "" if ends is None else f"[{_short(ends[0])}, {_short(ends[1])}]"
    ours = "–" if claim["ours"] is None else _short(claim["ours"])
    word = claim["verdict"].replace(" ", "-")
    texts = {"ours_text": ours, "interval_text": interval, "css_class": word}
    return {**claim, **texts, "lacking": [], "says": False, "held": _held(claim)}


def _held(claim: Mapping[str, Any]) -> str:
    """How many parts of a claim hold, and which do not; nothing to say where it has no parts."""
    parts = [part for part in claim.get("parts", ()) if "reason" in part]
    if not parts:
        return ""
    failing = [part["part"] for part in parts if part["verdict"] != "confirmed"]
    counted = f"{len(parts) - len(failing)} of {len(parts)} parts hold"
    more = [f"{len(failing) - NAMED} more"] if len(failing) > NAMED else []
    return "; not ".join([counted, *([", ".join([*failing[:NAMED], *more])] if failing else [])])


def _short(number: float) -> str:
    return f"{number:.3g}"
