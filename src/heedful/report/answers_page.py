"""The page of answers and their sources: drawn from a run's files alone."""

from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from markupsafe import Markup

from heedful.audits.answer_measures import FOUND, NAME, ORACLE
from heedful.audits.finding import Finding
from heedful.errors import InputError, intact
from heedful.report.answers_console import COLUMNS, ordered, shown
from heedful.report.html import (
    asset,
    bundled,
    embedded,
    encodable,
    script_hash,
    shareable,
    template,
)
from heedful.runs.atomic import read_json, write_text
from heedful.runs.folder import RunFolder

CLASSES = {"attention as it is": "yes", "these heads, so weighted": "partly", "no": "no"}
MEANINGS = {
    FOUND: "Of what removing the most needed source costs, what removing the explanation's first "
    "source costs: 0 a random source, 1 the most needed one.",
    "drop at 1": "How much log p(answer) falls, in nats, when the explanation's first source (or "
    "3, or 5 of them) is removed from the prompt; for a random source its mean.",
    "linear datamodeling score": "Rank correlation of what an explanation says of the sources "
    "kept with log p(answer), over random removals it has not seen.",
    "average precision": "Whether sources whose removal makes the answer at most half as likely "
    "come before the others.",
    "share on evidence": "How much of it lies on sources known to hold the answer.",
}


def render_answers(run_folder: Path | str) -> Path:
    """The path of the run's page, written anew from what the folder holds."""
    run = RunFolder.open(run_folder)
    record = run.record
    files = [run.findings / f"{name}.json" for name in (NAME, "verdict", "instances")]
    if not all(file.is_file() for file in files):
        raise InputError(f"{run.path} holds no finished audit of answers; audit it again.")
    with intact(run.path):
        stored, verdict, kept = map(read_json, files)
        finding = Finding.from_json(stored)
        page = _filled(record, finding, verdict, kept["answers"])
    write_text(run.report, encodable(page))
    return run.report


def _filled(
    record: Mapping[str, Any], finding: Finding, verdict: Mapping[str, Any], answers: Any
) -> str:
    configuration, audited = record["configuration"], record["audited"]
    columns = [name for name in COLUMNS if finding.by_method(name)]
    shares = finding.by_method(FOUND)
    rows = [
        {
            "name": name,
            "is_named": name == verdict["method"],
            "bar": _bar(shares[name].value),
            "cells": [shown(finding.get(column, name)) for column in columns],
        }
        for name in ordered(finding)
    ]
    facts = {
        "Model": shareable(str(configuration["recipe"]).removeprefix("lm:")),
        "Questions": shareable(configuration["corpus"]),
        "Sources are": configuration["units"],
        "Answers": f"{audited['answers']:,} of {audited['of']:,} questions",
        "Seed": configuration["seed"],
        "Date": str(record.get("created", ""))[:10],
        "Commit": str(record.get("commit") or "")[:10],
    }
    script = bundled(("answers.js",))
    return template("answers.html").render(
        css=Markup(asset("page.css")),
        own=Markup(asset("answers.css")),
        verdict=verdict,
        css_class=CLASSES.get(verdict["word"], ""),
        facts=[(name, str(value)) for name, value in facts.items() if value != ""],
        question=finding.question,
        answer=finding.answer,
        columns=[COLUMNS[name] for name in columns],
        meanings=[{"name": COLUMNS[n], "said": MEANINGS[n]} for n in columns if n in MEANINGS],
        rows=rows,
        notes=finding.notes,
        shown=len(answers),
        first=verdict["method"] or "attention",
        embedded=Markup(embedded({"answers": answers, "oracle": ORACLE})),
        command=audited.get("command") or "heedful.audit_answers in Python",
        script=Markup(script),
        script_hash=script_hash(script),
    )


def _bar(share: float) -> str:
    """Its width in per cent of the best."""
    return "0" if math.isnan(share) else f"{100 * min(max(share, 0.0), 1.0):.1f}"
