"""The page that puts audited runs side by side: verdicts, the tests behind them, every measure."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from heedful.report.html import asset, shareable, template
from heedful.report.outcomes import outcome_of, share_of
from heedful.report.quality import right_of
from heedful.statistics.estimates import Estimate

ENDS = ("low", "high")


@dataclass(frozen=True)
class Column:
    """One run of the comparison."""

    run: str
    model: str
    """The recipe."""
    corpus: str
    fingerprint: str
    """Of the documents."""
    documents: int
    accuracy: Estimate | None
    """On the audited documents, where they have labels."""
    verdict: Mapping[str, Any]
    """`verdict.json`."""
    findings: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    """The audits' summaries by name."""


def render_comparison(columns: Sequence[Column], notes: Sequence[str] = ()) -> str:
    """The page as HTML that opens from disk: no script, no network, all text escaped."""
    from markupsafe import Markup

    return template("compare.html").render(
        css=Markup(asset("page.css")),
        columns=[_heading(one) for one in columns],
        notes=list(notes),
        tests=_tests(columns),
        scores=[{"name": name, "cells": cells} for name, cells in numbers(columns)[:1]],
        audits=_audits(columns),
    )


def _heading(one: Column) -> dict[str, Any]:
    word = str(one.verdict.get("word", "cannot tell"))
    return {
        "run": one.run,
        "model": shareable(one.model),
        "corpus": shareable(one.corpus),
        "documents": one.documents,
        "word": word,
        "css_class": word.replace(" ", "-"),
        "sentence": one.verdict.get("sentence", ""),
        "is_provisional": bool(one.verdict.get("provisional", True)),
    }


def _tests(columns: Sequence[Column]) -> list[dict[str, Any]]:
    """A row per test behind any verdict, in the order of appearance."""
    by_name = [{str(t["name"]): t for t in one.verdict.get("tests", ())} for one in columns]
    names = list(dict.fromkeys(name for tests in by_name for name in tests))
    return [
        {"name": name, "cells": [_test(tests.get(name)) for tests in by_name]} for name in names
    ]


def _test(test: Mapping[str, Any] | None) -> dict[str, str]:
    if test is None:
        missing = "not made in this run"
        return {"text": "–", "outcome": "unknown", "told": "unknown", "sentence": missing, "n": ""}
    outcome = outcome_of(test)
    return {
        "text": "–" if test.get("value") is None else share_of(test),
        "outcome": outcome.mark,
        "told": outcome.told,
        "sentence": str(test.get("sentence", "")),
        "n": f", n {test['n']:,}" if test.get("n") else "",
    }


def numbers(columns: Sequence[Column]) -> list[tuple[str, list[str]]]:
    """What is told of every run in numbers: accuracy, then the tests behind the verdict."""
    right = ["–" if one.accuracy is None else right_of(one.accuracy.to_json()) for one in columns]
    tests = [
        (str(row["name"]), [f"{c['text']}{c['n']}: {c['told']}" for c in row["cells"]])
        for row in _tests(columns)
    ]
    return [("accuracy on the documents that were read", right), *tests]


def _audits(columns: Sequence[Column]) -> list[dict[str, Any]]:
    """Every measure of every audit, one table per audit."""
    names = list(dict.fromkeys(name for one in columns for name in one.findings))
    found = []
    for name in names:
        tables = [
            {(m["measure"], m["method"]): m for m in one.findings[name]["measures"]}
            if name in one.findings
            else {}
            for one in columns
        ]
        keys = list(dict.fromkeys(key for table in tables for key in table))
        question = next(o.findings[name]["question"] for o in columns if name in o.findings)
        rows = [
            {
                "name": measure,
                "method": method,
                "cells": [_estimate(table.get((measure, method))) for table in tables],
            }
            for measure, method in keys
        ]
        found.append({"name": name, "question": question, "rows": rows})
    return found


def _estimate(stored: Mapping[str, Any] | None) -> str:
    if stored is None or stored.get("value") is None:
        return "–"
    low, high = (math.nan if stored.get(end) is None else float(stored[end]) for end in ENDS)
    return str(Estimate(float(stored["value"]), low, high, 0, "")).replace("-", "−")
