"""Audit a model end to end: read, explain, test, judge, show."""

from __future__ import annotations

import shutil
import sys
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import torch

from heedful.audits import AUDITS, Finding, judge, words
from heedful.audits.effort import MOST_READ, Level
from heedful.audits.registry import RETIRED, titles
from heedful.audits.verdict import AUDIT as EXCHANGE
from heedful.corpora import Corpus, EncodedCorpus
from heedful.corpora.in_memory import Documents
from heedful.corpora.samples import drawn, subset
from heedful.errors import InputError
from heedful.jobs.advice import Situation, advice
from heedful.jobs.audited import Audited
from heedful.jobs.cost import cost_of
from heedful.jobs.decider import (
    Decider,
    Model,
    decider_of,
    is_trained,
    quick_products,
)
from heedful.jobs.estimate import Estimated, estimated
from heedful.jobs.examination import Examination, summarised
from heedful.jobs.priors import NOT_CALIBRATED
from heedful.jobs.ready import made_ready, reading_of
from heedful.jobs.settings import Settings
from heedful.jobs.sources import DocumentSource
from heedful.models import AttentionClassifier
from heedful.models.huggingface import RULE, PretrainedClassifier
from heedful.models.huggingface.language_models import PREFIX as LANGUAGE_MODEL
from heedful.models.huggingface.opening import PREFIX
from heedful.models.saved import weights_digest
from heedful.report import render
from heedful.report.quality import accuracy_of, quality_of
from heedful.runs import TABLE, RunFolder, fingerprint, held, plain, read_json, write_json, writing
from heedful.runs.meter import metering, spent_on
from heedful.runs.progress import duration
from heedful.statistics.estimates import Estimate

MOST_DOCUMENTS = 2_000
"""More documents than this are sampled: intervals hardly shrink beyond it."""


def audit(
    model: Model = "bilstm+additive",
    corpus: Corpus | EncodedCorpus | Documents = "planted",
    out: str | Path = "runs/audit",
    *,
    text: str | None = None,
    text2: str | None = None,
    label: str | None = None,
    labels: str | Mapping[str, str] | None = None,
    threshold: float | None = None,
    settings: Settings = Settings(),
    vectors: str | Path | None = None,
    split: str = "test",
    audits: str | Sequence[str] | None = None,
    methods: str | Sequence[str] | None = None,
    documents: int = MOST_DOCUMENTS,
    effort: Level = "normal",
    minutes: float | None = None,
    only: str | None = None,
    seed: int = 0,
    device: str = "auto",
    deterministic: bool = False,
    run: Path | None = None,
    source: DocumentSource | None = None,
    command: str = "",
    site: str = "pooled",
    long: str = "beginning",
    trust_remote_code: bool = False,
    show: bool = False,
) -> Audited:
    """Whether the model's attention may be shown as the reason for its decisions.

    `model` is a trained model, a run or model folder (also one of `transformers`, or `hf:NAME`), a
    pipeline or a pair (model, tokenizer) of `transformers`, or a recipe, which is trained first; an
    existing path wins over a recipe. `corpus` is one, its name, or documents in memory: a
    DataFrame, a `datasets.Dataset` or dict of them, a dict of columns, texts, or a pair (texts,
    labels). A trained model is audited on all rows of these, or on those that a split column marks
    as test; `text`, `text2` and `label` name the columns, `labels` and `threshold` are as in
    `read_file`. `run` is the run that a trained model is from, if it is not named itself. `effort`
    says how many documents are looked at (`quick`: 50, `normal`: as many as it takes, at most 400,
    `exhaustive`: all), `minutes` for how long, `only="verdict"` that the word is all that is asked.
    `site`, `long` and `trust_remote_code` are those of `load`, `source` says where documents can be
    opened again, `command` what was typed. Findings and `report.html` go to the run folder `out`;
    the same call again goes on where it was stopped, or gives back what it found.

    >>> import heedful, tempfile
    >>> from heedful.jobs.settings import settings_of
    >>> sizes = {"train": 200, "dev": 50, "test": 60}
    >>> corpus = heedful.load_corpus("planted:2:short", sizes=sizes)
    >>> small = settings_of({"train": {"epochs": 2}})
    >>> with tempfile.TemporaryDirectory() as out:
    ...     result = heedful.audit(
    ...         "none+additive", corpus, out + "/run", settings=small, audits=["erasure"]
    ...     )
    >>> result.verdict.word
    'cannot tell'
    """
    ready = made_ready(**locals())
    with held(out), quick_products(ready.device):
        folder = folder_of(Path(out), ready.model, ready.weights, ready.corpus, seed, ready.device)
        inputs = ready.inputs()
        trained = _trained_in(folder.path, ready.run)
        examined = ready.examined()
        return _Job(examined, folder, inputs, trained, source, ready.priors, command).result(show)


def estimate(
    model: Model = "bilstm+additive",
    corpus: Corpus | EncodedCorpus | Documents = "planted",
    out: str | Path = "runs/audit",
    **given: Any,
) -> Estimated:
    """What `audit` would take if it were given the same: time and memory, from a few documents."""
    if isinstance(model, str | Path) and not is_trained(model):
        raise InputError(
            f"{model} has to be trained first, and how long that takes is not estimated: `heedful "
            f"train {model}`; then ask about the run."
        )
    known = {**(audit.__kwdefaults__ or {}), **given}
    ready = made_ready(model=model, corpus=corpus, out=out, **known)
    with quick_products(ready.device):
        return estimated(ready.examined())


@dataclass(frozen=True)
class _Job:
    """One audit and the run folder that keeps it."""

    examined: Examination
    run: RunFolder
    inputs: dict[str, Any]
    trained: Path | None
    """The run that the model was trained in."""
    source: DocumentSource | None
    """Where the audited documents came from."""
    priors: dict[str, Estimate]
    """Accuracy of a language model under each correction for the prior."""
    command: str
    """What was typed; empty for a call in Python."""

    def result(self, show: bool) -> Audited:
        """The findings, from the folder when they are there already."""
        started = time.perf_counter()
        mark, count = fingerprint(self.inputs), len(self.examined.chosen)
        audits = self.examined.applicable()
        is_kept = self._is_kept(mark, audits)
        if not is_kept:
            self._compute(show)
        names = audits + (["words"] if self._has_words else [])
        findings = {
            name: Finding.from_json(read_json(self.run.findings / f"{name}.json")) for name in names
        }
        verdict = judge(findings, count)
        if "asked" in self.inputs:
            said = f"{verdict.sentence} {NOT_CALIBRATED}"
            verdict = replace(verdict, sentence=said, provisional=True)
        verdict = replace(verdict, advice=advice(verdict, self._situation()))
        told = self.run.findings / "verdict.json"
        # Findings that were there already may be judged otherwise by a newer heedful, and a folder
        # that was moved is named otherwise.
        if not is_kept or plain(verdict) != read_json(told):
            # What is kept on a disk that cannot be written stays as it is.
            with suppress(*((OSError, InputError) if is_kept else ())):
                self.run.report.unlink(missing_ok=True)  # a kill leaves no page that differs
                write_json(told, verdict)
                render(self.run.path)
        if not is_kept:
            seconds = time.perf_counter() - started
            self.run.finish("audit", seconds, fingerprint=mark)
            if show:
                print(f"All tests took {duration(seconds)}.", file=sys.stderr)
        # Only now, so that a kill before costs no shard; those of another audit stay.
        shutil.rmtree(self._work, ignore_errors=True)
        quality = quality_of(self.run.record, findings)
        return Audited(verdict, findings, self.run.path, self.run.report, count, quality)

    @property
    def _work(self) -> Path:
        """Where the shards of this very audit lie until it is finished."""
        return self.run.path / f"work-{fingerprint(self.inputs)}"

    @property
    def _has_words(self) -> bool:
        """Whether there is a word view: not where the verdict is all that is asked."""
        return bool(self.examined.methods) and words.has_words(self.examined.model)

    def _situation(self) -> Situation:
        """What advice depends on."""
        examined = self.examined
        places = self.run.path, self.trained, self.source
        counts = len(examined.chosen), len(examined.documents)
        return Situation(examined.model, *places, examined.corpus, *counts)

    def _is_kept(self, mark: str, audits: Sequence[str]) -> bool:
        """Whether the folder holds all files of this very audit."""
        files = [self.run.findings / f"{name}.json" for name in ("verdict", "instances", *audits)]
        done = self.run.record["steps"].get("audit", {})
        is_same = done.get("fingerprint") == mark
        return is_same and all(file.is_file() for file in (self.run.report, *files))

    def _forget(self) -> None:
        """Takes away what an earlier audit found; what is not of an audit stays.

        Until all files are those of this audit, the record tells of none: a killed audit must not
        pass for the earlier one.
        """
        self.run.forget("audit")
        for name in ("verdict", "instances", *AUDITS, *RETIRED, "words"):
            for suffix in (".json", ".parquet"):
                (self.run.findings / f"{name}{suffix}").unlink(missing_ok=True)

    def _compute(self, show: bool) -> None:
        examined, work = self.examined, self._work
        if show and EXCHANGE in examined.applicable():
            self._tell_word(examined.whole_rows(EXCHANGE, work, self.inputs, show)[0])
        looked = examined.look(work, self.inputs, show)
        self._forget()
        for name in examined.applicable():
            self._keep(name, looked.rows[name], summarised(name, looked))
        with spent_on("page"), metering() as meter:
            if self._has_words:
                self._keep_words()
            shown = examined.instances(looked.rows, show)
        looked.cost.append(meter.table())
        write_json(self.run.findings / "instances.json", shown)
        cost, accuracy = cost_of(looked, examined), accuracy_of(looked.rows)
        if show:
            print(cost["sentence"], file=sys.stderr)
        elsewhere = self.trained if self.trained != self.run.path else None
        self.run.update(
            audited={
                "documents": len(examined.chosen),
                "of": len(examined.documents),
                "split": examined.split,
                "corpus": examined.corpus.name,
                "notes": dict(examined.corpus.notes),
                "titles": titles(),
                "effort": examined.effort.level,
                "looked at": {name: one._asdict() for name, one in looked.stops.items()},
                "cost": cost,
                "command": self.command or _called(len(examined.chosen), examined.seed),
            }
            | ({"accuracy": accuracy} if accuracy else {})
            | ({"priors": self.priors} if self.priors else {})
            | ({"run": str(elsewhere.resolve())} if elsewhere else {})
            | _name_of(examined.model)
            | reading_of(examined.model)
            | ({"words": RULE} if isinstance(examined.model, PretrainedClassifier) else {})
        )

    def _tell_word(self, rows: pd.DataFrame) -> None:
        """Says the word as soon as what it needs is there; explanations and pictures follow."""
        found = {EXCHANGE: AUDITS[EXCHANGE].summarise(rows)}
        word = judge(found, len(self.examined.chosen)).word
        print(f"May attention be shown as the reason? {word.upper()}", file=sys.stderr)

    def _keep(self, name: str, table: pd.DataFrame, finding: Finding) -> None:
        """Writes the rows of an audit and what they come to."""
        with writing(self.run.findings / f"{name}.parquet") as path:
            TABLE.save(path, table)
        write_json(self.run.findings / f"{name}.json", finding)

    def _keep_words(self) -> None:
        """The word view: no test, so the verdict does not see it."""
        examined, model = self.examined, self.examined.model
        assert isinstance(model, AttentionClassifier)
        looked_at = examined.chosen
        if examined.effort.level != "exhaustive":
            looked_at = drawn(examined.documents.names, looked_at, MOST_READ, examined.seed)
        read = subset(examined.documents, np.sort(looked_at))
        table = words.table(model, examined.corpus, read)
        self._keep("words", table, words.summarise(table, model.classes))


def _called(documents: int, seed: int) -> str:
    return f"heedful.audit(model, corpus, documents={documents}, seed={seed}) in Python"


def _name_of(model: Decider) -> dict[str, str]:
    """Where a model from elsewhere can be opened again."""
    prefix, _, place = model.recipe.partition(":")
    if not isinstance(model, PretrainedClassifier) or f"{prefix}:" not in (PREFIX, LANGUAGE_MODEL):
        return {}
    folder = Path(place)
    if not folder.exists():
        return {"model": model.recipe}
    return {"model": f"{(model.asking and LANGUAGE_MODEL) or ''}{folder.resolve()}"}


def _trained_in(run: Path, named: Path | None) -> Path | None:
    """The folder with a training that can be done again: the audit's own, or the one named."""
    folders = [folder for folder in (run, named) if folder and (folder / "run.json").is_file()]
    kinds = {folder: RunFolder.open(folder).configuration.get("kind") for folder in folders}
    return next((folder for folder in folders if kinds[folder] == "train"), None)


def folder_of(
    out: Path,
    model: Decider,
    weights: str,
    encoded: EncodedCorpus,
    seed: int,
    device: torch.device,
) -> RunFolder:
    """The run the model was trained in, or a new one for a model or data from elsewhere."""
    if (out / "run.json").is_file():
        run = RunFolder.open(out)
        if run.configuration.get("kind") == "train":
            is_same = run.record["corpus"] == encoded.fingerprint
            if not is_same or not _holds(run, weights):
                raise InputError(
                    f"{out} holds a model trained on {run.configuration.get('corpus')}, and keeps "
                    "only the audit of that model on that corpus; choose another --out."
                )
            return run
    return RunFolder.create(
        out,
        {
            "kind": "audit",
            "recipe": model.recipe,
            "model": weights,
            "corpus": encoded.name,
            "seed": seed,
        },
        seeds={"all": seed},
        device=str(device),
        corpus=encoded.fingerprint,
    )


def _holds(run: RunFolder, weights: str) -> bool:
    """Whether a run's model has these weights; where its record does not say so, it is opened."""
    is_said = run.record.get("weights") == weights
    return is_said or weights_digest(decider_of(run.path)) == weights
