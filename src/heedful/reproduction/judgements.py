"""The verdicts of a study's claims on the results of a run: the objects of `claims.json`."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from pathlib import Path
from typing import Any, TypeVar

from heedful.reproduction.ledger import (
    EVERY,
    Judgement,
    Measured,
    NotMeasurable,
    judge,
    numbers_of,
    over_all,
    text_of,
)
from heedful.reproduction.results import Results, Skipped
from heedful.reproduction.study import Claim, Plan, Study
from heedful.reproduction.view import View, Views
from heedful.runs import commit, read_json

T = TypeVar("T")


def judged(claim: Claim, plan: Plan, results: Results) -> list[dict[str, Any]]:
    """The objects of one claim: each corpus, then all of them where the claim says so."""
    in_use = plan.only(claim.corpora).corpora
    found: dict[str, Judgement] = {}
    if claim.measure is not None:
        measure = claim.measure
        for corpus in in_use:
            found[corpus] = judge(_measured(measure, View(results, plan, corpus)), claim.side)
        for corpus in () if in_use else claim.corpora or ():
            absent = NotMeasurable(f"{corpus} is not part of this run; see --corpora and --scale")
            found[corpus] = judge(absent, claim.side)
    entries = [entry(claim, plan, corpus, one, [corpus]) for corpus, one in found.items()]
    if claim.measure_all is not None:
        lacking = {corpus: results.lacking(claim.needs(plan, corpus)) for corpus in in_use}
        at_hand = tuple(corpus for corpus, reasons in lacking.items() if not reasons)
        reasons = sorted({reason for found in lacking.values() for reason in found})
        absent = NotMeasurable("; ".join(["none of its corpora is at hand", *reasons]))
        views = Views(results, plan.only(at_hand))
        whole = judge(_measured(claim.measure_all, views) if at_hand else absent, claim.side)
        told = f"{whole.reason}; over the corpora at hand: {', '.join(at_hand) or 'none'}"
        entries.append(entry(claim, plan, EVERY, whole._replace(reason=told), at_hand))
    elif claim.over == "all":
        measured = [corpus for corpus, one in found.items() if one.word != "not measurable"]
        entries.append(entry(claim, plan, EVERY, over_all(found), measured))
    return entries


def _measured(measure: Callable[[T], Measured], looked_at: T) -> Measured:
    try:
        return measure(looked_at)
    except Skipped as skipped:
        return NotMeasurable(skipped.reason)


def entry(
    claim: Claim, plan: Plan, corpus: str, judgement: Judgement, measured: Iterable[str]
) -> dict[str, Any]:
    """One object of `claims.json`; a smoke verdict says in its reason that it is smoke.

    `measured` are the corpora that the statistic was taken on.
    """
    smoke = "smoke scale, not evidence about the paper: " if plan.scale == "smoke" else ""
    return {
        "id": claim.id,
        "claim": claim.sentence,
        "where": claim.where,
        "corpus": corpus,
        "stand_in_for": None if corpus == EVERY else plan.source(corpus).stand_in_for,
        "statistic": claim.statistic,
        "side": text_of(claim.side),
        "paper": claim.paper_value(corpus),
        **numbers_of(judgement.estimate),
        "seeds": claim.trainings(plan, measured),
        "scale": plan.scale,
        "commit": commit(),
        "verdict": judgement.word,
        "reason": smoke + judgement.reason,
        "parts": list(judgement.parts),
    }


def merged(
    path: Path,
    entries: list[dict[str, Any]],
    study: Study,
    keep: bool,
    waiting: Collection[str] = (),
) -> list[dict[str, Any]]:
    """The new objects among the old ones, in the study's order.

    Old ones stay when only a part was asked for, and where they were measured and the new one waits
    for results that are not here: `waiting` are the reasons of those.
    """
    old = {_mark(one): one for one in read_json(path)} if path.is_file() else {}
    new = {_mark(one): one for one in entries}
    kept = set()
    for mark, one in new.items():
        waits = one["verdict"] == "not measurable" and any(why in one["reason"] for why in waiting)
        if waits and mark in old and old[mark]["verdict"] != "not measurable":
            new[mark] = old[mark]
            kept.add(mark[0])
    # What was decided over all corpora stands as long as one of them keeps its old verdict.
    new |= {mark: one for mark, one in old.items() if mark[0] in kept and mark[1] == EVERY}
    whole = (old if keep else {}) | new
    order = {claim.id: number for number, claim in enumerate(study.claims)}
    places = [source.name for source in study.sources] + [EVERY]
    known = [one for one in whole.values() if one["id"] in order and one["corpus"] in places]
    return sorted(known, key=lambda one: (order[one["id"]], places.index(one["corpus"])))


def _mark(one: Mapping[str, Any]) -> tuple[str, str]:
    return one["id"], one["corpus"]
