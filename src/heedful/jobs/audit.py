"""Audit a model end to end: read, explain, test, judge, show."""

from __future__ import annotations

import shutil
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch

from heedful import __version__
from heedful.audits import AUDITS, Finding, Verdict, judge, words
from heedful.audits.concentration import OUTSIDE, SOME, outside_in_words
from heedful.audits.lexicon import FILES as LEXICON_FILES
from heedful.audits.registry import titles
from heedful.corpora import Corpus, EncodedCorpus, load_corpus
from heedful.corpora.samples import sampled, subset
from heedful.errors import InputError, unknown
from heedful.importance import methods_of
from heedful.jobs.advice import advised
from heedful.jobs.examination import Examination
from heedful.jobs.settings import Settings
from heedful.jobs.sources import Source, source_of
from heedful.jobs.subject import Decider, deciding, device_of, load, read_by
from heedful.jobs.train import train
from heedful.models import AttentionClassifier, looks_like_recipe
from heedful.models.huggingface import RULE, PretrainedClassifier, is_transformer
from heedful.models.saved import weights_digest
from heedful.report import render
from heedful.report.quality import Quality, quality_of
from heedful.runs import RunFolder, fingerprint, plain, read_json, write_json, writing
from heedful.training.presets import PRESETS, nearest

MOST_DOCUMENTS = 2_000
"""More documents than this are sampled: intervals hardly shrink beyond it."""


@dataclass(frozen=True)
class Audited:
    """What an audit leaves."""

    verdict: Verdict
    findings: dict[str, Finding]
    folder: Path
    report: Path
    documents: int
    quality: Quality = field(default_factory=dict)
    """How well the model decides, by split."""

    @property
    def outside(self) -> str:
        """What is said of attention that lies on no word; nothing where all of it does."""
        found = self.findings.get("concentration")
        share = found.get(OUTSIDE) if found else None
        return outside_in_words(share) if share is not None and share.value >= SOME else ""

    def to_json(self) -> dict[str, Any]:
        """The audit as plain data, without the charts' data."""
        return {
            "verdict": self.verdict.to_json(),
            "documents": self.documents,
            "quality": {name: dict(number) for name, number in self.quality.items()},
            "folder": str(self.folder),
            "report": str(self.report),
            "findings": {
                name: {
                    "question": finding.question,
                    "answer": finding.answer,
                    "measures": finding.table().to_dict("records"),
                    "notes": list(finding.notes),
                }
                for name, finding in self.findings.items()
            },
        }


def audit(
    model: Decider | str | Path = "bilstm+additive",
    corpus: str | Corpus | EncodedCorpus = "planted",
    out: str | Path = "runs/audit",
    *,
    settings: Settings = Settings(),
    vectors: str | Path | None = None,
    split: str = "test",
    audits: Sequence[str] = tuple(AUDITS),
    methods: Sequence[str] | None = None,
    documents: int = MOST_DOCUMENTS,
    seed: int = 0,
    device: str = "auto",
    is_deterministic: bool = False,
    source: Source | None = None,
    site: str = "pooled",
    show: bool = False,
) -> Audited:
    """Whether the model's attention may be shown as the reason for its decisions.

    `model` is a trained model, a run or model folder (also one of `transformers`, or `hf:NAME`), or
    a recipe, which is trained first; an existing path wins over a recipe. `site` is that of `load`.
    Findings and `report.html` go to the run folder `out`; the
    same call again goes on where it was stopped, or gives back what it found.

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
    for name in audits:
        if name not in AUDITS:
            raise unknown("audit", name, AUDITS)
    if isinstance(corpus, str):
        corpus = load_corpus(corpus, seed=seed)
    target = device_of(device)
    named = Path(model) if isinstance(model, str | Path) else None
    if isinstance(model, str | Path):
        if Path(model).exists() or is_transformer(model):
            model = deciding(load(model, str(target), site=site))
        elif isinstance(model, str) and (looks_like_recipe(model) or model in PRESETS):
            model = train(
                model,
                corpus,
                out,
                settings=settings,
                vectors=vectors,
                seed=seed,
                device=str(target),
                is_deterministic=is_deterministic,
                source=source,
                show=show,
            )
        else:
            raise InputError(
                f"{model} is neither an existing folder, nor hf:NAME of a model on the hub, nor a "
                f"recipe such as bilstm+additive. {nearest(str(model))}"
            )
    model = model.to(target)
    encoded = read_by(model, corpus)
    methods = methods_of(model) if methods is None else methods
    if split not in encoded.splits or not len(encoded.splits[split]):
        raise InputError(f"Corpus {encoded.name} has no {split} documents to audit.")
    if show:
        _tell(encoded, split)
    run = _run_of(Path(out), model, encoded, seed, target)
    with run.locked():
        chosen = sampled(encoded.splits[split], documents, seed)
        inputs = {
            "model": weights_digest(model),
            "corpus": encoded.fingerprint,
            "split": split,
            "documents": fingerprint({"names": [encoded.splits[split].names[i] for i in chosen]}),
            "audits": list(audits),
            "methods": list(methods),
            "seed": seed,
            "heedful": __version__,
        } | _reading_of(model)
        trained = _trained_in(run.path, named)
        examined = Examination(model, encoded, split, chosen, audits, methods, seed, target)
        return _Job(examined, run, inputs, trained).result(show)


@dataclass(frozen=True)
class _Job:
    """One audit and the run folder that keeps it."""

    examined: Examination
    run: RunFolder
    inputs: dict[str, Any]
    trained: Path | None
    """The run that the model was trained in."""

    def result(self, show: bool) -> Audited:
        """The findings, from the folder when they are there already."""
        mark, count = fingerprint(self.inputs), len(self.examined.chosen)
        done = self.run.record["steps"].get("audit", {})
        audits = self.examined.applicable()
        names = ["verdict", "instances", *audits]
        kept = [self.run.report, *(self.run.findings / f"{name}.json" for name in names)]
        if done.get("fingerprint") != mark or not all(file.is_file() for file in kept):
            started = time.perf_counter()
            self._compute(show)
            seconds = time.perf_counter() - started
            self.run.finish("audit", seconds, fingerprint=mark)
            if show:
                speed = count / max(seconds, 1e-9)
                print(f"{speed:,.1f} texts per second, audited by all tests", file=sys.stderr)
        names = audits + (["words"] if words.has_words(self.examined.model) else [])
        findings = {
            name: Finding.from_json(read_json(self.run.findings / f"{name}.json")) for name in names
        }
        verdict = judge(findings, count)
        if plain(verdict) != read_json(self.run.findings / "verdict.json"):
            # The findings are as they were, but a newer heedful judges them otherwise.
            write_json(self.run.findings / "verdict.json", verdict)
            render(self.run.path)
        if self.trained and verdict.advises_training:  # said, not stored: a folder can be moved
            verdict = verdict.naming(advised(self.trained, self.examined.corpus))
        quality = quality_of(self.run.record, findings)
        return Audited(verdict, findings, self.run.path, self.run.report, count, quality)

    def _forget(self) -> None:
        """Takes away what an earlier audit found; what a lexicon told of the same model stays."""
        for path in self.run.findings.glob("*"):
            if path.name not in LEXICON_FILES:
                path.unlink()

    def _compute(self, show: bool) -> None:
        examined = self.examined
        rows = examined.rows(self.run.path / "work", self.inputs, show)
        self._forget()
        findings = {}
        for name, table in rows.items():
            findings[name] = AUDITS[name].summarise(table)
            with writing(self.run.findings / f"{name}.parquet") as path:
                table.to_parquet(path, index=False)
            write_json(self.run.findings / f"{name}.json", findings[name])
        verdict = judge(findings, len(examined.chosen))
        if words.has_words(examined.model):
            self._keep_words()
        write_json(self.run.findings / "verdict.json", verdict)
        write_json(self.run.findings / "instances.json", examined.instances(rows))
        elsewhere = self.trained if self.trained != self.run.path else None
        self.run.update(
            audited={
                "documents": len(examined.chosen),
                "of": len(examined.documents),
                "split": examined.split,
                "corpus": examined.corpus.name,
                "notes": dict(examined.corpus.notes),
                "titles": titles(),
            }
            | ({"run": str(elsewhere.resolve())} if elsewhere else {})
            | _reading_of(examined.model)
            | ({"words": RULE} if isinstance(examined.model, PretrainedClassifier) else {})
        )
        render(self.run.path)
        shutil.rmtree(self.run.path / "work", ignore_errors=True)

    def _keep_words(self) -> None:
        """The word view: no test, so the verdict does not see it."""
        examined, model = self.examined, self.examined.model
        assert isinstance(model, AttentionClassifier)
        read = subset(examined.documents, examined.chosen)
        table = words.table(model, examined.corpus, read)
        with writing(self.run.findings / "words.parquet") as path:
            table.to_parquet(path, index=False)
        write_json(self.run.findings / "words.json", words.summarise(table, model.classes))


def _tell(encoded: EncodedCorpus, split: str) -> None:
    """Says what was done to documents: cut, empty, with words that the model does not know."""
    for name, count in encoded.notes.items():
        if name.startswith(f"{split}: "):
            print(f"documents {name.removeprefix(f'{split}: ')}: {count}", file=sys.stderr)


def _reading_of(model: Decider) -> dict[str, Any]:
    """How the model reads, where that can be chosen."""
    if not isinstance(model, PretrainedClassifier):
        return {}
    return {"site": model.site.name, "long": model.long, "pieces": model.max_pieces}


def _trained_in(run: Path, named: Path | None) -> Path | None:
    """The folder with a training that can be done again: the audit's own, or the one named."""
    folders = (run,) if named is None else (run, named)
    return next((folder for folder in folders if source_of(folder) is not None), None)


def _run_of(
    out: Path, model: Decider, encoded: EncodedCorpus, seed: int, device: torch.device
) -> RunFolder:
    """The run the model was trained in, or a new one for a model or data from elsewhere."""
    if (out / "run.json").is_file():
        run = RunFolder.open(out)
        if run.configuration.get("kind") == "train":
            is_same = run.record["corpus"] == encoded.fingerprint
            if not is_same or weights_digest(deciding(load(out))) != weights_digest(model):
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
            "model": weights_digest(model),
            "corpus": encoded.name,
            "seed": seed,
        },
        seeds={"all": seed},
        device=str(device),
        corpus=encoded.fingerprint,
    )
