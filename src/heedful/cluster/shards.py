"""An audit over shards: each is read, examined and summed by itself, and the sums are added up.

What has to set documents against each other or in order (the verdict's exchange, the page, boxes,
points) looks at the documents that are first by key, which is what a smaller audit would draw: they
are gathered in the same pass. All else that is a mean or a share is over every document.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import torch
from safetensors.numpy import load_file, save_file

from heedful.audits import AUDITS, Finding
from heedful.audits.examination import Portion, examine
from heedful.cluster.connection import Cluster, reaching
from heedful.cluster.engine import Doing, Workload, finish
from heedful.corpora import Corpus, Document, document_of
from heedful.corpora.samples import drawn
from heedful.corpora.shards import ShardReader, shards_of
from heedful.errors import InputError, unknown, visible
from heedful.importance import METHODS, methods_of
from heedful.jobs.audit import MOST_DOCUMENTS, audit
from heedful.jobs.audited import Audited
from heedful.jobs.decider import Decider, decider_of, device_of, read_by
from heedful.models.saved import weights_digest
from heedful.report import render
from heedful.reproduction.results import Results, Step, named
from heedful.runs import TABLE, Form, RunFolder, locked, read_json, remove_leftovers, write_json
from heedful.runs.folder import SHARDS
from heedful.runs.randomness import keys
from heedful.statistics.sums import Sums, added, adding_up

SUMS, INDEX = "sums.safetensors", "sums.json"


class ShardFound(NamedTuple):
    """What was found on one shard."""

    rows: Mapping[str, pd.DataFrame]
    """Of every audit."""
    sums: Mapping[tuple[str, str, str], Sums]
    """By audit, measure and method."""
    sample: pd.DataFrame
    """Its documents that are first by key."""
    counts: Mapping[str, Any]
    """How many documents, and what was done to them."""


def _save(folder: Path, found: ShardFound) -> None:
    for name, table in found.rows.items():
        TABLE.save(folder / f"{name}.parquet", table)
    TABLE.save(folder / "sample.parquet", found.sample)
    write_json(folder / "counts.json", found.counts)
    arrays: dict[str, np.ndarray] = {}
    places: dict[int, int] = {}
    index = []
    for key, sums in found.sums.items():  # several measures may be made of the same sums
        if id(sums.totals) not in places:
            place = places[id(sums.totals)] = len(places)
            arrays[f"{place}.totals"] = np.ascontiguousarray(sums.totals)
            arrays[f"{place}.few"] = np.ascontiguousarray(sums.few)
        index.append([*key, places[id(sums.totals)], sums.n, sums.undefined])
    if arrays:
        save_file(arrays, folder / SUMS)
    write_json(folder / INDEX, index)


SHARD: Form[Any] = Form("", _save, lambda folder: folder)
"""What goes in is found on a shard, what comes back is its folder: nothing is held in memory."""


def sums_in(folder: Path) -> Iterator[tuple[tuple[str, str, str], Sums]]:
    """The sums of a shard by audit, measure and method."""
    index = read_json(folder / INDEX)
    arrays = load_file(folder / SUMS) if index else {}
    for name, measure, method, place, n, undefined in index:
        totals, few = arrays[f"{place}.totals"], arrays[f"{place}.few"]
        yield (name, measure, method), Sums(totals, n, undefined, few)


def keys_of(table: pd.DataFrame, most: int) -> np.ndarray:
    """The rows of the smallest keys, each name once."""
    order = table["key"].to_numpy().argsort(kind="stable")
    is_first = ~table["id"].iloc[order].duplicated().to_numpy()
    return np.asarray(order[is_first][:most])


def audit_shards(
    model: str | Path,
    pattern: str,
    out: str | Path,
    *,
    audits: Sequence[str] | None = None,
    methods: Sequence[str] | None = None,
    documents: int = MOST_DOCUMENTS,
    seed: int = 0,
    device: str = "auto",
    on: str | None = None,
    reading: Mapping[str, Any] | None = None,
    columns: Mapping[str, Any] | None = None,
    show: bool = False,
) -> Audited:
    """The audit of a trained model on files that are read one at a time.

    With `documents` 0 the means and shares of every audit are over all documents of all files;
    otherwise so many documents, drawn by key, are audited. `reading` is as in `load`, `columns` as
    in `read_texts`, `on` is `ray` or the address of a Ray cluster. A file that cannot be read, or
    has other columns, is named and counted, and the rest goes on.
    """
    files = shards_of(pattern)
    for kind, names, known in (("audit", audits, AUDITS), ("method", methods, METHODS)):
        for name in names or ():
            if name not in known:
                raise unknown(kind, name, known)
    with nullcontext() if on is None else reaching(on, __name__) as cluster:
        is_far = on is not None and device == "cuda"
        opened = decider_of(model, "cpu" if is_far else str(device_of(device)), **(reading or {}))
        chosen = tuple(AUDITS if audits is None else audits)
        task: dict[str, Any] = {
            "model": str(model), "weights": weights_digest(opened), "reading": dict(reading or {}),
            "device": device if is_far else str(device_of(device)), "seed": seed,
            "out": str(Path(out).resolve()), "sample": documents or MOST_DOCUMENTS,
            "audits": [name for name in chosen if not documents and _adds_up(name)],
            "methods": list(methods_of(opened) if methods is None else methods),
            "options": dict(columns or {}), "files": [_facts(file) for file in files],
        }  # fmt: skip
        if Path(model).exists():  # a worker may work in another folder
            task["model"] = str(Path(model).resolve())
        task["columns"] = _columns(_reader(task, opened), files, show)
        skipped = _finish(task, cluster, show)
    done = [one for one in _steps(task, opened) if one.name not in skipped]
    if not done:
        raise InputError(f"None of the {len(files)} files of {pattern} could be read.")
    folder = Path(task["out"])
    places = [folder / SHARDS / one.name for one in done]
    corpus = _sample(places, opened, task, pattern)
    settings: dict[str, Any] = {
        "audits": chosen, "methods": task["methods"], "documents": 0, "seed": seed,
        "device": "auto" if is_far else device,
        "run": Path(model) if Path(model).exists() else None,
    }  # fmt: skip
    every = sum(read_json(place / "counts.json")["documents"] for place in places)
    if show:
        count = len(corpus.splits["test"])
        print(f"drawn by key: {count:,} of {every:,} documents", file=sys.stderr, flush=True)
    result = audit(opened, corpus, folder, show=show, **settings)
    read = {"of": every, "shards": len(places), "skipped shards": skipped}
    if not task["audits"]:
        if _note(folder, read):
            render(folder)
        return result
    _add_up(result, places, task["audits"], every)
    _note(folder, read | {"documents": every})
    result = audit(opened, corpus, folder, **settings)  # judged again, by all documents
    render(folder)
    return replace(result, documents=every)


def _note(folder: Path, read: Mapping[str, Any]) -> bool:
    """Keeps what was read beside what was audited; false where it was there already."""
    run = RunFolder.open(folder)
    before = run.record["audited"]
    if before | read == before:
        return False
    run.update(audited=before | read)
    return True


def _adds_up(name: str) -> bool:
    """Whether an audit's measures can be added up: it looks at every document by itself."""
    return AUDITS[name].tell is not None and not AUDITS[name].needs


def _facts(file: str) -> dict[str, Any]:
    """What tells that a file is another one; that of an object store is known by its name."""
    if not os.path.exists(file):
        return {"file": file}
    found = os.stat(file)
    return {"file": file, "size": found.st_size, "changed": found.st_mtime_ns}


def _reader(task: Mapping[str, Any], model: Decider) -> ShardReader:
    columns = task.get("columns")
    return ShardReader(
        model.classes,
        getattr(model, "tokeniser", "words"),
        task["options"],
        None if columns is None else tuple(columns),
    )


def _columns(reader: ShardReader, files: Sequence[str], show: bool) -> list[str | None]:
    """The columns of the first file that can be read, which all others must have."""
    failure = None
    for file in files:
        try:
            found = reader.read(file)
        except InputError as error:
            failure = failure or error
            continue
        for line in found.columns.said() if show else ():
            print(visible(line), file=sys.stderr)
        return list(found.columns[:4])
    assert failure is not None
    raise failure


def _finish(task: Mapping[str, Any], cluster: Cluster | None, show: bool) -> dict[str, str]:
    """Does what is left to do; why shards were skipped, by name."""
    folder = Path(task["out"]) / SHARDS
    with locked(folder):
        remove_leftovers(folder)
        results = Results(folder, task["device"], show=show)
        model = None if cluster else _opened(task)
        steps = _steps(task, model)
        with _one_thread():
            if cluster is None:
                results.finish(steps)
                return dict(results.skipped)
            todo = [one.name for one in results.planned(steps)]
            pieces = Workload(__name__, task, todo, seconds=results.seconds())
            found = finish(pieces, cluster, folder, task["device"], show)
    return {name: outcome.skipped for name, outcome in found.items() if outcome.skipped}


def doing(task: Mapping[str, Any]) -> Doing:
    """What does a shard by its name, in a worker: the model is opened once."""
    results = Results(Path(task["out"]) / SHARDS, task["device"])
    steps = {one.name: one for one in _steps(task, _opened(task))}

    def do(name: str) -> None:
        results[steps[name]]

    return do


def _opened(task: Mapping[str, Any]) -> Decider:
    model = decider_of(task["model"], task["device"], **task["reading"])
    if weights_digest(model) != task["weights"]:
        raise InputError(f"{task['model']} is another model here than where the audit was started.")
    return model.to(task["device"])


def _steps(task: Mapping[str, Any], model: Decider | None) -> list[Step[Path]]:
    """One step for every file."""
    kept = ("weights", "reading", "seed", "sample", "audits", "methods", "options", "columns")
    shared = {name: task[name] for name in kept}

    def step(number: int, facts: Mapping[str, Any]) -> Step[Path]:
        def compute(results: Results) -> Any:
            assert model is not None
            return _examined(task, model, facts["file"])

        stem = Path(facts["file"]).name.partition(".")[0]
        name = named(f"{number:06d}-{stem}", "found")
        return Step(name, compute, shared | {"shard": facts}, SHARD)

    return [step(number, facts) for number, facts in enumerate(task["files"])]


def _examined(task: Mapping[str, Any], model: Decider, file: str) -> ShardFound:
    """What is found on the documents of one file."""
    corpus = _reader(task, model).read(file).corpus
    documents, seed = corpus.splits["test"], task["seed"]
    names = [one.id for one in documents]
    picked = np.sort(drawn(names, np.arange(len(names)), task["sample"], seed))
    sample = [documents[row] for row in picked]
    rows: dict[str, pd.DataFrame] = {}
    sums: dict[tuple[str, str, str], Sums] = {}
    notes: Mapping[str, int] = corpus.notes
    if task["audits"]:
        encoded = read_by(model, corpus)
        notes, usual = encoded.notes, Portion()
        rows = examine(
            model,
            encoded.splits["test"],
            {name: AUDITS[name].rows for name in task["audits"]},
            task["methods"],
            seed=seed,
            device=task["device"],
            at_once=usual._replace(tokens=getattr(model, "batch_tokens", usual.tokens)),
        )
        for name, table in rows.items():
            with adding_up():
                found = AUDITS[name].summarise(table)
            for measure in found.measures:
                if measure.estimate.additive is not None:
                    sums[name, measure.name, measure.method] = measure.estimate.additive.sums
    counts = {"documents": len(documents), "notes": dict(notes)}
    return ShardFound(rows, sums, _table(sample, seed), counts)


def _table(sample: Sequence[Document], seed: int) -> pd.DataFrame:
    """Documents as a table, with the key that they are drawn by."""
    names = [one.id for one in sample]
    return pd.DataFrame(
        {
            "key": keys(seed, names, "audited"),
            "id": names,
            "text": [one.text for one in sample],
            "second": [-1 if one.second is None else one.second for one in sample],
            "label": [one.label for one in sample],
        }
    )


def _sample(
    places: Sequence[Path], model: Decider, task: Mapping[str, Any], pattern: str
) -> Corpus:
    """The documents that are first by key among all, in the order of the files.

    A text that several files hold under one name is taken once.
    """
    found: pd.DataFrame | None = None
    notes: dict[str, int] = {}
    for place in places:
        part = TABLE.load(place / "sample.parquet")
        both = part if found is None else pd.concat([found, part], ignore_index=True)
        first = keys_of(both, task["sample"])
        found = both.iloc[np.sort(first)].reset_index(drop=True)
        for name, count in read_json(place / "counts.json")["notes"].items():
            notes[name] = notes.get(name, 0) + count
    assert found is not None
    tokeniser = getattr(model, "tokeniser", "words")
    documents = []
    for row in found.itertuples(index=False):
        document = document_of(str(row.id), str(row.text), int(str(row.label)), tokeniser)
        second = int(str(row.second))
        documents.append(document if second < 0 else replace(document, second=second))
    return Corpus(pattern, model.classes, {"test": documents}, notes=notes, tokeniser=tokeniser)


def _add_up(
    result: Audited,
    places: Sequence[Path],
    audits: Sequence[str],
    every: int,
) -> None:
    """Puts the measures over all documents in the place of the sample's, where they add up."""
    totals: dict[tuple[str, str, str], Sums] = {}
    for place in places:
        for key, sums in sums_in(place):
            totals[key] = totals[key].plus(sums) if key in totals else sums
    run = RunFolder.open(result.folder)
    for name in audits:
        if (path := run.findings / f"{name}.parquet").is_file():
            write_json(run.findings / f"{name}.json", _added(name, path, totals, every))


def _added(
    name: str, rows: Path, totals: Mapping[tuple[str, str, str], Sums], every: int
) -> Finding:
    """A finding with its measures over all documents."""
    audit, table = AUDITS[name], TABLE.load(rows)
    with adding_up():
        finding = audit.summarise(table)
    measures = []
    for one in finding.measures:
        sums, estimate = totals.get((name, one.name, one.method)), one.estimate
        if sums is not None and estimate.additive is not None:
            one = replace(one, estimate=added(estimate, [sums]))
        measures.append(one)
    drawn = int(table["instance"].nunique()) if len(table) else 0
    note = (
        f"Measures are over all {every:,} documents; charts, the notes above and measures with a "
        f"smaller n are of the {drawn:,} documents that are first by key."
    )
    finding = replace(finding, measures=tuple(measures), notes=(*finding.notes, note))
    if finding.measures and audit.tell is not None:
        finding = replace(finding, answer=audit.tell(finding))
    return finding


@contextmanager
def _one_thread() -> Iterator[None]:
    """Lends torch one thread, as every worker has: sums then have the same last digits."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)
