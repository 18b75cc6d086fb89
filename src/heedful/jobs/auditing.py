"""Audit a model end to end: read, explain, test, judge, show."""

from __future__ import annotations

import shutil
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import torch

from heedful import __version__
from heedful.audits import AUDITS, Finding, Verdict, judge, words
from heedful.audits.concentration import OUTSIDE, SOME, outside_in_words
from heedful.audits.lexicon import FILES as LEXICON_FILES
from heedful.corpora import Corpus, EncodedCorpus, batches, load_corpus
from heedful.errors import InputError, unknown
from heedful.importance import explain, methods_of, sentence_of
from heedful.jobs.opening import Decider, deciding, device_of, load, read_by
from heedful.jobs.sampling import drawn, sampled, subset
from heedful.jobs.settings import Settings
from heedful.jobs.sources import Source, source_of
from heedful.jobs.stages import TABLES
from heedful.jobs.training import train
from heedful.models import AttentionClassifier, Reading, looks_like_recipe, read
from heedful.models.huggingface import RULE, PretrainedClassifier, is_transformer
from heedful.models.saved import weights_digest
from heedful.report import choose, describe, render
from heedful.report.quality import Quality, quality_of
from heedful.runs import RunFolder, fingerprint, plain, read_json, step, write_json, writing
from heedful.runs.progress import ticking
from heedful.training.presets import PRESETS

SHARD = 256
"""Documents whose rows are kept together; a killed audit loses at most one shard."""
BATCH, BATCH_TOKENS = 64, 32_768
"""Documents per forward pass, and documents × longest document."""
SHOWN = 200
"""Instances on the page."""
FLOWS = 40
"""Instances on the page whose attention through the layers is drawn, where there are layers."""
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
                "recipe such as bilstm+additive."
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
        job = _Job(
            model, encoded, split, chosen, audits, methods, seed, target, run, inputs, trained
        )  # fmt: skip
        return job.result(show)


@dataclass(frozen=True)
class _Job:
    """One audit of one model on one split."""

    model: Decider
    corpus: EncodedCorpus
    split: str
    chosen: np.ndarray[Any, Any]
    audits: Sequence[str]
    methods: Sequence[str]
    seed: int
    device: torch.device
    run: RunFolder
    inputs: dict[str, Any]
    trained: Path | None
    """The run that the model was trained in."""

    def result(self, show: bool) -> Audited:
        """The findings, from the folder when they are there already."""
        mark = fingerprint(self.inputs)
        done = self.run.record["steps"].get("audit", {})
        names = ["verdict", "instances", *self._applicable()]
        kept = [self.run.report, *(self.run.findings / f"{name}.json" for name in names)]
        if done.get("fingerprint") != mark or not all(file.is_file() for file in kept):
            started = time.perf_counter()
            self._compute(show)
            seconds = time.perf_counter() - started
            self.run.finish("audit", seconds, fingerprint=mark)
            if show:
                speed = len(self.chosen) / max(seconds, 1e-9)
                print(f"{speed:,.1f} texts per second, audited by all tests", file=sys.stderr)
        names = self._applicable() + (["words"] if words.has_words(self.model) else [])
        findings = {
            name: Finding.from_json(read_json(self.run.findings / f"{name}.json")) for name in names
        }
        verdict = judge(findings, len(self.chosen))
        if plain(verdict) != read_json(self.run.findings / "verdict.json"):
            # The findings are as they were, but a newer heedful judges them otherwise.
            write_json(self.run.findings / "verdict.json", verdict)
            render(self.run.path)
        if self.trained:  # said, not stored: a folder can be moved
            verdict = verdict.naming(self.trained)
        quality = quality_of(self.run.record, findings)
        count = len(self.chosen)
        return Audited(verdict, findings, self.run.path, self.run.report, count, quality)

    def _forget(self) -> None:
        """Takes away what an earlier audit found; what a lexicon told of the same model stays."""
        for path in self.run.findings.glob("*"):
            if path.name not in LEXICON_FILES:
                path.unlink()

    def _compute(self, show: bool) -> None:
        rows = self._rows(show)
        self._forget()
        findings = {}
        for name in self._applicable():
            table = rows[name]
            findings[name] = AUDITS[name].summarise(table)
            with writing(self.run.findings / f"{name}.parquet") as path:
                table.to_parquet(path, index=False)
            write_json(self.run.findings / f"{name}.json", findings[name])
        verdict = judge(findings, len(self.chosen))
        if words.has_words(self.model):
            self._keep_words()
        write_json(self.run.findings / "verdict.json", verdict)
        write_json(self.run.findings / "instances.json", self._instances(rows))
        elsewhere = self.trained if self.trained != self.run.path else None
        self.run.update(
            audited={
                "documents": len(self.chosen),
                "of": len(self.corpus.splits[self.split]),
                "split": self.split,
                "corpus": self.corpus.name,
                "notes": dict(self.corpus.notes),
            }
            | ({"run": str(elsewhere.resolve())} if elsewhere else {})
            | _reading_of(self.model)
            | ({"words": RULE} if isinstance(self.model, PretrainedClassifier) else {})
        )
        render(self.run.path)
        shutil.rmtree(self.run.path / "work", ignore_errors=True)

    def _keep_words(self) -> None:
        """The word view: no test, so the verdict does not see it."""
        assert isinstance(self.model, AttentionClassifier)
        read = subset(self.corpus.splits[self.split], self.chosen)
        table = words.table(self.model, self.corpus, read)
        with writing(self.run.findings / "words.parquet") as path:
            table.to_parquet(path, index=False)
        write_json(self.run.findings / "words.json", words.summarise(table, self.model.classes))

    def _applicable(self) -> list[str]:
        """The audits whose needs the corpus meets."""
        encoded = self.corpus.splits[self.split]
        has = {
            "labels": bool((encoded.labels >= 0).any()),
            "evidence": encoded.evidence is not None,
            "alignment": False,  # of translators' readings: see audits.alignment.with_links
        }
        return [name for name in self.audits if all(has[need] for need in AUDITS[name].needs)]

    def _rows(self, show: bool) -> dict[str, pd.DataFrame]:
        """The rows of every audit, shard by shard; finished shards are read from disk."""
        names = self._applicable()
        shards = [self.chosen[i : i + SHARD] for i in range(0, len(self.chosen), SHARD)]
        parts: dict[str, list[pd.DataFrame]] = {name: [] for name in names}
        with ticking("auditing", len(self.chosen), show=show) as ticker:
            for number, shard in enumerate(shards):
                tables = step(
                    self.run.path / "work",
                    f"shard-{number:05d}",
                    partial(self._shard, shard, names),
                    inputs=self.inputs,
                    form=TABLES,
                )
                for name in names:
                    parts[name].append(tables[name])
                ticker.advance(len(shard))
        return {name: _joined(tables) for name, tables in parts.items()}

    def _shard(self, shard: np.ndarray[Any, Any], names: Sequence[str]) -> dict[str, pd.DataFrame]:
        parts: dict[str, list[pd.DataFrame]] = {name: [] for name in names}
        for most, together in self._by_size(names).items():
            rows = shard if not most else shard[np.isin(shard, self._drawn(most))]
            for reading in self._readings(rows):
                importance = explain(self.model, reading, self.methods, self.seed)
                for name in together:
                    found = AUDITS[name].rows(self.model, reading, importance, self.seed)
                    parts[name].append(found)
        return {name: _joined(tables) for name, tables in parts.items()}

    def _by_size(self, names: Sequence[str]) -> dict[int, list[str]]:
        """The audits that look at the same number of documents, by that number; 0 is all."""
        sizes: dict[int, list[str]] = {}
        for name in names:
            most = AUDITS[name].most
            sizes.setdefault(most if most < len(self.chosen) else 0, []).append(name)
        return sizes

    def _drawn(self, most: int) -> np.ndarray[Any, Any]:
        """As many of the audited documents, those that a smaller audit would have drawn."""
        return drawn(self.corpus.splits[self.split], self.chosen, most, self.seed)

    def _readings(self, rows: np.ndarray[Any, Any]) -> Iterator[Reading]:
        if not len(rows):
            return
        encoded = subset(self.corpus.splits[self.split], rows)
        most = getattr(self.model, "batch_tokens", BATCH_TOKENS)
        for batch in batches(encoded, BATCH, max_tokens=most):
            yield read(self.model, batch.to(self.device))

    def _instances(self, rows: dict[str, pd.DataFrame]) -> dict[str, Any]:
        """What the page shows of single documents."""
        encoded = self.corpus.splits[self.split]
        names = [encoded.names[row] for row in self.chosen]
        tags = choose(rows, names, SHOWN, self.seed)
        picked = np.array([row for row in self.chosen if encoded.names[row] in tags])
        described: list[dict[str, Any]] = []
        for reading in self._readings(picked):
            importance = explain(self.model, reading, self.methods, self.seed)
            described += describe(self.model, reading, importance, tags)
        order = {name: position for position, name in enumerate(tags)}
        described.sort(key=lambda entry: order[entry["id"]])
        for entry in described[FLOWS:]:  # a page holds the flow of the first few
            entry.pop("flow", None)
        return {
            "classes": list(self.model.classes),
            "methods": [{"name": n, "sentence": sentence_of(n)} for n in self.methods],
            "linear": all("unit_logits" in entry for entry in described),
            "documents": len(self.chosen),
            "instances": described,
        }


def _joined(tables: Sequence[pd.DataFrame]) -> pd.DataFrame:
    filled = [table for table in tables if len(table)]
    if not filled:
        return tables[0] if tables else pd.DataFrame({"instance": []})
    return pd.concat(filled, ignore_index=True)


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
