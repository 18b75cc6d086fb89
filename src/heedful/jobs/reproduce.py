"""The reproduction engine: steps, then artifacts, then claims, then the page.

`<out>/<study>/` gets one CSV, JSON and SVG per artifact, `claims.json`, `index.html` and the steps'
results under `steps/`. All of it is made again from the steps alone.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from heedful.jobs.artifacts import load_artifacts, write_artifact
from heedful.jobs.ledger import (
    EVERY,
    Judgement,
    Measured,
    NotMeasurable,
    entry,
    judge,
    over_all,
)
from heedful.jobs.results import Results, Skipped, Step
from heedful.jobs.study import Claim, Plan, Study
from heedful.runs import RunFolder, commit, locked, now, read_json, remove_leftovers, write_json
from heedful.runs.atomic import write_text


@dataclass(frozen=True)
class StudyResult:
    """What a reproduction of one study left behind."""

    study: str
    scale: str
    folder: Path
    index: Path | None
    """The page; none when figures were not asked for."""
    artifacts: tuple[Mapping[str, Any], ...]
    """The JSON of every artifact in the folder."""
    claims: tuple[Mapping[str, Any], ...]
    """The objects of `claims.json`."""
    skipped: Mapping[str, str]
    """Reasons by step."""
    seconds: float

    def to_json(self) -> dict[str, Any]:
        """The result as plain data."""
        return {
            "study": self.study,
            "scale": self.scale,
            "folder": str(self.folder),
            "index": None if self.index is None else str(self.index),
            "artifacts": [dict(record) for record in self.artifacts],
            "claims": [dict(claim) for claim in self.claims],
            "skipped": dict(self.skipped),
            "seconds": round(self.seconds, 1),
        }

    def lines(self) -> list[str]:
        """One line per claim for the terminal: verdict, id, corpus and why."""
        smoke = " (smoke)" if self.scale == "smoke" else ""
        return [
            f"{claim['verdict'] + smoke:24} {claim['id']} on {claim['corpus']}: {claim['reason']}"
            for claim in self.claims
        ]


@dataclass(frozen=True)
class Reproduced:
    """What `heedful reproduce` gives: one result per study."""

    studies: tuple[StudyResult, ...]

    def to_json(self) -> dict[str, Any]:
        """The results as plain data."""
        return {"studies": [study.to_json() for study in self.studies]}

    def lines(self) -> list[str]:
        """All studies for the terminal."""
        found = []
        for study in self.studies:
            found += [f"{study.study} ({study.scale} scale): {study.index or study.folder}"]
            found += [f"  {line}" for line in study.lines()]
        return found


def reproduce_study(
    study: Study,
    *,
    only: Iterable[str] = (),
    scale: str = "smoke",
    corpora: Iterable[str] = (),
    seeds: int | None = None,
    out: Path | str = "runs/reproduce",
    data_root: Path | str | None = None,
    device: str = "cpu",
    show: bool = False,
    figures: bool = True,
    compute: bool = True,
) -> StudyResult:
    """The study's artifacts and claims, from finished steps where there are any.

    `figures=False` leaves out pictures and page (for a machine that only computes);
    `compute=False` takes what the steps have and computes nothing.
    """
    only, corpora = tuple(only), tuple(corpora)
    plan = study.plan(scale, corpora, seeds, data_root, device)
    artifacts, claims = study.chosen(only)
    folder = Path(out) / study.name
    started = time.perf_counter()
    with locked(folder):
        remove_leftovers(folder)
        run = RunFolder.create(
            folder, {"kind": "reproduce", "study": study.name, "scale": plan.scale}, device=device
        )
        results = Results(folder / "steps", device, compute, show)
        results.finish(_wanted(plan, [*artifacts, *claims]))
        for artifact in artifacts:
            write_artifact(folder, artifact, plan, results, figures)
        entries = _merged(
            folder / "claims.json",
            [one for claim in claims for one in _judged(claim, plan, results)],
            study,
            keep=bool(only or corpora),
            prefer_old=not compute,
        )
        write_json(folder / "claims.json", entries)
        seconds = time.perf_counter() - started
        command = _command(study, only, plan, corpora, seeds)
        run.update(command=command, seeds=len(plan.seeds), corpora=list(plan.corpora))
        index = None
        if figures:
            index = folder / "index.html"
            facts = _facts(command, plan, results, seconds)
            write_text(index, _page(folder, plan, results, entries, facts))
        records = tuple(shown.record for shown in load_artifacts(folder, study, pictures=False))
    skipped = dict(results.skipped)
    return StudyResult(
        study.name, plan.scale, folder, index, records, tuple(entries), skipped, seconds
    )


def _wanted(plan: Plan, parts: Iterable[Any]) -> list[Step[Any]]:
    """The steps that artifacts and claims ask for, in their order, each once."""
    found: dict[str, Step[Any]] = {}
    for part in parts:
        for corpus in _in_use(plan, part.corpora):
            for step in part.needs(plan, corpus):
                found.setdefault(step.name, step)
    return list(found.values())


def _in_use(plan: Plan, corpora: tuple[str, ...] | None) -> tuple[str, ...]:
    return tuple(name for name in plan.corpora if corpora is None or name in corpora)


def _judged(claim: Claim, plan: Plan, results: Results) -> list[dict[str, Any]]:
    """The objects of one claim: each corpus, then all of them where the claim says so."""
    in_use = _in_use(plan, claim.corpora)
    judged: dict[str, Judgement] = {}
    if claim.measure is not None:
        measure = claim.measure
        for corpus in in_use:
            judged[corpus] = judge(
                _measured(lambda corpus=corpus: measure(results, plan, corpus)), claim.side
            )
        for corpus in () if in_use else claim.corpora or ():
            absent = NotMeasurable(f"{corpus} is not part of this run; see --corpora and --scale")
            judged[corpus] = judge(absent, claim.side)
    found = [_entry(claim, plan, corpus, one) for corpus, one in judged.items()]
    if claim.measure_all is not None:
        measure_all = claim.measure_all
        whole = judge(_measured(lambda: measure_all(results, plan, in_use)), claim.side)
        told = f"{whole.reason}; over the corpora at hand: {', '.join(in_use) or 'none'}"
        found.append(_entry(claim, plan, EVERY, whole._replace(reason=told)))
    elif claim.over == "all":
        found.append(_entry(claim, plan, EVERY, over_all(judged)))
    return found


def _measured(measure: Callable[[], Measured]) -> Measured:
    try:
        return measure()
    except Skipped as skipped:
        return NotMeasurable(skipped.reason)


def _entry(claim: Claim, plan: Plan, corpus: str, judgement: Judgement) -> dict[str, Any]:
    return entry(
        id=claim.id,
        claim=claim.sentence,
        where=claim.where,
        corpus=corpus,
        stand_in_for=None if corpus == EVERY else plan.source(corpus).stand_in_for,
        statistic=claim.statistic,
        sides=claim.side,
        paper=claim.paper_value(corpus),
        judgement=judgement,
        seeds=len(plan.seeds),
        scale=plan.scale,
        commit=commit(),
    )


def _merged(
    path: Path, entries: list[dict[str, Any]], study: Study, keep: bool, prefer_old: bool
) -> list[dict[str, Any]]:
    """The new objects among the old ones, in the study's order.

    Old ones stay when only a part was asked for, and where nothing was computed and the new one
    could not be measured.
    """
    old = {_mark(one): one for one in read_json(path)} if path.is_file() else {}
    new = {_mark(one): one for one in entries}
    if prefer_old:
        lost = [mark for mark, one in new.items() if one["verdict"] == "not measurable"]
        new |= {mark: old[mark] for mark in lost if mark in old}
    merged = (old if keep else {}) | new
    order = {claim.id: number for number, claim in enumerate(study.claims)}
    places = [source.name for source in study.sources] + [EVERY]
    known = [one for one in merged.values() if one["id"] in order and one["corpus"] in places]
    return sorted(known, key=lambda one: (order[one["id"]], places.index(one["corpus"])))


def _mark(one: Mapping[str, Any]) -> tuple[str, str]:
    return one["id"], one["corpus"]


def _command(
    study: Study, only: tuple[str, ...], plan: Plan, corpora: tuple[str, ...], seeds: int | None
) -> str:
    parts = ["heedful reproduce", study.name, "--scale", plan.scale]
    parts += ["--only", ",".join(only)] if only else []
    parts += ["--corpora", ",".join(corpora)] if corpora else []
    parts += ["--seeds", str(seeds)] if seeds is not None else []
    return " ".join(parts)


def _facts(command: str, plan: Plan, results: Results, seconds: float) -> dict[str, str]:
    journal = results.journal()
    devices = sorted({str(one["device"]) for one in journal}) or [plan.device]
    commits = sorted({str(one["commit"]) for one in journal if one["commit"]})
    computed = sum(float(one["seconds"]) for one in journal)
    return {
        "command": command,
        "commit": commit() or "not from a repository",
        "steps computed by": ", ".join(c[:12] for c in commits) or "–",
        "device": ", ".join(devices),
        "scale": plan.scale,
        "seeds": str(len(plan.seeds)),
        "made": now(),
        "time": f"{computed:.0f} s in {len(journal)} steps, {seconds:.0f} s for this command",
    }


def _page(
    folder: Path,
    plan: Plan,
    results: Results,
    entries: list[dict[str, Any]],
    facts: dict[str, str],
) -> str:
    from heedful.report.index_page import StudyPage, render_study

    study = plan.study
    shown = load_artifacts(folder, study, pictures=True)
    missing: dict[str, str] = {}
    for artifact in shown:
        missing |= artifact.record["missing"]
    corpora = []
    for source in study.sources:
        state = "used" if source.name in plan.corpora else "not asked for"
        corpora.append(
            {
                "name": source.name,
                "title": source.title,
                "stand_in_for": source.stand_in_for or "",
                "state": missing.get(source.name, state),
            }
        )
    return render_study(
        StudyPage(
            title=study.title,
            reference=study.reference,
            facts=facts,
            corpora=corpora,
            deviations=_deviations(plan, missing),
            artifacts=shown,
            claims=entries,
            skipped=results.skipped,
            is_smoke=plan.scale == "smoke",
        )
    )


def _deviations(plan: Plan, missing: Mapping[str, str]) -> list[str]:
    """What differs from the paper: scale, seeds, corpora, then what the study itself lists."""
    found = []
    if plan.scale == "smoke":
        found.append("Smoke scale: small corpora, few epochs and seeds.")
    wanted = plan.study.seeds["paper"]
    if len(plan.seeds) < wanted:
        found.append(f"{len(plan.seeds)} of the {wanted} seeds of the paper scale.")
    for name in plan.corpora:
        source = plan.source(name)
        if source.stand_in_for:
            found.append(f"{source.title} stands in for {source.stand_in_for}.")
        if source.deviation:
            found.append(source.deviation)
    left_out = [s.name for s in plan.study.sources if s.name not in plan.corpora]
    if left_out:
        found.append(f"Not part of this run: {', '.join(left_out)}.")
    found += [f"{name} is missing: {reason}" for name, reason in missing.items()]
    return [*found, *plan.study.deviations(plan)]
