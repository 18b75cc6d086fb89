"""Put a model to every test, document by document: the rows an audit is judged from."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import torch

from heedful.audits import AUDITS
from heedful.audits.examination import Portion, examine, joined, readings
from heedful.corpora import Encoded, EncodedCorpus
from heedful.corpora.samples import Rows, drawn, subset
from heedful.importance import explain, sentence_of
from heedful.jobs.decider import Decider
from heedful.jobs.instances import choose, describe
from heedful.models.huggingface import PretrainedClassifier
from heedful.runs import TABLES, step
from heedful.runs.progress import ticking

SHARD = 256
"""Documents whose rows are kept together; a killed audit loses at most one shard."""
SHOWN = 200
"""Instances on the page."""
FLOWS = 40
"""Instances on the page whose attention through the layers is drawn, where there are layers."""


@dataclass(frozen=True)
class Examination:
    """One model, the documents that it reads and the audits that look on."""

    model: Decider
    corpus: EncodedCorpus
    split: str
    chosen: Rows
    """The documents of the split that are audited."""
    audits: Sequence[str]
    methods: Sequence[str]
    seed: int
    device: torch.device

    @property
    def documents(self) -> Encoded:
        """All documents of the split, audited or not."""
        return self.corpus.splits[self.split]

    def applicable(self) -> list[str]:
        """The audits whose needs the corpus meets."""
        has = {
            "labels": bool((self.documents.labels >= 0).any()),
            "evidence": self.documents.evidence is not None,
            "heads": isinstance(self.model, PretrainedClassifier),
            "alignment": False,  # of translators' readings: see audits.alignment.with_links
        }
        return [name for name in self.audits if all(has[need] for need in AUDITS[name].needs)]

    def rows(self, work: Path, inputs: Mapping[str, Any], show: bool) -> dict[str, pd.DataFrame]:
        """The rows of every audit, shard by shard; finished shards are read from `work`.

        `inputs` is everything that they depend on.
        """
        names = self.applicable()
        whole = {name: self._whole(name, work, inputs) for name in names if AUDITS[name].whole}
        names = [name for name in names if name not in whole]
        shards = [self.chosen[i : i + SHARD] for i in range(0, len(self.chosen), SHARD)]
        parts: dict[str, list[pd.DataFrame]] = {name: [] for name in names}
        with ticking("auditing", len(self.chosen), show=show) as ticker:
            for number, shard in enumerate(shards):
                tables = step(
                    work,
                    f"shard-{number:05d}",
                    partial(self._shard, shard, names),
                    inputs=inputs,
                    form=TABLES,
                )
                for name in names:
                    parts[name].append(tables[name])
                ticker.advance(len(shard))
        return whole | {name: joined(tables) for name, tables in parts.items()}

    def _whole(self, name: str, work: Path, inputs: Mapping[str, Any]) -> pd.DataFrame:
        """The rows of an audit that sets texts against each other, all at once."""
        ask, some = AUDITS[name].whole, subset(self.documents, self._looked_at(name))
        assert ask is not None
        tables: Mapping[str, pd.DataFrame] = step(
            work,
            name,
            lambda: {name: ask(self.model, some, self.seed, self.device, self._portion)},
            inputs=inputs,
            form=TABLES,
        )
        return tables[name]

    def instances(self, rows: Mapping[str, pd.DataFrame]) -> dict[str, Any]:
        """What the page shows of single documents."""
        every = self.documents.names
        tags = choose(rows, [every[row] for row in self.chosen], SHOWN, self.seed)
        picked = np.array([row for row in self.chosen if every[row] in tags])
        described: list[dict[str, Any]] = []
        shown = subset(self.documents, picked)
        for reading in readings(self.model, shown, self.device, self._portion):
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

    def _shard(self, shard: Rows, names: Sequence[str]) -> dict[str, pd.DataFrame]:
        return examine(
            self.model,
            self.documents,
            {name: AUDITS[name].rows for name in names},
            self.methods,
            seed=self.seed,
            device=self.device,
            among={name: shard[np.isin(shard, self._looked_at(name))] for name in names},
            at_once=self._portion,
        )

    def _looked_at(self, name: str) -> Rows:
        """The documents that an audit is for: all, or those a smaller audit would have drawn."""
        most = AUDITS[name].most
        if not 0 < most < len(self.chosen):
            return self.chosen
        return drawn(self.documents, self.chosen, most, self.seed)

    @property
    def _portion(self) -> Portion:
        """A model that needs more memory for a token says how many it takes."""
        usual = Portion()
        return usual._replace(tokens=getattr(self.model, "batch_tokens", usual.tokens))
