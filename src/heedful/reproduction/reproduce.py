"""The reproduction engine: steps, then artifacts, then claims, then the page.

`<out>/<study>/` gets one CSV, JSON and SVG per artifact, `claims.json`, `index.html` and the steps'
results under `steps/`. All of it is made again from the steps alone.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from heedful.errors import InputError
from heedful.reproduction.artifacts import load_artifacts, write_artifact
from heedful.reproduction.judgements import judged, merged
from heedful.reproduction.request import STEPS, StudyRequest
from heedful.reproduction.results import Results, named
from heedful.reproduction.study import Artifact, Plan, Study
from heedful.runs import (
    commit,
    locked,
    now,
    read_json,
    remove_leftovers,
    versions,
    write_json,
    write_text,
)

RECORD = "study.json"
"""What the folder holds, by which command and versions it was made."""


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
    claims_page: Path | None = None
    """All claims beside all corpora, where several studies were asked for."""

    def lines(self) -> list[str]:
        """All studies for the terminal."""
        found = []
        for study in self.studies:
            found += [f"{study.study} ({study.scale} scale): {study.index or study.folder}"]
            found += [f"  {line}" for line in study.lines()]
        return found + ([f"all claims: {self.claims_page}"] if self.claims_page else [])


def reproduce_study(
    study: Study,
    request: StudyRequest,
    *,
    show: bool = False,
    figures: bool = True,
    compute: bool = True,
) -> StudyResult:
    """The study's artifacts and claims, from finished steps where there are any.

    `figures=False` leaves out pictures and page (for a machine that only computes);
    `compute=False` takes what the steps have and computes nothing.
    """
    request = request.here()
    plan = request.plan(study)
    artifacts, claims = study.chosen(request.only)
    folder = request.folder(study)
    started = time.perf_counter()
    with locked(folder) as may_write:
        remove_leftovers(folder)
        _claim_folder(folder, plan)
        results = Results(folder / STEPS, request.device, compute, show)
        with _threads(plan):
            results.finish(plan.steps([*artifacts, *claims]))
        if not may_write and _is_drawn(folder, artifacts):
            return _as_it_lies(folder, study, plan, round(time.perf_counter() - started, 1))
        for artifact in artifacts:
            if show:
                print(f"making {artifact.id}: {artifact.title}", file=sys.stderr, flush=True)
            write_artifact(folder, artifact, plan, results, figures)
        entries = merged(
            folder / "claims.json",
            [one for claim in claims for one in judged(claim, plan, results)],
            study,
            keep=bool(request.only or request.corpora),
            waiting=() if compute else set(results.skipped.values()),
        )
        write_json(folder / "claims.json", entries)
        seconds = round(time.perf_counter() - started, 1)
        command = _command(study, request)
        facts = _facts(command, plan, results, seconds)
        write_json(folder / RECORD, _record(plan, facts))
        index = None
        if figures:
            index = folder / "index.html"
            write_text(index, _page(folder, plan, results, entries, facts))
        records = tuple(shown.record for shown in load_artifacts(folder, study, pictures=False))
    skipped = dict(results.skipped)
    return StudyResult(
        study.name, plan.scale, folder, index, records, tuple(entries), skipped, seconds
    )


def _is_drawn(folder: Path, artifacts: Iterable[Artifact]) -> bool:
    files = ["claims.json", *(f"{named(artifact.id)}.json" for artifact in artifacts)]
    return all((folder / file).is_file() for file in files)


def _as_it_lies(folder: Path, study: Study, plan: Plan, seconds: float) -> StudyResult:
    """The result of a finished study whose folder cannot be written, from its files alone."""
    index = folder / "index.html"
    shown = load_artifacts(folder, study, pictures=False)
    return StudyResult(
        study.name, plan.scale, folder, index if index.is_file() else None,
        tuple(one.record for one in shown), tuple(read_json(folder / "claims.json")), {}, seconds,
    )  # fmt: skip


@contextmanager
def _threads(plan: Plan) -> Iterator[None]:
    """Lends torch one thread at smoke scale on the CPU, and gives back what it had.

    Smoke models are too small to share: several threads mostly wait for each other, and the numbers
    would depend on how many cores a machine has.
    """
    import torch

    before = torch.get_num_threads()
    if plan.scale == "smoke" and plan.device == "cpu":
        torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def _claim_folder(folder: Path, plan: Plan) -> None:
    """Refuses a folder that holds another scale or something else; steps alone are welcome.

    Steps brought back from another machine come without the rest.
    """
    file = folder / RECORD
    if file.is_file():
        found = read_json(file)
        scale = found.get("scale") if isinstance(found, dict) else None
        if scale != plan.scale:
            raise InputError(
                f"{folder} holds the {scale} scale of this study, {plan.scale} was asked for; "
                "choose another --out."
            )
        return
    strangers = [p.name for p in folder.iterdir() if p.name[0] != "." and p.name != STEPS]
    if strangers:
        raise InputError(
            f"{folder} holds other files ({', '.join(sorted(strangers)[:3])}) and no {RECORD}; "
            "choose a new or empty folder for --out."
        )
    write_json(file, _record(plan, {}))


def _record(plan: Plan, facts: Mapping[str, str]) -> dict[str, Any]:
    return {
        "study": plan.study.name,
        "scale": plan.scale,
        "seeds": len(plan.seeds),
        "corpora": list(plan.corpora),
        "versions": versions(),
        **{name: value for name, value in facts.items() if name not in ("scale", "seeds")},
    }


def _command(study: Study, request: StudyRequest) -> str:
    parts = ["heedful reproduce", study.name, "--scale", request.scale]
    parts += ["--only", ",".join(request.only)] if request.only else []
    parts += ["--corpora", ",".join(request.corpora)] if request.corpora else []
    parts += ["--seeds", str(request.seeds)] if request.seeds is not None else []
    return " ".join(parts)


def _facts(command: str, plan: Plan, results: Results, seconds: float) -> dict[str, str]:
    journal = list({one["step"]: one for one in results.journal()}.values())  # as each stands now
    devices = sorted({str(one["device"]) for one in journal}) or [plan.device]
    commits = sorted({str(one["commit"]) for one in journal if one["commit"]})
    computed = sum(float(one["seconds"]) for one in journal)
    return {
        "command": command,
        "commit": commit() or "not from a repository",
        "steps computed by": ", ".join(c[:12] + "+" * c.endswith("+") for c in commits) or "–",
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
    from heedful.reproduction.index_page import StudyPage, render_study

    study = plan.study
    shown = load_artifacts(folder, study, pictures=True)
    missing = _missing(artifact.record for artifact in shown)
    corpora = []
    for source in study.sources:
        state = "used" if source.name in plan.corpora else "not asked for"
        corpora.append(
            {
                "name": source.name,
                "title": source.title,
                "stand_in_for": source.stand_in_for or "",
                "state": _state(missing, source.name, state),
            }
        )
    return render_study(
        StudyPage(
            title=study.title,
            reference=study.reference,
            facts=facts,
            corpora=corpora,
            symbols=study.symbols,
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
    found += [f"{name} is {how}" for name, how in missing.items()]
    return [*found, *plan.study.deviations(plan)]


def _state(missing: Mapping[str, str], corpus: str, usual: str) -> str:
    """Whether a corpus is there, and which parts of it (`imdb, mlm+`) artifacts lack."""
    said, prefix = missing.get(corpus, usual), f"{corpus}, "
    parts = [name.removeprefix(prefix) for name in missing if name.startswith(prefix)]
    return f"{said}; without {' and '.join(parts)} (see Deviations)" if parts else said


def _missing(records: Iterable[Mapping[str, Any]]) -> dict[str, str]:
    """The corpora that artifacts lack: in which, and why."""
    found: dict[str, tuple[list[str], str]] = {}
    for record in records:
        for corpus, reason in record["missing"].items():
            found.setdefault(corpus, ([], reason))[0].append(record["id"])
    return {name: f"missing in {', '.join(ids)}: {why}" for name, (ids, why) in found.items()}
