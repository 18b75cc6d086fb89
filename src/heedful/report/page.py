"""The page: `report.html` and `figures/` from a run's files alone, without its model."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from markupsafe import Markup, escape

from heedful.audits.finding import Finding
from heedful.errors import InputError, one_line
from heedful.report.charts import draw, draw_training
from heedful.report.drawing import standalone, worded
from heedful.report.html import (
    asset,
    bundled,
    embedded,
    encodable,
    script_hash,
    shareable,
    template,
)
from heedful.report.outcomes import outcome_of, share_of
from heedful.report.quality import in_words, quality_of
from heedful.report.scales import scales_of
from heedful.report.shown_documents import (
    MOST_BYTES,
    OWN_BYTES,
    fitting,
    read_documents,
)
from heedful.report.watch_charts import TITLE, draw_watched
from heedful.runs.atomic import read_json, write_text
from heedful.runs.folder import RunFolder
from heedful.runs.watched import FILE
from heedful.statistics.estimates import per_cent

SCRIPTS = ("decision.js", "words.js", "flow.js", "heads.js", "panel.js", "list.js", "start.js")
SKIPPED = 20
"""Files that could not be read of which the page says why."""
ANSWERS = "answers"
"""The kind of a run that audited answers, which has a page of its own."""
WORDS = ("yes", "partly", "no", "cannot tell")
OPTION, UNBROKEN = re.compile(r"--[\w-]+"), r'<span class="option">\g<0></span>'
INTERVAL, HYPHEN = re.compile(r"(\[-?[\d.,]+,) (?=-?[\d.])"), re.compile(r"(?<![\w.-])-(?=\d)")
"""The first end of an interval, and a minus that was typed as a hyphen."""
_MISSING = {"value": None, "low": None, "high": None}
_NO_VERDICT = {"word": "cannot tell", "sentence": "This run has no verdict yet: audit it first."}


def render(run_folder: Path | str) -> Path:
    """The path of the run's page, written anew with its figures from what the folder holds."""
    run = RunFolder.open(run_folder)
    record = run.record
    if record["configuration"].get("kind") == ANSWERS:
        from heedful.report.answers_page import render_answers

        return render_answers(run.path)
    titles = _titles(record)
    findings = findings_of(run)
    charts = {
        name: _both(partial(_chart, run.findings / f"{name}.json", f))
        for name, f in findings.items()
    }
    training = _both(partial(draw_training, run.metrics))
    watched = _both(partial(draw_watched, run.path / FILE))
    verdict = told_of(run)
    shown = read_documents(run.findings / "instances.json")
    shown |= _by_rank(shown["methods"], verdict["ranking"])
    facts = _facts(record, findings, shown)
    script = bundled(SCRIPTS)
    sections = [_section(f, charts[name], titles) for name, f in findings.items()]
    room = MOST_BYTES - sum(len(str(one).encode("utf-8", "replace")) for one in sections)
    shown["instances"], left_out = fitting(shown["instances"], room - OWN_BYTES)
    page = _template().render(
        verdict=verdict,
        tests=shown_tests(verdict, findings),
        facts=list(facts.items()),
        policies=[*policies_of(record), *left_out],
        ranking=_ranking(verdict),
        model=facts.get("Model", "a model"),
        findings=sections,
        training=training.shown,
        watched=watched.shown,
        watched_title=TITLE,
        instances=Markup(embedded(shown)) if shown["instances"] else "",
        shown=len(shown["instances"]),
        documents=shown["documents"],
        explained=shown.get("explained", shown["documents"]),
        linear=shown["linear"],
        audited=shown["audited"],
        has_evidence=any(entry.get("evidence") for entry in shown["instances"]),
        version=record.get("versions", {}).get("heedful", ""),
        date=str(record.get("created", ""))[:10],
        style=Markup(asset("page.css")),
        script=Markup(script),
        script_hash=script_hash(script),
    )
    for name, picture in (charts | {"training": training, "watched": watched}).items():
        if picture.wide:
            write_text(run.figures / f"{name}.svg", encodable(standalone(picture.wide)))
    write_text(run.report, encodable(page))
    return run.report


def anchor(audit: str) -> str:
    """The id of a test's section."""
    return "test-" + re.sub(r"[^a-z0-9]+", "-", audit.lower()).strip("-")


def findings_of(run: RunFolder) -> dict[str, Finding]:
    """What a run's audits found, in the order a reader wants."""
    return _findings(run.findings, list(_titles(run.record)))


def facts_of(run: RunFolder, findings: Mapping[str, Finding]) -> dict[str, str]:
    """What was audited, by name, without a path of somebody's machine."""
    return _facts(run.record, findings, read_documents(run.findings / "instances.json"))


def _titles(record: Mapping[str, Any]) -> dict[str, str]:
    """The titles of the audits in the order a reader wants, as the run keeps them."""
    kept: dict[str, str] | None = record.get("audited", {}).get("titles")
    if kept is None:  # an audit from before runs kept them
        from heedful.audits.registry import titles

        kept = titles()
    return kept


def _findings(folder: Path, order: Sequence[str]) -> dict[str, Finding]:
    """What the folder holds, in that order; others follow by name."""
    found = {}
    for path in sorted(folder.glob("*.json")):
        if path.stem in ("verdict", "instances") or path.name.endswith(".step.json"):
            continue
        stored = read_json(path)
        if path.stem not in order and "audit" not in stored:  # a file of the user's own
            continue
        try:
            found[path.stem] = Finding.from_json(stored)
        except (KeyError, TypeError, ValueError) as error:
            raise InputError(
                f"{path} is not a finding this heedful reads ({error!r}); audit the run again."
            ) from error
    places = {name: place for place, name in enumerate(order)}
    return dict(sorted(found.items(), key=lambda item: (places.get(item[0], len(order)), item[0])))


class _Picture(NamedTuple):
    """A chart drawn twice, so that its letters can be read: for a page, and for a phone."""

    wide: str
    narrow: str

    @property
    def shown(self) -> Markup:
        """Both as elements, of which the page shows the one that fits."""
        parts = zip(("wide", "narrow"), self, strict=True)
        return Markup("".join(f'<div class="{size}">{svg}</div>' for size, svg in parts if svg))


def _both(drawn: Callable[..., str]) -> _Picture:
    return _Picture(drawn(), drawn(is_narrow=True))


def _chart(path: Path, finding: Finding, is_narrow: bool = False) -> str:
    try:
        return draw(finding, is_narrow)
    except (KeyError, IndexError, TypeError, ValueError) as error:
        raise InputError(
            f"{path} holds a chart that this heedful does not draw ({error!r}); "
            "audit the run again."
        ) from error


def told_of(run: RunFolder) -> dict[str, Any]:
    """A run's verdict, with all that a page asks for."""
    path = run.findings / "verdict.json"
    stored = read_json(path) if path.is_file() else _NO_VERDICT
    if not isinstance(stored, dict) or stored.get("word") not in WORDS:
        raise InputError(f"{path} holds no verdict ({', '.join(WORDS)}); audit the run again.")
    empty = {"sentence": "", "provisional": False, "tests": [], "advice": [], "calibration": None}
    # A page is handed on: commands are as typed beside the run, without the folders above it.
    above = f"{path.resolve().parents[2]}/"
    stored = stored | {"advice": [said.replace(above, "") for said in stored.get("advice", ())]}
    return empty | {"ranking": None, "rule": ()} | stored


def _facts(
    record: Mapping[str, Any], findings: Mapping[str, Finding], shown: Mapping[str, Any]
) -> dict[str, str]:
    """What was audited, in a line: only what the run's files say."""
    configuration, audited = record["configuration"], record.get("audited", {})
    documents, of = audited.get("documents", shown["documents"]), audited.get("of")
    audited_of = f"{documents:,} of {of:,}" if of and of > documents else f"{documents:,}"
    asked = audited.get("asked") or {}
    known = {
        "Model": shareable(configuration.get("recipe") or configuration.get("model")),
        "Corpus": shareable(audited.get("corpus") or configuration.get("corpus")),
        "Attention": shown["audited"]["rows"],
        "Prompt": asked.get("prompt", "").replace("\n", " ↵ "),
        "It chooses among": ", ".join(asked.get("labels", {}).values()),
        "Prior corrected by": asked.get("corrected by"),
        "Documents": audited_of if documents else None,
        "Accuracy": in_words(quality_of(record, findings)),
        "Seed": configuration.get("seed"),
        "Date": str(record.get("created", ""))[:10],
        "Commit": str(record.get("commit") or "")[:10],
    }
    return {n: str(v) for n, v in known.items() if isinstance(v, str | int) and v != ""}


def _by_rank(
    methods: Sequence[Mapping[str, str]], ranking: Mapping[str, Any] | None
) -> dict[str, Any]:
    """Methods for texts: the recommended one, attention, the rest by rank, random last."""
    recommended = (ranking or {}).get("recommended", "")
    places = {place["method"]: place["place"] for place in (ranking or {}).get("places", ())}

    def key(method: Mapping[str, str]) -> tuple[bool, bool, bool, int]:
        name = method["name"]
        return name == "random", name != recommended, name != "attention", places.get(name, 0)

    return {"methods": sorted(methods, key=key), "recommended": recommended}


def policies_of(record: Mapping[str, Any]) -> list[str]:
    """What was done to documents on the way, with counts."""
    audited = record.get("audited", {})
    notes = audited.get("notes") or record.get("notes") or {}
    lines = [f"{name}: {count:,}" for name, count in notes.items()]
    documents, of = audited.get("documents", 0), audited.get("of", 0)
    if of > documents:
        drawn = f"{documents:,} of {of:,} {audited.get('split', '')} documents were audited"
        lines.insert(0, f"{drawn}, drawn by the seed; `--documents 0` audits all.")
    if said := audited.get("cost", {}).get("sentence"):
        lines.append(said.removesuffix("."))
    if (read := audited.get("cost", {}).get("documents", 0)) and documents > read:
        lines.append(
            f"The {read:,} documents were drawn by key; measures that add up are over all "
            f"{documents:,}, each of which was read besides"
        )
    skipped = audited.get("skipped shards") or {}
    if skipped:
        files = len(skipped) + audited.get("shards", 0)
        lines.append(f"{len(skipped):,} of {files:,} files were skipped")
        lines += [" ".join(map(shareable, why.split())) for why in [*skipped.values()][:SKIPPED]]
    if audited.get("words"):
        lines.append(f"Importance is given per word, not per piece: {audited['words']}.")
    return lines


def shown_tests(
    verdict: Mapping[str, Any], findings: Mapping[str, Finding] | None = None
) -> list[dict[str, Any]]:
    """The tests behind a verdict, in its words and with its numbers as they are shown."""
    return [_test(test, findings or {}) for test in verdict["tests"]]


def _test(test: Mapping[str, Any], findings: Mapping[str, Finding]) -> dict[str, Any]:
    """One line of the tests behind the verdict, with where its numbers lie on the strip."""
    outcome = outcome_of(test)
    numbers: dict[str, Any] = {n: test.get(n) for n in ("value", "low", "high", "threshold")}
    numbers["contradicts"] = test.get("contradicts")
    return {
        "name": test.get("name", ""),
        "sentence": test.get("sentence", ""),
        "outcome": outcome.mark,
        "told": outcome.told,
        "anchor": anchor(test["audit"]) if test.get("audit") in findings else None,
        "strip": _strip(**numbers) if numbers["value"] is not None else None,
        "shown": share_of(test),
        "border": _border(numbers["threshold"], numbers["contradicts"]),
    }


def _border(supports: float | None, contradicts: float | None) -> str:
    """Where a test supports and where it contradicts, for who reads its number."""
    if supports is None:
        return ""
    from_on = f"supports from {_per_cent(supports)} on"
    return (
        from_on if contradicts is None else f"{from_on}, contradicts up to {_per_cent(contradicts)}"
    )


def _ranking(verdict: Mapping[str, Any]) -> dict[str, Any] | None:
    """Every explanation as a line of the table; the columns are those that some of them have."""
    ranking = verdict["ranking"]
    if not ranking:
        return None
    places = ranking["places"]
    columns = list(dict.fromkeys(name for place in places for name in place["beside"]))
    rows = [
        {
            "place": place["place"] or "",
            "method": place["method"],
            "is_recommended": place["method"] == ranking.get("recommended"),
            "standing": "" if place["method"] == "random" else place["standing"],
            "cells": [
                _shown(**place["beyond_random"]) if place["beyond_random"] else "",
                _shown(**place["faithfulness"]),
                *(_shown(**place["beside"].get(name, _MISSING)) for name in columns),
            ],
        }
        for place in places
    ]
    said = ranking["recommendation"]
    return {
        "sentence": ranking["sentence"],
        "recommendation": "" if said in verdict["advice"] else said,
        "columns": ["above random", "faithfulness", *columns],
        "rows": rows,
    }


def _per_cent(share: float) -> str:
    return per_cent(share).replace("-", "−")


def _shown(value: float | None, low: float | None, high: float | None, **_: Any) -> str:
    if value is None:
        return "not measured"
    if low is None or high is None:
        return _two_digits(value)
    return f"{_two_digits(value)} [{_two_digits(low)}, {_two_digits(high)}]"


def _two_digits(value: float) -> str:
    return f"{round(value, 2) + 0.0:.2f}".replace("-", "−")  # adding 0 turns -0.0 into 0.0


def _strip(
    value: float,
    low: float | None,
    high: float | None,
    threshold: float | None,
    contradicts: float | None,
) -> dict[str, Any]:
    """Places in per cent on an axis from 0 to 1, longer where a number lies outside."""
    low, high = value if low is None else low, value if high is None else high
    borders = [border for border in dict.fromkeys((contradicts, threshold)) if border is not None]
    numbers = [value, low, high, *borders]
    start, end = min(0.0, *numbers), max(1.0, *numbers)

    def place(number: float) -> float:
        return round(100 * (number - start) / (end - start), 2)

    words = f"{value:.3f}, {per_cent(0.95)} interval {low:.3f} to {high:.3f}"
    words += "".join(f", border {border:g}" for border in borders)
    return {
        "value": place(value),
        "low": place(low),
        "width": round(place(high) - place(low), 2),
        "borders": [place(border) for border in borders],
        "words": words,
    }


def _section(finding: Finding, chart: _Picture, titles: Mapping[str, str]) -> dict[str, Any]:
    rows = []
    for measure in finding.measures:
        value, _, ends = str(measure.estimate).partition(" [")
        low = measure.estimate.low
        rows.append(
            {
                "name": worded(measure.name),
                "method": worded(measure.method),
                "value": _prose(value),
                "interval": _prose(ends.rstrip("]")) if math.isfinite(low) else "–",
                "n": measure.estimate.n,
                "undefined": measure.estimate.undefined or "",
            }
        )
    return {
        "anchor": anchor(finding.audit),
        "title": titles.get(finding.audit, finding.audit.replace("-", " ").capitalize()),
        "question": finding.question,
        "answer": finding.answer,
        "chart": chart.shown,
        "caption": "",
        "scales": scales_of(finding),
        "measures": rows,
        "notes": finding.notes,
    }


def _template() -> Any:
    filters: dict[str, Callable[..., Any]] = {"code": _with_code, "estimate": _with_interval_below}
    filters["plain"] = lambda x: f"{x:.3g}" if isinstance(x, float) else x
    return template("page.html.j2", filters, lstrip=False)


def _with_code(text: str) -> Markup:
    """The text, escaped: what stands between backticks is code, and no line ends inside an interval
    or an option; numbers below 0 have a minus."""
    prose_and_code = re.split(r"`([^`]+)`", str(escape(one_line(text))))
    found = [
        f"<code>{OPTION.sub(UNBROKEN, part)}</code>" if place % 2 else _prose(part)
        for place, part in enumerate(prose_and_code)
    ]
    return Markup("".join(found))


def _prose(text: str) -> str:
    return HYPHEN.sub("\N{MINUS SIGN}", INTERVAL.sub("\\1\N{NO-BREAK SPACE}", text))


def _with_interval_below(text: str) -> Markup:
    """An estimate whose interval stands below it, so that a wide table fits."""
    value, _, interval = one_line(text).partition(" [")
    below = Markup("<small>[{}</small>").format(interval) if interval else ""
    return Markup("{}{}").format(value, below)
